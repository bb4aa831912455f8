"""Runs the loop: events from the topic become SQL on the follower, one leader transaction at a time.

An attempt reaches the follower, locks the topic there, reads the position and checks that the topic continues it. Then
each event finds its place and is applied; at the end of its transaction the position is written and all is committed.
Whatever breaks an attempt, the next one starts at the position, which tells what was committed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack

from cdc_consumer.binlog.changes import Changes, changes_in, require_agreement
from cdc_consumer.decision import FOREIGN, Decision
from cdc_consumer.follower.server import open_server
from cdc_consumer.follower.worker import Worker
from cdc_consumer.leave_out import LeaveOut, leave_out_at_leader
from cdc_consumer.next_attempt import PASSING, NextAttempt
from cdc_consumer.outline import read_outline
from cdc_consumer.parallel.ahead import Ahead
from cdc_consumer.parallel.workers import Workers
from cdc_consumer.profile import ConsumerProfile
from cdc_consumer.progress import Progress
from cdc_consumer.queries import QueryReplay
from cdc_consumer.resume import continue_after, leader_of_topic, open_topic
from cdc_consumer.sql.positions import mark_of
from cdc_consumer.transactions import Step, Transactions
from cdc_consumer.unmet import Unmet
from shared.decode import decode
from shared.errors import CdcError, EventError, FollowerError, FollowerLinkError, causes
from shared.events import Event, Heartbeat, Query, Rows
from shared.filters import DatabaseFilter
from shared.recovery import Stopping
from shared.topic import Record, TopicReader

logger = logging.getLogger(__name__)

#: seconds one read of the topic waits at most, and so a signal
READ_SECONDS = 0.5
#: number of the worker that applies everything
ONLY_WORKER = 0


def replay(profile: ConsumerProfile, stopping: Stopping, exit_at_end: bool, decision: Decision | None = None) -> None:
    """Replay until asked to stop or, with `exit_at_end`, all that the topic holds now. Raises CdcError.

    `decision` leaves out the transaction at which an earlier replay has stopped.
    """
    Replay(profile, stopping, exit_at_end, decision).run()


class Replay:
    """Makes one run of the program: attempts, one after the other, until one comes to the end."""

    def __init__(
        self, profile: ConsumerProfile, stopping: Stopping, exit_at_end: bool, decision: Decision | None
    ) -> None:
        self._profile = profile
        self._stopping = stopping
        self._exit_at_end = exit_at_end
        self._decision = decision
        self._databases = DatabaseFilter(profile.filters, profile.database.system_database)
        self._next_attempt = NextAttempt(stopping)
        self._progress = Progress()
        #: connection ids of the sessions that may hold the lock
        self._previous: set[int] = set()
        #: topic offset to stop at, None for never: where the topic ended when this run first reached it
        self._end: int | None = None
        self._worker: Worker | None = None
        self._workers: Workers | None = None
        #: sequence up to which one session applies everything, since several have met an error
        self._alone_until = -1

    def run(self) -> None:
        """Start attempts until one comes to the end. Raises CdcError."""
        while not self._stopping():
            try:
                with ExitStack() as stack:
                    self._attempt(stack)
                return
            except PASSING as error:
                if self._stopping() and isinstance(error, FollowerLinkError):
                    logger.info("stopped without the follower: %s", causes(error))
                    return
                began = None if self._worker is None else self._worker.own.start.offset
                careful = self._worker is not None and self._worker.careful
                if self._workers is not None:
                    self._alone_until = max(self._alone_until, self._workers.sent)
                    self._next_attempt.committed = self._workers.committed
                self._next_attempt.after(error, began, looked_closer=careful)

    def _attempt(self, stack: ExitStack) -> None:
        """Open everything, continue after the follower's position, and apply until the end."""
        self._worker = self._workers = None
        server = open_server(self._profile, self._databases, self._previous, self._stopping)
        stack.callback(server.close)
        server.refuse_unfinished_copy()
        name = self._profile.topic.name
        reader = open_topic(self._profile.topic, self._stopping, wait=not self._exit_at_end)
        if reader is None:
            return
        stack.callback(reader.close)
        server.refuse_leader(leader_of_topic(reader, name))
        worker = self._worker = server.worker(ONLY_WORKER, self._next_attempt.careful, self._next_attempt.refused)
        self._next_attempt.reached(worker.own.start.sequence, name)
        if self._exit_at_end and self._end is None:
            self._end = reader.next_offset()
        executed = worker.gtids.executed if server.facts.gtids else (lambda gtid: False)
        mark = worker.own.start = continue_after(worker.own.start, reader, name, self._stopping, executed)
        logger.info(
            "replaying topic %s from offset %d (sequence %d, leader %s:%d) into %s, MySQL %s, %s",
            name, mark.offset + 1, mark.sequence + 1, mark.file or "start", mark.leader_offset,
            self._profile.database, server.facts.version, server.way,
        )  # fmt: skip
        self._workers = Workers(server, worker, self._alone_until)
        queries = QueryReplay(worker, server.facts, self._databases, self._profile.database.system_database)
        attempt = Attempt(
            worker, self._workers, queries, reader, name, self._databases, self._progress, self._stopping, self._end,
            self._leave_out(worker),
        )  # fmt: skip
        stack.callback(attempt.finish)
        attempt.run()

    def _leave_out(self, worker: Worker) -> LeaveOut | None:
        """What the decision is yet to do, None for nothing. Raises FollowerError when it comes too late."""
        if self._decision is None:
            return None
        number, applied = self._decision.sequence, worker.own.start.sequence
        if worker.own.was_left_out(number):
            logger.info("the transaction of sequence %d was left out before", number)
            return None
        if number <= applied or any(first <= number <= end.sequence for first, end in worker.own.ahead.items()):
            raise FollowerError(f"--skip names sequence {number}, and the follower has applied {applied} already")
        return LeaveOut(self._decision, worker)


