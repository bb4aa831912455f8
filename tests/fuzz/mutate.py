"""A plain mutator: inputs that differ a little from the seeds, the same ones for the same number."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence

#: what counts, lengths and offsets go wrong at
EDGES = (0, 1, 2, 7, 8, 15, 16, 63, 64, 127, 128, 250, 251, 252, 253, 254, 255, 256, 4096, 32767, 32768, 65535, 65536,
         (1 << 24) - 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1)  # fmt: skip
CODES = ("<B", "<H", "<I", "<Q", ">H", ">I")
#: alterations of one input at most
MOST = 4


class Mutator:
    def __init__(self, seeds: Sequence[bytes], number: int) -> None:
        self._seeds = seeds
        self._random = random.Random(number)
        self._ways: tuple[Callable[[bytearray], None], ...] = (
            self._flip, self._flip, self._set, self._edge, self._edge, self._cut, self._repeat, self._insert, self._splice,
        )  # fmt: skip

    def next(self) -> bytes:
        data = bytearray(self._random.choice(self._seeds))
        for _ in range(self._random.randint(1, MOST)):
            self._random.choice(self._ways)(data)
        return bytes(data)

    def _place(self, data: bytearray) -> int:
        return self._random.randrange(len(data) + 1)

    def _piece(self, data: bytes | bytearray) -> slice:
        """Mostly a short one."""
        start = self._random.randrange(len(data) + 1)
        return slice(start, start + int(self._random.expovariate(1 / 8)) + 1)

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)

    def _set(self, data: bytearray) -> None:
        if data:
            data[self._random.randrange(len(data))] = self._random.randrange(256)

    def _edge(self, data: bytearray) -> None:
        code = self._random.choice(CODES)
        size = struct.calcsize(code)
        packed = struct.pack(code, self._random.choice(EDGES) & (1 << 8 * size) - 1)
        start = self._place(data)
        data[start : start + size] = packed

    def _cut(self, data: bytearray) -> None:
        del data[self._piece(data)]

    def _repeat(self, data: bytearray) -> None:
        start = self._place(data)
        data[start:start] = data[self._piece(data)] * self._random.choice((1, 1, 2, 20))

    def _insert(self, data: bytearray) -> None:
        start = self._place(data)
        data[start:start] = self._random.randbytes(self._random.randint(1, 8))

    def _splice(self, data: bytearray) -> None:
        """A piece of another seed, or all of it from there on."""
        other = self._random.choice(self._seeds)
        piece, start = self._piece(other), self._place(data)
        if self._random.random() < 0.3:
            data[start:] = other[piece.start :]
        else:
            data[start:start] = other[piece]
