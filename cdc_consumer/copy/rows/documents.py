"""Finds the JSON documents whose text loses the types of inner values, and reads those path by path.

A DECIMAL, a date, bytes or an UNSIGNED in a document look in its text like a double, a string or an INTEGER.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from cdc_consumer.parity.canonical import literal
from cdc_consumer.parity.model import Column, Key, Shape
from cdc_consumer.parity.rows.ranges import Range, among, inside
from cdc_consumer.parity.servers.connection import Select
from cdc_consumer.sql import literals
from shared.errors import LeaderError
from shared.mysql import quote_name
from shared.values import JSON_BYTES

#: what JSON_TYPE says of values that their text loses
_LOST = ("DECIMAL", "DATE", "TIME", "DATETIME", "TIMESTAMP", "BLOB", "BIT", "OPAQUE")
#: from this on a whole number in a text is an UNSIGNED INTEGER, below it an INTEGER
_UNSIGNED_FROM = 1 << 32
_CASTS = {
    "DATE": "date", "TIME": "time(6)", "DATETIME": "datetime(6)", "TIMESTAMP": "timestamp(6)",
    "UNSIGNED INTEGER": "unsigned", "INTEGER": "signed",
}  # fmt: skip
#: a path that no document has, whose removal gives back room that is not used
_NOWHERE = '$."no such member: cdc-copy"'
#: what bytes in a document look like in its text, "base64:type15:AP8="
_BYTES_TEXT = "base64:type"
#: bytes of so many decimal digits
_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4)
#: bytes of a DECIMAL in a document beside its digits
_DECIMAL_HEAD = 5
#: digits that it may have before the point
MOST_WHOLE = 81
#: characters of the paths that one query asks for
PATHS_CHARACTERS = 1 << 18

#: what a server tells of a document: of all of it, then of each of some values
DocumentFacts: TypeAlias = "list[tuple[Any, ...]]"


class TypedRow(NamedTuple):
    """Holds a row with documents that need more than their text."""

    key: Key
    #: SQL of what each column that is written holds
    values: tuple[str, ...]
    #: for each document: its column, the paths of the values in it, and what `facts` finds of it on the leader
    documents: tuple[tuple[str, tuple[str, ...], DocumentFacts], ...]


def lossy(shape: Shape) -> str:
    """Return the SQL of whether a row holds a document that needs more than its text: 0 or 1."""
    return f"({' OR '.join(_loses(column) for column in shape.columns if column.data_type == 'json') or '0'})"


def _loses(column: Column) -> str:
    source = quote_name(column.name)
    inner = " OR ".join(
        f"EXISTS (SELECT 1 FROM JSON_TABLE({source}, '{path}' COLUMNS (v JSON PATH '$')) AS inner_values"
        f" WHERE {_is_lost('v')})"
        for path in ("$**.*", "$**[*]")
    )
    return f"IFNULL({_is_lost(source)} OR {inner}, 0)"


def _is_lost(value: str) -> str:
    kinds = ", ".join(f"'{kind}'" for kind in _LOST)
    return (
        f"(JSON_TYPE({value}) IN ({kinds}) OR (JSON_TYPE({value}) = 'INTEGER' AND {value} >= {_UNSIGNED_FROM})"
        f" OR (JSON_TYPE({value}) = 'UNSIGNED INTEGER' AND {value} < {_UNSIGNED_FROM}))"
    )


def _loses_type(kind: str, value: Any) -> bool:
    if kind in ("INTEGER", "UNSIGNED INTEGER"):
        return (kind == "INTEGER") == (int(value) >= _UNSIGNED_FROM)
    return kind in _LOST


def refusal(shape: Shape) -> LeaderError:
    """Explain a document in a table without a key: no statement would find its row again."""
    return LeaderError(
        f"table {shape.name} has no key and holds JSON with values (DECIMAL, DATE, bytes, UNSIGNED) that its text"
        " loses; give it a primary key on the leader, or load that table by a dump"
    )


def lossy_rows(shape: Shape, part: Range, select: Select) -> Iterator[TypedRow]:
    """Yield the rows of a range with documents that need more than their text."""
    own = [column for column in shape.columns if not column.generated]
    key = ", ".join(literal(shape.column(name)) for name in shape.key)
    texts = ", ".join(_text(column) for column in own)
    where = " AND ".join([*inside(shape.key, part), lossy(shape)])
    for found in select(f"SELECT {key}, {texts} FROM {shape.name.sql} WHERE {where}"):
        values, documents = list(found[len(shape.key) :]), []
        row = tuple(found[: len(shape.key)])
        for index, column in enumerate(own):
            if column.data_type == "json":
                values[index], paths, expected = _read(shape, column.name, row, values[index], select)
                documents.append((column.name, paths, expected))
        yield TypedRow(row, tuple(values), tuple(documents))


def _text(column: Column) -> str:
    return f"CAST({quote_name(column.name)} AS CHAR)" if column.data_type == "json" else literal(column)


def facts(shape: Shape, column: str, key: Key, paths: Sequence[str], select: Select) -> DocumentFacts:
    """Ask for all that can be told of a document: the hash of its text and its size; of each value type, size and text.

    The text of a string is not asked for: its own document's hash tells of that. However many values there are, they
    are some queries.
    """
    source, where = quote_name(column), among(shape.key, [key])
    size = f"JSON_STORAGE_SIZE(JSON_REMOVE({source}, '{_NOWHERE}'))"
    found = list(select(f"SELECT SHA2(CAST({source} AS CHAR), 256), {size} FROM {shape.name.sql} WHERE {where}"))
    value = f"JSON_EXTRACT({source}, `cdc-copy`.`cdc-copy path`)"
    for some in _together(paths):
        listed = (
            f"JSON_TABLE({literals.text(json.dumps(some, ensure_ascii=False))}, '$[*]' COLUMNS (`cdc-copy number` FOR"
            " ORDINALITY, `cdc-copy path` LONGTEXT PATH '$')) AS `cdc-copy`"
        )
        found += select(
            f"SELECT JSON_TYPE({value}), JSON_STORAGE_SIZE({value}), IF(JSON_TYPE({value}) = 'STRING', NULL,"
            f" JSON_UNQUOTE({value})) FROM {shape.name.sql}, {listed} WHERE {where} ORDER BY `cdc-copy number`"
        )
    return found


def _together(paths: Sequence[str]) -> Iterator[list[str]]:
    """Cut paths into lists for one query each."""
    some: list[str] = []
    characters = 0
    for path in paths:
        some.append(path)
        characters += len(path)
        if characters > PATHS_CHARACTERS:
            yield some
            some, characters = [], 0
    if some:
        yield some


def _read(
    shape: Shape, column: str, key: Key, text: str | None, select: Select
) -> tuple[str, tuple[str, ...], DocumentFacts]:
    """Return the SQL of a document, the paths of the values in it, and what `facts` finds of it."""
    inner = [] if text is None else list(_inner(json.loads(text, parse_float=str, parse_int=str), "$"))
    paths = tuple(path for path, _ in inner)
    found = facts(shape, column, key, paths, select)
    if text is None:
        return "NULL", paths, found
    typed = [
        [path, *_typed(kind, shown, size)]
        for (path, value), (kind, size, shown) in zip(inner, found[1:], strict=True)
        if _loses_type(kind, value)
    ]
    if not typed:
        return literals.text(text), paths, found
    try:
        return literals.json_typed({"text": text, "typed": typed}), paths, found
    except ValueError as error:
        raise LeaderError(
            f"a JSON in {column} of {shape.name} holds bytes of a TINYBLOB, which no statement can write, where"
            f" {among(shape.key, [key])}; write it there as a BLOB, or make a clone (method in [copy])"
        ) from error


def _inner(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each value that holds no others, with its path."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _inner(inner, f"{path}.{json.dumps(name, ensure_ascii=False)}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _inner(inner, f"{path}[{index}]")
    else:
        yield path, value


def _typed(kind: str, value: str, size: int) -> tuple[str, str]:
    """Return the type and the text of a value as JsonTyped has them."""
    if kind == "DECIMAL":
        return _decimal(value, size), value
    if kind in _CASTS:
        return _CASTS[kind], value
    number, _, digits = value.removeprefix(_BYTES_TEXT).partition(":")
    octets = base64.b64decode(digits)
    if kind == "BIT":
        return f"bit({8 * len(octets)})", str(int.from_bytes(octets, "big"))
    return JSON_BYTES.get(int(number), f"opaque({number})"), base64.b64encode(octets).decode()


def _decimal(value: str, size: int) -> str:
    """Tell how many digits a DECIMAL has room for, of those that its size allows.

    A literal has room for the digits it shows, or for a zero before the point; else whole groups of nine may be right,
    which are written at the lowest price; else it comes from a column, which has room for as many as it says.
    """
    whole, _, fraction = value.lstrip("-").partition(".")
    scale, digits = len(fraction), len(whole.lstrip("0"))
    groups = -(-max(digits, 1) // literals.DIGITS_OF_GROUP) * literals.DIGITS_OF_GROUP
    for room in (digits, max(digits, 1), groups, *range(digits, MOST_WHOLE + 1)):
        if room + scale and _DECIMAL_HEAD + _bytes(room) + _bytes(scale) == size:
            return f"decimal({room + scale},{scale})"
    return f"decimal({max(digits + scale, 1)},{scale})"


def _bytes(digits: int) -> int:
    return digits // literals.DIGITS_OF_GROUP * 4 + _DIGIT_BYTES[digits % literals.DIGITS_OF_GROUP]
