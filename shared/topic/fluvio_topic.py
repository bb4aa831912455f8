"""Keeps a topic in one partition of a Fluvio cluster, reached through worker processes (fluvio_clerk.py)."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shared.errors import RecordDamagedError, TopicError, TopicLinkError
from shared.profile import TopicSettings
from shared.topic import fluvio_worker as worker
from shared.topic.fluvio_clerk import DELETED, Clerk, FluvioTopic
from shared.topic.fluvio_client import BATCH_BYTES, RECORD_OVERHEAD, REQUEST_OVERHEAD
from shared.topic.fluvio_parts import Joiner, place, split
from shared.topic.record import Record, Sealed, cut, frame, unframe, unseal

logger = logging.getLogger(__name__)

#: the longest retention a cluster can hold, 136 years (it knows no "for ever"), and the shortest
RETENTION_SECONDS = (10, (1 << 32) - 1)
#: a read stops after about this many bytes, so that memory stays flat
READ_BYTES = 4 << 20
#: A replica that took over may lack what readers have seen already. It has it again when the one before is back, or
#: when the producer, which asks for the last record, has sent it again (seconds).
RETURN_SECONDS = 60.0
#: replicas that stay late are told of this often (seconds)
REMINDER_SECONDS = 60.0


class FluvioWriter:
    """Appends to a topic, one confirmed batch at a time. Of no use after an error: open a new one and ask `last`.

    Nothing keeps a second producer from writing to the same topic: Fluvio has no fencing, and a request of a producer
    that is gone may still be stored after `last` was answered. Offsets are checked here, but the guard is the sequence
    in the events: the consumer drops what it has seen and stops at a gap.
    """

    def __init__(self, settings: TopicSettings) -> None:
        """Create the topic when it is missing. Raises TopicLinkError when the cluster does not answer."""
        self._topic = FluvioTopic(settings)
        self._clerk = Clerk(self._topic)
        self._failed = False
        #: since when replicas are late, and when that was last told (monotonic seconds)
        self._late_since: float | None = None
        self._reminded = 0.0
        shortest, longest = RETENTION_SECONDS
        retention = longest
        if settings.retention_days is not None:
            retention = min(max(int(settings.retention_days * 86_400), shortest), longest)
        self._clerk.ask(worker.CREATE, b"%d" % retention)
        self._clerk.ask(worker.END)
        self._topic.missing = DELETED

    @contextmanager
    def _useless_after_errors(self) -> Iterator[None]:
        if self._failed:
            raise TopicLinkError(f"{self._topic.name}: this writer failed or was closed; open a new one")
        try:
            yield
        except BaseException:
            self.close()
            raise

    def last(self) -> Record | None:
        with self._useless_after_errors():
            end = self._clerk.whole_end()
            if end == 0:
                return None
            joiner = Joiner(self._topic.name)
            _, count = place(end - 1, self._clerk.at(end - 1), self._topic.name)
            *_, found = (joiner.add(offset, self._clerk.at(offset)) for offset in range(end - count, end))
            if found is None:
                raise TopicError(f"{self._topic.name} offset {end - 1} ends a record whose parts are not there")
            return found

    def append(self, records: Sequence[Sealed]) -> None:
        with self._useless_after_errors():
            parts = [part for record in records for part in split(record)]
            for batch in cut(parts, BATCH_BYTES - REQUEST_OVERHEAD, RECORD_OVERHEAD):
                _, remark = self._clerk.ask(worker.APPEND, b"".join(frame(batch)))
                self._tell(late=remark == worker.LATE)

    def _tell(self, late: bool) -> None:
        """Warn of replicas that are late, once and then every minute, and tell when they are not any more."""
        now = time.monotonic()
        if late and self._late_since is None:
            self._late_since = now
        if late and (self._late_since == now or now - self._reminded >= REMINDER_SECONDS):
            self._reminded = now
            logger.warning(
                "%s: stored, but not on every replica in time: an SPU is away or slow; going on, more slowly",
                self._topic.name,
            )
        elif not late and self._late_since is not None:
            logger.info("%s: every replica is in time again after %.1f s", self._topic.name, now - self._late_since)
            self._late_since = None

    def close(self) -> None:
        self._failed = True
        self._clerk.close()


class FluvioReader:
    """Reads a topic. Stays usable after a TopicLinkError: the next call connects anew where it was."""

    by_sequence = gaps = False
    return_seconds = RETURN_SECONDS

    def __init__(self, settings: TopicSettings) -> None:
        """Raises TopicMissingError when the topic does not exist, TopicLinkError when the cluster does not answer."""
        self._topic = FluvioTopic(settings)
        self._clerk = Clerk(self._topic)
        self._stream: worker.WorkerHandle | None = None
        self._joiner = Joiner(self._topic.name)
        #: where the next stream begins: behind the last record that was returned, or sought
        self._next = 0
        #: whether nothing came yet from the offset sought, which may be inside a record
        self._sought = True
        self._clerk.ask(worker.CHECK)
        self._clerk.ask(worker.END)
        self._topic.missing = DELETED

    def next_offset(self) -> int:
        return self._clerk.whole_end()

    def first_offset(self) -> int:
        return self._clerk.whole_start()

    def seek(self, offset: int) -> None:
        self._stop_stream()
        self._next, self._sought = offset, True

    def read(self, timeout: float) -> list[Record]:
        deadline = time.monotonic() + timeout
        try:
            if self._sought and self._stream is None and (found := self._one()):
                return [found]
            with self._topic.named_errors():
                while True:
                    self._stream = self._stream or self._topic.start(self._next)
                    if records := self._records(self._stream.frames(READ_BYTES)):
                        return records
                    try:
                        if self._stream and not self._stream.fill(max(0.0, deadline - time.monotonic())):
                            return []
                    except worker.WorkerEnded as ended:
                        if ended.status != 0:
                            raise
                        self._stop_stream()
        except BaseException:
            # frames already taken would be lost otherwise: the next stream starts behind what was returned
            self._stop_stream()
            raise

    def _one(self) -> Record | None:
        """The record at the offset sought, if the topic has it, in one piece, and gives it.

        A search seeks again after each record, and every stream would be a process started for it.
        """
        offset = self._next
        try:
            if offset >= self._clerk.ask(worker.END)[0]:
                return None
            stored = self._clerk.at(offset)
        except TopicLinkError:
            return None  # a stream is more patient, and knows more of what is wrong
        if place(offset, stored, self._topic.name) != (0, 1):
            return None
        found = unseal(offset, *stored, self._topic.name)
        self._next, self._sought = offset + 1, False
        return found

    def _records(self, frames: Sequence[worker.Frame]) -> list[Record]:
        """Those that are whole, up to one that is damaged, which is an error when it is the first."""
        records: list[Record] = []
        try:
            for offset, content in frames:
                if offset < 0:
                    continue
                (stored,) = unframe(content)
                if self._sought and self._go_back(offset, stored):
                    break
                if record := self._joiner.add(offset, stored):
                    records.append(record)
                    self._next = offset + 1
        except RecordDamagedError:
            if not records:
                raise
            self._stop_stream()
        return records

    def _go_back(self, offset: int, stored: Sealed) -> bool:
        """Begin at the first part of the record that the offset sought is inside of, unless that was removed."""
        self._sought = False
        index, _ = place(offset, stored, self._topic.name)
        if index == 0 or offset - index < self._clerk.ask(worker.BEGIN)[0]:
            return False
        self._stop_stream()
        self._next = offset - index
        return True

    def _stop_stream(self) -> None:
        self._joiner = Joiner(self._topic.name)
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def close(self) -> None:
        self._clerk.close()
        self._stop_stream()
