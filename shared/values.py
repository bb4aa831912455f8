"""Defines the wire form of values: what every MySQL column value looks like in an event.

    "Null"                                     SQL NULL
    {"SignedInteger":-1}                       TINYINT .. BIGINT
    {"UnsignedInteger":18446744073709551615}   the same, UNSIGNED
    {"Float":0.10000000149011612}              FLOAT, widened to a double, shortest digits that give it back
    {"Double":0.1}                             DOUBLE, shortest digits that give it back
    {"Decimal":"1.10"}                         DECIMAL, all digits of its scale
    {"String":"text"}                          CHAR, VARCHAR, TEXT whose bytes are UTF-8 in a UTF-8 or ASCII column
    {"EncodedString":{"charset":"latin1","base64":"gQ=="}}   the same in any other character set: the column's own bytes
    {"Blob":"AP8="}                            BINARY (all its bytes), VARBINARY, BLOB; base64
    {"Enum":2} {"Set":5} {"Bit":513}           index (0 is the error value), bit mask, unsigned number
    {"Year":1999}                              0 or 1901..2155
    {"Date":{"year":1999,"month":3,"day":30}}  zero and partial dates keep their zeros
    {"Time":{"hours":838,"minutes":59,"seconds":59,"subseconds":0}}   and "negative":true below zero
    {"DateTime":{"year":..,"month":..,"day":..,"hour":..,"minute":..,"second":..,"subsecond":..}}
    {"Timestamp":{"unix_time":1700000000,"subsecond":0}}   unix_time 0 is the zero timestamp
    {"Json":"[1, 2]"}                          JSON whose text gives the same document back
    {"JsonTyped":{"text":"[1.10]","typed":[["$[0]","decimal(3,2)","1.10"]]}}   JSON holding values that text would alter
    {"Geometry":"AAAAAAEB.."} {"Vector":"AACAPw=="}   SRID (4 bytes) + WKB; packed floats; base64

subsecond and subseconds are microseconds. In `typed` each entry is a JSON path, the SQL type that a CAST gives the
value at that path (decimal(P,S), date, time(6), datetime(6), signed, unsigned, double), and its text. So have
timestamp(6) and bit(N), which only a column can give; the types binary, blob, and opaque(N) of MySQL's type N, which
no SQL gives, have base64.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from reprlib import repr as shown
from typing import Any

__all__ = ["JSON_BYTES", "JSON_CASTS", "LATEST_TIME", "NULL", "UTF8_CHARSETS", "require_values", "shown"]

#: wire form of SQL NULL
NULL = "Null"

#: MySQL character sets whose bytes travel as String when they are valid UTF-8
UTF8_CHARSETS = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})

#: SQL types an entry of JsonTyped may name, as a regular expression
JSON_CASTS = (
    r"decimal\(\d{1,2},\d{1,2}\)|date|time\(6\)|datetime\(6\)|timestamp\(6\)|signed|unsigned|double|bit\(\d{1,2}\)"
    r"|binary|blob|opaque\(\d{1,3}\)"
)

#: those of bytes, by the number that MySQL has for the type of a column; other bytes are opaque
JSON_BYTES = {15: "binary", 252: "blob"}

#: the last second that a TIMESTAMP of MySQL holds
LATEST_SECOND = 32_536_771_199
#: the last moment that MySQL knows, microseconds since 1970
LATEST_TIME = LATEST_SECOND * 1_000_000 + 999_999

_DECIMAL = re.compile(r"-?[0-9]{1,65}(\.[0-9]{1,30})?", re.ASCII)
_CHARSET = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
_JSON_CAST = re.compile(JSON_CASTS, re.ASCII)

#: tells whether a payload is what its variant holds
RightPayload = Callable[[Any], bool]


def _whole(low: int, high: int) -> RightPayload:
    return lambda payload: type(payload) is int and low <= payload <= high


def _floating(payload: Any) -> bool:
    # JSON knows neither infinity nor a number that is none
    return type(payload) in (float, int)


def _text(payload: Any) -> bool:
    return type(payload) is str


def _like(pattern: re.Pattern[str]) -> RightPayload:
    return lambda payload: type(payload) is str and pattern.fullmatch(payload) is not None


def _base64(payload: Any) -> bool:
    return type(payload) is str and bool(payload == "" or base64.b64decode(payload, validate=True))


def _object(checks: dict[str, RightPayload], optional: str = "") -> RightPayload:
    """A JSON object of these keys, of which one may be missing."""

    def check(payload: Any) -> bool:
        return (
            type(payload) is dict
            and checks.keys() - {optional} <= payload.keys() <= checks.keys()
            and all(checks[name](part) for name, part in payload.items())
        )

    return check


def _typed(payload: Any) -> bool:
    return type(payload) is list and all(
        type(entry) is list and len(entry) == 3 and all(map(_text, entry)) and _JSON_CAST.fullmatch(entry[1])
        for entry in payload
    )


def _truth(payload: Any) -> bool:
    return type(payload) is bool


_SIXTY, _FRACTION = _whole(0, 59), _whole(0, 999_999)
_DAY = {"year": _whole(0, 9999), "month": _whole(0, 12), "day": _whole(0, 31)}
_CLOCK = {"hour": _whole(0, 23), "minute": _SIXTY, "second": _SIXTY, "subsecond": _FRACTION}
_TIME = {"hours": _whole(0, 838), "minutes": _SIXTY, "seconds": _SIXTY, "subseconds": _FRACTION, "negative": _truth}
_ZERO, _YEAR = _whole(0, 0), _whole(1901, 2155)
_BITS = _whole(0, (1 << 64) - 1)

_CHECKS: dict[str, RightPayload] = {
    "SignedInteger": _whole(-(1 << 63), (1 << 63) - 1),
    "UnsignedInteger": _BITS,
    "Float": _floating,
    "Double": _floating,
    "Decimal": _like(_DECIMAL),
    "String": _text,
    "EncodedString": _object({"charset": _like(_CHARSET), "base64": _base64}),
    "Blob": _base64,
    "Enum": _whole(0, 65535),
    "Set": _BITS,
    "Bit": _BITS,
    "Year": lambda payload: _ZERO(payload) or _YEAR(payload),
    "Date": _object(_DAY),
    "Time": _object(_TIME, optional="negative"),
    "DateTime": _object({**_DAY, **_CLOCK}),
    "Timestamp": _object({"unix_time": _whole(0, LATEST_SECOND), "subsecond": _FRACTION}),
    "Json": _text,
    "JsonTyped": _object({"text": _text, "typed": _typed}),
    "Geometry": _base64,
    "Vector": _base64,
}


def require_values(values: Sequence[Any]) -> None:
    """Require that each of these is a wire form, exactly. Raises ValueError."""
    for value in values:
        if value != NULL:
            variants = value.items() if type(value) is dict else ()
            if len(variants) != 1 or not all(kind in _CHECKS and _CHECKS[kind](payload) for kind, payload in variants):
                raise ValueError(f"{shown(value)} is no value: {_reason(variants)}")


def _reason(variants: Any) -> str:
    if len(variants) != 1:
        return 'it is neither "Null" nor an object with one key'
    ((kind, payload),) = variants
    return f"{kind} cannot hold {shown(payload)}" if kind in _CHECKS else f"there is no form {shown(kind)}"
