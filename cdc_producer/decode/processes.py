"""Decodes rows events in processes beside the program, when very many arrive at once.

The program hands them batches and goes on reading the binlog; while all are busy it decodes the oldest rows itself, and
so it does in the end with every row that a decoder gives no answer for. A decoder can make the program faster, and
nothing else: one that dies or falls silent is done without.

A decoder gets pickles on its stdin: what `TableDecoders` is made from, then batches. It answers each batch with a frame
on its stdout (SIZE of the rest; ANSWER, size and CRC-32, of each JSON; all JSON), and ends when the program does,
because its stdin does. The program never waits on one of the two pipes alone, so it and a decoder cannot both wait for
the other to read.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import select
import signal
import sys
import time
import zlib
from collections import deque
from itertools import chain
from struct import Struct

from cdc_producer.decode.binlog_event import UNREADABLE, BinlogEvent
from cdc_producer.decode.rows_event import RowsOperation, encode_rows
from cdc_producer.decode.table_decoders import TableDecoder, TableDecoders
from shared.binlog_format import EventType
from shared.errors import UnsupportedError
from shared.helper_process import HelperProcess

logger = logging.getLogger(__name__)

#: rows events of other sizes (bytes) are decoded at once: a bulk load does not consist of them
SMALLEST_EVENT, LARGEST_EVENT = 4 << 10, 1 << 20
#: bytes of rows events handed over at once; what stays below, as most transactions do, no decoder ever sees
BATCH_BYTES = 128 << 10
#: batches a decoder has in hand: one under way, one to go on with
DEPTH = 2
#: more would wait for the topic
MAX_DECODERS = 2
#: a decoder that has rows and says nothing for so long (seconds) is done without
PATIENCE = 10.0
#: the longest wait for decoders (seconds) between two looks whether that is so
LOOK_SECONDS = 0.1
SIZE = Struct("<Q")
ANSWER = Struct("<QI")


def most_decoders() -> int:
    """Tell how many are of use here: one for each processor but the program's own."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MAX_DECODERS, processors - 1)


class Decoders:
    """Holds all of them, and the rows that wait for them."""

    def __init__(self, tables: TableDecoders, limit: int) -> None:
        """There will be up to `limit` processes, once they are of use."""
        self._settings = pickle.dumps(tables.settings)
        self._limit = limit
        self._decoders: list[_Decoder] = []
        #: not yet handed over, oldest first
        self._batch: deque[RowsOperation] = deque()
        self._bytes = 0

    def take(self, operation: RowsOperation) -> None:
        """Encode it: at once, or soon."""
        if not self._limit or not SMALLEST_EVENT <= operation.size <= LARGEST_EVENT:
            operation.encode()
            return
        self._batch.append(operation)
        self._bytes += operation.size
        if self._bytes < BATCH_BYTES:
            return
        self._exchange(0.0)
        decoder = self._free()
        if decoder is None:
            self._encode_oldest()
        else:
            decoder.send(list(self._batch))
            self._batch.clear()
            self._bytes = 0

    def advance(self, wait: bool) -> None:
        """Encode something that was taken; when there is nothing left here, `wait` a moment for a decoder that does."""
        if self._batch:
            self._encode_oldest()
            wait = False
        self._exchange(LOOK_SECONDS if wait else 0.0)

    def close(self) -> None:
        """End the processes; what they have in hand is lost."""
        for decoder in self._decoders:
            decoder.process.close()

    def _encode_oldest(self) -> None:
        operation = self._batch.popleft()
        self._bytes -= operation.size
        operation.encode()

    def _free(self) -> _Decoder | None:
        """The decoder with the least in hand, or a new one when none is idle; None when all have enough."""
        decoder = min(self._decoders, key=lambda found: len(found.batches), default=None)
        if (decoder is None or decoder.batches) and len(self._decoders) < self._limit:
            try:
                decoder = _Decoder(self._settings)
            except OSError as error:
                self._limit = len(self._decoders)
                logger.warning("no decoder can be started (%s); decoding goes on without it", error)
            else:
                self._decoders.append(decoder)
        return decoder if decoder is not None and len(decoder.batches) < DEPTH else None

    def _exchange(self, timeout: float) -> None:
        """Write and read what can be; before that wait up to `timeout` seconds until something can."""
        busy = [decoder for decoder in self._decoders if decoder.batches]
        if busy and timeout:
            writing = [decoder.input for decoder in busy if decoder.unsent]
            select.select([decoder.output for decoder in busy], writing, [], timeout)
        for decoder in busy:
            try:
                decoder.exchange()
            except (OSError, EOFError) as error:
                self._do_without(decoder, error)

    def _do_without(self, decoder: _Decoder, error: Exception) -> None:
        logger.warning("a decoder ended or fell silent (%r); decoding goes on without it", error)
        self._limit -= 1
        self._decoders.remove(decoder)
        decoder.process.close()
        for operation in chain.from_iterable(decoder.batches):
            operation.encode()


