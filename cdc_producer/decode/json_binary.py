"""MySQL's binary JSON, to text that MySQL reads back as the same document.

Text alone loses the type of some values (a DECIMAL becomes a DOUBLE, a DATE a string); those are listed beside the text
with their path, as shared/values.py describes.
"""

from __future__ import annotations

import base64
import struct
from json.encoder import encode_basestring as json_string

from cdc_producer.decode.decimals import decimal_decoder
from shared.errors import UnsupportedError

(SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY, LITERAL) = (0, 1, 2, 3, 4)
(INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING, OPAQUE) = (5, 6, 7, 8, 9, 10, 11, 12, 15)
LITERALS = {0: "null", 1: "true", 2: "false"}
NUMBERS = {INT16: "<h", UINT16: "<H", INT32: "<i", UINT32: "<I", INT64: "<q", UINT64: "<Q", DOUBLE: "<d"}
SIGNED = frozenset({INT16, INT32, INT64})
#: kinds whose value stands in the entry itself: by whether the object or array is small or large
INLINE = {2: frozenset({LITERAL, INT16, UINT16}), 4: frozenset({LITERAL, INT16, UINT16, INT32, UINT32})}
#: MySQL reads integer text below this as INTEGER, from it on as UNSIGNED INTEGER
UNSIGNED_FROM = 1 << 32


def json_value(data: bytes) -> str:
    """The wire form of one JSON column value. Raises UnsupportedError for what no SQL literal can express.

    Source: MySQL's json_binary.h.
    """
    document = _Document(data)
    # An empty value is what an old server stored for NULL in a NOT NULL column; MySQL reads it as null.
    text = document.value(data[0], 1, "$") if data else "null"
    if not document.typed:
        return f'{{"Json":{json_string(text)}}}'
    typed = ",".join(f"[{','.join(map(json_string, entry))}]" for entry in document.typed)
    return f'{{"JsonTyped":{{"text":{json_string(text)},"typed":[{typed}]}}}}'


class _Document:
    def __init__(self, data: bytes) -> None:
        self.data = data
        #: (path, SQL type, text) of the values that text alone would alter
        self.typed: list[tuple[str, str, str]] = []

    def value(self, kind: int, at: int, path: str) -> str:
        """Text of the value of this kind at offset `at`."""
        if kind in (SMALL_OBJECT, LARGE_OBJECT):
            return self._object(at, 2 if kind == SMALL_OBJECT else 4, path)
        if kind in (SMALL_ARRAY, LARGE_ARRAY):
            return self._array(at, 2 if kind == SMALL_ARRAY else 4, path)
        if kind == LITERAL:
            return LITERALS[self.data[at]]
        if kind in NUMBERS:
            return self._number(kind, struct.unpack_from(NUMBERS[kind], self.data, at)[0], path)
        if kind == STRING:
            length, at = self._variable_length(at)
            return json_string(self.data[at : at + length].decode())
        if kind == OPAQUE:
            return self._opaque(at, path)
        raise UnsupportedError(f"a JSON value at {path} has unknown type {kind}")

    def _number(self, kind: int, number: int | float, path: str) -> str:
        if isinstance(number, float):
            return repr(number)
        if (kind in SIGNED) != (number < UNSIGNED_FROM):
            self.typed.append((path, "signed" if kind in SIGNED else "unsigned", str(number)))
        return str(number)

    def _integer(self, at: int, width: int) -> int:
        return int.from_bytes(self.data[at : at + width], "little")

    def _entry(self, start: int, at: int, width: int, path: str) -> str:
        """A value entry: its kind, then the value itself or its offset from the container's start."""
        kind = self.data[at]
        if kind in INLINE[width]:
            return self.value(kind, at + 1, path)
        return self.value(kind, start + self._integer(at + 1, width), path)

    def _array(self, start: int, width: int, path: str) -> str:
        count = self._integer(start, width)
        first = start + 2 * width
        entries = (self._entry(start, first + index * (1 + width), width, f"{path}[{index}]") for index in range(count))
        return f"[{', '.join(entries)}]"

    def _object(self, start: int, width: int, path: str) -> str:
        count = self._integer(start, width)
        keys = start + 2 * width
        values = keys + count * (width + 2)
        members = []
        for index in range(count):
            at = keys + index * (width + 2)
            offset, length = start + self._integer(at, width), self._integer(at + width, 2)
            name = json_string(self.data[offset : offset + length].decode())
            value = self._entry(start, values + index * (1 + width), width, f"{path}.{name}")
            members.append(f"{name}: {value}")
        return f"{{{', '.join(members)}}}"

    def _variable_length(self, at: int) -> tuple[int, int]:
        """A length in seven-bit groups, lowest first, and the offset after it."""
        length = shift = 0
        while True:
            octet = self.data[at]
            at += 1
            length |= (octet & 0x7F) << shift
            if octet < 0x80:
                return length, at
            shift += 7

    def _opaque(self, at: int, path: str) -> str:
        """A value of a column type that JSON does not have."""
        column_type = self.data[at]
        length, at = self._variable_length(at + 1)
        value = self.data[at : at + length]
        if column_type == 246:
            precision, scale = value[0], value[1]
            text = decimal_decoder(precision, scale)(value[2:])
            self.typed.append((path, f"decimal({precision},{scale})", text))
            return text
        if column_type in (10, 11, 12):
            name, text = _temporal(column_type, int.from_bytes(value, "little", signed=True))
            self.typed.append((path, name, text))
            return json_string(text)
        if column_type == 15:
            text = base64.b64encode(value).decode()
            self.typed.append((path, "binary", text))
            return json_string(f"base64:type15:{text}")
        raise UnsupportedError(
            f"a JSON value at {path} has column type {column_type}, which no SQL literal can express"
        )


def _temporal(column_type: int, packed: int) -> tuple[str, str]:
    """SQL type and text of a packed DATE (10), TIME (11) or DATETIME (12)."""
    sign = "-" if packed < 0 else ""
    micros, rest = abs(packed) & 0xFFFFFF, abs(packed) >> 24
    hour, minute, second = rest >> 12 & 0x1F, rest >> 6 & 0x3F, rest & 0x3F
    if column_type == 11:
        return "time(6)", f"{sign}{rest >> 12 & 0x3FF:02d}:{minute:02d}:{second:02d}.{micros:06d}"
    month, day = rest >> 22, rest >> 17 & 0x1F
    date = f"{month // 13:04d}-{month % 13:02d}-{day:02d}"
    if column_type == 10:
        return "date", date
    return "datetime(6)", f"{date} {hour:02d}:{minute:02d}:{second:02d}.{micros:06d}"
