"""The binlog reader: positions, checksums, compressed transactions, and what it refuses."""

from __future__ import annotations

import struct
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cdc_producer.decode.binlog import BinlogReader
from cdc_producer.decode.binlog_event import BinlogEvent
from shared.binlog_format import EventType
from shared.errors import UnsupportedError
from shared.events import Position

START = Position("binlog.000001", 4)


def raw_event(kind: int, body: bytes, end: int, *, flags: int = 0, checksum: bool = True) -> bytes:
    """A binlog event as the leader sends it; `end` is the offset after it."""
    size = 19 + len(body) + 4 * checksum
    event = struct.pack("<IBIIIH", 1_700_000_000, kind, 1, size, end & 0xFFFFFFFF, flags) + body
    return event + struct.pack("<I", zlib.crc32(event)) if checksum else event


def description(end: int, algorithm: int) -> bytes:
    """A format description; it has room for a checksum whatever the algorithm."""
    return raw_event(EventType.FORMAT_DESCRIPTION, b"\4\0" + bytes(94) + bytes([algorithm]), end)


def read(reader: BinlogReader, raw: bytes) -> list[BinlogEvent]:
    return list(reader.read(raw))


def described(position: Position = START, algorithm: int = 1) -> BinlogReader:
    reader = BinlogReader(position)
    read(reader, description(0, algorithm))
    return reader


def test_positions_follow_the_files() -> None:
    reader = described()
    (event,) = read(reader, raw_event(EventType.XID, bytes(8), 35))
    assert (event.file, event.start, event.end, event.body) == ("binlog.000001", 4, 35, bytes(8))
    (event,) = read(reader, raw_event(EventType.ROTATE, struct.pack("<Q", 4) + b"binlog.000002", 35 + 44))
    assert (event.file, event.start) == ("binlog.000001", 35)
    assert reader.position == Position("binlog.000002", 4)


def test_what_the_leader_makes_up_does_not_move_the_position() -> None:
    reader = described(Position("binlog.000001", 500))
    for raw in (
        raw_event(EventType.HEARTBEAT, b"binlog.000001", 500),
        raw_event(EventType.HEARTBEAT_V2, b"x", 500),
        raw_event(EventType.ROTATE, struct.pack("<Q", 500) + b"binlog.000001", 0, flags=0x20),
        description(0, 1),
    ):
        (event,) = read(reader, raw)
        assert event.start == event.end == 500
    assert reader.position == Position("binlog.000001", 500)


def test_R40_a_file_larger_than_32_bits_tell() -> None:
    reader = described(Position("binlog.000001", (1 << 32) - 10))
    (event,) = read(reader, raw_event(EventType.XID, bytes(8), (1 << 32) + 21))
    assert event.end == (1 << 32) + 21


def test_an_event_that_ends_elsewhere_stops() -> None:
    with pytest.raises(UnsupportedError, match=r"binlog\.000001:4 ends at 35, its header says 36"):
        read(described(), raw_event(EventType.XID, bytes(8), 36))


def test_R7_each_file_tells_its_own_checksum() -> None:
    """Also when a file without checksums is followed by one with them."""
    reader = described(algorithm=0)
    (event,) = read(reader, raw_event(EventType.XID, b"12345678", 31, checksum=False))
    assert event.body == b"12345678"
    read(reader, raw_event(EventType.ROTATE, struct.pack("<Q", 4) + b"binlog.000002", 71, checksum=False))
    assert reader.position.file == "binlog.000002"
    read(reader, description(0, 1))
    (event,) = read(reader, raw_event(EventType.XID, b"12345678", 35))
    assert event.body == b"12345678"


@given(st.integers(0, 34 * 8 - 1))
def test_one_altered_bit_stops(bit: int) -> None:
    raw = bytearray(raw_event(EventType.XID, b"12345678901", 4 + 34))
    raw[bit // 8] ^= 1 << bit % 8
    with pytest.raises(UnsupportedError):
        read(described(), bytes(raw))


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (26, "incident"),
        (18, "STATEMENT"),
        (23, "before MySQL 5.6"),
        (43, "does not know"),
        (0, "does not know"),
    ],
)
def test_L3_types_that_are_not_on_the_list_stop(kind: int, says: str) -> None:
    with pytest.raises(UnsupportedError, match=says):
        read(described(), raw_event(kind, b"x" * 8, 35))


def payload(inner: bytes, compression: int, packed: bytes) -> bytes:
    """The body of a TRANSACTION_PAYLOAD event."""
    kind = bytes([compression]) if compression < 251 else b"\xfc" + struct.pack("<H", compression)
    fields = bytes([2, len(kind)]) + kind + bytes([3, 9, 254]) + struct.pack("<Q", len(inner)) + bytes([1, 1, 0, 0])
    return fields + packed


@pytest.mark.parametrize("compression", [0, 255])
def test_R4_compressed_transactions_are_opened(compression: int) -> None:
    events = [(EventType.QUERY, b"a" * 50), (EventType.WRITE_ROWS, b"b" * 100_000), (EventType.XID, bytes(8))]
    inner = b"".join(raw_event(kind, body, 0, checksum=False) for kind, body in events)
    body = payload(inner, compression, zstandard.compress(inner) if compression == 0 else inner)
    raw = raw_event(EventType.TRANSACTION_PAYLOAD, body, 4 + 19 + len(body) + 4)
    found = read(described(), raw)
    assert [(event.type, event.body) for event in found] == events
    assert {(event.start, event.end) for event in found} == {(4, 4 + len(raw))}


def test_R4_what_is_not_on_the_list_stops_inside_too() -> None:
    inner = raw_event(26, b"x", 0, checksum=False)
    body = payload(inner, 255, inner)
    with pytest.raises(UnsupportedError, match="incident"):
        read(described(), raw_event(EventType.TRANSACTION_PAYLOAD, body, 4 + 19 + len(body) + 4))
    body = payload(inner, 7, inner)
    with pytest.raises(UnsupportedError, match="unknown compression 7"):
        read(described(), raw_event(EventType.TRANSACTION_PAYLOAD, body, 4 + 19 + len(body) + 4))
