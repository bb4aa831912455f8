"""What the leader sends: binlog events and their parts, each with the oracle that judges what came of an input."""

from __future__ import annotations

import json
import zlib
from typing import Any

import zstandard
from kit.reference_json import read_json
from kit.reference_rows import read_images
from kit.topic import ListTopic

from cdc_consumer.transactions import Transactions
from cdc_producer.capture import Capture
from cdc_producer.decision import LeaderDecision, LeavingOut
from cdc_producer.decode import row_image
from cdc_producer.decode.binlog import BinlogReader
from cdc_producer.decode.binlog_event import UNREADABLE, BinlogEvent, unreadable
from cdc_producer.decode.cursor import length_encoded
from cdc_producer.decode.documents import forms
from cdc_producer.decode.documents.json_binary import json_value
from cdc_producer.decode.processes import Decoders
from cdc_producer.decode.rows_event import RowsOperation
from cdc_producer.decode.table_decoders import TableDecoders
from cdc_producer.decode.table_map import Charset
from cdc_producer.leader import LeaderFacts
from cdc_producer.outgoing import Outgoing
from cdc_producer.resume import Resume
from fuzz.blocks import SEEDS, framed, inner, load_seeds, pack, unpack
from fuzz.targets import WrongResult
from shared.binlog_format import EventType
from shared.decode import decode
from shared.errors import CdcError
from shared.events import Position
from shared.filters import DatabaseFilter
from shared.profile import Filters

START = Position("binlog.000001", 4)
CHARSETS = {
    int(number): Charset(*charset)
    for number, charset in json.loads((SEEDS / "leader.json").read_text())["charsets"].items()
}
FACTS = LeaderFacts("cdc00000-0000-0000-0000-000000000001", "9.7.0", CHARSETS, 0, START, 0.0)
FILTERS = Filters(exclude_dbs=("x",))
DESCRIPTION = b"\4\0" + bytes(94) + b"\1"
ROWS = (EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS)


class Collected(Outgoing):
    """Keeps records instead of appending them."""

    def values(self) -> list[bytes]:
        return [record.value for record in self._records]


def captured(
    facts: LeaderFacts, start: Position = START, decoders: int = 0, leave_out: LeaderDecision | None = None
) -> tuple[Collected, Capture]:
    """A capture and where its records go, with so many processes that help."""
    databases = DatabaseFilter(FILTERS)
    tables = TableDecoders("mysql-srv1", databases, facts.charsets)
    outgoing = Collected(ListTopic(), Decoders(tables, decoders))
    return outgoing, Capture("mysql-srv1", databases, facts, tables, Resume(start), outgoing, LeavingOut(leave_out))


def events(data: bytes) -> None:
    """Binlog events from the leader, up to the topic's records. Blocks of (type, body); the frames are right."""
    reader = BinlogReader(START)
    list(reader.read(framed(EventType.FORMAT_DESCRIPTION, DESCRIPTION, START.offset)))
    outgoing, capture = captured(FACTS)
    try:
        for kind, body in unpack(data):
            for event in reader.read(framed(kind, body, reader.position.offset), capture):
                capture.feed(event)
    finally:
        _readable(outgoing.values())


def packets(data: bytes) -> None:
    """Packets from the leader whose headers may be wrong too. Blocks of (anything, packet without its checksum)."""
    reader = BinlogReader(START)
    for _, packet in unpack(data):
        for event in reader.read(packet + zlib.crc32(packet).to_bytes(4, "little")):
            event.where()


def _readable(records: list[bytes]) -> None:
    """Whatever was published can be read back and continues what was published before."""
    following = Transactions(-1)
    for offset, record in enumerate(records):
        try:
            step = following.accept(decode(record, f"offset {offset}"), offset)
        except CdcError as error:
            raise WrongResult(f"a record that no consumer reads: {error}") from error
        if step is None:
            raise WrongResult("a record that repeats another")


