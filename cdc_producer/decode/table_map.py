"""Table maps: the binlog event that says what the rows after it look like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cdc_producer.decode.binlog import BinlogEvent, length_encoded
from shared.errors import UnsupportedError

#: column types as the binlog numbers them. Source: MySQL's field_types.h
(TINY, SHORT, LONG, FLOAT, DOUBLE, TIMESTAMP, LONGLONG, INT24, DATE) = (1, 2, 3, 4, 5, 7, 8, 9, 10)
(YEAR, VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2, VECTOR, JSON) = (13, 15, 16, 17, 18, 19, 242, 245)
(NEWDECIMAL, ENUM, SET, BLOB, VAR_STRING, STRING, GEOMETRY) = (246, 247, 248, 252, 253, 254, 255)

#: bytes of metadata that each type has in a table map
METADATA_SIZE = {
    FLOAT: 1, DOUBLE: 1, VARCHAR: 2, BIT: 2, TIMESTAMP2: 1, DATETIME2: 1, TIME2: 1, VECTOR: 1, JSON: 1,
    NEWDECIMAL: 2, BLOB: 1, VAR_STRING: 2, STRING: 2, GEOMETRY: 1, TINY: 0, SHORT: 0, LONG: 0, LONGLONG: 0, INT24: 0,
    DATE: 0, YEAR: 0,
}  # fmt: skip
#: types whose sign is in the metadata; MySQL counts YEAR among them
SIGNED = frozenset({TINY, SHORT, INT24, LONG, LONGLONG, NEWDECIMAL, FLOAT, DOUBLE, YEAR})
#: types that have a character set in the metadata; MySQL counts VECTOR among them
CHARACTER = frozenset({STRING, VAR_STRING, VARCHAR, BLOB, VECTOR})
BINARY_COLLATION = 63


@dataclass(frozen=True, slots=True)
class Charset:
    name: str
    #: bytes of its longest character
    max_length: int


#: character sets by the id of a collation, as a leader's information_schema gives them
Charsets = Mapping[int, Charset]


@dataclass(frozen=True, slots=True)
class Column:
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
    database: str
    table: str
    columns: tuple[Column, ...]
    #: names of the primary key's columns
    key: tuple[str, ...]


@dataclass(slots=True)
class _Metadata:
    """The optional metadata that binlog_row_metadata=FULL adds, still by index."""

    names: list[str] = field(default_factory=list)
    unsigned: list[bool] = field(default_factory=list)
    charsets: list[int] = field(default_factory=list)
    member_charsets: list[int] = field(default_factory=list)
    enums: list[tuple[bytes, ...]] = field(default_factory=list)
    sets: list[tuple[bytes, ...]] = field(default_factory=list)
    geometries: list[int] = field(default_factory=list)
    dimensions: list[int] = field(default_factory=list)
    key: list[int] = field(default_factory=list)


def read_names(body: bytes) -> tuple[str, str]:
    """Database and table of a TABLE_MAP event, without reading its columns."""
    end = 9 + body[8]
    return body[9:end].decode(), body[end + 2 : end + 2 + body[end + 1]].decode()


def read_table_map(event: BinlogEvent, charsets: Charsets) -> TableMap:
    """Read a TABLE_MAP event. Raises UnsupportedError for an unknown column type or when metadata is not FULL.

    Source: MySQL's rows_event.h, Table_map_event, and its optional metadata fields.
    """
    body, where = event.body, event.where()
    database, table = read_names(body)
    # table id 6, flags 2, then both names as length, bytes, NUL
    position = 8 + len(database.encode()) + len(table.encode()) + 4
    count, position = length_encoded(body, position)
    types = body[position : position + count]
    size, position = length_encoded(body, position + count)
    basics = _basic_columns(types, body[position : position + size], f"{database}.{table} at {where}")
    position += size + (count + 7) // 8  # which columns may be NULL: the row images tell
    try:
        metadata = _optional_metadata(body[position:], [kind for kind, _, _ in basics])
    except (IndexError, KeyError) as error:
        raise UnsupportedError(f"table map of {database}.{table} at {where} has unreadable metadata") from error
    if len(metadata.names) != count:
        raise UnsupportedError(
            f"table map of {database}.{table} at {where} has no column names: binlog_row_metadata was not FULL when it"
            " was written; SET PERSIST binlog_row_metadata = FULL, load the follower anew and start after this point"
        )
    columns = tuple(_columns(basics, metadata, charsets))
    return TableMap(database, table, columns, tuple(columns[index].name for index in metadata.key))


def _basic_columns(types: bytes, metadata: bytes, where: str) -> list[tuple[int, int, int]]:
    """(type, size, scale) of each column."""
    columns: list[tuple[int, int, int]] = []
    position = 0
    for kind in types:
        if kind not in METADATA_SIZE:
            raise UnsupportedError(f"column {len(columns) + 1} of {where} has type {kind}, which cannot be replicated")
        width = METADATA_SIZE[kind]
        value = metadata[position : position + width]
        position += width
        columns.append(_basic_column(kind, value))
    return columns


def _basic_column(kind: int, value: bytes) -> tuple[int, int, int]:
    if kind == STRING:
        # The real type hides here; a CHAR longer than 255 bytes keeps two bits of its length in the type byte.
        if value[0] & 0x30 != 0x30:
            return STRING, value[1] | ((value[0] & 0x30) ^ 0x30) << 4, 0
        return value[0], value[1], 0
    if kind == NEWDECIMAL:
        return kind, value[0], value[1]
    if kind == BIT:
        return kind, value[0] + 8 * value[1], 0
    return kind, int.from_bytes(value, "little"), 0


def _optional_metadata(data: bytes, types: list[int]) -> _Metadata:
    metadata = _Metadata()
    characters = sum(kind in CHARACTER for kind in types)
    member_columns = sum(kind in (ENUM, SET) for kind in types)
    position = 0
    while position < len(data):
        field_type = data[position]
        length, position = length_encoded(data, position + 1)
        value = data[position : position + length]
        position += length
        if field_type == 1:
            bits = int.from_bytes(value, "big")
            metadata.unsigned = [bool(bits >> (8 * length - 1 - index) & 1) for index in range(8 * length)]
        elif field_type == 2:
            metadata.charsets = _default_charsets(value, characters)
        elif field_type == 3:
            metadata.charsets = list(_numbers(value))
        elif field_type == 4:
            metadata.names = [name.decode() for name in _strings(value)]
        elif field_type == 5:
            metadata.sets = list(_member_lists(value))
        elif field_type == 6:
            metadata.enums = list(_member_lists(value))
        elif field_type == 7:
            metadata.geometries = list(_numbers(value))
        elif field_type == 8:
            metadata.key = list(_numbers(value))
        elif field_type == 9:
            metadata.key = list(_numbers(value))[::2]  # each with the length of its prefix
        elif field_type == 10:
            metadata.member_charsets = _default_charsets(value, member_columns)
        elif field_type == 11:
            metadata.member_charsets = list(_numbers(value))
        elif field_type == 13:
            metadata.dimensions = list(_numbers(value))
    return metadata


def _columns(basics: list[tuple[int, int, int]], metadata: _Metadata, charsets: Charsets) -> Iterator[Column]:
    unsigned, collations = iter(metadata.unsigned), iter(metadata.charsets)
    member_collations, enums, sets = iter(metadata.member_charsets), iter(metadata.enums), iter(metadata.sets)
    details = {GEOMETRY: iter(metadata.geometries), VECTOR: iter(metadata.dimensions)}
    for name, (kind, size, scale) in zip(metadata.names, basics, strict=True):
        collation = next(collations) if kind in CHARACTER else None
        members: tuple[bytes, ...] = ()
        if kind in (ENUM, SET):
            collation = next(member_collations)
            members = next(enums if kind == ENUM else sets)
        if kind in details:
            scale = next(details[kind])
        charset = None if collation is None or collation == BINARY_COLLATION else charsets[collation]
        sign = kind in SIGNED and next(unsigned)
        yield Column(name, kind, size, scale, sign and kind != YEAR, charset, members)


def _numbers(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        value, position = length_encoded(data, position)
        yield value


def _strings(data: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(data):
        length, position = length_encoded(data, position)
        yield data[position : position + length]
        position += length


def _member_lists(data: bytes) -> Iterator[tuple[bytes, ...]]:
    position = 0
    while position < len(data):
        count, position = length_encoded(data, position)
        members = []
        for _ in range(count):
            length, position = length_encoded(data, position)
            members.append(data[position : position + length])
            position += length
        yield tuple(members)


def _default_charsets(data: bytes, count: int) -> list[int]:
    """One collation for all, then (index, collation) for the columns that differ."""
    default, *pairs = _numbers(data)
    collations = [default] * count
    for index, collation in zip(pairs[::2], pairs[1::2], strict=True):
        collations[index] = collation
    return collations
