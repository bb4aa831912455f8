"""Reads a topic record whole: behind it everything has the type it says it has.

Whoever can write to the topic may write anything, so nothing is believed here but exact types, bounded sizes and the
shapes that shared/events.py and shared/values.py describe; what differs in anything is an EventError. The consumer has
a second, narrower reader in `cdc_consumer/outline.py`, for rows that go by the leader's own binlog events: it leaves
the row images unread, and what it does not recognise comes here.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

import orjson

from shared.errors import EventError
from shared.event_shape import misshapen
from shared.events import Event, Heartbeat, Position, Query, Rows, Transaction
from shared.values import LATEST_TIME, require_values, shown

_FILE = re.compile(r".{1,500}\.[0-9]{1,10}", re.DOTALL | re.ASCII)
#: with a tag of MySQL 8.3 and later, or without
_GTID = re.compile(r"[0-9a-fA-F-]{36}(:[a-z_0-9]{1,32})?:[0-9]{1,20}", re.ASCII)
#: the session of rows that do not tell it
_USUAL: Mapping[str, Any] = MappingProxyType({})
#: the first number that is no BIGINT
_NUMBERS = 1 << 63

#: stands for an operation that is not read
UNREAD = Query(b"", "", (), {})


def decode(value: bytes, where: str, *, check_values: bool = True, read_operation: bool = True) -> Event:
    """Read one record. `where` names it in errors, for example "topic t offset 7". Raises EventError.

    Whatever the bytes are, an event that is returned holds what its types say. Without `check_values` that is not so
    of the values in row images, which is for a caller that checks each one itself as it writes it. Without
    `read_operation` any operation is an empty Query: for a transaction that is left out because it cannot be read.
    """
    try:
        record = orjson.loads(value)
        place, told, sequence = record["bn_file"], record.get("transaction"), record["sequence"]
        name, offset = _file(place["fileName"]), place["offset"]
        operation = _operation(record, check_values) if read_operation else UNREAD
        first = type(operation) is Heartbeat and type(sequence) is int and sequence == -1
        # only a heartbeat may come before the first operation
        _require_numbers(0 if first else sequence)
        if told is None and type(operation) is Heartbeat:
            _require_numbers(offset)
            return Event(sequence, Position(name, offset), operation, None, 0, None)
        gtid, begin, time, (committed, number) = told.get("gtid"), told["begin"], told["time"], told["clock"]
        index, end = told["event"], told.get("end")
        _require_numbers(offset, begin, time, committed, number, index, 0 if end is None else end)
        if time > LATEST_TIME:
            raise ValueError(f"no time of a commit: {time}")
        if gtid is not None and _GTID.fullmatch(gtid) is None:
            raise ValueError(f"no GTID: {shown(gtid)}")
        transaction = Transaction(gtid, begin, time, (committed, number))
        return Event(sequence, Position(name, offset), operation, transaction, index, end)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        start = value[:60].decode(errors="replace")
        raise EventError(f"{where} is not an event: {misshapen(value) or error}: {start!r}...") from error


def _filters(found: Any) -> dict[str, list[str]] | None:
    """Return the filters a heartbeat tells. Raises ValueError unless they are names by key."""
    if found is None:
        return None
    for names in found.values():
        if type(names) is not list or not all(type(name) is str for name in names):
            raise ValueError(f"no filters: {shown(found)}")
    return dict(found)


def _operation(record: dict[str, Any], check_values: bool) -> Query | Rows | Heartbeat:
    operation = record["operation"]
    if operation == "Heartbeat":
        created, time = record.get("created"), record.get("time")
        _require_numbers(*(number for number in (created, time) if number is not None))
        routed = "of" in record
        leader = _text(record.get("leader", "") if routed else record["leader"])
        return Heartbeat(leader, created, time, routed, _filters(record.get("filters")))
    ((kind, payload),) = operation.items()
    return _query(record, payload) if kind == "Query" else _rows(record, kind, payload["rows"], check_values)


def _query(record: dict[str, Any], payload: Any) -> Query:
    text, session = _text(payload), record["session"]
    sql = base64.b64decode(_text(record["raw"]), validate=True) if "raw" in record else text.encode()
    if type(session) is not dict:
        raise TypeError(f"session cannot be {shown(session)}")
    skipped = _text(record["skipped"]) if "skipped" in record else None
    return Query(sql, _text(record["database"]), _texts(record["writes"]), session, skipped)


def _rows(record: dict[str, Any], kind: str, rows: Any, check_values: bool) -> Rows:
    columns, types, key = _texts(record["columns"]), _texts(record["types"]), _texts(record.get("key", []))
    if len(types) not in (0, len(columns)):
        raise ValueError(f"{len(types)} types of {len(columns)} columns")
    for name in key:
        if name not in columns:
            raise ValueError(f"{shown(name)} of the key is no column")
    if type(rows) is not list:
        raise TypeError(f"rows cannot be {shown(rows)}")
    if kind == "Update":
        before, after = [row["before_cols"] for row in rows], [row["after_cols"] for row in rows]
        images, found = before + after, list(zip(before, after, strict=True))
    elif kind in ("Add", "Delete"):
        images = found = [row["cols"] for row in rows]
    else:
        raise ValueError(f"unknown operation {shown(kind)}")
    for image in images:
        if type(image) is not list or len(image) != len(columns):
            raise ValueError(f"a row has not one value for each of {len(columns)} columns")
        if check_values:
            require_values(image)
    _, _, _, database, table = _text(record["uri"]).split("/")
    checks = record.get("foreign_key_checks", 1)
    if type(checks) is not int or checks not in (0, 1):
        raise ValueError(f"foreign_key_checks cannot be {shown(checks)}")
    session = record.get("session", _USUAL)
    if session is not _USUAL and type(session) is not dict:
        raise TypeError(f"session cannot be {shown(session)}")
    return Rows(kind, unquote(database), unquote(table), columns, found, types, key, checks == 1, session)


@lru_cache(maxsize=64)
def _file(name: Any) -> str:
    if type(name) is not str or _FILE.fullmatch(name) is None:
        raise ValueError(f"no binlog file: {shown(name)}")
    return name


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"a text was expected, not {shown(value)}")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if type(values) is not list:
        raise TypeError(f"a list of names was expected, not {shown(values)}")
    "".join(values)  # raises TypeError unless each one is a text
    return tuple(values)


def _require_numbers(*values: Any) -> None:
    """Require whole numbers that MySQL's BIGINT holds, none below zero."""
    for value in values:
        if type(value) is not int or not 0 <= value < _NUMBERS:
            raise ValueError(f"a number was expected, not {shown(value)}")