class _Decoder:
    """The program's side of one process."""

    def __init__(self, settings: bytes) -> None:
        self.process = HelperProcess(__name__)
        #: its pipes, of which neither makes the program wait
        self.input, self.output = self.process.input.fileno(), self.process.output.fileno()
        for pipe in (self.input, self.output):
            os.set_blocking(pipe, False)
        #: sent and not answered, oldest first
        self.batches: deque[list[RowsOperation]] = deque()
        self.unsent = memoryview(settings)
        #: the frame being received, first its size, then its rest; and what of that is not here yet
        self._size = bytearray(SIZE.size)
        self._frame = self._size
        self._missing = memoryview(self._size)
        self._heard = 0.0

    def send(self, batch: list[RowsOperation]) -> None:
        """Have it encoded; `exchange` does the rest."""
        if not self.batches:
            self._heard = time.monotonic()
        self.batches.append(batch)
        maps = {operation.table.source: number for number, operation in enumerate(batch)}
        rows = [(maps[operation.table.source], operation.event.type, operation.event.body) for operation in batch]
        self.unsent = memoryview(b"".join((self.unsent, pickle.dumps((maps, rows)))))

    def exchange(self) -> None:
        """Write and read what can be without waiting. Raises OSError or EOFError when the process gives no answer."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                self.unsent = self.unsent[os.write(self.input, self.unsent) :]
        with contextlib.suppress(BlockingIOError):
            while self.batches:
                self._receive()
        if self.batches and time.monotonic() - self._heard > PATIENCE:
            raise TimeoutError(f"{PATIENCE:g} seconds")

    def _receive(self) -> None:
        """Read what there is of a frame: of its size, or of its rest."""
        count = os.readv(self.output, [self._missing])
        if not count:
            raise EOFError
        self._heard = time.monotonic()
        self._missing = self._missing[count:]
        if self._missing:
            return
        if self._frame is self._size:
            self._frame = bytearray(SIZE.unpack(self._size)[0])
        else:
            self._settle(memoryview(self._frame))
            self._frame = self._size
        self._missing = memoryview(self._frame)

    def _settle(self, frame: memoryview) -> None:
        """Give their JSON to the operations of the batch that was answered."""
        batch = self.batches.popleft()
        start = ANSWER.size * len(batch)
        for operation, (size, checksum) in zip(batch, ANSWER.iter_unpack(frame[:start]), strict=True):
            if size:
                operation.settle(frame[start : start + size], checksum)
            else:
                operation.encode()  # which tells why it cannot be
            start += size


def main() -> None:
    """Run a decoder: answer batches until the program closes the pipe."""
    # A service manager sends it to all processes; the program still has a transaction to finish.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(EOFError, BrokenPipeError, pickle.UnpicklingError):
        tables = TableDecoders(*pickle.load(sys.stdin.buffer))
        while True:
            maps, rows = pickle.load(sys.stdin.buffer)
            found = {number: tables.table(_table_map(source)) for source, number in maps.items()}
            answers = [_encode(found[number], kind, body) for number, kind, body in rows]
            head = b"".join(ANSWER.pack(len(answer), zlib.crc32(answer)) for answer in answers)
            sys.stdout.buffer.writelines((SIZE.pack(len(head) + sum(map(len, answers))), head, *answers))
            sys.stdout.buffer.flush()


def _table_map(source: bytes) -> BinlogEvent:
    """The event of a `TableDecoder.source`."""
    return BinlogEvent(EventType.TABLE_MAP, 0, 0, bytes(6) + source, "", 0, 0)


def _encode(table: TableDecoder | None, kind: int, body: bytes) -> bytes:
    """The JSON; empty for what the program is to decode itself, because it can say where it is."""
    try:
        return encode_rows(kind, table, body) if table else b""
    except (UnsupportedError, *UNREADABLE):
        return b""
