"""Cuts the binlog events of one rows operation into what the follower needs, without their checksums.

Source: MySQL's rows_event.h (Table_map_event, Rows_event) and binlog_event.h.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from cdc_consumer.binlog.layout import NoLayoutError, read_number
from shared.binlog_format import (
    CASCADES_LOGGED,
    CHECKSUM_SIZE,
    COMPLETE_ROWS,
    FLAGS_SIZE,
    HEADER,
    HEADER_SIZE,
    ID_SIZE,
    NO_FOREIGN_KEY_CHECKS,
    STATEMENT_END,
    TYPE_AT,
    EventType,
)
from shared.errors import EventError
from shared.topic import Record
from shared.topic.record import binlog_events

KINDS = {EventType.WRITE_ROWS: "Add", EventType.UPDATE_ROWS: "Update", EventType.DELETE_ROWS: "Delete"}


@dataclass(frozen=True, slots=True)
class Changes:
    """Holds a rows event and the table map that it belongs to."""

    #: "Add", "Update" or "Delete"
    kind: str
    #: names of database and table, as bytes of UTF-8
    database: bytes
    table: bytes
    #: what the table map says from its column count on
    layout: bytes
    table_id: bytes
    #: the TABLE_MAP event, header included, without checksum
    table_map: bytes
    #: the rows event up to the table's id, and from behind the flags on
    head: bytes
    rest: bytes
    foreign_key_checks: bool

    @property
    def size(self) -> int:
        """Count the bytes of the rows event."""
        return len(self.head) + FLAGS_SIZE + len(self.rest)

    def rows_event(self, *, last: bool) -> bytes:
        """Write the rows event; the `last` of a statement releases the tables and, without a BEGIN, commits."""
        flags = COMPLETE_ROWS
        if not self.foreign_key_checks:
            flags |= NO_FOREIGN_KEY_CHECKS
        if last:
            flags |= STATEMENT_END
        return b"".join((self.head, flags.to_bytes(FLAGS_SIZE, "little"), self.rest))


def changes_in(record: Record) -> Changes | None:
    """Return the changes that a record carries as binlog events, None when it carries none.

    Raises EventError when its binlog events are not those of one rows operation, or do not match the leader's own
    checksums.
    """
    if record.binlog[TYPE_AT : TYPE_AT + 1] != bytes((EventType.TABLE_MAP,)):
        return None
    events = binlog_events(record)
    if len(events) != 2 or events[1][TYPE_AT] not in KINDS:
        found = ", ".join(str(event[TYPE_AT]) for event in events)
        raise EventError(f"topic offset {record.offset} holds binlog events of type {found} beside a change of rows")
    if record.checksums:
        events = [_without_checksum(event, record.offset) for event in events]
    table_map, rows = events
    database, table, layout = _table_map_parts(table_map, record.offset)
    head, flags = HEADER_SIZE + ID_SIZE, HEADER_SIZE + ID_SIZE + FLAGS_SIZE
    table_id = rows[HEADER_SIZE:head]
    if len(rows) < flags + 2 or table_id != table_map[HEADER_SIZE:head]:
        raise EventError(f"topic offset {record.offset} holds rows that do not belong to the table map beside them")
    kind, rest = KINDS[rows[TYPE_AT]], rows[flags:]
    if not _complete(rest, layout, 2 if kind == "Update" else 1):
        raise EventError(f"topic offset {record.offset} holds rows without the values of every column")
    checks = not rows[head] & (NO_FOREIGN_KEY_CHECKS | CASCADES_LOGGED)
    return Changes(kind, database, table, layout, table_id, table_map, rows[:head], rest, checks)


def _complete(rest: bytes, layout: bytes, images: int) -> bool:
    """Tell whether the rows have as many columns as the table map, and each image has them all.

    `rest` begins with additional data whose length includes itself, and has `images` times a bit for each column.
    """
    try:
        width, position = read_number(rest, int.from_bytes(rest[:2], "little"))
        if width != read_number(layout, 0)[0]:
            return False
    except (NoLayoutError, IndexError):
        return False
    size, every = (width + 7) // 8, (1 << width) - 1
    for start in range(position, position + images * size, size):
        if int.from_bytes(rest[start : start + size], "little") & every != every:
            return False
    return True


def event(kind: int, body: bytes, *, timestamp: int = 0) -> bytes:
    """Write a binlog event of this type, without checksum."""
    return HEADER.pack(timestamp, kind, 0, HEADER_SIZE + len(body), 0, 0) + body


def _without_checksum(whole: bytes, offset: int) -> bytes:
    body = whole[:-CHECKSUM_SIZE]
    if zlib.crc32(body) != int.from_bytes(whole[-CHECKSUM_SIZE:], "little"):
        raise EventError(f"topic offset {offset} holds a binlog event that does not match the leader's own checksum")
    timestamp, kind, server, size, end, flags = HEADER.unpack_from(body)
    return HEADER.pack(timestamp, kind, server, size - CHECKSUM_SIZE, end, flags) + body[HEADER_SIZE:]


def _table_map_parts(table_map: bytes, offset: int) -> tuple[bytes, bytes, bytes]:
    """Return database, table, and the rest. Both names stand as length, bytes, NUL."""
    position = HEADER_SIZE + ID_SIZE + FLAGS_SIZE
    names = []
    for _ in range(2):
        end = position + 1 + table_map[position] if position < len(table_map) else len(table_map)
        if end >= len(table_map):
            raise EventError(f"topic offset {offset} holds a table map that ends within a name")
        names.append(table_map[position + 1 : end])
        position = end + 1
    return names[0], names[1], table_map[position:]
