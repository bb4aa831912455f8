"""Decodes rows in processes beside the program, when very many arrive at once.

The program hands them batches of large rows events and runs of short transactions, and goes on reading the binlog;
while all are busy it decodes rows itself, and so it does in the end with every row that a decoder gives no answer for.
A decoder can make the program faster, and nothing else: one that dies or falls silent is done without.

A decoder gets pickles on its stdin: what `TableDecoders` is made from, then for each errand the function that answers
it and its arguments. It answers each with a frame on its stdout (SIZE of the rest, and the rest), and ends when the
program does, because its stdin does. The program never waits on one of the two pipes alone, so it and a decoder cannot
both wait for the other to read.
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
from struct import Struct
from typing import Protocol

from cdc_producer.decode.binlog_event import UNREADABLE
from cdc_producer.decode.rows_event import RowsOperation, encode_rows
from cdc_producer.decode.short import WORTH_HANDING_OVER, ShortRun
from cdc_producer.decode.table_decoders import TableDecoder, TableDecoders
from shared.errors import UnsupportedError
from shared.helper_process import HelperProcess

logger = logging.getLogger(__name__)

#: rows events of other sizes (bytes) are decoded at once: a bulk load does not consist of them
SMALLEST_EVENT, LARGEST_EVENT = 4 << 10, 1 << 20
#: bytes of rows events handed over at once; what stays below, as most transactions do, no decoder ever sees
BATCH_BYTES = 128 << 10
#: errands a decoder has in hand: one under way, one to go on with
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


class Errand(Protocol):
    """Says what a decoder is to do, and takes what it did."""

    def message(self) -> bytes:
        """Pickle a function and its arguments; it is called with the decoder's `TableDecoders` before them."""

    def settle(self, answered: memoryview) -> None:
        """Take what the function returned, joined; do here what it did not do."""

    def encode(self) -> None:
        """Do it here."""


class _Batch:
    """Rows events that a decoder gets together."""

    def __init__(self, operations: list[RowsOperation]) -> None:
        self._operations = operations

    def message(self) -> bytes:
        maps = {operation.table.source: number for number, operation in enumerate(self._operations)}
        rows = [
            (maps[operation.table.source], operation.event.type, operation.event.body) for operation in self._operations
        ]
        return pickle.dumps((_answer, maps, rows))

    def settle(self, answered: memoryview) -> None:
        start = ANSWER.size * len(self._operations)
        told = ANSWER.iter_unpack(answered[:start])
        for operation, (size, checksum) in zip(self._operations, told, strict=True):
            if size:
                operation.settle(answered[start : start + size], checksum)
            else:
                operation.encode()  # which tells why it cannot be
            start += size

    def encode(self) -> None:
        for operation in self._operations:
            operation.encode()


class Decoders:
    """Holds all of them, and the rows that wait for them."""

    def __init__(self, tables: TableDecoders, limit: int) -> None:
        """There will be up to `limit` processes, once they are of use."""
        self._settings = tables.settings
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
            decoder.send(_Batch(list(self._batch)))
            self._batch.clear()
            self._bytes = 0

    def take_run(self, run: ShortRun) -> None:
        """Encode it: at once, or soon."""
        decoder = None
        if self._limit and len(run.packets) >= WORTH_HANDING_OVER:
            self._exchange(0.0)
            decoder = self._free()
        if decoder is None:
            run.encode()
        else:
            decoder.send(run)

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
        decoder = min(self._decoders, key=lambda found: len(found.errands), default=None)
        if (decoder is None or decoder.errands) and len(self._decoders) < self._limit:
            try:
                decoder = _Decoder(pickle.dumps(self._settings))
            except OSError as error:
                self._limit = len(self._decoders)
                logger.warning("no decoder can be started (%s); decoding goes on without it", error)
            else:
                self._decoders.append(decoder)
        return decoder if decoder is not None and len(decoder.errands) < DEPTH else None

    def _exchange(self, timeout: float) -> None:
        """Write and read what can be; before that wait up to `timeout` seconds until something can."""
        busy = [decoder for decoder in self._decoders if decoder.errands]
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
        for errand in decoder.errands:
            errand.encode()


class _Decoder:
    """The program's side of one process."""

    def __init__(self, settings: bytes) -> None:
        self.process = HelperProcess(__name__)
        #: its pipes, of which neither makes the program wait
        self.input, self.output = self.process.input.fileno(), self.process.output.fileno()
        for pipe in (self.input, self.output):
            os.set_blocking(pipe, False)
        #: sent and not answered, oldest first
        self.errands: deque[Errand] = deque()
        self.unsent = memoryview(settings)
        #: the frame being received, first its size, then its rest; and what of that is not here yet
        self._size = bytearray(SIZE.size)
        self._frame = self._size
        self._missing = memoryview(self._size)
        self._heard = 0.0

    def send(self, errand: Errand) -> None:
        """Have it done; `exchange` does the rest."""
        if not self.errands:
            self._heard = time.monotonic()
        self.errands.append(errand)
        self.unsent = memoryview(b"".join((self.unsent, errand.message())))

    def exchange(self) -> None:
        """Write and read what can be without waiting. Raises OSError or EOFError when the process gives no answer."""
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                self.unsent = self.unsent[os.write(self.input, self.unsent) :]
        with contextlib.suppress(BlockingIOError):
            while self.errands:
                self._receive()
        if self.errands and time.monotonic() - self._heard > PATIENCE:
            raise TimeoutError(f"{PATIENCE:g} seconds")

    def _receive(self) -> None:
        """Read what there is of a frame: of its size, or of its rest."""
        count = os.readv(self.output, [self._missing])
        if not count:
            raise EOFError
        self._heard = time.monotonic()
        self._missing = self._missing[count:]
        if not self._missing and self._frame is self._size:
            self._frame = bytearray(SIZE.unpack(self._size)[0])
            self._missing = memoryview(self._frame)
        if not self._missing:  # which an answer of nothing never is
            self.errands.popleft().settle(memoryview(self._frame))
            self._frame = self._size
            self._missing = memoryview(self._frame)


def main() -> None:
    """Run a decoder: answer batches until the program closes the pipe."""
    # A service manager sends it to all processes; the program still has a transaction to finish.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(EOFError, BrokenPipeError, pickle.UnpicklingError):
        tables = TableDecoders(*pickle.load(sys.stdin.buffer))
        while True:
            answer, *arguments = pickle.load(sys.stdin.buffer)
            pieces = answer(tables, *arguments)
            sys.stdout.buffer.writelines((SIZE.pack(sum(map(len, pieces))), *pieces))
            sys.stdout.buffer.flush()


def _answer(tables: TableDecoders, maps: dict[bytes, int], rows: list[tuple[int, int, bytes]]) -> list[bytes]:
    """ANSWER, size and CRC-32, of each JSON; then all JSON."""
    found = {number: tables.known(source) for source, number in maps.items()}
    answers = [_encode(found[number], kind, body) for number, kind, body in rows]
    return [b"".join(ANSWER.pack(len(answer), zlib.crc32(answer)) for answer in answers), *answers]


def _encode(table: TableDecoder | None, kind: int, body: bytes) -> bytes:
    """The JSON; empty for what the program is to decode itself, because it can say where it is."""
    try:
        return encode_rows(kind, table, body) if table else b""
    except (UnsupportedError, *UNREADABLE):
        return b""
