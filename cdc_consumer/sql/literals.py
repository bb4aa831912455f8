"""SQL literals: the one place where a value becomes SQL text.

Every function takes the payload of a wire form (shared/values.py) and returns text that is exact in a session with
STRICT_ALL_TABLES, ALLOW_INVALID_DATES and NO_AUTO_VALUE_ON_ZERO, time_zone '+00:00', a utf8mb4 client and backslash
escapes. A payload of the wrong type raises TypeError, KeyError or ValueError and never becomes SQL. Bytes that are not
ASCII travel in the text as lone surrogates; encode it with `encode`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from shared.events import Value
from shared.values import JSON_CASTS, NULL

#: longer binary values are written escaped instead of as hexadecimal digits, which would double the packet
HEX_BYTES = 1 << 16

_DECIMAL = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_CHARSET = re.compile(r"[a-z0-9_]+", re.ASCII)
_JSON_CAST = re.compile(JSON_CASTS, re.ASCII)
_EPOCH = date(1970, 1, 1)
#: numbers of two digits, because formatting them is what dates and times cost
_TWO = tuple(f"{number:02d}" for number in range(100))

#: raises TypeError for anything that is not an int, bool included in no wire form
integer: Callable[[int], str] = int.__repr__


def encode(sql: str) -> bytes:
    """SQL text in the bytes the server gets."""
    return sql.encode("utf-8", "surrogateescape")


def text(value: str) -> str:
    """A utf8mb4 string."""
    if "\\" in value:
        value = value.replace("\\", "\\\\")
    if "'" in value:
        value = value.replace("'", "''")
    return f"'{value}'"


def binary(value: bytes) -> str:
    """A string of bytes without a character set."""
    if len(value) <= HEX_BYTES:
        return f"x'{value.hex()}'"
    escaped = value.replace(b"\\", b"\\\\").replace(b"'", b"\\'")
    return f"_binary'{escaped.decode('ascii', 'surrogateescape')}'"


def blob(payload: str) -> str:
    return binary(base64.b64decode(payload, validate=True))


def encoded_bytes(payload: dict[str, str]) -> str:
    """The bytes of an EncodedString, without its character set."""
    return blob(payload["base64"])


def encoded_string(payload: dict[str, str]) -> str:
    charset = payload["charset"]
    if not _CHARSET.fullmatch(charset):
        raise ValueError(f"no character set: {charset!r}")
    # always hexadecimal: an escaped literal would be read in the client's character set first
    return f"_{charset} x'{base64.b64decode(payload['base64'], validate=True).hex()}'"


def floating(payload: float) -> str:
    if payload == 0:
        # 0.0 is a DECIMAL literal, which has no negative zero
        return "-0e0" if str(payload)[0] == "-" else "0e0"
    return float.__repr__(payload) if isinstance(payload, float) else integer(payload)


def decimal(payload: str) -> str:
    if not _DECIMAL.fullmatch(payload):
        raise ValueError(f"no decimal: {payload!r}")
    return payload


def year(payload: int) -> str:
    # the string '0' would be the year 2000, the number 0 is the year 0000
    return integer(payload)


def calendar_date(payload: dict[str, int]) -> str:
    return f"'{payload['year']:04d}-{_TWO[payload['month']]}-{_TWO[payload['day']]}'"


def clock_time(payload: dict[str, int]) -> str:
    sign = "-" if payload.get("negative") else ""
    seconds = f"{_TWO[payload['seconds']]}.{payload['subseconds']:06d}"
    return f"'{sign}{payload['hours']:02d}:{_TWO[payload['minutes']]}:{seconds}'"


def datetime(payload: dict[str, int]) -> str:
    day = f"{payload['year']:04d}-{_TWO[payload['month']]}-{_TWO[payload['day']]}"
    clock = f"{_TWO[payload['hour']]}:{_TWO[payload['minute']]}:{_TWO[payload['second']]}"
    fraction = payload["subsecond"]
    return f"'{day} {clock}.{fraction:06d}'" if fraction else f"'{day} {clock}'"


def timestamp(payload: dict[str, int]) -> str:
    """The moment in UTC; unix_time 0 without a fraction is the zero timestamp."""
    seconds, fraction = payload["unix_time"], payload["subsecond"]
    if seconds == 0 and fraction == 0:
        return "'0000-00-00 00:00:00'"
    days, rest = divmod(seconds, 86400)
    clock = f"{_day(days)} {_TWO[rest // 3600]}:{_TWO[rest // 60 % 60]}:{_TWO[rest % 60]}"
    return f"'{clock}.{fraction:06d}'" if fraction else f"'{clock}'"


@lru_cache(maxsize=4096)
def _day(days: int) -> str:
    return (_EPOCH + timedelta(days=days)).isoformat()


def json_typed(payload: dict[str, Any]) -> str:
    """A document with the values that JSON text cannot express put in place by their SQL types."""
    arguments = [f"CAST({text(payload['text'])} AS JSON)"]
    for path, kind, value in payload["typed"]:
        if not _JSON_CAST.fullmatch(kind):
            raise ValueError(f"no type of a JSON value: {kind!r}")
        arguments.append(text(path))
        arguments.append(blob(value) if kind == "binary" else f"CAST({text(value)} AS {kind})")
    return f"JSON_SET({', '.join(arguments)})"


_WRITERS: dict[str, Callable[[Any], str]] = {
    "SignedInteger": integer,
    "UnsignedInteger": integer,
    "Float": floating,
    "Double": floating,
    "Decimal": decimal,
    "String": text,
    "EncodedString": encoded_string,
    "Blob": blob,
    "Enum": integer,
    "Set": integer,
    # not b'...', which is compared with a BIT as a DOUBLE
    "Bit": integer,
    "Year": year,
    "Date": calendar_date,
    "Time": clock_time,
    "DateTime": datetime,
    "Timestamp": timestamp,
    "Json": text,
    "JsonTyped": json_typed,
    "Geometry": blob,
    "Vector": blob,
}


def literal(value: Value) -> str:
    """SQL of one wire value, to be stored in a column or compared with a key."""
    if value == NULL:
        return "NULL"
    ((kind, payload),) = value.items()
    return _WRITERS[kind](payload)


def all_of(values: Sequence[Value]) -> list[str]:
    """SQL of each of these wire values; the inner loop of the consumer."""
    texts = []
    for value in values:
        if value == NULL:
            texts.append("NULL")
        else:
            for kind in value:
                texts.append(_WRITERS[kind](value[kind]))
    if len(texts) != len(values):
        raise ValueError("a value has more or less than one variant")
    return texts


def row(values: Sequence[Value]) -> str:
    """SQL of a row: its literals in parentheses."""
    return f"({','.join(all_of(values))})"
