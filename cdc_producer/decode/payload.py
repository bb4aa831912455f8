"""Decompresses a transaction that is one binlog event, a piece at a time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

from cdc_producer.decode.binlog_event import KNOWN, UNREADABLE, BinlogEvent, not_known, unreadable
from cdc_producer.decode.cursor import Cursor
from shared.binlog_format import HEADER, HEADER_SIZE, EventType

#: fields before the compressed bytes
COMPRESSION, UNCOMPRESSED_SIZE = 2, 3
ZSTD, NONE = 0, 255
#: types that end or describe a file, or begin a transaction, stand in no transaction
INSIDE = KNOWN - {
    EventType.STOP, EventType.ROTATE, EventType.FORMAT_DESCRIPTION, EventType.HEARTBEAT, EventType.HEARTBEAT_V2,
    EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.PREVIOUS_GTIDS,
    EventType.TRANSACTION_PAYLOAD,
}  # fmt: skip
#: bytes of the largest event that a replica takes: max_allowed_packet's limit and room for what surrounds a row
LARGEST_EVENT = (1 << 30) + (1 << 20)
#: bytes of memory that decompressing may take: what MySQL's highest level (22) needs
LARGEST_WINDOW = 1 << 27
#: bytes decompressed at once: the size an event announces is believed no further than it is found
PIECE = 1 << 20


def read_payload(body: bytes, file: str, start: int, end: int) -> Iterator[BinlogEvent]:
    """Yield the events in the body of a TRANSACTION_PAYLOAD event, which stands at `start` to `end`.

    body: fields (type, length, value), all length-encoded integers, ended by type 0; then the compressed events.
    Source: MySQL's codecs/binary.cpp, Transaction_payload. Raises UnsupportedError.
    """
    where = f"{file}:{start}"
    try:
        source, left = _opened(body)
        while header := source.read(HEADER_SIZE):
            timestamp, kind, _, size, _, flags = HEADER.unpack(header)
            if kind not in INSIDE:
                raise not_known(kind, where)
            left -= size
            if not HEADER_SIZE <= size <= LARGEST_EVENT or left < 0:
                raise ValueError(f"an event inside announces {size} bytes, with {left + size} left for it")
            inside = _read(source, size - HEADER_SIZE)
            yield BinlogEvent(kind, timestamp, flags, inside, file, start, end, header + inside)
        if left:
            raise ValueError(f"its events end {left} bytes before the size it announces")
    except (*UNREADABLE, zstandard.ZstdError) as error:
        raise unreadable(EventType.TRANSACTION_PAYLOAD, where, error) from error


def _opened(body: bytes) -> tuple[BinaryIO, int]:
    """The events, and how many bytes of them are announced."""
    cursor = Cursor(body)
    numbers = {COMPRESSION: NONE}
    while field := cursor.packed():
        value = Cursor(cursor.counted())
        if field in (COMPRESSION, UNCOMPRESSED_SIZE):
            numbers[field] = value.packed()
    packed = memoryview(body)[cursor.position :]
    if numbers[COMPRESSION] == NONE:
        return io.BytesIO(packed), numbers.get(UNCOMPRESSED_SIZE, len(packed))
    if numbers[COMPRESSION] != ZSTD:
        raise ValueError(f"unknown compression {numbers[COMPRESSION]}")
    decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    return decompressor.stream_reader(packed, read_across_frames=True), numbers[UNCOMPRESSED_SIZE]


def _read(source: BinaryIO, size: int) -> bytes:
    pieces = []
    while size:
        piece = source.read(min(size, PIECE))
        if not piece:
            raise ValueError(f"its events end {size} bytes too early")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
