"""Says of a record that is no event which of its keys is missing or holds something else than it must.

`shared/decode.py` reads records, and is fast; this is asked about one that it could not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

from shared.values import shown

#: tells whether a value is what was expected
Fits = Callable[[Any], bool]


class _Place(NamedTuple):
    """Names a key, by the keys on the way to it, and what it must hold."""

    path: str
    fits: Fits
    expected: str
    optional: bool = False


def _kind(*kinds: type) -> Fits:
    return lambda value: type(value) in kinds


def _whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _names(value: Any) -> bool:
    return type(value) is list and all(type(name) is str for name in value)


def _clock(value: Any) -> bool:
    return type(value) is list and len(value) == 2 and all(map(_whole, value))


_NUMBER = (_whole, "a whole number from 0 to 9223372036854775807")
_TEXT, _OBJECT = (_kind(str), "a text"), (_kind(dict), "an object")
_NAMES = (_names, "a list of names")

_HEAD = (
    _Place("sequence", lambda value: value == -1 or _whole(value), _NUMBER[1]), _Place("bn_file", *_OBJECT),
    _Place("bn_file.fileName", *_TEXT), _Place("bn_file.offset", *_NUMBER),
    _Place("operation", lambda value: value == "Heartbeat" or (type(value) is dict and len(value) == 1),
           'an object with one key, or "Heartbeat"'),
)  # fmt: skip
_TRANSACTION = (
    _Place("transaction", *_OBJECT), _Place("transaction.gtid", *_TEXT, optional=True),
    _Place("transaction.begin", *_NUMBER), _Place("transaction.time", *_NUMBER),
    _Place("transaction.clock", _clock, "a list of two whole numbers"), _Place("transaction.event", *_NUMBER),
    _Place("transaction.end", *_NUMBER, optional=True),
)  # fmt: skip
_QUERY = (
    _Place("operation.Query", *_TEXT), _Place("database", *_TEXT), _Place("writes", *_NAMES),
    _Place("session", *_OBJECT), _Place("raw", *_TEXT, optional=True), _Place("skipped", *_TEXT, optional=True),
)  # fmt: skip
_HEARTBEAT = (
    _Place("leader", *_TEXT), _Place("created", *_NUMBER, optional=True), _Place("time", *_NUMBER, optional=True),
    _Place("filters", *_OBJECT, optional=True),
)  # fmt: skip


def misshapen(value: bytes) -> str:
    """Name the first key of a record that is missing or holds something else; "" when every one looks right."""
    try:
        record = orjson.loads(value)
    except ValueError as error:
        return f"it is not JSON ({error})"
    if type(record) is not dict:
        return f"an object was expected, not {shown(record)}"
    return next(filter(None, (_wrong(record, place) for place in _places(record))), "")


def _places(record: dict[str, Any]) -> Iterator[_Place]:
    """The keys that a record of its kind has, in order; what stands in front was found right."""
    yield from _HEAD
    operation = record["operation"]
    if operation == "Heartbeat":
        yield from _HEARTBEAT
        if record.get("transaction") is None:
            return
    yield from _TRANSACTION
    if operation == "Heartbeat":
        return
    (kind,) = operation
    if kind == "Query":
        yield from _QUERY
        return
    yield _Place("operation", lambda _: kind in ("Add", "Update", "Delete"), "Query, Add, Update, Delete or Heartbeat")
    yield _Place("uri", lambda uri: type(uri) is str and uri.count("/") == 4, "flv://, resource, database and table")
    for name in ("columns", "types"):
        yield _Place(name, *_NAMES)
    yield _Place("key", *_NAMES, optional=True)
    yield _Place("session", *_OBJECT, optional=True)
    yield _Place(f"operation.{kind}", *_OBJECT)
    yield _Place(f"operation.{kind}.rows", _kind(list), "a list of rows")
    images = ("before_cols", "after_cols") if kind == "Update" else ("cols",)
    for number, row in enumerate(operation[kind]["rows"]):
        right = type(row) is dict and all(type(row.get(image)) is list for image in images)
        about = f"row {number} an object with a list as {' and '.join(images)}"
        yield _Place(f"operation.{kind}.rows", lambda _, right=right: right, about)  # type: ignore[misc]


def _wrong(record: dict[str, Any], place: _Place) -> str:
    found: Any = record
    for key in place.path.split("."):
        if key not in found:
            return "" if place.optional else f"the key {place.path} is missing"
        found = found[key]
    return "" if place.fits(found) else f"{place.path} must be {place.expected}, not {shown(found)}"
