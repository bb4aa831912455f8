"""A slow second decoder of row images, by the letter of MySQL's formats: the oracle of the fast one.

It shares no code with it, works byte by byte, and gives Python values as `json.loads` gives them. What MySQL cannot
have written raises ValueError, whatever other check would fail too.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from cdc_producer.decode.table_map import TableMapColumn
from kit.reference_bytes import Bytes, read_decimal, require, require_clock
from kit.reference_json import read_json
from shared import binlog_format as t
from shared.values import UTF8_CHARSETS

INTEGER_BYTES = {t.TINY: 1, t.SHORT: 2, t.INT24: 3, t.LONG: 4, t.LONGLONG: 8}


def read_images(columns: Sequence[TableMapColumn], body: bytes, position: int) -> list[list[Any]]:
    """The values of every row image from `position` to the end of a rows event's body."""
    source = Bytes(body, position)
    images = []
    while source.position < len(body):
        nulls = source.little((len(columns) + 7) // 8)
        start = source.position
        try:
            images.append(_image(columns, nulls, source, strict=True))
        except UnicodeDecodeError:
            source.position = start
            images.append(_image(columns, nulls, source, strict=False))
    return images


def _image(columns: Sequence[TableMapColumn], nulls: int, source: Bytes, *, strict: bool) -> list[Any]:
    """`strict` raises UnicodeDecodeError where a text in UTF-8 is none; else all texts are bytes."""
    values: list[Any] = []
    for index, column in enumerate(columns):
        values.append("Null" if nulls >> index & 1 else _value(column, source, strict))
    return values


def _value(column: TableMapColumn, source: Bytes, strict: bool) -> Any:
    kind = column.type
    if kind in INTEGER_BYTES:
        name = "UnsignedInteger" if column.unsigned else "SignedInteger"
        return {name: source.little(INTEGER_BYTES[kind], signed=not column.unsigned)}
    if kind in (t.FLOAT, t.DOUBLE):
        number: float
        (number,) = struct.unpack("<f", source.take(4)) if kind == t.FLOAT else struct.unpack("<d", source.take(8))
        require(math.isfinite(number), "no finite number")
        return {"Float" if kind == t.FLOAT else "Double": number}
    if kind in (t.ENUM, t.SET):
        return {"Enum" if kind == t.ENUM else "Set": source.little(column.size)}
    if kind in TEMPORAL:
        return TEMPORAL[kind](column, source)
    if kind == t.NEWDECIMAL:
        return {"Decimal": read_decimal(source, column.size, column.scale)}
    if kind == t.BIT:
        return {"Bit": source.big((column.size + 7) // 8)}
    if kind in (t.VARCHAR, t.STRING):
        return _text(column, source.take(source.little(1 if column.size < 256 else 2)), strict)
    data = source.take(source.little(column.size))
    if kind == t.BLOB:
        return _text(column, data, strict)
    if kind == t.JSON:
        return read_json(data)
    return {{t.GEOMETRY: "Geometry", t.VECTOR: "Vector"}[kind]: base64.b64encode(data).decode()}


def _text(column: TableMapColumn, data: bytes, strict: bool) -> Any:
    if column.charset is None:
        padded = data + bytes(max(0, column.size - len(data))) if column.type == t.STRING else data
        return {"Blob": base64.b64encode(padded).decode()}
    if column.charset.name in UTF8_CHARSETS and strict:
        return {"String": data.decode()}
    return {"EncodedString": {"charset": column.charset.name, "base64": base64.b64encode(data).decode()}}


def _fraction(column: TableMapColumn, source: Bytes) -> int:
    """Microseconds."""
    size = (column.size + 1) // 2
    micros: int = source.big(size) * 100 ** (3 - size)
    require(micros < 1_000_000, "no fraction of a second")
    return micros


def _year(_: TableMapColumn, source: Bytes) -> Any:
    year = source.little(1)
    return {"Year": 1900 + year if year else 0}


def _date(_: TableMapColumn, source: Bytes) -> Any:
    packed = source.little(3)
    return {"Date": _day(packed >> 9, packed >> 5 & 15, packed & 31)}


def _day(year: int, month: int, day: int) -> dict[str, int]:
    require(year <= 9999 and month <= 12, "no date")
    return {"year": year, "month": month, "day": day}


def _timestamp(column: TableMapColumn, source: Bytes) -> Any:
    seconds = source.big(4)
    return {"Timestamp": {"unix_time": seconds, "subsecond": _fraction(column, source)}}


def _datetime(column: TableMapColumn, source: Bytes) -> Any:
    packed = source.big(5) - (1 << 39)
    require(packed >= 0, "a moment before the year 0")
    year, month = divmod(packed >> 22, 13)
    hour, minute, second = packed >> 12 & 31, packed >> 6 & 63, packed & 63
    require_clock(hour, minute, second, 23)
    clock = {"hour": hour, "minute": minute, "second": second, "subsecond": _fraction(column, source)}
    return {"DateTime": {**_day(year, month, packed >> 17 & 31), **clock}}


def _time(column: TableMapColumn, source: Bytes) -> Any:
    size = (column.size + 1) // 2
    packed = source.big(3 + size) - (1 << (8 * size + 23))
    negative, packed = packed < 0, abs(packed)
    whole, micros = packed >> 8 * size, packed % (1 << 8 * size) * 100 ** (3 - size)
    hours, minutes, seconds = whole >> 12, whole >> 6 & 63, whole & 63
    require_clock(hours, minutes, seconds, 838)
    require(micros < 1_000_000, "no fraction of a second")
    members: dict[str, Any] = {"hours": hours, "minutes": minutes, "seconds": seconds, "subseconds": micros}
    return {"Time": {**members, "negative": True} if negative else members}


TEMPORAL: dict[int, Callable[[TableMapColumn, Bytes], Any]] = {
    t.YEAR: _year, t.DATE: _date, t.TIMESTAMP2: _timestamp, t.DATETIME2: _datetime, t.TIME2: _time,
}  # fmt: skip
