"""Writes predicates that are true for exactly one value, byte by byte: how a row without a primary key is found again.

`=` alone would match too much: 'a' equals 'A' in most collations, 1.0 equals 1 in JSON, 0 equals -0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cdc_consumer.sql import literals
from shared.events import Value
from shared.values import NULL

#: what JSON_TYPE says of values that are equal to, and look like, a value of another type
_JSON_NUMBERS = {"signed": "INTEGER", "unsigned": "UNSIGNED INTEGER", "double": "DOUBLE"}


def _string(name: str, payload: str) -> str:
    # the first half is what an index on the column can answer
    value = literals.text(payload)
    return f"{name} = {value} AND CAST({name} AS BINARY) = CAST({value} AS BINARY)"


def _encoded_string(name: str, payload: dict[str, str]) -> str:
    value, own = literals.encoded_string(payload), literals.encoded_bytes(payload)
    return f"{name} = {value} AND CAST({name} AS BINARY) = {own}"


def _number(name: str, payload: int) -> str:
    # the cast reads the number, which a plain comparison of an ENUM or SET with a large number does as a DOUBLE
    return f"CAST({name} AS UNSIGNED) = {literals.integer(payload)}"


def _floating(name: str, payload: float) -> str:
    value = literals.floating(payload)
    if payload != 0:
        # the sum, because a FLOAT(M,D) may hold what is out of its range, and MySQL believes that it cannot
        return f"{name} + 0 = {value}"
    sign = "=" if value[0] == "-" else "<>"
    return f"{name} = 0 AND LEFT(CAST({name} AS CHAR), 1) {sign} '-'"


def _vector(name: str, payload: str) -> str:
    return f"CAST({name} AS BINARY) = {literals.blob(payload)}"


def _document(name: str, document: str) -> str:
    # equal text tells 1 from 1.0, equal documents tell a DATE from a string
    return f"{name} = {document} AND CAST({name} AS CHAR) = CAST({document} AS CHAR)"


def _json(name: str, payload: str) -> str:
    return _document(name, f"CAST({literals.text(payload)} AS JSON)")


def _json_typed(name: str, payload: dict[str, Any]) -> str:
    parts = [_document(name, literals.json_typed(payload))]
    for path, kind, _ in payload["typed"]:
        shown = "DECIMAL" if kind.startswith("decimal") else _JSON_NUMBERS.get(kind)
        if shown is not None:
            parts.append(f"JSON_TYPE(JSON_EXTRACT({name}, {literals.text(path)})) = '{shown}'")
    return " AND ".join(parts)


_WRITERS: dict[str, Callable[[str, Any], str]] = {
    "String": _string,
    "EncodedString": _encoded_string,
    "Enum": _number,
    "Set": _number,
    "Float": _floating,
    "Double": _floating,
    "Vector": _vector,
    "Json": _json,
    "JsonTyped": _json_typed,
}


def exactly(name: str, value: Value, *, zoned: bool = False) -> str:
    """SQL that is true where the column (a quoted name) holds this very value.

    With `zoned` it is true in a session of any time zone.
    """
    if value == NULL:
        return f"{name} IS NULL"
    kind, payload = literals.opened(value)
    write = _WRITERS.get(kind)
    if write is None:
        return f"{name} = {literals.zoned([value])[0] if zoned else literals.literal(value)}"
    return write(name, payload)
