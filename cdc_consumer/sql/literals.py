"""Writes SQL literals: the one place where a value becomes SQL text.

Every function takes the payload of a wire form (shared/values.py) and returns text that is exact in a session with
STRICT_ALL_TABLES, ALLOW_INVALID_DATES and NO_AUTO_VALUE_ON_ZERO, time_zone '+00:00', a utf8mb4 client and backslash
escapes. A payload of the wrong type raises TypeError, KeyError or ValueError and never becomes SQL: each variant has
one exact type, and what it holds is checked as it is written. Bytes that are not ASCII travel in the text as lone
surrogates; encode it with `encode`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from shared.events import Value
from shared.values import JSON_CASTS, LATEST_SECOND, NULL

#: longer binary values are written escaped instead of as hexadecimal digits, which would double the packet
HEX_BYTES = 1 << 16

#: decimal digits that MySQL keeps in four bytes
DIGITS_OF_GROUP = 9
#: of a DECIMAL that SQL can name
MOST_DIGITS = 65
_DECIMAL = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
#: character sets of which MySQL warns where SQL names them
DEPRECATED = frozenset({"dec8", "hp8", "macce", "macroman", "ucs2", "utf8mb3"})
_CHARSET = re.compile(r"[a-z0-9_]+", re.ASCII)
_JSON_CAST = re.compile(JSON_CASTS, re.ASCII)
ZERO_TIMESTAMP = "'0000-00-00 00:00:00'"
_EPOCH = date(1970, 1, 1)

#: raises TypeError for anything that is not an int
integer: Callable[[int], str] = int.__repr__


def encode(sql: str) -> bytes:
    """SQL text in the bytes the server gets."""
    return sql.encode("utf-8", "surrogateescape")


def text(value: str) -> str:
    """Write a utf8mb4 string."""
    if type(value) is not str:
        # a list would be searched for quotes, and printed with them
        raise TypeError(f"no text: {type(value).__name__}")
    if "\\" in value:
        value = value.replace("\\", "\\\\")
    if "'" in value:
        value = value.replace("'", "''")
    return f"'{value}'"


def binary(value: bytes) -> str:
    """Write a string of bytes without a character set."""
    if len(value) <= HEX_BYTES:
        return f"x'{value.hex()}'"
    escaped = value.replace(b"\\", b"\\\\").replace(b"'", b"\\'")
    return f"_binary'{escaped.decode('ascii', 'surrogateescape')}'"


def blob(payload: str) -> str:
    """Write a Blob."""
    return binary(base64.b64decode(payload, validate=True))


def encoded_bytes(payload: dict[str, str]) -> str:
    """Return the bytes of an EncodedString, without its character set."""
    return blob(payload["base64"])


def encoded_string(payload: dict[str, str]) -> str:
    """Write an EncodedString."""
    charset = payload["charset"]
    if not _CHARSET.fullmatch(charset):
        raise ValueError(f"no character set: {charset!r}")
    # always hexadecimal: an escaped literal would be read in the client's character set first
    return f"_{charset} x'{base64.b64decode(payload['base64'], validate=True).hex()}'"


def deprecated(values: Sequence[Value]) -> int:
    """Count those of these wire values whose literals give a warning."""
    return sum(type(value) is dict and value.get("EncodedString", {}).get("charset") in DEPRECATED for value in values)


def floating(payload: float) -> str:
    """Write a FLOAT or DOUBLE with all its digits."""
    if payload == 0:
        # 0.0 is a DECIMAL literal, which has no negative zero
        return "-0e0" if str(payload)[0] == "-" else "0e0"
    return float.__repr__(payload) if isinstance(payload, float) else integer(payload)


def decimal(payload: str) -> str:
    """Write a DECIMAL."""
    if not _DECIMAL.fullmatch(payload):
        raise ValueError(f"no decimal: {payload!r}")
    return payload


@lru_cache(maxsize=1 << 14, typed=True)
def _date(year: int, month: int, day: int) -> str:
    # `typed` keeps apart what is equal and no whole number: True, 1.0
    if not (
        type(year) is type(month) is type(day) is int and 0 <= year <= 9999 and 0 <= month <= 12 and 0 <= day <= 31
    ):
        raise ValueError("no date")
    return f"{year:04d}-{month:02d}-{day:02d}"


@lru_cache(maxsize=1 << 17, typed=True)
def _clock(hour: int, minute: int, second: int) -> str:
    if not (
        type(hour) is type(minute) is type(second) is int and 0 <= hour < 1000 and 0 <= minute < 60 and 0 <= second < 60
    ):
        raise ValueError("no time of day")
    return f"{hour:02d}:{minute:02d}:{second:02d}"


def _fraction(microseconds: int) -> str:
    if type(microseconds) is not int or not 0 <= microseconds < 1_000_000:
        raise ValueError("no fraction of a second")
    return f".{microseconds:06d}" if microseconds else ""


def calendar_date(payload: dict[str, int]) -> str:
    """Write a DATE."""
    return f"'{_date(payload['year'], payload['month'], payload['day'])}'"


def clock_time(payload: dict[str, int]) -> str:
    """Write a TIME."""
    sign = "-" if payload.get("negative") else ""
    clock = _clock(payload["hours"], payload["minutes"], payload["seconds"])
    return f"'{sign}{clock}{_fraction(payload['subseconds']) or '.000000'}'"


def datetime(payload: dict[str, int]) -> str:
    """Write a DATETIME."""
    day = _date(payload["year"], payload["month"], payload["day"])
    return f"'{day} {_clock(payload['hour'], payload['minute'], payload['second'])}{_fraction(payload['subsecond'])}'"


def timestamp(payload: dict[str, int]) -> str:
    """The moment in UTC; unix_time 0 without a fraction is the zero timestamp."""
    seconds, fraction = payload["unix_time"], payload["subsecond"]
    if type(seconds) is not int or not 0 <= seconds <= LATEST_SECOND:
        raise ValueError("no moment")
    if seconds == 0 and fraction == 0:
        return ZERO_TIMESTAMP
    days, rest = divmod(seconds, 86400)
    return f"'{_day(days)} {_clock(rest // 3600, rest // 60 % 60, rest % 60)}{_fraction(fraction)}'"


def zoned(values: Sequence[Value]) -> list[str]:
    """Return the SQL of each of these wire values for any time zone: timestamps say that they are in UTC."""
    return [
        f"{sql[:-1]}+00:00'" if type(value) is dict and "Timestamp" in value and sql != ZERO_TIMESTAMP else sql
        for value, sql in zip(values, all_of(values), strict=True)
    ]


@lru_cache(maxsize=4096)
def _day(days: int) -> str:
    return (_EPOCH + timedelta(days=days)).isoformat()


#: SQL that gives bytes the type of a column: of a VARBINARY; of a MEDIUMBLOB and a LONGBLOB by what is never made
_OF_BYTES = {
    "binary": "{}",
    "opaque(250)": "IF(1, {}, REPEAT(x'00', 65536))",
    "opaque(251)": "COALESCE({}, UNCOMPRESS(''))",
}


def _json_scalar(kind: str, value: str) -> tuple[str, str]:
    """Return the SQL of a value whose type in a document is `kind`, and the column type that alone gives it that."""
    if kind in _OF_BYTES:
        return _OF_BYTES[kind].format(blob(value)), ""
    if kind in ("blob", "opaque(254)"):
        return blob(value), "BLOB" if kind == "blob" else f"BINARY({len(base64.b64decode(value))})"
    if kind.startswith("bit"):
        return integer(int(value)), kind
    if kind.startswith("timestamp"):
        return text(value), kind
    if not kind.startswith("decimal"):
        return f"CAST({text(value)} AS {kind})", ""
    # A document keeps the digits that the number had in memory: a literal as many as it shows, a CAST whole groups of
    # nine before the point, a column those of its type, less the leading groups that are zero.
    precision, scale = map(int, kind[len("decimal(") : -1].split(","))
    sign, whole, fraction = _digits(value)
    before = precision - scale
    if len(fraction) == scale and before == len(whole or "0" if before else ""):
        return f"{sign}{(whole or '0') if before else ''}.{fraction}" if before or scale else f"{sign}0.", ""
    if before == -(-len(whole or "0") // DIGITS_OF_GROUP) * DIGITS_OF_GROUP:
        return f"CAST({text(value)} AS decimal({min(precision, MOST_DIGITS)},{scale}))", ""
    return text(value), kind


def _of_columns(values: Mapping[str, Sequence[str]]) -> str:
    """Return the SQL of a document with these values as columns of these types have them, by type and number."""
    found = (
        f"SELECT {text(kind)} AS n, JSON_OBJECTAGG(n, v) AS v FROM JSON_TABLE(JSON_ARRAY({', '.join(own)}), '$[*]'"
        f" COLUMNS (n FOR ORDINALITY, v {kind} PATH '$' ERROR ON ERROR)) AS own"
        for kind, own in values.items()
    )
    return f"SELECT JSON_OBJECTAGG(n, v) AS v FROM ({' UNION ALL '.join(found)}) AS kinds"


def _digits(value: str) -> tuple[str, str, str]:
    """Split a DECIMAL's text into its sign, the digits before the point without leading zeros, and those behind it."""
    if not _DECIMAL.fullmatch(value):
        raise ValueError(f"no decimal: {value!r}")
    sign = "-" if value[0] == "-" else ""
    whole, _, fraction = value.removeprefix("-").partition(".")
    return sign, whole.lstrip("0"), fraction


