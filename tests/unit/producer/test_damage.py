"""What a leader cannot have written: each piece of it is refused by name, at once and without asking for memory."""

from __future__ import annotations

import json
import re
import struct
import tracemalloc
from collections.abc import Iterable

import pytest
import zstandard
from fuzz.blocks import framed, inner
from fuzz.leader_targets import DESCRIPTION, FACTS, START, captured
from hypothesis import given
from hypothesis import strategies as st
from kit.reference_rows import read_images

from cdc_producer.decision import LeaderDecision, read_leader_decision
from cdc_producer.decode.binlog import BinlogReader
from cdc_producer.decode.documents.json_binary import json_value
from cdc_producer.decode.row_image import RowImages
from cdc_producer.decode.table_map import TableMapColumn
from shared import binlog_format as t
from shared.binlog_format import EventType
from shared.errors import LeaderError, UnsupportedError

#: the body of a GTID event
GTID = b"\1" + bytes(16) + struct.pack("<qBqq", 7, 2, 0, 1) + (1_700_000_000_000_000).to_bytes(7, "little")
#: stands for a type whose event does not match its checksum
ALTERED = -1
BEGIN = bytes(8) + b"\1" + bytes(4) + b"d\0BEGIN"


def feed(events: Iterable[tuple[int, bytes]], leave_out: LeaderDecision | None = None) -> list[bytes]:
    """The records made of binlog events whose frames are right."""
    reader = BinlogReader(START)
    outgoing, capture = captured(FACTS, leave_out=leave_out)
    for kind, body in ((EventType.FORMAT_DESCRIPTION, DESCRIPTION), *events):
        raw = bytearray(framed(EventType.ROWS_QUERY if kind == ALTERED else kind, body, reader.position.offset))
        raw[-1] ^= kind == ALTERED
        for event in reader.read(bytes(raw), capture):
            capture.feed(event)
    return outgoing.values()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (EventType.GTID, GTID[:20]),
        (EventType.GTID, GTID[:-1]),
        (EventType.GTID, GTID[:17] + struct.pack("<q", -7) + GTID[25:]),
        (EventType.GTID_TAGGED, b"\2\0\0"),
        (EventType.GTID_TAGGED, b""),
        (EventType.ROTATE, bytes(8) + b"binlog"),
        (EventType.FORMAT_DESCRIPTION, DESCRIPTION[:-1] + b"\7"),
    ],
)
def test_an_event_that_is_not_its_type(kind: int, body: bytes) -> None:
    """Nor does it stand in a transaction that --skip could name."""
    with pytest.raises(UnsupportedError, match=rf"type {kind} \(.+\) at binlog\.000001:\d+ cannot be read") as stopped:
        feed([(kind, body)])
    assert "no --skip passes it" in str(stopped.value) and "cdc-producer" not in str(stopped.value)


@pytest.mark.parametrize(("kind", "words"), [(99, "does not know"), (ALTERED, "does not match its checksum")])
@pytest.mark.parametrize("inside", [True, False])
def test_the_way_past_depends_on_the_place(kind: int, words: str, *, inside: bool) -> None:
    with pytest.raises(UnsupportedError, match=words) as stopped:
        feed([*([(EventType.GTID, GTID)] if inside else []), (kind, b"")])
    assert ("cdc-producer --skip" in str(stopped.value)) == inside
    assert ("no --skip passes it" in str(stopped.value)) != inside


@pytest.mark.parametrize(
    "body", [b"", BEGIN[:12], bytes(11) + b"\xff\xff" + BEGIN[13:], bytes(8) + b"\xff" + BEGIN[9:]]
)
def test_a_statement_that_is_cut(body: bytes) -> None:
    with pytest.raises(UnsupportedError, match=r"type 2 \(QUERY\) at binlog\.000001:\d+ cannot be read"):
        feed([(EventType.GTID, GTID), (EventType.QUERY, body)])


@pytest.mark.parametrize(
    ("kind", "body"), [(EventType.WRITE_ROWS, bytes(10)), (EventType.XID, bytes(8)), (EventType.QUERY, BEGIN)]
)
def test_nothing_stands_outside_a_transaction(kind: int, body: bytes) -> None:
    table_map = bytes(8) + b"\1d\0\1t\0" + b"\1\3\0\0" + b"\1\1\0" + b"\4\2\1i"
    with pytest.raises(LeaderError, match="outside any transaction"):
        feed([(EventType.TABLE_MAP, table_map), (kind, body)])


def payload(packed: bytes, size: int, compression: int = 0) -> list[tuple[int, bytes]]:
    fields = bytes([2, 1, compression, 3, 9, 254]) + struct.pack("<Q", size) + b"\0"
    return [(EventType.GTID, GTID), (EventType.TRANSACTION_PAYLOAD, fields + packed)]


