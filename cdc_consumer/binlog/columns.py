"""Makes the layout of a table of the follower from what its information_schema says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cdc_consumer.binlog.layout import RowLayout, bits, number, numbers, text
from cdc_consumer.follower.tables import Ask
from cdc_consumer.sql import column_types, literals
from shared import binlog_format as types

_FIXED = {
    "tinyint": types.TINY, "smallint": types.SHORT, "mediumint": types.INT24, "int": types.LONG,
    "bigint": types.LONGLONG, "date": types.DATE, "year": types.YEAR,
}  # fmt: skip
_MOMENTS = {"timestamp": types.TIMESTAMP2, "datetime": types.DATETIME2, "time": types.TIME2}
#: bytes of the length before a value
_BLOBS = {"tiny": 1, "": 2, "medium": 3, "long": 4}
_LENGTH = {f"{size}{name}": bytes_ for size, bytes_ in _BLOBS.items() for name in ("text", "blob")}
_SUBTYPES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection",
)  # fmt: skip
#: character sets in which the letters of ASCII are other bytes, or another number of them
_WIDE = frozenset({"ucs2", "utf16", "utf16le", "utf32"})


class _Column(NamedTuple):
    name: str
    #: DATA_TYPE and COLUMN_TYPE
    kind: str
    type: str
    nullable: str
    octets: int | None
    precision: int | None
    scale: int | None
    fraction: int | None
    charset: str | None
    collation: int | None
    extra: str


def layout_of(ask: Ask, database: str, table: str) -> RowLayout | None:
    """Return the layout of this table; None where bytes alone cannot prove that a row stays what it was.

    That is a table with a generated column, whose values the follower computes anew, and one with a type that is not
    known here.
    """
    found = ask(
        "SELECT c.COLUMN_NAME, c.DATA_TYPE, c.COLUMN_TYPE, c.IS_NULLABLE, c.CHARACTER_OCTET_LENGTH,"
        " c.NUMERIC_PRECISION, c.NUMERIC_SCALE, c.DATETIME_PRECISION, c.CHARACTER_SET_NAME, n.ID, c.EXTRA"
        " FROM information_schema.COLUMNS c LEFT JOIN information_schema.COLLATIONS n USING (COLLATION_NAME)"
        f" WHERE c.TABLE_SCHEMA = {literals.text(database)} AND c.TABLE_NAME = {literals.text(table)}"
        " ORDER BY c.ORDINAL_POSITION"
    )
    columns = [_Column(*row) for row in found]
    if any("GENERATED" in column.extra.replace("DEFAULT_GENERATED", "") for column in columns):
        return None
    try:
        return _layout(columns)
    except (KeyError, ValueError, TypeError):
        return None


def _layout(columns: Sequence[_Column]) -> RowLayout:
    kinds, metadata = bytearray(), bytearray()
    unsigned: list[bool] = []
    collations: list[int] = []
    member_collations: list[int] = []
    members: dict[str, list[bytes]] = {"enum": [], "set": []}
    geometries: list[int] = []
    dimensions: list[int] = []
    for column in columns:
        kind, more = _type(column)
        kinds.append(kind)
        metadata += more
        if kind in types.SIGNED:
            unsigned.append(kind == types.YEAR or "unsigned" in column.type.rpartition(")")[2])
        if column.kind in ("enum", "set"):
            member_collations.append(_given(column.collation))
            members[column.kind].append(_members(column))
        elif kind in types.CHARACTER:
            collations.append(types.BINARY_COLLATION if column.collation is None else column.collation)
        if kind == types.GEOMETRY:
            geometries.append(_SUBTYPES.index(_parsed(column).name))
        if kind == types.VECTOR:
            dimensions += _parsed(column).numbers()
    return RowLayout(
        bytes(kinds),
        bytes(metadata),
        bits([column.nullable == "YES" for column in columns], 0x01),
        tuple(unsigned),
        tuple(collations),
        tuple(member_collations),
        b"".join(text(column.name.encode()) for column in columns),
        b"".join(members["enum"]),
        b"".join(members["set"]),
        numbers(geometries),
        numbers(dimensions),
    )


def _type(column: _Column) -> tuple[int, bytes]:
    """The type's number and metadata. Raises KeyError for one that is not known here."""
    kind = column.kind
    if kind in _MOMENTS:
        return _MOMENTS[kind], bytes((_given(column.fraction),))
    if kind in ("char", "binary"):
        length = _given(column.octets)
        # the two high bits of the length hide in the type
        return types.STRING, bytes((types.STRING ^ (length & 0x300) >> 4, length & 0xFF))
    if kind in ("varchar", "varbinary"):
        return types.VARCHAR, _given(column.octets).to_bytes(2, "little")
    if kind in _LENGTH:
        return types.BLOB, bytes((_LENGTH[kind],))
    if kind in ("enum", "set"):
        return types.STRING, _member_type(kind, len(_parsed(column).members()))
    if kind == "decimal":
        return types.NEWDECIMAL, bytes((_given(column.precision), _given(column.scale)))
    if kind == "bit":
        bits = _given(column.precision)
        return types.BIT, bytes((bits % 8, bits // 8))
    if kind in ("float", "double"):
        return (types.FLOAT, b"\4") if kind == "float" else (types.DOUBLE, b"\x08")
    if kind in ("json", "vector"):
        return (types.JSON if kind == "json" else types.VECTOR), b"\4"
    if kind in column_types.SPATIAL:
        return types.GEOMETRY, b"\4"
    return _FIXED[kind], b""


def _member_type(kind: str, members: int) -> bytes:
    if kind == "enum":
        return bytes((types.ENUM, 1 if members < 256 else 2))
    size = (members + 7) // 8
    return bytes((types.SET, 8 if size > 4 else size))


def _members(column: _Column) -> bytes:
    """The members as a table map holds them. Raises ValueError where their bytes cannot be told from here."""
    members = _parsed(column).members()
    plain = column.charset not in _WIDE and all(member.isascii() for member in members)
    if "\\" in column.type or not (plain or column.charset in ("utf8mb4", "utf8mb3")):
        raise ValueError(column.type)
    named = [member.replace("''", "'").encode() for member in members]
    return number(len(named)) + b"".join(map(text, named))


def _parsed(column: _Column) -> column_types.ColumnType:
    found = column_types.parse(column.type)
    if found is None:
        raise ValueError(column.type)
    return found


def _given(value: int | None) -> int:
    if value is None:
        raise ValueError("information_schema does not tell it")
    return value
