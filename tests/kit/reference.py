"""A slow second decoder of row images and binary JSON, by the letter of MySQL's formats: the oracle of the fast one.

It shares no code with it, works byte by byte, and gives Python values as `json.loads` gives them. What MySQL cannot
have written raises ValueError, whatever other check would fail too.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from cdc_producer.decode.table_map import TableMapColumn
from shared import binlog_format as t
from shared.values import UTF8_CHARSETS

#: bytes that hold 0..9 digits of a DECIMAL
DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
INTEGER_BYTES = {t.TINY: 1, t.SHORT: 2, t.INT24: 3, t.LONG: 4, t.LONGLONG: 8}
#: what a JSON document may be nested
JSON_DEPTH = 100


class Bytes:
    """Bytes taken from the front; taking more than there are raises ValueError."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def take(self, count: int) -> bytes:
        end = self.position + count
        require(count >= 0 and end <= len(self.data), "the bytes end too early")
        found = self.data[self.position : end]
        self.position = end
        return found

    def little(self, count: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(count), "little", signed=signed)

    def big(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")


def require(condition: object, message: str) -> None:
    if not condition:
        raise ValueError(message)


# rows


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


def read_decimal(source: Bytes, precision: int, scale: int) -> str:
    """A packed DECIMAL, digit group by digit group."""
    whole = precision - scale
    require(0 < precision <= 65 and 0 <= scale <= 30 and whole >= 0, "no such DECIMAL")
    groups = [whole % 9] * (whole % 9 > 0) + [9] * (whole // 9 + scale // 9) + [scale % 9] * (scale % 9 > 0)
    data = bytearray(source.take(sum(DIGIT_BYTES[digits] for digits in groups)))
    negative = not data[0] & 0x80
    data[0] ^= 0x80
    if negative:
        data = bytearray(octet ^ 0xFF for octet in data)
    packed = Bytes(bytes(data))
    text = ""
    for digits in groups:
        part = str(packed.big(DIGIT_BYTES[digits]))
        require(len(part) <= digits, "a group of digits is too large")
        text += part.zfill(digits)
    head, tail = text[:whole].lstrip("0") or "0", text[whole:]
    return ("-" if negative else "") + head + ("." + tail if scale else "")


def _fraction(column: TableMapColumn, source: Bytes) -> int:
    """Microseconds."""
    size = (column.size + 1) // 2
    micros: int = source.big(size) * 100 ** (3 - size)
    require(micros < 1_000_000, "no fraction of a second")
    return micros


def _clock(hour: int, minute: int, second: int, most: int) -> None:
    require(hour <= most and minute < 60 and second < 60, "no time of day")


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
    _clock(hour, minute, second, 23)
    clock = {"hour": hour, "minute": minute, "second": second, "subsecond": _fraction(column, source)}
    return {"DateTime": {**_day(year, month, packed >> 17 & 31), **clock}}


def _time(column: TableMapColumn, source: Bytes) -> Any:
    size = (column.size + 1) // 2
    packed = source.big(3 + size) - (1 << (8 * size + 23))
    negative, packed = packed < 0, abs(packed)
    whole, micros = packed >> 8 * size, packed % (1 << 8 * size) * 100 ** (3 - size)
    hours, minutes, seconds = whole >> 12, whole >> 6 & 63, whole & 63
    _clock(hours, minutes, seconds, 838)
    require(micros < 1_000_000, "no fraction of a second")
    members: dict[str, Any] = {"hours": hours, "minutes": minutes, "seconds": seconds, "subseconds": micros}
    return {"Time": {**members, "negative": True} if negative else members}


TEMPORAL: dict[int, Callable[[TableMapColumn, Bytes], Any]] = {
    t.YEAR: _year, t.DATE: _date, t.TIMESTAMP2: _timestamp, t.DATETIME2: _datetime, t.TIME2: _time,
}  # fmt: skip


# binary JSON


def read_json(data: bytes) -> Any:
    """The wire form, with the document itself where that has its text: {"Json":document} or {"JsonTyped":..}."""
    if not data:
        return {"Json": None}
    document = _Json(data)
    value = document.value(data[0], 1, "$", 1)
    require(document.used <= len(data), "values share bytes")
    if not document.typed:
        return {"Json": value}
    return {"JsonTyped": {"text": value, "typed": document.typed}}


class _Json:
    INLINE = (4, 5, 6)
    NUMBERS: ClassVar = {5: "<h", 6: "<H", 7: "<i", 8: "<I", 9: "<q", 10: "<Q", 11: "<d"}

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.typed: list[list[str]] = []
        #: bytes that were read as part of a value
        self.used = 1

    def value(self, kind: int, at: int, path: str, depth: int) -> Any:
        source = Bytes(self.data, at)
        if kind <= 3:
            require(depth <= JSON_DEPTH, "nested too deep")
            return self._container(kind, source, path, depth)
        try:
            return self._scalar(kind, source, path)
        finally:
            self.used += source.position - at

    def _scalar(self, kind: int, source: Bytes, path: str) -> Any:
        if kind == 4:
            literal = source.little(1)
            require(literal <= 2, "no literal")
            return (None, True, False)[literal]
        if kind in self.NUMBERS:
            code = self.NUMBERS[kind]
            number: float
            (number,) = struct.unpack(code, source.take(struct.calcsize(code)))
            require(math.isfinite(number), "no finite number")
            if kind != 11 and (kind in (5, 7, 9)) != (number < 1 << 32):
                self.typed.append([path, "signed" if kind in (5, 7, 9) else "unsigned", str(number)])
            return number
        if kind == 12:
            return source.take(self._length(source)).decode()
        require(kind == 15, "no type")
        return self._opaque(source.little(1), source.take(self._length(source)), path)

    @staticmethod
    def _length(source: Bytes) -> int:
        length = 0
        for shift in range(0, 35, 7):
            octet = source.little(1)
            length |= (octet & 127) << shift
            if octet < 128:
                require(length < 1 << 32, "no length")
                return length
        raise ValueError("no length")

    def _container(self, kind: int, source: Bytes, path: str, depth: int) -> Any:
        start, width = source.position, 2 if kind in (0, 2) else 4
        count = source.little(width)
        require(start + source.little(width) <= len(self.data), "a container ends behind its document")
        places = [(source.little(width), source.little(2)) for _ in range(count)] if kind < 2 else []
        names = [Bytes(self.data, start + offset).take(length).decode() for offset, length in places]
        require(len(set(names)) == len(names), "a key twice")
        entries = [(source.little(1), source.take(width)) for _ in range(count)]
        if places:  # all keys stand one behind the other; removing one may leave a hole
            first, (last, length) = places[0][0], places[-1]
            require(
                all(first <= offset and offset + size <= last + length for offset, size in places), "keys elsewhere"
            )
            self.used += last + length - first
        self.used += source.position - start
        require(self.used <= len(self.data), "values share bytes")
        values = []
        for index, (child, packed) in enumerate(entries):
            place = f"{path}.{_quoted(names[index])}" if kind < 2 else f"{path}[{index}]"
            offset = int.from_bytes(packed, "little")
            inline = child in self.INLINE or (width == 4 and child in (7, 8))
            at = start + count * (width + 2) * (kind < 2) + 2 * width + index * (1 + width) + 1
            before = self.used
            values.append(self.value(child, at if inline else start + offset, place, depth + 1))
            if inline:
                self.used = before
        return dict(zip(names, values, strict=True)) if kind < 2 else values

    def _opaque(self, column_type: int, data: bytes, path: str) -> Any:
        if column_type == 246:
            source = Bytes(data)
            precision, scale = source.little(1), source.little(1)
            text = read_decimal(source, precision, scale)
            require(source.position == len(data), "bytes behind a DECIMAL")
            self.typed.append([path, f"decimal({precision},{scale})", text])
            return float(text) if scale else int(text)
        if column_type in (7, 10, 11, 12):
            name, text = _packed_moment(column_type, data)
            self.typed.append([path, name, text])
            return text
        text = base64.b64encode(data).decode()
        if column_type == 16 and 0 < len(data) < 9:
            self.typed.append([path, f"bit({len(data) * 8})", str(int.from_bytes(data, "big"))])
        else:
            names = {15: "binary", 252: "blob"}
            self.typed.append([path, names.get(column_type, f"opaque({column_type})"), text])
        return f"base64:type{column_type}:{text}"


def _quoted(name: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
    return '"' + "".join(escapes.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in name) + '"'


def _packed_moment(column_type: int, data: bytes) -> tuple[str, str]:
    require(len(data) == 8, "no moment has so many bytes")
    packed = int.from_bytes(data, "little", signed=True)
    sign, packed = "-" if packed < 0 else "", abs(packed)
    whole, micros = packed >> 24, packed & 0xFFFFFF
    require(micros < 1_000_000, "no fraction of a second")
    hours, minutes, seconds = whole >> 12 & (1023 if column_type == 11 else 31), whole >> 6 & 63, whole & 63
    clock = f"{hours:02d}:{minutes:02d}:{seconds:02d}.{micros:06d}"
    if column_type == 11:
        require(whole >> 22 == 0, "no time has days")
        _clock(hours, minutes, seconds, 838)
        return "time(6)", sign + clock
    require(not sign, "a moment before the year 0")
    _clock(hours, minutes, seconds, 23)
    year, month = divmod(whole >> 22, 13)
    require(year <= 9999, "no year")
    day = f"{year:04d}-{month:02d}-{whole >> 17 & 31:02d}"
    return (
        ("date", day)
        if column_type == 10
        else (f"{'timestamp' if column_type == 7 else 'datetime'}(6)", f"{day} {clock}")
    )
