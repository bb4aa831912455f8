"""Tells how a table's rows look in the binlog, as a table map says it and as the follower's own table would.

Bytes that were written for one layout mean the same in a table of an equal one, and in no other: MySQL validates
nothing that a BINLOG statement brings. What is no business of the bytes is left out: keys, and who sees a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.binlog_format import (
    CHARACTER,
    CHARSETS,
    DEFAULT_CHARSET,
    DIMENSIONS,
    ENUM,
    ENUMS,
    GEOMETRIES,
    MEMBER_CHARSETS,
    MEMBER_DEFAULT_CHARSET,
    METADATA_SIZE,
    NAMES,
    SET,
    SETS,
    SIGN,
    SIGNED,
    STRING,
    YEAR,
)


class NoLayoutError(ValueError):
    """Means that bytes are no table map, or that it says something that is not known here."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Is equal for two tables exactly when their rows have the same bytes for the same values."""

    #: a byte for each column; of ENUM and SET it is STRING, and the metadata tells
    types: bytes
    metadata: bytes
    #: a bit for each column that may be NULL
    nullable: bytes
    #: for each number whether it is unsigned; of a YEAR always
    unsigned: tuple[bool, ...]
    #: ids of the collations of the columns with characters, and of ENUM and SET
    collations: tuple[int, ...]
    member_collations: tuple[int, ...]
    #: names, members, subtypes and dimensions as they stand in the table map
    names: bytes
    enums: bytes
    sets: bytes
    geometries: bytes
    dimensions: bytes


def read_layout(data: bytes) -> RowLayout:
    """Read what a table map says from its column count on. Raises NoLayoutError."""
    try:
        count, position = read_number(data, 0)
        types = data[position : position + count]
        size, position = read_number(data, position + count)
        metadata = data[position : position + size]
        position += size
        nullable = data[position : position + (count + 7) // 8]
        fields = _fields(data, position + len(nullable))
        characters, members = _counts(types, metadata)
        return RowLayout(
            types,
            metadata,
            nullable,
            _unsigned(types, fields.get(SIGN, b"")),
            _collations(fields, DEFAULT_CHARSET, CHARSETS, characters),
            _collations(fields, MEMBER_DEFAULT_CHARSET, MEMBER_CHARSETS, members),
            *(fields.get(field, b"") for field in (NAMES, ENUMS, SETS, GEOMETRIES, DIMENSIONS)),
        )
    except (IndexError, KeyError, ValueError) as error:
        raise NoLayoutError(f"a table map that cannot be read ({type(error).__name__}: {error})") from None


def write_layout(layout: RowLayout) -> bytes:
    """Return the bytes that `read_layout` reads."""
    parts = [number(len(layout.types)), layout.types, text(layout.metadata), layout.nullable]
    for field, value in (
        (SIGN, bits(layout.unsigned, 0x80)),
        (CHARSETS, numbers(layout.collations)),
        (MEMBER_CHARSETS, numbers(layout.member_collations)),
        (NAMES, layout.names),
        (ENUMS, layout.enums),
        (SETS, layout.sets),
        (GEOMETRIES, layout.geometries),
        (DIMENSIONS, layout.dimensions),
    ):
        if value:
            parts += [bytes((field,)), text(value)]
    return b"".join(parts)


def number(value: int) -> bytes:
    """Write MySQL's length-encoded integer."""
    if value < 251:
        return bytes((value,))
    for first, size in ((252, 2), (253, 3)):
        if value < 1 << 8 * size:
            return bytes((first,)) + value.to_bytes(size, "little")
    return b"\xfe" + value.to_bytes(8, "little")


def numbers(values: Sequence[int]) -> bytes:
    """Write length-encoded integers, one behind the other."""
    return b"".join(map(number, values))


def text(value: bytes) -> bytes:
    """Write bytes behind their length."""
    return number(len(value)) + value


def bits(values: Sequence[bool], first: int) -> bytes:
    """Write a bit for each, from the lowest (`first` is 0x01) or from the highest (0x80) of each byte on."""
    found = bytearray((len(values) + 7) // 8)
    for index, value in enumerate(values):
        if value:
            found[index // 8] |= 1 << (index % 8 if first == 0x01 else 7 - index % 8)
    return bytes(found)


def read_number(data: bytes, position: int) -> tuple[int, int]:
    """Read the length-encoded integer at `position`, and the position after it. Raises NoLayoutError, IndexError."""
    first = data[position]
    if first < 251:
        return first, position + 1
    end = position + 1 + {252: 2, 253: 3, 254: 8}.get(first, len(data))
    if end > len(data):
        raise NoLayoutError("it ends within a number")
    return int.from_bytes(data[position + 1 : end], "little"), end


def _numbers(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        value, position = read_number(data, position)
        yield value


def _fields(data: bytes, position: int) -> dict[int, bytes]:
    """Read the optional metadata: each field is its type, its length and its value."""
    fields = {}
    while position < len(data):
        length, start = read_number(data, position + 1)
        if start + length > len(data):
            raise NoLayoutError("it ends within its metadata")
        fields[data[position]] = data[start : start + length]
        position = start + length
    return fields


def _unsigned(types: bytes, field: bytes) -> tuple[bool, ...]:
    """Versions of MySQL differ in what they say of a YEAR, and the field may be missing where all have a sign."""
    numbers = [kind for kind in types if kind in SIGNED]
    field = field.ljust((len(numbers) + 7) // 8, b"\0")
    return tuple(kind == YEAR or bool(field[index // 8] & 0x80 >> index % 8) for index, kind in enumerate(numbers))


def _counts(types: bytes, metadata: bytes) -> tuple[int, int]:
    """Count the columns with a character set of their own, and those that are ENUM or SET."""
    characters = members = position = 0
    for kind in types:
        if kind == STRING and metadata[position] in (ENUM, SET):
            members += 1
        elif kind in CHARACTER:
            characters += 1
        position += METADATA_SIZE[kind]
    if position != len(metadata):
        raise NoLayoutError(f"it has {len(metadata)} bytes of metadata where {position} belong")
    return characters, members


def _collations(fields: dict[int, bytes], default: int, each: int, count: int) -> tuple[int, ...]:
    """Read all ids, or one for all with (index, id) for the columns that differ."""
    if each in fields:
        found = list(_numbers(fields[each]))
    elif default in fields:
        usual, *pairs = _numbers(fields[default])
        found = [usual] * count
        for index, collation in zip(pairs[::2], pairs[1::2], strict=True):
            found[index] = collation
    else:
        found = []
    if len(found) != count:
        raise NoLayoutError(f"it has {len(found)} character sets for {count} columns")
    return tuple(found)
