"""Runs the loop: binlog events are read from the leader, captured, and appended to the topic.

An attempt opens the topic, reads its last record, checks that the leader continues there, and asks for the binlog from
the transaction of that record on. What is already in the topic is skipped. Whatever breaks an attempt (a lost link, a
restarted leader, a failed append), the next one starts at the topic's last record again: it is the only memory.
"""

from __future__ import annotations

import logging
import time
import uuid
import zlib
from contextlib import ExitStack, closing
from dataclasses import replace

from cdc_producer.capture import Capture
from cdc_producer.connection import ReplicationConnection
from cdc_producer.control import TellingCapture
from cdc_producer.decision import LeaderDecision, LeavingOut
from cdc_producer.decode.processes import Decoders, most_decoders
from cdc_producer.decode.table_decoders import MAX_REMEMBERED, TableDecoders
from cdc_producer.intake import Intake
from cdc_producer.leader import LeaderConsole, LeaderFacts
from cdc_producer.outgoing import Outgoing
from cdc_producer.profile import ProducerProfile
from cdc_producer.progress import Progress
from cdc_producer.resume import Resume, from_record
from shared.errors import LeaderError, LeaderLinkError, TopicLinkError, UnsupportedError
from shared.events import Position
from shared.filters import DatabaseFilter
from shared.program import broken_off_by_a_stop
from shared.recovery import Recovery, Stopping
from shared.topic import Record, open_writer

logger = logging.getLogger(__name__)

#: seconds between two looks at the topic: while records wait for the append before them, and while none do
BUSY_SECONDS, IDLE_SECONDS = 0.005, 0.2
#: with nothing to publish, a position that moved is told this often; and in any case that the leader is alive (seconds)
MOVED_SECONDS, ALIVE_SECONDS = 3.0, 10.0
#: a transaction may take this long (seconds) to finish after the program was asked to stop
STOP_GRACE = 10.0


class Producer:
    """Makes one run of the program: attempts, until one ends as it should."""

    def __init__(
        self,
        profile: ProducerProfile,
        stopping: Stopping,
        exit_at_end: bool = False,
        leave_out: LeaderDecision | None = None,
    ) -> None:
        """`stopping` tells whether the program was asked to end; `leave_out` names a transaction to pass over."""
        self._leaving = LeavingOut(leave_out)
        self.profile = profile
        self._stopping = stopping
        self._exit_at_end = exit_at_end
        self._databases = DatabaseFilter(profile.filters)
        #: where to stop with exit_at_end: the leader's end when this run first reached it
        self._end: Position | None = None
        name = f"{profile.mysql_resource_name}/{profile.topic.name}"
        # Derived, so that a restarted producer takes over from its own dead connection and from nobody else's.
        self._server_uuid = str(uuid.uuid5(uuid.NAMESPACE_URL, f"flv://{name}"))
        self._server_id = profile.database.server_id or zlib.crc32(name.encode()) | 1 << 31

    def run(self) -> None:
        """Publish until asked to stop, or until the end. Raises CdcError."""
        recovery = Recovery(self._stopping)
        while not self._stopping():
            try:
                with ExitStack() as stack:
                    attempt = self._attempt(stack)
                    recovery.reached()
                    attempt.run()
                    return
            except (LeaderLinkError, TopicLinkError) as error:
                recovery.pause(error)

    def _attempt(self, stack: ExitStack) -> Attempt:
        """Open everything, to continue after the topic's last record; `stack` closes it again."""
        profile = self.profile
        with broken_off_by_a_stop(), closing(LeaderConsole(profile.database)) as console:
            # before the topic, which is made where there is none: a leader that is refused changes nothing
            facts = console.check(self._server_id, self._server_uuid)
            topic = stack.enter_context(closing(open_writer(profile.topic)))
            facts = replace(facts, end=console.end())
            resume = self._resume(console, facts, topic.last())
            self._leaving.arm(console, resume, facts.end)
        with broken_off_by_a_stop():
            connection = ReplicationConnection(
                profile.database, self._server_id, self._server_uuid, resume.position, self._stopping
            )
        stack.callback(connection.close)
        decoders = most_decoders()
        share = MAX_REMEMBERED // (1 + decoders)
        tables = TableDecoders(profile.mysql_resource_name, self._databases, facts.charsets, share)
        outgoing = stack.enter_context(Outgoing(topic, Decoders(tables, decoders), profile.raw))
        kind = Capture if profile.topic.control is None else TellingCapture
        capture = kind(
            profile.mysql_resource_name, self._databases, facts, tables, resume, outgoing, self._leaving,
            profile.topic.routes is not None,
        )  # fmt: skip
        intake = Intake(capture, tables, outgoing)
        end = self._end if self._exit_at_end else None
        return Attempt(connection, intake, capture, outgoing, self._leaving, self._stopping, end)

    def _resume(self, console: LeaderConsole, facts: LeaderFacts, last: Record | None) -> Resume:
        """Find the place to read from, after the topic's `last` record. Raises LeaderError when it is not there."""
        resume = console.start(facts.end) if last is None else from_record(last)
        unmet = console.unmet(self._databases) if self._end is None else {}
        resume.check(facts.uuid, facts.end, self.profile.database)
        for key, names in unmet.items():
            logger.warning("%s names %s: the leader does not have it now", key, names)
        self._end = self._end or facts.end
        logger.info(
            "leader %s (MySQL %s, %s), topic %s, from %s after sequence %d",
            self.profile.database, facts.version, facts.uuid, self.profile.topic.name, resume.position, resume.sequence,
        )  # fmt: skip
        return resume


