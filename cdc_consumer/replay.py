"""The loop: events from the topic, as SQL on the follower, one leader transaction at a time.

An attempt connects to the follower, locks the topic, reads the position and checks that the topic continues it. Then
each event finds its place and is applied; at the end of its transaction the position is written and all is committed.
Whatever breaks an attempt, the next one starts at the position, which tells what was committed.
"""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack

from cdc_consumer.follower.server import Server, open_server
from cdc_consumer.follower.worker import Worker
from cdc_consumer.next_attempt import PASSING, NextAttempt
from cdc_consumer.progress import Progress
from cdc_consumer.queries import QueryReplay
from cdc_consumer.sql.positions import Mark, mark_of
from cdc_consumer.transactions import Step, Transactions
from shared.errors import CdcError, OffsetGoneError, TopicLinkError, TopicMissingError, causes
from shared.events import Heartbeat, Query, Rows, decode
from shared.filters import DatabaseFilter
from shared.profile import ConsumerProfile
from shared.recovery import Stopping, sleep
from shared.topic import Record, TopicReader, open_reader

logger = logging.getLogger(__name__)

#: seconds one read of the topic waits at most, and so a signal
READ_SECONDS = 0.5
#: seconds between two looks for a topic that does not exist yet
MISSING_SECONDS = 1.0
#: seconds within which a record that the topic says it holds must arrive
RECORD_SECONDS = 30.0
#: number of the worker that applies everything
ONLY_WORKER = 0


def replay(profile: ConsumerProfile, stop: Stopping, exit_at_end: bool) -> None:
    """Replay until a stop is requested or, with `exit_at_end`, all that the topic holds now. Raises CdcError."""
    next_attempt, progress = NextAttempt(stop), Progress()
    databases = DatabaseFilter(profile.filters, profile.database.system_database)
    previous: int | None = None
    end: int | None = None
    while not stop():
        worker: Worker | None = None
        try:
            with ExitStack() as stack:
                server = open_server(profile, databases, previous)
                stack.callback(server.close)
                previous = server.id
                worker = server.worker(ONLY_WORKER, next_attempt.careful)
                reader = _open_reader(profile, stop, wait=not exit_at_end)
                if reader is None:
                    return
                stack.callback(reader.close)
                end = reader.next_offset() if exit_at_end and end is None else end
                attempt = Attempt(profile, databases, server, worker, reader, progress, stop, end)
                attempt.start()
                next_attempt.reached()
                stack.callback(attempt.finish)
                attempt.run()
                return
        except PASSING as error:
            began = None if worker is None else worker.own.start.offset
            next_attempt.after(error, began, looked_closer=worker is not None and worker.careful)


def _open_reader(profile: ConsumerProfile, stop: Stopping, wait: bool) -> TopicReader | None:
    """Open the topic, or wait until it exists; None when asked to stop before."""
    told = False
    while not stop():
        try:
            return open_reader(profile.topic)
        except TopicMissingError as error:
            if not wait:
                raise
            if not told:
                logger.info("waiting for the topic: %s", causes(error))
                told = True
            sleep(MISSING_SECONDS, stop)
    return None


