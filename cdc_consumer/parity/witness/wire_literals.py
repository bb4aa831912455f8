"""Writes values of events as the literals that the server makes of the same stored values, see `canonical.literal`.

A literal that cannot be told for certain is None and may be any: of JSON and of some floating-point numbers, whose text
the server lays out in its own way, and wherever the value is not what the column's type says, because the table was
another one when the event was made.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from cdc_consumer.parity.canonical import is_bit_mask
from cdc_consumer.parity.model import Column
from cdc_consumer.sql import column_types, literals
from shared.events import Value
from shared.values import NULL, UTF8_CHARSETS

_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
#: character sets of ENUM and SET whose bytes are known here, and Python's codec for them; of latin1 only ASCII is
_CODECS = {
    **dict.fromkeys(UTF8_CHARSETS, "utf-8"), "latin1": "ascii", "ucs2": "utf-16-be", "utf16": "utf-16-be",
    "utf16le": "utf-16-le", "utf32": "utf-32-be",
}  # fmt: skip
#: places of the decimal point, counted from the first digit, at which the server writes no exponent
_POINTS = range(-14, 16)
#: what is longer the server may lay out with an exponent, and of a FLOAT it leaves out digits
_CHARACTERS = 22
_EPOCH = datetime(1970, 1, 1)


def literal_of(value: Value, column: Column) -> str | None:
    """Return the literal of a wire value in this column, or None when it cannot be told.

    The type of an ENUM or SET column must be the one of the event, whose numbers count its members.
    """
    if value == NULL:
        return "NULL"
    ((kind, payload),) = value.items()
    write = _WRITERS.get(kind)
    return None if write is None else write(payload, column)


def _integer(payload: int, column: Column) -> str | None:
    if column.data_type not in column_types.INTEGERS:
        return None
    unsigned = "unsigned" in column.type
    fits = payload >= 0 if unsigned else payload < 1 << 63
    return literals.integer(payload) if fits else None


def _decimal(payload: str, column: Column) -> str | None:
    kind = column_types.parse(column.type)
    if column.data_type != "decimal" or kind is None or "zerofill" in column.type:
        return None
    scale = (*kind.numbers(), 0, 0)[1]
    return payload if len(payload.partition(".")[2]) == scale else None


def _floating(kind: str) -> Callable[[float, Column], str | None]:
    def write(payload: float, column: Column) -> str | None:
        # with a number of decimals in its type a column shows that many
        if column.data_type != kind or "(" in column.type or "zerofill" in column.type:
            return None
        return literals.floating(payload) if payload == 0 else _float_text(payload)

    return write


def _float_text(number: float) -> str | None:
    """The shortest digits that give the number back, in the server's layout; None where that is not certain."""
    negative, figures, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    digits, sign = "".join(map(str, figures)), "-" * negative
    point = len(digits) + exponent
    if point in _POINTS:
        text = f"{sign}{Decimal(f'{digits}e{exponent}'):f}"
    elif point == _POINTS.stop and len(digits) > point:
        return None
    else:
        text = f"{sign}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1}"
    return text if len(text) <= _CHARACTERS else None


def _string(payload: str, column: Column) -> str | None:
    if column.data_type not in _TEXTS or column.charset not in UTF8_CHARSETS:
        return None
    return f"_{column.charset} x'{payload.encode().hex()}'"


def _encoded_string(payload: dict[str, str], column: Column) -> str | None:
    if column.data_type not in _TEXTS or column.charset != payload["charset"] or column.converted:
        return None
    return f"_{column.charset} x'{base64.b64decode(payload['base64']).hex()}'"


def _bytes(*kinds: str) -> Callable[[str, Column], str | None]:
    def write(payload: str, column: Column) -> str | None:
        return f"x'{base64.b64decode(payload).hex()}'" if column.data_type in kinds else None

    return write


