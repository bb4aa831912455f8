"""The Fluvio topic: one partition on a cluster, reached through worker processes (shared/topic/fluvio_worker.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from shared.errors import (
    OffsetGoneError,
    RecordDamagedError,
    RecordTooLargeError,
    TopicError,
    TopicLinkError,
    TopicMissingError,
)
from shared.profile import TopicSettings
from shared.topic import fluvio_worker as worker
from shared.topic.fluvio_client import REQUEST_BYTES, REQUEST_OVERHEAD, FluvioFailure
from shared.topic.record import Record, Sealed, frame, unframe, unseal

#: limit of one exchange with the cluster; a chunk gets a second more for each 4 MiB, a creation three times as much
ANSWER_SECONDS = 10.0
#: a stream that brought nothing for this long is opened anew, which tells a quiet topic from a dead connection
IDLE_SECONDS = 15.0
#: the longest retention a cluster can hold, 136 years (it knows no "for ever"), and the shortest
RETENTION_SECONDS = (10, (1 << 32) - 1)
#: a read stops after about this many bytes, so that memory stays flat
READ_BYTES = 4 << 20

ERRORS = {
    "gone": OffsetGoneError,
    "large": RecordTooLargeError,
    "link": TopicLinkError,
    "missing": TopicMissingError,
}


class _Topic:
    """A topic on a cluster, and the words for what goes wrong with it."""

    def __init__(self, settings: TopicSettings) -> None:
        self.settings = settings
        self.name = f"topic {settings.name} on Fluvio {settings.endpoint or 'cluster of the active profile'}"

    def start(self, offset: int | None = None) -> worker.WorkerHandle:
        """A worker that streams the records from `offset` on; without one it answers requests."""
        first = {
            "topic": self.settings.name,
            "endpoint": self.settings.endpoint,
            "seconds": ANSWER_SECONDS,
            "idle": IDLE_SECONDS,
            "offset": offset,
        }
        try:
            return worker.WorkerHandle(first)
        except OSError as error:
            raise TopicError(f"{self.name}: its worker process cannot be started: {error.strerror}") from None

    def record(self, offset: int, content: bytes) -> Record:
        """The record that a worker sent. Raises RecordDamagedError."""
        ((value, key),) = unframe(content)
        return unseal(offset, value, key, self.name)

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        try:
            yield
        except FluvioFailure as error:
            reason = str(error)
            if error.kind == "missing":
                reason = "it does not exist; start its producer first, or check [topic] name and endpoint"
            if "no active profile" in reason:
                reason = "there is no active Fluvio profile; set [topic] endpoint"
            raise ERRORS.get(error.kind, TopicError)(f"{self.name}: {reason}") from None
        except worker.WorkerEnded as error:
            reason = f"no answer within {ANSWER_SECONDS:g} s" if error.status == 1 else f"the client died ({error})"
            raise TopicLinkError(f"{self.name}: {reason}") from None


class FluvioWriter:
    """Appends to a topic, one confirmed batch at a time. Of no use after an error: open a new one and ask `last`.

    Nothing keeps a second producer from writing to the same topic: Fluvio has no fencing, and a request of a producer
    that is gone may still be stored after `last` was answered. Offsets are checked here, but the guard is the sequence
    in the events: the consumer drops what it has seen and stops at a gap.
    """

    max_record_bytes = REQUEST_BYTES - REQUEST_OVERHEAD

    def __init__(self, settings: TopicSettings) -> None:
        """Create the topic when it is missing. Raises TopicLinkError when the cluster does not answer."""
        self._topic = _Topic(settings)
        self._worker: worker.WorkerHandle | None = self._topic.start()
        shortest, longest = RETENTION_SECONDS
        retention = longest
        if settings.retention_days is not None:
            retention = min(max(int(settings.retention_days * 86_400), shortest), longest)
        self._ask(worker.CREATE, str(retention).encode())
        self._ask(worker.END)

    def _ask(self, tag: int, payload: bytes = b"") -> worker.Frame:
        if self._worker is None:
            raise TopicLinkError(f"{self._topic.name}: this writer failed or was closed; open a new one")
        try:
            with self._topic.named_errors():
                return self._worker.ask(tag, payload)
        except BaseException:
            self.close()
            raise

    def last(self) -> Record | None:
        offset, content = self._ask(worker.LAST)
        return None if offset == worker.EMPTY else self._topic.record(offset, content)

    def append(self, records: Sequence[Sealed]) -> None:
        if not records:
            return
        largest = max(record.size for record in records)
        if largest > self.max_record_bytes:
            raise RecordTooLargeError(
                f"{self._topic.name}: a record of {largest} bytes exceeds {self.max_record_bytes}"
            )
        self._ask(worker.APPEND, b"".join(frame(records)))

    def close(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None


class FluvioReader:
    """Reads a topic. Stays usable after a TopicLinkError: the next call connects anew where it was."""

    def __init__(self, settings: TopicSettings) -> None:
        """Raises TopicMissingError when the topic does not exist, TopicLinkError when the cluster does not answer."""
        self._topic = _Topic(settings)
        #: answers questions
        self._clerk: worker.WorkerHandle | None = None
        self._stream: worker.WorkerHandle | None = None
        self._next = 0
        self.next_offset()

    def next_offset(self) -> int:
        return self._ask(worker.END)

    def first_offset(self) -> int:
        """Offset of the oldest record still held; 0 for a topic that has never held one."""
        return self._ask(worker.BEGIN)

    def _ask(self, tag: int) -> int:
        try:
            with self._topic.named_errors():
                self._clerk = self._clerk or self._topic.start()
                return self._clerk.ask(tag)[0]
        except BaseException:
            self._stop_clerk()
            raise

    def seek(self, offset: int) -> None:
        self._stop_stream()
        self._next = offset

    def read(self, timeout: float) -> list[Record]:
        deadline = time.monotonic() + timeout
        try:
            with self._topic.named_errors():
                while True:
                    self._stream = self._stream or self._topic.start(self._next)
                    if records := self._records(self._stream.frames(READ_BYTES)):
                        return records
                    try:
                        if not self._stream.fill(max(0.0, deadline - time.monotonic())):
                            return []
                    except worker.WorkerEnded as ended:
                        if ended.status != 0:
                            raise
                        self._stop_stream()
        except BaseException:
            # frames already taken would be lost otherwise: the next stream starts behind what was returned
            self._stop_stream()
            raise

    def _records(self, frames: Sequence[worker.Frame]) -> list[Record]:
        """Those that were sent, up to one that is damaged, which is an error when it is the first."""
        records: list[Record] = []
        try:
            for offset, content in frames:
                if offset >= 0:
                    records.append(self._topic.record(offset, content))
                    self._next = offset + 1
        except RecordDamagedError:
            if not records:
                raise
            self._stop_stream()
        return records

    def _stop_clerk(self) -> None:
        if self._clerk is not None:
            self._clerk.close()
            self._clerk = None

    def _stop_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def close(self) -> None:
        self._stop_clerk()
        self._stop_stream()