@pytest.mark.parametrize("compression", [0, 7])
def test_a_payload_that_is_none(compression: int) -> None:
    with pytest.raises(UnsupportedError, match=r"type 40 \(TRANSACTION_PAYLOAD\)"):
        feed(payload(b"not compressed", 14, compression))


def test_a_payload_is_believed_no_further_than_it_announces() -> None:
    """Twelve kB that decompress to an event of 400 MB: found out before they are."""
    head = struct.pack("<IBIIIH", 0, EventType.ROWS_QUERY, 1, 400 << 20, 0, 0)
    compressor = zstandard.ZstdCompressor().compressobj()
    zeros = bytes(1 << 20)
    packed = compressor.compress(head) + b"".join(compressor.compress(zeros) for _ in range(400)) + compressor.flush()
    assert len(packed) < 40_000
    tracemalloc.start()
    with pytest.raises(UnsupportedError, match="announces 419430400 bytes"):
        feed(payload(packed, 1000))
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("size", [0, 18, (1 << 32) - 1])
def test_an_event_inside_of_impossible_size(size: int) -> None:
    event = bytearray(inner(EventType.XID, bytes(8)))
    event[9:13] = struct.pack("<I", size)
    with pytest.raises(UnsupportedError, match="TRANSACTION_PAYLOAD"):
        feed(payload(zstandard.compress(bytes(event)), 1 << 40))


@pytest.mark.parametrize("kind", [EventType.TRANSACTION_PAYLOAD, EventType.GTID, EventType.ROTATE, 26])
def test_an_event_that_has_no_place_inside(kind: int) -> None:
    event = inner(kind, bytes(8))
    with pytest.raises(UnsupportedError, match=f"type {kind} at"):
        feed(payload(zstandard.compress(event), len(event)))


# what an operator leaves out

#: an event that begins behind the description and a GTID
DECISION = re.compile(r"--skip (\S+:\d+)")
#: what stands behind a transaction and is replicated
NEXT = [
    (EventType.GTID, GTID[:17] + struct.pack("<q", 8) + GTID[25:]),
    (EventType.QUERY, BEGIN.replace(b"BEGIN", b"CREATE TABLE d.t (a int)")),
]

LEFT_OUT = {
    "unknown type": [(EventType.GTID, GTID), (EventType.QUERY, BEGIN), (43, b"x"), (EventType.XID, bytes(8))],
    "altered": [(EventType.GTID, GTID), (EventType.QUERY, BEGIN), (ALTERED, b"x" * 9), (EventType.XID, bytes(8))],
    "its end altered": [(EventType.GTID, GTID), (EventType.QUERY, BEGIN), (ALTERED, bytes(8))],
    "its beginning altered": [(EventType.GTID, GTID), (ALTERED, BEGIN), (EventType.XID, bytes(8))],
    "not compressed": [(EventType.GTID, GTID), (EventType.TRANSACTION_PAYLOAD, b"\2\1\0\3\1\7\0nothing")],
    "cut": [(EventType.GTID, GTID), (EventType.QUERY, BEGIN[:12])],
}


@pytest.mark.parametrize("case", LEFT_OUT)
@pytest.mark.parametrize("by", ["position", "gtid"])
def test_what_cannot_be_read_is_left_out_by_decision(case: str, by: str) -> None:
    """By the words of the error itself, or by the GTID; what follows is read."""
    with pytest.raises(UnsupportedError) as caught:
        feed([*LEFT_OUT[case], *NEXT])
    found = DECISION.search(str(caught.value))
    assert found is not None
    name = found[1] if by == "position" else "00000000-0000-0000-0000-000000000000:7"
    first, second = map(json.loads, feed([*LEFT_OUT[case], *NEXT], read_leader_decision(name, "why")))
    assert (first["skipped"], first["transaction"]["gtid"][-2:], "end" in first["transaction"]) == ("why", ":7", True)
    assert (second["operation"], second["transaction"]["gtid"][-2:]) == ({"Query": "CREATE TABLE d.t (a int)"}, ":8")
    assert first["transaction"]["end"] <= second["transaction"]["begin"]


# binary JSON


def array(*entries: tuple[int, int], rest: bytes = b"") -> bytes:
    """A small array of (kind, offset), and what is behind it."""
    size = 4 + 3 * len(entries) + len(rest)
    return struct.pack("<HH", len(entries), size) + b"".join(struct.pack("<BH", *entry) for entry in entries) + rest


def nested(depth: int) -> bytes:
    """Arrays of one array each."""
    value = array()
    for _ in range(depth - 1):
        value = array((2, 7), rest=value)
    return b"\2" + value