class Attempt:
    """One session on the follower and one reader of the topic, until something breaks."""

    def __init__(
        self,
        profile: ConsumerProfile,
        databases: DatabaseFilter,
        server: Server,
        worker: Worker,
        reader: TopicReader,
        progress: Progress,
        stop: Stopping,
        end: int | None,
    ) -> None:
        self._profile = profile
        self._databases = databases
        self._server = server
        self._worker = worker
        self._reader = reader
        self._progress = progress
        self._stop = stop
        #: topic offset to stop at, None for never
        self._end = end
        #: where the topic ended when a stop was requested inside a transaction
        self._end_at_stop: int | None = None
        self._queries = QueryReplay(worker, server.facts, databases, profile.database.system_database)
        self._transactions = Transactions(worker.own.start.sequence)
        #: topic offset of the next record
        self._next = worker.own.start.offset + 1

    def start(self) -> None:
        """Make the reader continue at the follower's position. Raises OffsetGoneError when the topic does not."""
        mark, facts = self._worker.own.start, self._server.facts
        if mark.offset >= 0:
            self._check_topic(mark)
        self._reader.seek(self._next)
        logger.info(
            "replaying topic %s from offset %d (sequence %d, leader %s:%d) into %s, MySQL %s, %s",
            self._profile.topic.name, self._next, mark.sequence + 1, mark.file or "start", mark.leader_offset,
            self._profile.database, facts.version, "under the leader's GTIDs" if facts.gtids else "without GTIDs",
        )  # fmt: skip

    def _check_topic(self, mark: Mark) -> None:
        advice = "it was created anew or lost records; load the follower anew, or name the topic it was loaded from"
        name, end = self._profile.topic.name, self._reader.next_offset()
        if end <= mark.offset:
            raise OffsetGoneError(
                f"topic {name} ends at offset {end}, and the follower has applied offset {mark.offset}: {advice}"
            )
        self._reader.seek(mark.offset)
        try:
            record = self._first_record()
        except OffsetGoneError:
            # Retention removed what is applied. The sequence of the next record decides, if that is still there.
            return
        event = decode(record.value, f"topic {name} offset {record.offset}")
        found = mark_of(event, record.offset)
        same = (found.sequence, found.file, found.leader_offset, found.gtid)
        if same != (mark.sequence, mark.file, mark.leader_offset, mark.gtid):
            raise OffsetGoneError(
                f"offset {mark.offset} of topic {name} holds sequence {found.sequence} of leader {found.file}:"
                f"{found.leader_offset}, and the follower has applied sequence {mark.sequence} of {mark.file}:"
                f"{mark.leader_offset} there: {advice}"
            )

    def _first_record(self) -> Record:
        deadline = time.monotonic() + RECORD_SECONDS
        while time.monotonic() < deadline:
            if records := self._reader.read(READ_SECONDS):
                return records[0]
        raise TopicLinkError(f"topic {self._profile.topic.name} does not deliver what it holds")

    def run(self) -> None:
        """Apply events until stopped or at the end."""
        while not self._done():
            records = self._reader.read(0.0)
            if not records:
                self._worker.settle()
                self._progress.rest()
                records = self._reader.read(READ_SECONDS)
            for record in records:
                self._apply(record)
                if self._done():
                    break
        if self._transactions.inside:
            logger.info("the last transaction has no end in the topic yet: it is undone here, and applied whole later")
        self._worker.settle()

    def _apply(self, record: Record) -> None:
        event = decode(record.value, f"topic {self._profile.topic.name} offset {record.offset}")
        step = self._transactions.accept(event, record.offset)
        if step is not None:
            if isinstance(event.operation, Heartbeat):
                self._worker.own.pass_to(mark_of(event, record.offset))
            elif isinstance(event.operation, Query):
                self._queries.apply(step, event.operation)
            else:
                self._apply_rows(step, event.operation)
            self._progress.count(step)
            logger.debug("applied sequence %d, topic offset %d", event.sequence, record.offset)
        self._next = record.offset + 1

    def _apply_rows(self, step: Step, rows: Rows) -> None:
        """A transaction whose rows are all of other databases is empty here, and committed all the same."""
        event, worker = step.event, self._worker
        if step.first:
            worker.begin(event.transaction.gtid if event.transaction else None)
        if rows.database in self._databases:
            worker.write(rows, event.sequence, step.offset)
        if step.last:
            worker.commit(mark_of(event, step.offset))

    def _done(self) -> bool:
        if self._end is not None and self._next >= self._end:
            return True
        if not self._stop():
            return False
        if not self._transactions.inside:
            return True
        if self._end_at_stop is None:
            self._end_at_stop = self._reader.next_offset()
        return self._next >= self._end_at_stop

    def finish(self) -> None:
        """Commit the transactions that are whole; the end of the session undoes the rest."""
        try:
            self._worker.finish()
        except CdcError as error:
            logger.debug("the last commit is uncertain, the position will tell: %s", causes(error))
