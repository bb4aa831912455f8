"""Reads table maps, the binlog events that say what the rows after them look like."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from cdc_producer.decode.binlog_event import BinlogEvent, way_past
from cdc_producer.decode.cursor import Cursor, counted_strings, length_encoded
from shared.binlog_format import (
    BINARY_COLLATION,
    BIT,
    BLOB,
    CHARACTER,
    CHARSETS,
    DATETIME2,
    DEFAULT_CHARSET,
    DIMENSIONS,
    DOUBLE,
    ENUM,
    ENUMS,
    FLOAT,
    GEOMETRIES,
    GEOMETRY,
    JSON,
    KEY,
    KEY_OF_PREFIXES,
    MEMBER_CHARSETS,
    MEMBER_DEFAULT_CHARSET,
    METADATA_SIZE,
    NAMES,
    NEWDECIMAL,
    SET,
    SETS,
    SIGN,
    SIGNED,
    STRING,
    TIME2,
    TIMESTAMP2,
    VECTOR,
    YEAR,
)
from shared.errors import UnsupportedError

#: the sizes that MySQL gives a type, where bytes or digits are counted by them
SIZES: dict[int, Container[int]] = {
    FLOAT: (4,), DOUBLE: (8,), NEWDECIMAL: range(1, 66), BIT: range(1, 65), TIMESTAMP2: range(7), DATETIME2: range(7),
    TIME2: range(7), ENUM: (1, 2), SET: (1, 2, 3, 4, 8), BLOB: range(1, 5), JSON: range(1, 5), GEOMETRY: range(1, 5),
    VECTOR: range(1, 5),
}  # fmt: skip
#: of a DECIMAL
MOST_SCALE = 30
#: bytes before the names: table id 6, flags 2
NAMES_AT = 8
#: MySQL's own limit
MOST_COLUMNS = 4096


class Charset(NamedTuple):
    """Describes a character set of the leader."""

    name: str
    #: bytes of its longest character
    max_length: int


#: character sets by the id of a collation, as a leader's information_schema gives them
Charsets = Mapping[int, Charset]


class TableMapColumn(NamedTuple):
    """Describes a column as a table map does."""

    name: str
    type: int
    #: type-specific: bytes of a length, maximum length in bytes, (precision, scale), fractional digits, bits
    size: int
    #: of a DECIMAL; or the subtype of a GEOMETRY, or the dimensions of a VECTOR
    scale: int = 0
    unsigned: bool = False
    charset: Charset | None = None
    #: ENUM and SET
    members: tuple[bytes, ...] = ()


class TableMap(NamedTuple):
    """Describes a table as it was when its rows were written."""

    database: str
    table: str
    columns: tuple[TableMapColumn, ...]
    #: names of the primary key's columns
    key: tuple[str, ...]


def read_names(body: bytes) -> tuple[str, str]:
    """Read the database and the table of a TABLE_MAP event, without its columns."""
    database, position = _name(body, NAMES_AT)
    return database, _name(body, position)[0]


def read_table_map(event: BinlogEvent, charsets: Charsets) -> TableMap:
    """Read a TABLE_MAP event. Raises UnsupportedError for an unknown column type or when metadata is not FULL.

    Bytes that are no such event raise what UNREADABLE lists. Source: MySQL's rows_event.h, Table_map_event, and its
    optional metadata fields.
    """
    body = event.body
    database, position = _name(body, NAMES_AT)
    table, position = _name(body, position)
    cursor = Cursor(body, position)
    count = cursor.packed()
    if not 0 < count <= MOST_COLUMNS:
        raise ValueError(f"{count} columns")
    types = cursor.take(count)
    basics = _basic_columns(types, Cursor(cursor.counted()), f"{database}.{table}", event)
    cursor.take((count + 7) // 8)  # which columns may be NULL: the row images tell
    metadata = _Metadata([kind for kind, _, _ in basics])
    for field_type, value in _fields(body, cursor.position):
        if field_type in METADATA:
            METADATA[field_type](metadata, value)
    if len(metadata.names) != count:
        raise UnsupportedError(
            f"table map of {database}.{table} at {event.where()} has no column names: binlog_row_metadata was not FULL"
            " when it was written; run on the leader: SET PERSIST binlog_row_metadata = FULL; FLUSH BINARY LOGS; then"
            ' give the profiles a topic of another name, with start = "copy", and load the follower anew; or'
            f" {way_past(event.where())}"
        )
    columns = tuple(_columns(basics, metadata, charsets))
    return TableMap(database, table, columns, tuple(columns[index].name for index in metadata.key))


def _name(body: bytes, position: int) -> tuple[str, int]:
    """A name with one byte of length before it and a NUL behind it; and the position behind that."""
    end = position + 1 + body[position]
    name = body[position + 1 : end].decode()
    if body[end]:
        raise ValueError(f"name {name!r} does not end where it should")
    return name, end + 1


def _fields(body: bytes, position: int) -> Iterator[tuple[int, bytes]]:
    """Type and value of each field from `position` to the end."""
    end = len(body)
    while position < end:
        kind, length, start = body[position], body[position + 1], position + 2
        if length > 250:
            length, start = length_encoded(body, position + 1)
        position = start + length
        yield kind, body[start:position]
    if position > end:
        raise ValueError(f"{position - end} bytes more are announced than are there")


def _basic_columns(types: bytes, metadata: Cursor, table: str, event: BinlogEvent) -> list[tuple[int, int, int]]:
    """(type, size, scale) of each column."""
    columns: list[tuple[int, int, int]] = []
    for number, kind in enumerate(types, 1):
        if kind not in METADATA_SIZE:
            raise UnsupportedError(
                f"column {number} of {table} at {event.where()} has a type that cannot be replicated (number {kind} of"
                " enum_field_types); change it on the leader, or leave its database out by the filter;"
                f" or {way_past(event.where())}"
            )
        column = _basic_column(kind, metadata.take(METADATA_SIZE[kind]))
        real, size, scale = column
        if (real in SIZES and size not in SIZES[real]) or scale > min(size, MOST_SCALE):
            raise ValueError(f"column {number} of {table} has type {real} and size {size}, {scale}")
        columns.append(column)
    return columns


def _basic_column(kind: int, value: bytes) -> tuple[int, int, int]:
    if kind == STRING:
        # The real type hides here; a CHAR longer than 255 bytes keeps two bits of its length in the type byte.
        if value[0] & 0x30 != 0x30:
            return STRING, value[1] | ((value[0] & 0x30) ^ 0x30) << 4, 0
        if value[0] not in (STRING, ENUM, SET):
            raise ValueError(f"type {value[0]} in the place of a string's")
        return value[0], value[1], 0
    if kind == NEWDECIMAL:
        return kind, value[0], value[1]
    if kind == BIT:
        return kind, value[0] + 8 * value[1], 0
    return kind, int.from_bytes(value, "little"), 0


class _Metadata:
    """The optional metadata that binlog_row_metadata=FULL adds, still by index."""

    names: Sequence[str] = ()
    unsigned: Sequence[bool] = ()
    charsets: Sequence[int] = ()
    member_charsets: Sequence[int] = ()
    enums: Sequence[tuple[bytes, ...]] = ()
    sets: Sequence[tuple[bytes, ...]] = ()
    geometries: Sequence[int] = ()
    dimensions: Sequence[int] = ()
    key: Sequence[int] = ()

    def __init__(self, types: list[int]) -> None:
        self._types = types

    def read_unsigned(self, value: bytes) -> None:
        self.unsigned = [bool(octet << bit & 0x80) for octet in value for bit in range(8)]

    def read_charset(self, value: bytes) -> None:
        self.charsets = _default_charsets(value, sum(kind in CHARACTER for kind in self._types))

    def read_charsets(self, value: bytes) -> None:
        self.charsets = _numbers(value)

    def read_names(self, value: bytes) -> None:
        self.names = [name.decode() for name in counted_strings(value)]

    def read_sets(self, value: bytes) -> None:
        self.sets = _member_lists(value)

    def read_enums(self, value: bytes) -> None:
        self.enums = _member_lists(value)

    def read_geometries(self, value: bytes) -> None:
        self.geometries = _numbers(value)

    def read_key(self, value: bytes) -> None:
        self.key = _numbers(value)

    def read_key_of_prefixes(self, value: bytes) -> None:
        self.key = _numbers(value)[::2]  # each with the length of its prefix

    def read_member_charset(self, value: bytes) -> None:
        self.member_charsets = _default_charsets(value, sum(kind in (ENUM, SET) for kind in self._types))

    def read_member_charsets(self, value: bytes) -> None:
        self.member_charsets = _numbers(value)

    def read_dimensions(self, value: bytes) -> None:
        self.dimensions = _numbers(value)


#: by the number of the field; others tell what is not needed
METADATA: dict[int, Callable[[_Metadata, bytes], None]] = {
    SIGN: _Metadata.read_unsigned,
    DEFAULT_CHARSET: _Metadata.read_charset,
    CHARSETS: _Metadata.read_charsets,
    NAMES: _Metadata.read_names,
    SETS: _Metadata.read_sets,
    ENUMS: _Metadata.read_enums,
    GEOMETRIES: _Metadata.read_geometries,
    KEY: _Metadata.read_key,
    KEY_OF_PREFIXES: _Metadata.read_key_of_prefixes,
    MEMBER_DEFAULT_CHARSET: _Metadata.read_member_charset,
    MEMBER_CHARSETS: _Metadata.read_member_charsets,
    DIMENSIONS: _Metadata.read_dimensions,
}


def _columns(basics: list[tuple[int, int, int]], metadata: _Metadata, charsets: Charsets) -> Iterator[TableMapColumn]:
    """Each column with what the metadata tells of it, in the order of the columns it tells something of."""
    unsigned, collations = deque(metadata.unsigned), deque(metadata.charsets)
    member_collations, enums, sets = deque(metadata.member_charsets), deque(metadata.enums), deque(metadata.sets)
    details = {GEOMETRY: deque(metadata.geometries), VECTOR: deque(metadata.dimensions)}
    for name, (kind, size, scale) in zip(metadata.names, basics, strict=True):
        collation = collations.popleft() if kind in CHARACTER else None
        members: tuple[bytes, ...] = ()
        if kind in (ENUM, SET):
            collation = member_collations.popleft()
            members = (enums if kind == ENUM else sets).popleft()
        if kind in details:
            scale = details[kind].popleft()
        charset = None if collation is None or collation == BINARY_COLLATION else charsets[collation]
        sign = kind in SIGNED and unsigned.popleft()
        yield TableMapColumn(name, kind, size, scale, sign and kind != YEAR, charset, members)


def _numbers(value: bytes) -> list[int]:
    numbers, position = [], 0
    while position < len(value):
        number, position = length_encoded(value, position)
        numbers.append(number)
    return numbers


def _member_lists(value: bytes) -> list[tuple[bytes, ...]]:
    lists, cursor = [], Cursor(value)
    while cursor:
        lists.append(tuple(cursor.counted() for _ in range(cursor.packed())))
    return lists


def _default_charsets(value: bytes, count: int) -> list[int]:
    """One collation for all, then (index, collation) for the columns that differ."""
    default, *pairs = _numbers(value)
    collations = [default] * count
    for index, collation in zip(pairs[::2], pairs[1::2], strict=True):
        collations[index] = collation
    return collations