def test_json_as_deep_as_the_leader_allows() -> None:
    text = json.loads(json_value(nested(100)))["Json"]
    assert text == "[" * 100 + "]" * 100
    with pytest.raises(ValueError, match="more than 100 deep"):
        json_value(nested(101))


def test_json_that_contains_itself() -> None:
    with pytest.raises(ValueError, match="same bytes"):
        json_value(b"\2" + array((2, 0)))


def test_json_whose_values_share_their_bytes() -> None:
    """Each level doubles the text: thirty of them were a gigabyte."""
    value = array((5, 1))
    for _ in range(30):
        value = array((2, 10), (2, 10), rest=value)
    with pytest.raises(ValueError, match="same bytes"):
        json_value(b"\2" + value)


def test_json_of_many_long_paths_is_bounded() -> None:
    """Typed values repeat their paths: the square of the value's size without a limit."""
    key = b"k" * 60_000
    numbers = 20_000
    inside = struct.pack("<II", numbers, 8 + 5 * numbers) + struct.pack("<BI", 8, 7) * numbers
    value = struct.pack("<II", 1, 19 + len(key) + len(inside)) + struct.pack("<IHBI", 19, len(key), 3, 19 + len(key))
    with pytest.raises(UnsupportedError, match="longer than"):
        json_value(b"\1" + value + key + inside)


@pytest.mark.parametrize(
    "data",
    [
        b"\2",
        b"\4\3",
        b"\x0b" + struct.pack("<d", float("nan")),
        b"\x0c\x05abc",
        b"\x0c" + b"\xff" * 9,
        b"\x0f\xf6\x03\x46\x02\x80",
        b"\x0f\x0a\x08" + b"\xff" * 7 + b"\x7f",
        b"\x0e",
        b"\0" + struct.pack("<HHHHHHBHBH", 2, 20, 18, 1, 18, 1, 4, 1, 4, 1) + b"aa",
        # an empty key that stands nowhere
        b"\0" + struct.pack("<HHHHHHHHBHBHBH", 3, 27, 25, 1, 0xFFFF, 0, 26, 1, 4, 1, 4, 1, 4, 1) + b"ab",
    ],
)
def test_json_that_is_none(data: bytes) -> None:
    with pytest.raises((ValueError, LookupError, struct.error)):
        json_value(data)


# row images


@pytest.mark.parametrize(
    ("column", "data"),
    [
        (TableMapColumn("c", t.DATE, 0), (2024 << 9 | 13 << 5 | 1).to_bytes(3, "little")),
        (TableMapColumn("c", t.DATE, 0), (10_000 << 9).to_bytes(3, "little")),
        (TableMapColumn("c", t.DATETIME2, 0), ((1 << 39) - 1).to_bytes(5, "big")),
        (TableMapColumn("c", t.DATETIME2, 0), ((1 << 39) + (24 << 12)).to_bytes(5, "big")),
        (TableMapColumn("c", t.DATETIME2, 0), ((1 << 39) + 60).to_bytes(5, "big")),
        (TableMapColumn("c", t.TIMESTAMP2, 2), bytes(4) + b"\x64"),
        (TableMapColumn("c", t.TIMESTAMP2, 6), bytes(4) + b"\x0f\x42\x40"),
        (TableMapColumn("c", t.TIME2, 0), ((1 << 23) + (839 << 12)).to_bytes(3, "big")),
        (TableMapColumn("c", t.DOUBLE, 8), struct.pack("<d", float("nan"))),
        (TableMapColumn("c", t.FLOAT, 4), struct.pack("<f", float("-inf"))),
        (TableMapColumn("c", t.NEWDECIMAL, 9, 0), b"\xff\xff\xff\xff"),
        (TableMapColumn("c", t.NEWDECIMAL, 3, 2), b"\x81\x64"),
    ],
)
def test_a_value_that_no_column_holds(column: TableMapColumn, data: bytes) -> None:
    with pytest.raises(UnsupportedError, match="row image 1 cannot be decoded"):
        RowImages((column,)).read(b"\0" + data, 0)
    with pytest.raises(ValueError):
        read_images((column,), b"\0" + data, 0)


@given(st.integers(0, (1 << 40) - 1))
def test_every_datetime_is_read_as_the_slow_decoder_does(packed: int) -> None:
    column, body = TableMapColumn("c", t.DATETIME2, 0), b"\0" + packed.to_bytes(5, "big")
    try:
        expected = read_images((column,), body, 0)
    except ValueError:
        with pytest.raises(UnsupportedError):
            RowImages((column,)).read(body, 0)
        return
    assert [json.loads(image) for image in RowImages((column,)).read(body, 0)] == expected
