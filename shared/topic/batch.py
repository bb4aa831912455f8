"""Batches: records that are stored together, framed and compressed, in one piece or, for a very large one, in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct

import zstandard

from shared.topic.record import Sealed, frame, unframe

#: bytes of records in one batch; a larger record has a batch of its own. More would hardly be smaller: level 1 looks
#: back half as far. And it is what a reader unpacks to find one record.
BATCH_BYTES = 1 << 20
#: bytes of a batch that are stored in one value; SQLite takes 1,000,000,000 at most
PART_BYTES = 64 << 20
LEVEL = 1
#: the first offset, before the records: a batch that is found under another one is damaged
_FIRST = Struct("<Q")


def batches(records: Sequence[Sealed]) -> Iterator[Sequence[Sealed]]:
    """Cut records into batches, in order."""
    first, size = 0, 0
    for index, record in enumerate(records):
        size += record.size
        if size > BATCH_BYTES and index > first:
            yield records[first:index]
            first, size = index, record.size
    if records:
        yield records[first:]


def pack(first: int, records: Iterable[Sealed]) -> tuple[int, Iterator[bytes]]:
    """The size of a batch when unpacked, and its compressed parts; `first` is the offset of its first record."""
    pieces = [_FIRST.pack(first), *frame(records)]
    size = sum(map(len, pieces))
    compress = zstandard.ZstdCompressor(level=LEVEL).compress
    return size, map(compress, [b"".join(pieces)] if size <= PART_BYTES else _parts(pieces))


def _parts(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of PART_BYTES, the last one smaller."""
    part = bytearray()
    for piece in pieces:
        view = memoryview(piece)
        while view:
            room = PART_BYTES - len(part)
            part += view[:room]
            view = view[room:]
            if len(part) == PART_BYTES:
                yield bytes(part)
                part.clear()
    if part:
        yield bytes(part)


def unpack(first: int, size: int, parts: Iterable[bytes]) -> Iterator[Sealed]:
    """The records of the batch that `pack` was given. Raises ValueError when it is not that."""
    pieces = []
    for part in parts:
        pieces.append(_decompress(part, min(PART_BYTES, size)))
        size -= len(pieces[-1])
    if size:
        raise ValueError(f"{size} of its bytes are not there")
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if _FIRST.unpack_from(data)[0] != first:
        raise ValueError("it was stored at another offset")
    return unframe(data, _FIRST.size)


def _decompress(part: bytes, size: int) -> bytes:
    """Memory is only asked for once the size is known to be as it must be: what is damaged may claim any."""
    try:
        if zstandard.frame_content_size(part) != size:
            raise ValueError("its size is not the one that was stored")
        return zstandard.ZstdDecompressor().decompress(part, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
