"""Outgoing records: in the order of their sequence, each as soon as it and all before it are encoded."""

from __future__ import annotations

from collections import deque

from cdc_producer.decode.processes import Decoders
from cdc_producer.decode.rows_event import Operation
from shared.events import Draft

#: bytes of binlog events that may wait behind one that is still being decoded
MAX_WAITING = 2 << 20


class Outgoing:
    """What capture has published and the topic has not yet."""

    def __init__(self, decoders: Decoders) -> None:
        self._decoders = decoders
        #: JSON before the operation, it, JSON after it
        self._waiting: deque[tuple[str, Operation, str]] = deque()
        self._waiting_bytes = 0
        #: ready for the topic
        self.records: list[bytes] = []
        self.bytes = 0

    @property
    def waiting(self) -> bool:
        """Whether there is more than `records`, still being decoded."""
        return bool(self._waiting)

    def add(self, draft: Draft, operation: Operation, sequence: int, end: int | None) -> None:
        """`sequence` and `end` as for Draft.frame. Raises UnsupportedError, as `advance` does."""
        before, after = draft.frame(sequence, end)
        json = None if self._waiting else operation.encoded()
        if json is not None:
            self._append(before, json, after)
            return
        self._waiting.append((before, operation, after))
        self._waiting_bytes += operation.size
        self._collect()
        while self._waiting_bytes > MAX_WAITING:
            self.advance()

    def advance(self, wait: bool = True) -> None:
        """Get on with what is waiting, if need be and `wait` by waiting a moment for a decoder.

        Raises the UnsupportedError of an operation that cannot be encoded, once `records` holds all that came before.
        """
        self._decoders.advance(wait)
        self._collect()

    def finish(self) -> None:
        """Wait until nothing is waiting. Raises UnsupportedError, as `advance` does."""
        while self._waiting:
            self.advance()

    def take(self) -> list[bytes]:
        """The records that are ready; they are the caller's now."""
        records, self.records, self.bytes = self.records, [], 0
        return records

    def _collect(self) -> None:
        while self._waiting and (json := self._waiting[0][1].encoded()) is not None:
            before, operation, after = self._waiting.popleft()
            self._waiting_bytes -= operation.size
            self._append(before, json, after)

    def _append(self, before: str, json: bytes | memoryview, after: str) -> None:
        record = b"".join((before.encode(), json, after.encode()))
        self.records.append(record)
        self.bytes += len(record)
