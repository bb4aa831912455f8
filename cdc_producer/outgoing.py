"""Leads records out of the program: encoded, in the order of their sequence, and appended to the topic.

A record leaves as soon as it and all before it are encoded. Batches are appended by a thread of their own, so that the
binlog is read on while one is on its way to the disk or the cluster. There is never a second under way, so a failure
leaves no hole behind it.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import NamedTuple

from cdc_producer.decode.processes import Decoders
from cdc_producer.decode.rows_event import Operation, RowsOperation
from cdc_producer.decode.short import ShortRun
from cdc_producer.decode.table_decoders import TableDecoders
from shared.events import Draft
from shared.topic import Sealed, TopicWriter
from shared.topic.record import seal

#: bytes of binlog events that may wait behind one that is still being decoded
MAX_WAITING = 2 << 20
#: bytes of records that may wait while the batch before them is being appended
MAX_BYTES = 2 << 20


class _Waiting(NamedTuple):
    """A record whose operation is still being encoded, or stands behind one that is."""

    draft: Draft
    operation: Operation
    sequence: int
    end: int | None
    raw: bool

    @property
    def size(self) -> int:
        return self.operation.size

    def take(self) -> list[Sealed] | None:
        """Make the record; None while its JSON is not there."""
        operation = self.operation
        if operation.json is None:
            return None
        source = operation.source if self.raw else ()
        checksums = bool(source) and source[0].checksummed
        value = self.draft.encode(operation.json, self.sequence, self.end)
        return [seal(value, [event.raw for event in source], checksums)]

    def raise_if_failed(self) -> None:
        self.operation.raise_if_failed()


class Outgoing:
    """Holds what was captured and the topic does not have yet.

    Used with `with`, which ends the thread and the decoders.
    """

    def __init__(self, topic: TopicWriter, decoders: Decoders, raw: bool = True) -> None:
        """`raw` says whether the leader's binlog events go into the topic too."""
        self._topic = topic
        self._decoders = decoders
        #: whether the leader's binlog events go into the topic too
        self.raw = raw
        self._waiting: deque[_Waiting | ShortRun] = deque()
        self._waiting_bytes = 0
        #: ready for the topic
        self._records: list[Sealed] = []
        self._bytes = 0
        self._thread = ThreadPoolExecutor(1, "append")
        #: the batch under way, or one that was; its failure is not told yet
        self._appending: Future[None] | None = None

    def beside(self, tables: TableDecoders) -> Outgoing:
        """Return another, which encodes at once; what becomes of its records `withdraw` decides."""
        return Outgoing(self._topic, Decoders(tables, 0), self.raw)

    def withdraw(self) -> list[Sealed]:
        """Return the records that are ready, which the topic does not get from here."""
        records, self._records, self._bytes = self._records, [], 0
        return records

    @property
    def decoding(self) -> bool:
        """Tell whether something is still being decoded."""
        return bool(self._waiting)

    @property
    def ready(self) -> bool:
        """Tell whether records wait for the batch before them."""
        return bool(self._records)

    def add(self, draft: Draft, operation: Operation, sequence: int, end: int | None) -> None:
        """Take the next record; `sequence` and `end` are those of Draft.encode. Raises what `advance` raises."""
        if isinstance(operation, RowsOperation):
            self._decoders.take(operation)
        self._wait_for(_Waiting(draft, operation, sequence, end, self.raw))

    def add_run(self, run: ShortRun) -> None:
        """Take the next records, which are those of a run. Raises what `advance` raises."""
        self._decoders.take_run(run)
        self._wait_for(run)

    def _wait_for(self, entry: _Waiting | ShortRun) -> None:
        self._waiting.append(entry)
        self._waiting_bytes += entry.size
        self._collect()
        while self._waiting_bytes > MAX_WAITING:
            self.advance()

    def advance(self, wait: bool = True) -> None:
        """Get on with what is being decoded; with `wait` give a decoder a moment when there is nothing left to do here.

        Raises the UnsupportedError of an operation that cannot be encoded, once all that came before it is ready.
        """
        self._decoders.advance(wait)
        self._collect()

    def append(self) -> None:
        """Hand over what is ready, unless a batch is under way and little waits behind it.

        Raises the TopicError of the batch before as soon as that has failed, also when nothing is ready.
        """
        idle = self._appending is None or self._appending.done()
        if idle:
            self._settle()
        if self._records and (idle or self._bytes > MAX_BYTES):
            self._hand_over()

    def finish(self) -> None:
        """Make all that was added durable. Raises UnsupportedError, as `advance` does, and TopicError."""
        try:
            while self._waiting:
                self.advance()
        finally:
            self._hand_over()
            self._settle()

    def _hand_over(self) -> None:
        self._settle()
        records = self.withdraw()
        self._appending = self._thread.submit(self._topic.append, records)

    def _settle(self) -> None:
        """Wait for the batch under way. Raises its TopicError."""
        appending, self._appending = self._appending, None
        if appending is not None:
            appending.result()

    def _collect(self) -> None:
        """Keep the records of what is encoded and has nothing before it that is not."""
        while self._waiting:
            entry = self._waiting[0]
            records = entry.take()
            if records is not None:
                self._records += records
                self._bytes += sum(map(len, chain.from_iterable(records)))
            entry.raise_if_failed()
            if records is None:
                return
            self._waiting.popleft()
            self._waiting_bytes -= entry.size

    def __enter__(self) -> Outgoing:
        return self

    def __exit__(self, *_: object) -> None:
        self._decoders.close()
        self._thread.shutdown(wait=True)
