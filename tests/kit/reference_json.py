"""A slow second decoder of MySQL's binary JSON, by the letter of its format: the oracle of the fast one."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any, ClassVar

from kit.reference_bytes import Bytes, read_decimal, require, require_clock

#: what a JSON document may be nested
JSON_DEPTH = 100


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
        require_clock(hours, minutes, seconds, 838)
        return "time(6)", sign + clock
    require(not sign, "a moment before the year 0")
    require_clock(hours, minutes, seconds, 23)
    year, month = divmod(whole >> 22, 13)
    require(year <= 9999, "no year")
    day = f"{year:04d}-{month:02d}-{whole >> 17 & 31:02d}"
    return (
        ("date", day)
        if column_type == 10
        else (f"{'timestamp' if column_type == 7 else 'datetime'}(6)", f"{day} {clock}")
    )
