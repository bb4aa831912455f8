"""Rows as text that is the same on both servers exactly when the rows are, and its SHA-256; MySQL computes both.

    row_hash(shape)   SHA-256 of the canonical text of a row: every stored bit counts, collations and formats do not
    digest(shape)     COUNT(*) and the XOR of the row hashes: of a set of distinct rows
    multiset(shape)   COUNT(*) and sums of two halves of each hash: of rows that may repeat
    literal(column)   an SQL literal of a value, see model.py

XOR is sound because no two rows of a keyed table are alike; CRC32 would let equal edits of two rows cancel out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from cdc_consumer.parity.model import Column, Shape
from cdc_consumer.sql.column_types import INTEGERS, SPATIAL
from shared.mysql import quote_name

#: the session every expression here needs, on both servers
SESSION = (
    "SET NAMES utf8mb4",
    "SET SESSION time_zone = '+00:00', sql_mode = '', transaction_isolation = 'READ-COMMITTED'",
)

_SMALL = INTEGERS - {"bigint"}
_FLOATS = frozenset({"float", "double"})
_TEMPORAL = frozenset({"date", "time", "datetime", "timestamp"})
_NAMED = frozenset({"enum", "set"})
#: values so long that a row of them may not fit into one packet: their own hash stands for them
_LONG = frozenset({"mediumtext", "longtext", "mediumblob", "longblob", "json"}) | SPATIAL
#: path of a member that no JSON has
_NOWHERE = '$."no such member: cdc-parity"'
#: whole numbers that a DOUBLE holds, in bits
_MASK_BITS = 50
_SEPARATOR = "CAST('#' AS BINARY)"
_EMPTY_MEMBER = re.compile(r"[(,]''[,)]")


class _Parts(NamedTuple):
    """SQL of what one or all columns add to the canonical text, none of it NULL; see row_text."""

    #: exact as DOUBLEs: small whole numbers, FLOAT, DOUBLE, lengths
    numbers: tuple[str, ...] = ()
    #: texts whose width the column's type or one of the numbers tells
    texts: tuple[str, ...] = ()
    #: texts without a '#'
    separated: tuple[str, ...] = ()


def row_text(shape: Shape, replaced: dict[str, str] | None = None) -> str:
    """SQL of a row's canonical text, a binary string; `replaced` gives other SQL for the values of some columns.

    First the numbers, among them the lengths of the texts and which values are NULL, two in each POINT: it holds
    DOUBLEs as they are, at a quarter of the price of their decimal digits. Then the texts, which end where the numbers
    say, so that ('a#', 'b') is not ('a', '#b'); last the values without a '#', with one between them.
    """
    sources = {column.name: quote_name(column.name) for column in shape.columns} | (replaced or {})
    columns = [_parts(column, sources[column.name]) for column in shape.columns]
    numbers = [number for parts in columns for number in parts.numbers]
    numbers += _null_masks([sources[column.name] for column in shape.columns if column.nullable])
    texts = [text for parts in columns for text in parts.texts]
    separated = [text for parts in columns for text in parts.separated]
    last = [f", {_SEPARATOR}, ".join(separated)] if separated else []
    # what stands first makes the whole text a binary string, in which any character sets are their bytes; at two thirds
    # of the price of CONCAT_WS, and it takes no NULL
    return f"CONCAT({', '.join([_SEPARATOR, *_points(numbers), *texts, *last])})"


def _null_masks(sources: list[str]) -> Iterator[str]:
    """Write which of these values are NULL as numbers, a bit for each value."""
    nulls = [f"ISNULL({source})" for source in sources]
    for start in range(0, len(nulls), _MASK_BITS):
        bits = enumerate(nulls[start : start + _MASK_BITS])
        yield " + ".join(f"{null} * {1 << bit}" if bit else null for bit, null in bits)


def _points(numbers: list[str]) -> Iterator[str]:
    """Write numbers two in each POINT; a last one that is alone gets a zero beside it."""
    for x, y in zip_longest(numbers[::2], numbers[1::2], fillvalue="0"):
        yield f"POINT({x}, {y})"


def _parts(column: Column, source: str) -> _Parts:
    def filled(sql: str, empty: str) -> str:
        return f"IFNULL({sql}, {empty})" if column.nullable else sql

    if number := _number(column, source):
        return _Parts(numbers=(filled(number, "0"),))
    if short := _without_separator(column, source):
        return _Parts(separated=(filled(short, "''"),))
    if column.data_type in _TEMPORAL:
        return _Parts(texts=(filled(_temporal(column, source), "''"),))
    if column.data_type == "json":
        # the size tells numbers that look alike, such as the decimal 1.5 from the double 1.5; a JSON updated in place
        # keeps room that is no longer used until something is (not) removed from it
        text = f"CAST({source} AS CHAR)"
        size = f"JSON_STORAGE_SIZE(JSON_REMOVE({source}, '{_NOWHERE}'))"
        numbers = (filled(f"LENGTH({text})", "0"), filled(size, "0"))
        return _Parts(numbers=numbers, texts=(filled(f"SHA2({text}, 256)", "''"),))
    data = _bytes(column, source)
    text = filled(f"SHA2({data}, 256)" if column.data_type in _LONG else data, "''")
    length = filled(f"LENGTH({data})", "0")
    if column.data_type in _NAMED:
        # by name: the order of the members may differ; the error value 0 is not a member ''
        return _Parts(numbers=(length, filled(f"{source} + 0 = 0", "0")), texts=(text,))
    return _Parts(numbers=(length,), texts=(text,))


def _number(column: Column, source: str) -> str:
    """Write a value that a DOUBLE holds exactly; "" for a column of others."""
    if column.data_type in _FLOATS or (column.data_type in _SMALL and not column.converted):
        return source
    return f"{source} + 0" if column.data_type == "enum" and not column.converted else ""


def _without_separator(column: Column, source: str) -> str:
    """Write a value as a text that holds no '#' and has no width of its own; "" for a column of others."""
    kind = column.data_type
    if kind in INTEGERS:
        # a ZEROFILL column shows zeros
        return _integer(column, source) if column.converted or "zerofill" in column.type else source
    if kind == "bit":
        return f"CAST({source} AS UNSIGNED)"
    if kind == "time":
        return _temporal(column, source)  # its hours have two or three digits
    if kind in ("decimal", "year"):
        return source
    # not + 0, which is a DOUBLE and has no room for 64 members
    return f"CAST({source} AS UNSIGNED)" if kind == "set" and not column.converted else ""


def is_bit_mask(column: Column) -> bool:
    """Is true for a SET with a member '', whose names do not tell all its values apart."""
    return column.data_type == "set" and not column.converted and _EMPTY_MEMBER.search(column.type) is not None


def _integer(column: Column, source: str) -> str:
    return f"CAST({source} AS {'UNSIGNED' if 'unsigned' in column.type else 'SIGNED'})"


def _temporal(column: Column, source: str) -> str:
    if not column.converted or column.data_type == "date":
        return source
    return f"CAST({source} AS {'TIME' if column.data_type == 'time' else 'DATETIME'}(6))"


def _bytes(column: Column, source: str) -> str:
    """Beside the binary '#' a text is taken as its bytes; a CAST would copy each value."""
    if column.data_type == "vector":
        return f"HEX({source})"  # CONCAT does not take a VECTOR
    return f"CONVERT({source} USING utf8mb4)" if column.converted and column.charset else source


def row_hash(shape: Shape, replaced: dict[str, str] | None = None) -> str:
    """Return the SQL of a row's SHA-256, 64 lower-case hexadecimal digits.

    NULL when its text does not fit into one packet.
    """
    return f"SHA2({row_text(shape, replaced)}, 256)"


def digest(shape: Shape) -> str:
    """Return the SQL of the two columns that describe a set of distinct rows: their number, and 32 bytes."""
    # a row without a hash makes the digests of the sides differ, so that it is looked at and named
    return f"COUNT(*), BIT_XOR(IFNULL(UNHEX({row_hash(shape)}), LEFT(RANDOM_BYTES(32), 32)))"


def multiset(shape: Shape) -> str:
    """Return the SQL of three columns that describe rows of which some may be alike: their number, and two sums."""
    row = f"IFNULL({row_hash(shape)}, HEX(RANDOM_BYTES(32)))"
    lanes = (f"SUM(CAST(CONV({half}({row}, 16), 16, 10) AS UNSIGNED))" for half in ("LEFT", "RIGHT"))
    return f"COUNT(*), {', '.join(lanes)}"


def literal(column: Column) -> str:
    """Return the SQL of a value's literal as ASCII text; never NULL."""
    source = quote_name(column.name)
    return f"IFNULL({_literal(column, source)}, 'NULL')"


