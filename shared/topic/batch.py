"""Packs records that are stored together: framed and compressed, in one piece or, for a very large one, in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct

import zstandard

from shared.topic.record import Sealed, frame, unframe

#: bytes of a batch that are stored in one value; SQLite takes 1,000,000,000 at most
PART_BYTES = 64 << 20
LEVEL = 1
#: the first offset, before the records: a batch that is found under another one is damaged
_FIRST = Struct("<Q")


def pack(first: int, records: Sequence[Sealed]) -> tuple[int, Iterator[bytes]]:
    """The size of a batch when unpacked, and its compressed parts; `first` is the offset of its first record."""
    data = memoryview(b"".join((_FIRST.pack(first), *frame(records))))
    parts = (data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES))
    return len(data), map(zstandard.ZstdCompressor(level=LEVEL).compress, parts)


def unpack(first: int, size: int, parts: Iterable[bytes]) -> list[Sealed]:
    """Return the records of the batch that `pack` was given. Raises ValueError when it is not that."""
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
        if not isinstance(part, bytes):
            raise ValueError("it is of another type")
        if zstandard.frame_content_size(part) != size:
            raise ValueError("its size is not the one that was stored")
        return zstandard.ZstdDecompressor().decompress(part, max_output_size=size)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
