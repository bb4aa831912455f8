"""Tells which JSON documents lose types of inner values as text, and reads those path by path, many at once.

A DECIMAL, a date, bytes or an UNSIGNED in a document look in its text like a double, a string or an INTEGER.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

from cdc_consumer.parity.model import Column, Key, Shape
from cdc_consumer.parity.rows.ranges import among
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
#: characters that one query of documents has at most, about, and SELECTs
QUERY_CHARACTERS, QUERY_SELECTS = 1 << 18, 64

Item = TypeVar("Item")
#: what a server tells of a document: of all of it, then of each of its values; empty where its row is not there
DocumentFacts: TypeAlias = "list[tuple[Any, ...]]"


class Document(NamedTuple):
    """Names a document, and the values in it that hold no others."""

    column: str
    #: of its row
    key: Key
    #: None is NULL
    text: str | None
    #: path of each value, and what the text says of it; numbers as their digits
    values: tuple[tuple[str, Any], ...]

    @classmethod
    def read(cls, column: str, key: Key, text: str | None) -> Document:
        """Read the text of a document."""
        values = () if text is None else tuple(_inner(json.loads(text, parse_float=str, parse_int=str), "$"))
        return cls(column, key, text, values)


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


def together(items: Iterable[tuple[Item, int]], size: int, most: int) -> Iterator[list[Item]]:
    """Cut items, each with its size, into lists of at most so much, unless one alone is more, and `most` items."""
    some: list[Item] = []
    held = 0
    for item, own in items:
        if some and (held + own > size or len(some) == most):
            yield some
            some, held = [], 0
        some.append(item)
        held += own
    if some:
        yield some


def facts(shape: Shape, documents: Sequence[Document], select: Select) -> list[DocumentFacts]:
    """Ask for all that can be told of documents: the hash of the text and the size; of each value type, size and text.

    The text of a string is not asked for: its own document's hash tells of that. However many documents and values
    there are, they are some queries.
    """
    told: list[DocumentFacts] = [[] for _ in documents]
    selects = (sql for number, document in enumerate(documents) for sql in _selects(shape, number, document))
    for some in together(((sql, len(sql)) for sql in selects), QUERY_CHARACTERS, QUERY_SELECTS):
        # within a document in the order of its values
        for number, _, *found in sorted(select(" UNION ALL ".join(some)), key=lambda row: (row[0], row[1])):
            told[number].append(tuple(found))
    return told


def _selects(shape: Shape, number: int, document: Document) -> Iterator[str]:
    """Yield what asks for one document: its number, that of a value or 0, and what is told of that."""
    source, where = quote_name(document.column), among(shape.key, [document.key])
    size = f"JSON_STORAGE_SIZE(JSON_REMOVE({source}, '{_NOWHERE}'))"
    yield f"SELECT {number}, 0, SHA2(CAST({source} AS CHAR), 256), {size}, NULL FROM {shape.name.sql} WHERE {where}"
    value = f"JSON_EXTRACT({source}, `cdc-copy`.`cdc-copy path`)"
    before = 0
    paths = ((path, len(path)) for path, _ in document.values)
    for some in together(paths, QUERY_CHARACTERS, len(document.values)):
        listed = (
            f"JSON_TABLE({literals.text(json.dumps(some, ensure_ascii=False))}, '$[*]' COLUMNS (`cdc-copy number` FOR"
            " ORDINALITY, `cdc-copy path` LONGTEXT PATH '$')) AS `cdc-copy`"
        )
        shown = f"IF(JSON_TYPE({value}) = 'STRING', NULL, JSON_UNQUOTE({value}))"
        yield (
            f"SELECT {number}, {before} + `cdc-copy number`, JSON_TYPE({value}), JSON_STORAGE_SIZE({value}), {shown}"
            f" FROM {shape.name.sql}, {listed} WHERE {where}"
        )
        before += len(some)


def written(shape: Shape, document: Document, found: DocumentFacts) -> str:
    """Return the SQL of a document of which the leader told this. Raises LeaderError where there is none."""
    if document.text is None:
        return "NULL"
    typed = [
        [path, *_typed(kind, shown, size)]
        for (path, value), (kind, size, shown) in zip(document.values, found[1:], strict=True)
        if _loses_type(kind, value)
    ]
    if not typed:
        return literals.text(document.text)
    try:
        return literals.json_typed({"text": document.text, "typed": typed})
    except ValueError as error:
        raise LeaderError(
            f"a JSON in {document.column} of {shape.name} holds bytes of a TINYBLOB, which no statement can write,"
            f" where {among(shape.key, [document.key])}; write it there as a BLOB, or make a clone (method in [copy])"
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
