"""The flat form of inputs: blocks of (kind, length, bytes), so that a changed byte anywhere still makes an input."""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from shared.binlog_format import HEADER, HEADER_SIZE

#: a block's head: a kind, which for binlog events is their type, and the bytes that follow
HEAD = struct.Struct("<BI")
SEEDS = Path(__file__).with_name("seeds")


def pack(blocks: Iterable[tuple[int, bytes]]) -> bytes:
    return b"".join(HEAD.pack(kind, len(body)) + body for kind, body in blocks)


def unpack(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The blocks of any bytes; a length that goes beyond the end means all that is left."""
    position = 0
    while position + HEAD.size <= len(data):
        kind, length = HEAD.unpack_from(data, position)
        position += HEAD.size
        yield kind, data[position : position + length]
        position += length


def framed(kind: int, body: bytes, start: int) -> bytes:
    """A whole binlog event that begins at offset `start`, with a right header and checksum."""
    size = HEADER_SIZE + len(body) + 4
    event = HEADER.pack(1_700_000_000, kind, 1, size, (start + size) & 0xFFFFFFFF, 0) + body
    return event + struct.pack("<I", zlib.crc32(event))


def inner(kind: int, body: bytes) -> bytes:
    """A binlog event as it stands in a compressed transaction: without a checksum."""
    return HEADER.pack(1_700_000_000, kind, 1, HEADER_SIZE + len(body), 0, 0) + body


def load_seeds(target: str) -> list[bytes]:
    """The seeds of a target, in order."""
    return [seed for _, seed in unpack(lzma.decompress((SEEDS / f"{target}.xz").read_bytes()))]


def save_seeds(target: str, seeds: Iterable[bytes]) -> None:
    """Store seeds, each once."""
    (SEEDS / f"{target}.xz").write_bytes(lzma.compress(pack((0, seed) for seed in dict.fromkeys(seeds))))