def json_typed(payload: dict[str, Any]) -> str:
    """Write a document with the values that JSON text cannot express put in place by their SQL types."""
    arguments = [f"CAST({text(payload['text'])} AS JSON)"]
    of_columns: dict[str, list[str]] = {}
    for path, kind, value in payload["typed"]:
        if not _JSON_CAST.fullmatch(kind):
            raise ValueError(f"no type of a JSON value: {kind!r}")
        if kind.startswith("opaque") and kind not in (*_OF_BYTES, "opaque(254)"):
            raise ValueError(
                f"the JSON value at {path} has internal type {kind[7:-1]}, which no SQL literal can express; let rows"
                ' go by binlog events (rows = "auto" in [apply], raw = true at the producer), or pass it with --skip'
            )
        sql, column = _json_scalar(kind, value)
        if column:
            own = of_columns.setdefault(column, [])
            own.append(sql)
            sql = f'JSON_EXTRACT(of_columns.v, \'$."{column}"."{len(own)}"\')'
        arguments += text(path), sql
    document = f"JSON_SET({', '.join(arguments)})"
    return f"(SELECT {document} FROM ({_of_columns(of_columns)}) AS of_columns)" if of_columns else document


#: how a variant's payload is written, by the exact type it must have
_WRITERS: dict[str, dict[type, Callable[[Any], str]]] = {
    # a Bit not as b'...', which is compared with a BIT as a DOUBLE; a Year not as '0', which is the year 2000
    **{kind: {int: integer} for kind in ("SignedInteger", "UnsignedInteger", "Enum", "Set", "Bit", "Year")},
    "Float": {float: floating, int: floating},
    "Double": {float: floating, int: floating},
    "Decimal": {str: decimal},
    "String": {str: text},
    "EncodedString": {dict: encoded_string},
    "Blob": {str: blob},
    "Date": {dict: calendar_date},
    "Time": {dict: clock_time},
    "DateTime": {dict: datetime},
    "Timestamp": {dict: timestamp},
    "Json": {str: text},
    "JsonTyped": {dict: json_typed},
    "Geometry": {str: blob},
    "Vector": {str: blob},
}


def opened(value: Value) -> tuple[str, Any]:
    """Return the variant and the payload of a wire value that is not "Null", a payload of the variant's own type."""
    ((kind, payload),) = value.items()
    if type(payload) not in _WRITERS[kind]:
        raise TypeError(f"no value of {kind}: {payload!r:.60}")
    return kind, payload


def literal(value: Value) -> str:
    """Write the SQL of one wire value, to be stored in a column or compared with a key."""
    return all_of((value,))[0]


def all_of(values: Sequence[Value]) -> list[str]:
    """Return the SQL of each of these wire values; the inner loop of the consumer."""
    texts = []
    for value in values:
        if value == NULL:
            texts.append("NULL")
        else:
            (kind,) = value
            payload = value[kind]
            texts.append(_WRITERS[kind][type(payload)](payload))
    return texts


def row(values: Sequence[Value]) -> str:
    """Return the SQL of a row that is compared: its literals in parentheses.

    Beside another column a TIME would be compared with a text as a text, so it says what it is.
    """
    texts = all_of(values)
    return f"({','.join([f'TIME{sql}' if 'Time' in value else sql for value, sql in zip(values, texts, strict=True)])})"
