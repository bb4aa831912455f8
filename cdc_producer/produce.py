"""The producer's loop: binlog events from the leader, captured, appended to the topic.

The topic is the only memory. Whatever ends a pass (a lost link, a restarted leader, a failed append), the next one
begins at the transaction of the topic's last record and skips what is already there.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
import zlib
from collections.abc import Callable

from cdc_producer.capture import Capture
from cdc_producer.connection import ReplicationConnection
from cdc_producer.decode.binlog import BinlogReader
from cdc_producer.decode.processes import Decoders, most_decoders
from cdc_producer.decode.table_decoders import Tables
from cdc_producer.leader import LeaderConsole, LeaderFacts
from cdc_producer.outgoing import Outgoing
from cdc_producer.resume import Resume, from_record
from shared.errors import LeaderError, LeaderLinkError, TopicLinkError, UnsupportedError, causes
from shared.events import Position
from shared.filters import DatabaseFilter
from shared.profile import ProducerProfile
from shared.topic import TopicWriter, open_writer

logger = logging.getLogger(__name__)

#: a moved position with nothing to publish is told this often (seconds)
HEARTBEAT_INTERVAL = 3.0
PROGRESS_INTERVAL = 5.0
#: a transaction may take this long (seconds) to finish after the program was asked to stop
STOP_GRACE = 10.0
#: pauses between attempts to reach the leader or the topic (seconds)
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0


class Producer:
    """One run of the program."""

    def __init__(self, profile: ProducerProfile, stopping: Callable[[], bool], exit_at_end: bool = False) -> None:
        """`stopping` tells whether the program was asked to end."""
        self.profile = profile
        self._stopping = stopping
        self._exit_at_end = exit_at_end
        self._reached = False
        #: when to stop even inside a transaction (monotonic seconds); 0 until asked to stop
        self._stop_by = 0.0
        #: where to stop with exit_at_end: the leader's end when this run first reached it
        self._target: Position | None = None
        name = f"{profile.mysql_resource_name}/{profile.topic.name}"
        # Derived, so that a restarted producer takes over from its own dead connection and from nobody else's.
        self._server_uuid = str(uuid.uuid5(uuid.NAMESPACE_URL, f"flv://{name}"))
        self._server_id = profile.database.server_id or zlib.crc32(name.encode()) | 1 << 31

    def run(self) -> None:
        """Publish until asked to stop, or until the end. Raises CdcError."""
        pause = FIRST_PAUSE
        while not self._stopping():
            started = time.monotonic()
            try:
                self._pass()
                return
            except (LeaderLinkError, TopicLinkError) as error:
                if not self._reached:
                    # At first start an address that does not answer is a mistake to be told, not an outage to outlast.
                    raise
                if time.monotonic() - started > LONGEST_PAUSE:
                    pause = FIRST_PAUSE
                logger.warning("%s; trying again in %.1f seconds", causes(error), pause)
            self._sleep(pause * random.uniform(0.8, 1.2))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._stopping():
            time.sleep(0.05)

    def _pass(self) -> None:
        """Open everything, continue after the topic's last record, and publish until the end."""
        topic = open_writer(self.profile.topic)
        try:
            facts, resume = self._prepare(topic)
            connection = ReplicationConnection(
                self.profile.database, self._server_id, self._server_uuid, resume.position
            )
            try:
                self._publish(topic, connection, facts, resume)
            finally:
                connection.close()
        finally:
            topic.close()

    def _prepare(self, topic: TopicWriter) -> tuple[LeaderFacts, Resume]:
        """Check the leader and find the place to read from."""
        console = LeaderConsole(self.profile.database)
        try:
            facts = console.check(self._server_id, self._server_uuid)
            last = topic.last()
            resume = console.start(facts.end) if last is None else from_record(last)
        finally:
            console.close()
        self._reached = True
        if resume.leader not in (None, facts.uuid):
            raise LeaderError(
                f"the topic was written from leader {resume.leader}, but {self.profile.database} is {facts.uuid};"
                " load the follower anew and start an empty topic"
            )
        if facts.end < resume.position or (resume.transaction and facts.end == resume.position):
            raise LeaderError(
                f"the topic continues at {resume.position}, but the binlog of leader {self.profile.database} ends at"
                f" {facts.end}: it was reset, or lost its end; load the follower anew and start an empty topic"
            )
        if self._target is None:
            self._target = facts.end
        logger.info(
            "leader %s (MySQL %s, %s), topic %s, from %s after sequence %d",
            self.profile.database, facts.version, facts.uuid, self.profile.topic.name, resume.position, resume.sequence,
        )  # fmt: skip
        return facts, resume

    def _publish(
        self, topic: TopicWriter, connection: ReplicationConnection, facts: LeaderFacts, resume: Resume
    ) -> None:
        resource, databases = self.profile.mysql_resource_name, DatabaseFilter(self.profile.filters)
        tables = Tables(resource, databases, facts.charsets)
        reader = BinlogReader(resume.position)
        with Outgoing(topic, Decoders(tables, most_decoders())) as outgoing:
            capture = Capture(resource, databases, facts, tables, resume, outgoing)
            progress = _Progress(capture)
            if self.profile.database.start == "latest" and capture.sequence < 0:
                # An empty topic would forget where "latest" was when the producer first asked.
                capture.heartbeat(always=True)
            beaten = time.monotonic()
            while True:
                waiting = not connection.more()
                now = time.monotonic()
                outgoing.append()
                if self._at_end(capture) or self._may_stop(capture, now):
                    break
                if now - beaten > HEARTBEAT_INTERVAL and capture.heartbeat():
                    beaten = now
                progress.report(now)
                try:
                    if outgoing.decoding:
                        outgoing.advance(wait=waiting)
                    elif waiting:
                        connection.wait(0.005 if outgoing.ready else 0.2)
                    if waiting and not connection.more():
                        continue
                    for raw in connection.events():
                        for event in reader.read(raw):
                            capture.feed(event)
                except LeaderError as error:
                    # What came before it is whole and belongs into the topic.
                    outgoing.finish()
                    if isinstance(error, UnsupportedError) and not capture.verified:
                        raise self._stranger(capture) from error
                    raise
            capture.heartbeat()
            outgoing.finish()
        logger.info("stopped at %s, sequence %d", capture.edge, capture.sequence)

    def _stranger(self, capture: Capture) -> LeaderError:
        """What is at the place where the topic ends is no transaction at all."""
        return LeaderError(
            f"leader {self.profile.database} does not have the transaction at {capture.edge} that the topic ends with:"
            " it is not the leader this topic was written from, or its binlog was reset; load the follower anew and"
            " start an empty topic"
        )

    def _may_stop(self, capture: Capture, now: float) -> bool:
        """Asked to stop, and between transactions; or asked long ago: a restart continues inside a transaction too."""
        if not self._stopping():
            return False
        self._stop_by = self._stop_by or now + STOP_GRACE
        return capture.at_edge or now > self._stop_by

    def _at_end(self, capture: Capture) -> bool:
        return self._exit_at_end and self._target is not None and self._target <= capture.edge


class _Progress:
    """A line about every few seconds of work."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._next = time.monotonic() + PROGRESS_INTERVAL
        self._sequence = capture.sequence

    def report(self, now: float) -> None:
        if now < self._next:
            return
        done = self._capture.sequence - self._sequence
        if done:
            rate = done / (now - self._next + PROGRESS_INTERVAL)
            logger.info("sequence %d, %s, %.0f events/s", self._capture.sequence, self._capture.edge, rate)
        self._sequence, self._next = self._capture.sequence, now + PROGRESS_INTERVAL