def _bit(payload: int, column: Column) -> str | None:
    return literals.integer(payload) if column.data_type == "bit" else None


def _year(payload: int, column: Column) -> str | None:
    return f"{payload:04d}" if column.data_type == "year" else None


def _date(payload: dict[str, int], column: Column) -> str | None:
    return literals.calendar_date(payload) if column.data_type == "date" else None


def _temporal(kind: str, whole: Callable[[dict[str, Any]], str], fraction: str) -> Callable[..., str | None]:
    """`whole` gives the text up to the seconds, `fraction` is the member that holds the microseconds."""

    def write(payload: dict[str, Any], column: Column) -> str | None:
        if column.data_type != kind:
            return None
        shown = 6 if column.converted else _digits(column.type)
        micros = f"{payload[fraction]:06d}"
        if micros[shown:].strip("0"):
            return None
        return f"'{whole(payload)}.{micros[:shown]}'" if shown else f"'{whole(payload)}'"

    return write


def _clock(payload: dict[str, Any]) -> str:
    sign = "-" if payload.get("negative") else ""
    return f"{sign}{payload['hours']:02d}:{payload['minutes']:02d}:{payload['seconds']:02d}"


def _day_and_clock(payload: dict[str, Any]) -> str:
    day = f"{payload['year']:04d}-{payload['month']:02d}-{payload['day']:02d}"
    return f"{day} {payload['hour']:02d}:{payload['minute']:02d}:{payload['second']:02d}"


def _moment(payload: dict[str, Any]) -> str:
    if payload["unix_time"] == 0 and payload["subsecond"] == 0:
        return "0000-00-00 00:00:00"
    return (_EPOCH + timedelta(seconds=payload["unix_time"])).isoformat(" ")


@lru_cache(maxsize=1024)
def _digits(kind: str) -> int:
    """Digits of a temporal type's fraction."""
    found = column_types.parse(kind)
    return found.numbers()[0] if found is not None and found.arguments else 0


def _enum(payload: int, column: Column) -> str | None:
    members = member_names(column.type) if column.data_type == "enum" else None
    if payload == 0 and column.data_type == "enum":
        return "0"
    return None if members is None or payload > len(members) else _name(members[payload - 1], column)


def _set(payload: int, column: Column) -> str | None:
    if is_bit_mask(column):
        return literals.integer(payload)
    members = member_names(column.type) if column.data_type == "set" else None
    if members is None or payload >> len(members):
        return None
    return _name(",".join(name for index, name in enumerate(members) if payload >> index & 1), column)


@lru_cache(maxsize=1024)
def member_names(kind: str) -> tuple[str, ...] | None:
    """Names of an ENUM's or SET's members; None where a backslash may be itself or, from the server, an escape."""
    found = column_types.parse(kind)
    if found is None or not found.arguments or "\\" in kind:
        return None
    return tuple(name.replace("''", "'") for name in found.members())


def _name(name: str, column: Column) -> str | None:
    codec = _CODECS.get(column.charset or "")
    try:
        return f"_{column.charset} x'{name.encode(codec).hex()}'" if codec else None
    except UnicodeEncodeError:
        return None


_WRITERS: dict[str, Callable[[Any, Column], str | None]] = {
    "SignedInteger": _integer,
    "UnsignedInteger": _integer,
    "Float": _floating("float"),
    "Double": _floating("double"),
    "Decimal": _decimal,
    "String": _string,
    "EncodedString": _encoded_string,
    "Blob": _bytes(*_BYTES),
    "Enum": _enum,
    "Set": _set,
    "Bit": _bit,
    "Year": _year,
    "Date": _date,
    "Time": _temporal("time", _clock, "subseconds"),
    "DateTime": _temporal("datetime", _day_and_clock, "subsecond"),
    "Timestamp": _temporal("timestamp", _moment, "subsecond"),
    "Geometry": _bytes(*column_types.SPATIAL),
    "Vector": _bytes("vector"),
}