def rows(data: bytes) -> None:
    """Row images, against the slow decoder. A block with a table map's body, a block of (type, rows event's body)."""
    blocks = list(unpack(data))[:2]
    if len(blocks) < 2 or blocks[1][0] not in ROWS:
        return
    (_, source), (kind, body) = blocks
    table_map = BinlogEvent(EventType.TABLE_MAP, 0, 0, source, "binlog.000001", 4, 5)
    event = BinlogEvent(kind, 0, 0, body, "binlog.000001", 5, 6)
    try:
        table = TableDecoders("mysql-srv1", None, CHARSETS).table(table_map)
    except UNREADABLE as error:
        raise unreadable(EventType.TABLE_MAP, table_map.where(), error) from error
    assert table is not None
    operation = RowsOperation(event, table)
    # generating a decoder takes as long as twenty inputs, so not for each
    row_image.MANY_ROWS = 0 if zlib.crc32(data) % 8 == 0 else 100
    operation.encode()
    found, refusal = operation.json, None
    try:
        operation.raise_if_failed()
    except CdcError as error:
        refusal = error
    expected = _expected_rows(kind, table.shape.images.columns, body)
    if found is not None and expected is not None:
        ((_, rows),) = json.loads(b'{"x":1' + bytes(found) + b"}")["operation"].items()
        _compare([_opened(image) for row in rows["rows"] for image in row.values()], expected)
    elif (found is None) != (expected is None):
        raise WrongResult(f"fast and slow decoder disagree: {refusal or 'slow refuses'}") from refusal
    if refusal is not None:
        raise refusal


def _expected_rows(kind: int, columns: tuple[Any, ...], body: bytes) -> list[Any] | None:
    """The slow decoder's answer; None for what it refuses."""
    try:
        position = 8 + int.from_bytes(body[8:10], "little")
        width, position = length_encoded(body, position)
        size = (width + 7) // 8 * (2 if kind == EventType.UPDATE_ROWS else 1)
        if width != len(columns) or len(body) < position + size:
            return None
        one = (width + 7) // 8
        for at in range(position, position + size, one):
            bits = int.from_bytes(body[at : at + one], "little")
            if bits & ((1 << width) - 1) != (1 << width) - 1:
                return None
        images = read_images(columns, body, position + size)
    except (ValueError, IndexError, CdcError):
        return None
    halves = kind == EventType.UPDATE_ROWS and len(images) % 2
    return None if not images or halves else images


def json_values(data: bytes) -> None:
    """Binary JSON, against the slow decoder."""
    # so that some of the inputs meet a form
    forms.MANY = 1
    try:
        expected = read_json(data)
    except ValueError:
        expected = None
    try:
        found = json.loads(json_value(data).encode("latin-1"))
    except (CdcError, *UNREADABLE) as error:
        if expected is not None:
            raise WrongResult("what can be read is refused") from error
        raise unreadable(EventType.WRITE_ROWS, "b.1:4", error) from error
    if expected is None:
        raise WrongResult("what cannot be read is not refused")
    _compare(_opened([found]), [expected])


def _opened(image: list[Any]) -> list[Any]:
    """An image with its documents parsed, so that two of them can be compared."""
    opened: list[Any] = []
    for value in image:
        if value != "Null" and "Json" in value:
            value = {"Json": json.loads(value["Json"])}
        elif value != "Null" and "JsonTyped" in value:
            value = {"JsonTyped": {**value["JsonTyped"], "text": json.loads(value["JsonTyped"]["text"])}}
        opened.append(value)
    return opened


def _compare(found: list[Any], expected: list[Any]) -> None:
    # repr, because 0.0 and -0.0 are equal, and 1 and 1.0
    if repr(found) != repr(expected):
        raise WrongResult(f"{repr(found)[:300]} is not {repr(expected)[:300]}")


def payloads(data: bytes) -> None:
    """Compressed transactions. First byte 0: the event's body; 1: blocks of (type, body), compressed here."""
    body = data[1:]
    if data[:1] == b"\1":
        plain = b"".join(inner(kind, event) for kind, event in unpack(body))
        head = bytes([2, 1, 0, 3, 9, 254]) + len(plain).to_bytes(8, "little") + b"\0"
        body = head + zstandard.compress(plain)
    events(
        pack([(EventType.ANONYMOUS_GTID, b"\1" + bytes(32) + b"\2" + bytes(30)), (EventType.TRANSACTION_PAYLOAD, body)])
    )


def seeds_of_packets() -> list[bytes]:
    """Whole packets: the transactions of `events` that stand in one file, framed."""
    found = []
    for seed in load_seeds("events"):
        if EventType.ROTATE in dict(unpack(seed)):
            continue
        position = START.offset
        packets = [framed(EventType.FORMAT_DESCRIPTION, DESCRIPTION, position)]
        for kind, body in unpack(seed):
            position += len(packets[-1])
            packets.append(framed(kind, body, position))
        found.append(pack((0, packet[:-4]) for packet in packets))
    return found