class Attempt:
    """Brings one dump of the leader's binlog into the topic, until something breaks."""

    def __init__(
        self,
        connection: ReplicationConnection,
        intake: Intake,
        capture: Capture,
        outgoing: Outgoing,
        leaving: LeavingOut,
        stopping: Stopping,
        end: Position | None,
    ) -> None:
        """`intake` takes packets, of which `capture` makes records for `outgoing`, and may leave one transaction out.

        `end` is the position to stop at, None for never.
        """
        self._leaving = leaving
        self._connection = connection
        self._intake = intake
        self._capture = capture
        self._outgoing = outgoing
        self._progress = Progress(capture.sequence)
        self._stopping = stopping
        self._end = end
        #: when to stop even inside a transaction (monotonic seconds); 0 until asked to stop
        self._stop_by = 0.0
        now = time.monotonic()
        #: when the topic had its last heartbeat, or began without (monotonic seconds)
        self._beaten_at = now
        #: when it was last told how far the leader is, and the sequence then
        self._told_at = float("-inf") if capture.moved else now
        self._sequence = capture.sequence

    def run(self) -> None:
        """Publish until stopped or at the end; all that was captured is in the topic then."""
        while not (self._done() or self._leaving.missed(self._capture.edge)):
            self._outgoing.append()
            self._beat()
            self._progress.report(self._capture.sequence, self._capture.edge)
            self._read()
        if self._capture.moved:
            self._capture.heartbeat(self._connection.heard)
        self._outgoing.finish()
        logger.info("stopped at %s, sequence %d", self._capture.edge, self._capture.sequence)
        self._leaving.require_met(self._capture.edge)

    def _done(self) -> bool:
        """Whether the end is reached, or a stop was asked for and no transaction is half read, or that takes long."""
        if self._end is not None and self._end <= self._capture.edge and self._capture.began:
            return True
        if not self._stopping():
            return False
        now = time.monotonic()
        self._stop_by = self._stop_by or now + STOP_GRACE
        # a restart continues inside a transaction too
        return self._capture.at_edge or now > self._stop_by

    def _beat(self) -> None:
        """Tell a position that moved without anything to publish, and now and then that the leader is alive.

        However much there is to publish: what the producer publishes stands in heartbeats alone.
        """
        now, sequence = time.monotonic(), self._capture.sequence
        if sequence > self._sequence:
            self._told_at, self._sequence = now, sequence
        moved = self._capture.moved and now - self._told_at > MOVED_SECONDS
        if (moved or now - self._beaten_at > ALIVE_SECONDS) and self._capture.heartbeat(self._connection.heard):
            self._told_at = self._beaten_at = now

    def _read(self) -> None:
        """Capture what has arrived, or wait a moment for something to do."""
        try:
            if not self._arrived():
                return
            packets: list[bytes] = []
            try:
                packets.extend(self._connection.events())
            finally:
                self._intake.take(packets)
        except LeaderError as error:
            # What came before it is whole and belongs into the topic.
            self._outgoing.finish()
            if isinstance(error, UnsupportedError):
                self._capture.require_verified(error)
            raise

    def _arrived(self) -> bool:
        """Whether binlog events can be read at once; if not, get on with the records, or wait a moment."""
        more = self._connection.more()
        if self._outgoing.decoding:
            self._outgoing.advance(wait=not more)
        elif not more:
            self._connection.wait(BUSY_SECONDS if self._outgoing.ready else IDLE_SECONDS)
        return more or self._connection.more()