def _literal(column: Column, source: str) -> str:
    kind = column.data_type
    if kind in INTEGERS:
        return f"CAST({_integer(column, source)} AS CHAR)"
    if kind == "bit" or is_bit_mask(column):
        return f"CAST(CAST({source} AS UNSIGNED) AS CHAR)"
    if kind in ("decimal", "year"):
        return f"CAST({source} AS CHAR)"
    if kind in _FLOATS:
        # the text of a FLOAT has six digits only; 0.0 would be a DECIMAL, which has no negative zero
        text = f"CAST({f'CAST({source} AS DOUBLE)' if kind == 'float' else source} AS CHAR)"
        return f"IF({source} = 0, IF(LEFT({text}, 1) = '-', '-0e0', '0e0'), {text})"
    if kind in _TEMPORAL:
        return f"CONCAT('''', {_temporal(column, source)}, '''')"
    if kind == "json":
        return f"CONCAT('CAST(CONVERT(x''', LOWER(HEX(CAST({source} AS CHAR))), ''' USING utf8mb4) AS JSON)')"
    digits = f"LOWER(HEX({f'CONVERT({source} USING utf8mb4)' if column.converted and column.charset else source}))"
    prefix = "x''" if column.charset is None else f"_{column.charset} x''"
    text = f"CONCAT('{prefix}', {digits}, '''')"
    if kind in _NAMED:
        return f"IF({source} + 0 = 0 AND {source} = '', '0', {text})" if kind == "enum" else text
    return text
