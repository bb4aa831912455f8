"""Cuts the binlog events of one rows operation into what the follower needs, without their checksums.

Source: MySQL's rows_event.h (Table_map_event, Rows_event) and binlog_event.h.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import NamedTuple

from cdc_consumer.binlog.layout import NoLayoutError, read_number
from cdc_consumer.decision import FOREIGN
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
from shared.events import Query, Rows
from shared.topic import Record
from shared.topic.record import binlog_events

_TABLE_MAP = bytes((EventType.TABLE_MAP,))
#: where in a rows event the table's id ends, and the flags behind it
_IDENTIFIED, _FLAGGED = HEADER_SIZE + ID_SIZE, HEADER_SIZE + ID_SIZE + FLAGS_SIZE
KINDS = {EventType.WRITE_ROWS: "Add", EventType.UPDATE_ROWS: "Update", EventType.DELETE_ROWS: "Delete"}


class Changes(NamedTuple):
    """Holds a rows event and the table map that it belongs to."""

    #: "Add", "Update" or "Delete"
    kind: str
    #: names of database and table, as bytes of UTF-8
    database: bytes
    table: bytes
    #: what the table map says from its column count on
    layout: bytes
    table_id: bytes
    #: the TABLE_MAP event, without checksum, time and place: all of one table are equal
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
    if record.binlog[TYPE_AT : TYPE_AT + 1] != _TABLE_MAP:
        return None
    events = binlog_events(record)
    if len(events) != 2 or events[1][TYPE_AT] not in KINDS:
        found = ", ".join(str(event[TYPE_AT]) for event in events)
        raise _foreign(record.offset, f"binlog events of type {found} beside a change of rows")
    table_map, rows = events
    ends = 0
    if record.checksums:
        ends = CHECKSUM_SIZE
        _require_checksum(table_map, record.offset)
        _require_checksum(rows, record.offset)
    table = _table_map(table_map, ends, record.offset)
    table_id = rows[HEADER_SIZE:_IDENTIFIED]
    if len(rows) < _FLAGGED + ends + 2 or table_id != table.id:
        raise _foreign(record.offset, "rows that do not belong to the table map beside them")
    timestamp, kind_number, server, size, end, flags = HEADER.unpack_from(rows)
    kind, rest = KINDS[kind_number], rows[_FLAGGED : len(rows) - ends]
    if not _complete(rest, table.width, 2 if kind == "Update" else 1):
        raise _foreign(record.offset, "rows without the values of every column")
    checks = not rows[_IDENTIFIED] & (NO_FOREIGN_KEY_CHECKS | CASCADES_LOGGED)
    head = HEADER.pack(timestamp, kind_number, server, size - ends, end, flags) + table_id
    return Changes(kind, table.database, table.name, table.layout, table_id, table.event, head, rest, checks)


def require_agreement(record: Record, operation: Query | Rows, where: str) -> None:
    """Refuse a record whose binlog events are of another statement, kind or table than its JSON tells of.

    Nothing else of them is read, for a way that goes by the JSON. `where` names the record. Raises EventError.
    """
    skipped = isinstance(operation, Query) and operation.skipped is not None
    if not record.binlog or skipped:
        return
    events = binlog_events(record)
    types = [event[TYPE_AT] for event in events]
    if isinstance(operation, Query):
        body = events[0][:-CHECKSUM_SIZE] if record.checksums else events[0]
        agrees = types == [EventType.QUERY] and body.endswith(operation.sql)
        told = "a statement"
    else:
        names = operation.database.encode(), operation.table.encode()
        agrees = len(types) == 2 and types[0] == EventType.TABLE_MAP and KINDS.get(types[1]) == operation.kind
        ends = CHECKSUM_SIZE if record.checksums else 0
        agrees = agrees and _table_map(events[0], ends, record.offset)[:2] == names
        told = f"{operation.kind} in {operation.database}.{operation.table}"
    if not agrees:
        raise EventError(
            f"{where} tells of {told}, and its binlog events of something else; no producer writes that: {FOREIGN}"
        )


def _complete(rest: bytes, width: int, images: int) -> bool:
    """Tell whether the rows have as many columns as the table map, and each image has them all.

    `rest` begins with additional data whose length includes itself, and has `images` times a bit for each column.
    """
    try:
        found, position = read_number(rest, int.from_bytes(rest[:2], "little"))
    except (NoLayoutError, IndexError):
        return False
    if found != width:
        return False
    size, every = (width + 7) // 8, (1 << width) - 1
    for start in range(position, position + images * size, size):
        if int.from_bytes(rest[start : start + size], "little") & every != every:
            return False
    return True


def event(kind: int, body: bytes, *, timestamp: int = 0) -> bytes:
    """Write a binlog event of this type, without checksum."""
    return HEADER.pack(timestamp, kind, 0, HEADER_SIZE + len(body), 0, 0) + body


def _require_checksum(whole: bytes, offset: int) -> None:
    if zlib.crc32(memoryview(whole)[:-CHECKSUM_SIZE]) != int.from_bytes(whole[-CHECKSUM_SIZE:], "little"):
        raise _foreign(offset, "a binlog event that does not match the leader's own checksum")


def _foreign(offset: int, what: str) -> EventError:
    """The error for a record whose binlog events are not those of one change of rows."""
    return EventError(f"topic offset {offset} holds {what}; no producer writes that: {FOREIGN}")


class _TableMap(NamedTuple):
    """Holds what a TABLE_MAP event says."""

    database: bytes
    name: bytes
    #: from the column count on
    layout: bytes
    #: columns, -1 where that is not to be read
    width: int
    id: bytes
    #: the event itself, without checksum, time and place
    event: bytes


def _table_map(whole: bytes, ends: int, offset: int) -> _TableMap:
    """Read a TABLE_MAP event behind which a checksum of `ends` bytes stands. Raises EventError."""
    try:
        return _read_table_map(whole[HEADER_SIZE : len(whole) - ends])
    except IndexError:
        raise _foreign(offset, "a table map that ends within a name") from None


@lru_cache(maxsize=1024)
def _read_table_map(body: bytes) -> _TableMap:
    """Those of one table are equal. Both names stand as length, bytes, NUL. Raises IndexError where one ends early."""
    position = ID_SIZE + FLAGS_SIZE
    names = []
    for _ in range(2):
        end = position + 1 + body[position]
        if end >= len(body):
            raise IndexError(end)
        names.append(body[position + 1 : end])
        position = end + 1
    layout = body[position:]
    try:
        width, _ = read_number(layout, 0)
    except (NoLayoutError, IndexError):
        width = -1
    return _TableMap(names[0], names[1], layout, width, body[:ID_SIZE], event(EventType.TABLE_MAP, body))
