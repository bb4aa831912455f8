"""Reads table maps, the binlog events that say what the rows after them look like."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cdc_producer.decode.binlog_event import BinlogEvent, way_past
from cdc_producer.decode.cursor import Cursor
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


@dataclass(frozen=True, slots=True)
class TableMap:
    """Describes a table as it was when its rows were written."""

    database: str
    table: str
    columns: tuple[TableMapColumn, ...]
    #: names of the primary key's columns
    key: tuple[str, ...]


def read_names(body: bytes) -> tuple[str, str]:
    """Read the database and the table of a TABLE_MAP event, without its columns."""
    cursor = Cursor(body, 8)
    return _name(cursor), _name(cursor)


def read_table_map(event: BinlogEvent, charsets: Charsets) -> TableMap:
    """Read a TABLE_MAP event. Raises UnsupportedError for an unknown column type or when metadata is not FULL.

    Bytes that are no such event raise what UNREADABLE lists. Source: MySQL's rows_event.h, Table_map_event, and its
    optional metadata fields.
    """
    cursor, where = Cursor(event.body, 8), event.where()  # table id 6, flags 2
    database, table = _name(cursor), _name(cursor)
    count = cursor.packed()
    if not 0 < count <= MOST_COLUMNS:
        raise ValueError(f"{count} columns")
    types = cursor.take(count)
    basics = _basic_columns(types, Cursor(cursor.counted()), f"{database}.{table} at {where}")
    cursor.take((count + 7) // 8)  # which columns may be NULL: the row images tell
    metadata = _Metadata([kind for kind, _, _ in basics])
    while cursor:
        field_type, value = cursor.number(1), cursor.counted()
        if field_type in METADATA:
            METADATA[field_type](metadata, Cursor(value))
    if len(metadata.names) != count:
        raise UnsupportedError(
            f"table map of {database}.{table} at {where} has no column names: binlog_row_metadata was not FULL when it"
            " was written; SET PERSIST binlog_row_metadata = FULL, load the follower anew and start after this point;"
            f" or {way_past(where)}"
        )
    columns = tuple(_columns(basics, metadata, charsets))
    return TableMap(database, table, columns, tuple(columns[index].name for index in metadata.key))


def _name(cursor: Cursor) -> str:
    """A name with one byte of length before it and a NUL behind it."""
    name = cursor.take(cursor.number(1)).decode()
    if cursor.number(1):
        raise ValueError(f"name {name!r} does not end where it should")
    return name


def _basic_columns(types: bytes, metadata: Cursor, where: str) -> list[tuple[int, int, int]]:
    """(type, size, scale) of each column."""
    columns: list[tuple[int, int, int]] = []
    for number, kind in enumerate(types, 1):
        if kind not in METADATA_SIZE:
            raise UnsupportedError(
                f"column {number} of {where} has a type that cannot be replicated (number {kind} of enum_field_types);"
                " change it on the leader, or leave its database out by the filter;"
                f" or {way_past(where.rpartition(' at ')[2])}"
            )
        column = _basic_column(kind, metadata.take(METADATA_SIZE[kind]))
        real, size, scale = column
        possible = SIZES.get(real, ())
        if (possible and size not in possible) or scale > min(size, MOST_SCALE):
            raise ValueError(f"column {number} of {where} has type {real} and size {size}, {scale}")
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

    def __init__(self, types: list[int]) -> None:
        self._characters = sum(kind in CHARACTER for kind in types)
        self._member_columns = sum(kind in (ENUM, SET) for kind in types)
        self.names: list[str] = []
        self.unsigned: list[bool] = []
        self.charsets: list[int] = []
        self.member_charsets: list[int] = []
        self.enums: list[tuple[bytes, ...]] = []
        self.sets: list[tuple[bytes, ...]] = []
        self.geometries: list[int] = []
        self.dimensions: list[int] = []
        self.key: list[int] = []

    def read_unsigned(self, value: Cursor) -> None:
        self.unsigned = [bool(octet << bit & 0x80) for octet in value.rest() for bit in range(8)]

    def read_charset(self, value: Cursor) -> None:
        self.charsets = _default_charsets(value, self._characters)

    def read_charsets(self, value: Cursor) -> None:
        self.charsets = _numbers(value)

    def read_names(self, value: Cursor) -> None:
        self.names = []
        while value:
            self.names.append(value.counted().decode())

    def read_sets(self, value: Cursor) -> None:
        self.sets = _member_lists(value)

    def read_enums(self, value: Cursor) -> None:
        self.enums = _member_lists(value)

    def read_geometries(self, value: Cursor) -> None:
        self.geometries = _numbers(value)

    def read_key(self, value: Cursor) -> None:
        self.key = _numbers(value)

    def read_key_of_prefixes(self, value: Cursor) -> None:
        self.key = _numbers(value)[::2]  # each with the length of its prefix

    def read_member_charset(self, value: Cursor) -> None:
        self.member_charsets = _default_charsets(value, self._member_columns)

    def read_member_charsets(self, value: Cursor) -> None:
        self.member_charsets = _numbers(value)

    def read_dimensions(self, value: Cursor) -> None:
        self.dimensions = _numbers(value)


#: by the number of the field; others tell what is not needed
METADATA: dict[int, Callable[[_Metadata, Cursor], None]] = {
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


def _numbers(value: Cursor) -> list[int]:
    numbers = []
    while value:
        numbers.append(value.packed())
    return numbers


def _member_lists(value: Cursor) -> list[tuple[bytes, ...]]:
    lists = []
    while value:
        lists.append(tuple(value.counted() for _ in range(value.packed())))
    return lists


def _default_charsets(value: Cursor, count: int) -> list[int]:
    """One collation for all, then (index, collation) for the columns that differ."""
    default, *pairs = _numbers(value)
    collations = [default] * count
    for index, collation in zip(pairs[::2], pairs[1::2], strict=True):
        collations[index] = collation
    return collations