class Attempt:
    """Uses one session on the follower and one reader of the topic, until the end or until something breaks."""

    def __init__(
        self, worker: Worker, workers: Workers, queries: QueryReplay, reader: TopicReader, topic: str,
        databases: DatabaseFilter, progress: Progress, stopping: Stopping, end: int | None, leave_out: LeaveOut | None,
    ) -> None:  # fmt: skip
        """`reader` stands after the worker's position; `end` is the topic offset to stop at, None for never."""
        self._worker = worker
        self._workers = workers
        self._queries = queries
        self._reader = reader
        self._topic = topic
        self._databases = databases
        self._progress = progress
        self._stopping = stopping
        self._end = end
        #: where the topic ended when a stop was requested inside a transaction
        self._end_at_stop: int | None = None
        self._transactions = Transactions(worker.own.start.sequence, reader.gaps, reader.by_sequence)
        #: topic offset of the next record
        self._next = worker.own.start.offset + 1
        #: takes the first transaction instead of applying it
        self._leaves_out = leave_out
        #: sequence of the first event of the transaction in hand
        self._first = self._transactions.sequence + 1
        self._ahead = Ahead(worker.own.ahead)
        self._unmet = Unmet(worker, databases)

    def run(self) -> None:
        """Apply events until asked to stop or at the end."""
        for record in self._records():
            try:
                self._apply(record)
            except EventError:
                self._workers.settle(last=False)  # so that a decision can be about its transaction
                raise
        if self._transactions.inside:
            logger.info("the last transaction has no end in the topic yet: it is undone here, and applied whole later")
        self._workers.settle()
        if self._leaves_out is not None and not self._stopping():
            self._leaves_out.not_met()
        self._tell_unmet()

    def _records(self) -> Iterator[Record]:
        """The topic's records, up to the end; where there are none now, what waits is committed."""
        while not self._done():
            records = self._reader.read(0.0)
            if not records:
                self._workers.settle(last=False)
                self._progress.rest()
                records = self._reader.read(READ_SECONDS)
                if not records:
                    self._workers.settle()
                    self._tell_unmet()
            for record in records:
                if self._done():
                    return
                yield record

    def _tell_unmet(self) -> None:
        if not self._unmet.told and not self._transactions.inside and self._next >= self._reader.next_offset():
            self._unmet.tell()

    def _apply(self, record: Record) -> None:
        """Apply one event in its place, or pass over what says nothing new."""
        wanted = self._worker.takes_changes and self._leaves_out is None
        changes = changes_in(record) if wanted else None
        outline = None if changes is None else read_outline(record.value)
        event = self._decode(record) if outline is None else outline.event
        step = self._transactions.accept(event, record.offset)
        if step is not None:
            if step.first:
                self._first = event.sequence
            if isinstance(event.operation, Heartbeat):
                self._workers.hear(event.operation, mark_of(event, record.offset))
            elif self._ahead.passes(step):
                if step.last:
                    self._workers.pass_over(mark_of(event, record.offset))
            elif self._leaves_out is not None:
                if self._leaves_out.take(step):
                    self._leaves_out = None
            elif isinstance(event.operation, Query):
                require_agreement(record, event.operation, self._where(record))
                self._apply_query(step, event.operation, raw=bool(record.binlog))
            elif changes is None or outline is None:
                require_agreement(record, event.operation, self._where(record))
                self._apply_rows(step, event.operation)
            else:
                self._apply_changes(step, event.operation, changes, outline.rows, record)
            self._progress.count(step, 0 if outline is None else outline.rows)
            logger.debug("applied sequence %d, topic offset %d", event.sequence, record.offset)
        self._next = record.offset + 1

    def _apply_query(self, step: Step, query: Query, raw: bool) -> None:
        self._workers.before_statement()
        self._workers.after_statement(self._queries.apply(step, query, raw) if query.skipped is None else None)
        if query.skipped is not None:
            if not step.last:
                raise EventError(f"sequence {step.event.sequence} stands for a whole transaction and does not end it")
            leave_out_at_leader(self._worker, step, query.skipped, self._first, self._queries.undo)

    def _apply_rows(self, step: Step, rows: Rows) -> None:
        """A transaction whose rows are all of other databases is empty here, and committed all the same."""
        event, workers = step.event, self._workers
        if step.first:
            workers.begin(event)
        if self._databases.takes(rows.database, rows.table):
            workers.write(rows, event.sequence, step.offset)
        if step.last:
            workers.commit(mark_of(event, step.offset))

    def _apply_changes(self, step: Step, rows: Rows, changes: Changes, count: int, record: Record) -> None:
        """Apply rows by the leader's own binlog events, where the follower takes them; `rows` tells only the table."""
        event, workers = step.event, self._workers
        told = (rows.kind, rows.database.encode(), rows.table.encode())
        if told != (changes.kind, changes.database, changes.table):
            raise EventError(
                f"{self._where(record)} tells of {rows.kind} in {rows.database}.{rows.table}, and its binlog events of"
                f" {changes.kind} in {changes.database!r}.{changes.table!r}: {FOREIGN}"
            )
        if step.first:
            workers.begin(event)
        if self._databases.takes(rows.database, rows.table) and not workers.write_changes(
            changes, count, event.sequence
        ):
            operation = self._decode(record).operation
            assert isinstance(operation, Rows)
            workers.write(operation, event.sequence, step.offset)
        if step.last:
            workers.commit(mark_of(event, step.offset))

    def _decode(self, record: Record) -> Event:
        try:
            # the row writer checks each value as it writes it
            return decode(record.value, self._where(record), check_values=False)
        except EventError as error:
            if self._leaves_out is None:
                expected = self._transactions.sequence + 1
                raise EventError(f"{error}, where sequence {expected} was expected") from error
            return decode(record.value, self._where(record), read_operation=False)

    def _where(self, record: Record) -> str:
        return f"topic {self._topic} offset {record.offset}"

    def _done(self) -> bool:
        """Whether the end is reached; asked to stop, a transaction is finished as far as the topic holds it."""
        if self._end is not None and self._next >= self._end:
            return True
        if not self._stopping():
            return False
        if not self._transactions.inside:
            return True
        if self._end_at_stop is None:
            self._end_at_stop = self._reader.next_offset()
        return self._next >= self._end_at_stop

    def finish(self) -> None:
        """Commit the transactions that are whole; the end of the session undoes the rest."""
        try:
            self._workers.close()
        except CdcError as error:
            logger.warning("what stands before may not be committed either, the position tells: %s", causes(error))
