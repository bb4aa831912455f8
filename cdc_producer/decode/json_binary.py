"""Turns MySQL's binary JSON into text that MySQL reads back as the same document.

Text alone loses the type of some values (a DECIMAL becomes a DOUBLE, a DATE a string); those are listed beside the text
with their path, as shared/values.py describes. All text here is *narrow*, as in columns.py.
"""

from __future__ import annotations

import base64
from json.encoder import encode_basestring as json_string
from math import isfinite
from struct import Struct
from typing import Any

from cdc_producer.decode.decimals import decimal_decoder, decimal_size
from shared.errors import UnsupportedError

(SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY, LITERAL) = (0, 1, 2, 3, 4)
(INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING, OPAQUE) = (5, 6, 7, 8, 9, 10, 11, 12, 15)
#: column types that an opaque value may have
(DATE, TIME, DATETIME, BINARY, NEWDECIMAL) = (10, 11, 12, 15, 246)
LITERALS = ("null", "true", "false")
NUMBERS = {
    INT16: Struct("<h"), UINT16: Struct("<H"), INT32: Struct("<i"), UINT32: Struct("<I"), INT64: Struct("<q"),
    UINT64: Struct("<Q"), DOUBLE: Struct("<d"),
}  # fmt: skip
SIGNED = frozenset({INT16, INT32, INT64})
#: MySQL reads integer text below this as INTEGER, from it on as UNSIGNED INTEGER
UNSIGNED_FROM = 1 << 32
#: MySQL's own limit of arrays and objects in each other
DEEPEST = 100
#: bytes of all paths of one document: they can be long, and each value that is listed repeats its own
MOST_PATHS = 128 << 20
#: bytes of key tables that are remembered, and of the largest of them
MOST_KEYS, LARGEST_KEYS = 1 << 20, 1 << 10


class _Width:
    """The parts of a small (2 bytes) or large (4 bytes) object or array."""

    def __init__(self, code: str, inline: frozenset[int]) -> None:
        self.head = Struct(f"<{code}{code}")  # number of members, bytes of all
        self.key = Struct(f"<{code}H")  # offset, length
        self.entry = Struct(f"<B{code}")  # kind; offset, or a value of an `inline` kind itself
        self.inline = inline


SMALL = _Width("H", frozenset({LITERAL, INT16, UINT16}))
LARGE = _Width("I", frozenset({LITERAL, INT16, UINT16, INT32, UINT32}))
#: kind -> width, whether it has keys
CONTAINERS = {
    SMALL_OBJECT: (SMALL, True), LARGE_OBJECT: (LARGE, True), SMALL_ARRAY: (SMALL, False), LARGE_ARRAY: (LARGE, False),
}  # fmt: skip

#: where a container is: (the place of the one around it, its step there); None for the document
_Place = Any


def json_value(data: bytes) -> str:
    """Return the wire form of one JSON column value. Raises UnsupportedError for what no SQL literal can express.

    Bytes that MySQL did not write raise ValueError and its like: what is nested deeper than it allows, or uses bytes
    twice, so that the work is bounded by the value's size. Source: MySQL's json_binary.h.
    """
    document = _Document(data)
    # An empty value is what an old server stored for NULL in a NOT NULL column; MySQL reads it as null.
    text = document.text() if data else "null"
    if not document.typed:
        return f'{{"Json":{json_string(text)}}}'
    typed = ",".join(f"[{','.join(map(json_string, entry))}]" for entry in document.typed)
    return f'{{"JsonTyped":{{"text":{json_string(text)},"typed":[{typed}]}}}}'


def _text(value: bytes) -> str:
    """JSON text of a string in UTF-8. Raises UnicodeDecodeError."""
    if not value.isascii():
        value.decode()
    return json_string(value.decode("latin-1"))


class _Keys(dict[tuple[bytes, bytes], tuple[str, ...]]):
    """Key table and keys of an object -> JSON text of each key; the objects of a column mostly repeat a few."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = 0

    def remember(self, place: tuple[bytes, bytes], names: tuple[str, ...]) -> None:
        size = len(place[0]) + len(place[1])
        if size <= LARGEST_KEYS:
            if self._bytes > MOST_KEYS:
                self.clear()
                self._bytes = 0
            self[place] = names
            self._bytes += size


_KEYS = _Keys()


class _Document:
    def __init__(self, data: bytes) -> None:
        self._data = data
        #: (path, SQL type, text) of the values that text alone would alter
        self.typed: list[tuple[str, str, str]] = []
        #: bytes that no value has used yet
        self._left = len(data) - 1
        self._paths_left = MOST_PATHS

    def text(self) -> str:
        kind = self._data[0]
        return self._container(kind, 1, None, 1) if kind in CONTAINERS else self._scalar(kind, 1, None, "")

    def _use(self, at: int, size: int) -> int:
        """The end of `size` bytes at `at`, which no other value may use."""
        end = at + size
        self._left -= size
        if end > len(self._data):
            raise ValueError(f"{size} bytes are announced at {at} of {len(self._data)}")
        if self._left < 0:
            raise ValueError("its values use the same bytes")
        return end

    def _container(self, kind: int, start: int, place: _Place, depth: int) -> str:
        if depth > DEEPEST:
            raise ValueError(f"it is nested more than {DEEPEST} deep")
        width, keyed = CONTAINERS[kind]
        data, inline = self._data, width.inline
        count, size = width.head.unpack_from(data, start)
        if start + size > len(data):
            raise ValueError(f"an object or array of {size} bytes begins at {start} of {len(data)}")
        at = self._use(start, width.head.size)
        names: tuple[str, ...] = ()
        if keyed:
            names, at = self._names(width, start, at, count)
        end = self._use(at, count * width.entry.size)
        texts: list[str] = []
        for child, offset in width.entry.iter_unpack(data[at:end]):
            if child == STRING:
                texts.append(self._string(start + offset))
            elif child in inline:
                texts.append(self._inline(child, offset, place, names, len(texts)))
            elif child in CONTAINERS:
                inner = place, _step(names, len(texts))
                texts.append(self._container(child, start + offset, inner, depth + 1))
            else:
                texts.append(self._scalar(child, start + offset, place, _step(names, len(texts))))
        if not keyed:
            return f"[{', '.join(texts)}]"
        return "{" + ", ".join([f"{name}: {text}" for name, text in zip(names, texts, strict=True)]) + "}"

    def _names(self, width: _Width, start: int, at: int, count: int) -> tuple[tuple[str, ...], int]:
        """JSON text of an object's keys, and the offset behind its key table."""
        end = self._use(at, count * width.key.size)
        if not count:
            return (), end
        table = self._data[at:end]
        # MySQL writes all keys one behind the other
        first, _ = width.key.unpack_from(table)
        last, length = width.key.unpack_from(table, len(table) - width.key.size)
        size = last + length - first
        if size < 0:
            raise ValueError("its keys are not in their order")
        known = table, self._data[start + first : self._use(start + first, size)]
        names = _KEYS.get(known)
        if names is None:
            names = _read_names(width, *known, first)
            _KEYS.remember(known, names)
        return names, end

    def _string(self, at: int) -> str:
        length, start = self._data[at], at + 1
        if length >= 0x80:
            length, start = self._variable_length(at)
        return _text(self._data[start : self._use(at, start - at + length)])

    def _inline(self, kind: int, packed: int, place: _Place, names: tuple[str, ...], index: int) -> str:
        """A value that stands in its entry."""
        if kind == INT16:
            number = packed & 0xFFFF
            return str(number - 0x10000 if number & 0x8000 else number)
        if kind == LITERAL:
            return LITERALS[packed & 0xFF]
        if kind == INT32:
            return str(packed - (1 << 32) if packed & 1 << 31 else packed)
        text = str(packed & 0xFFFF if kind == UINT16 else packed)
        self._list(place, _step(names, index), "unsigned", text)
        return text

    def _scalar(self, kind: int, at: int, place: _Place, step: str) -> str:
        """A value of its own at `at`."""
        if kind in NUMBERS:
            self._use(at, NUMBERS[kind].size)
            (number,) = NUMBERS[kind].unpack_from(self._data, at)
            if kind == DOUBLE:
                if not isfinite(number):
                    raise ValueError("a number is not finite")
                return repr(number)
            if (kind in SIGNED) != (number < UNSIGNED_FROM):
                self._list(place, step, "signed" if kind in SIGNED else "unsigned", str(number))
            return str(number)
        if kind == STRING:
            return self._string(at)
        if kind == OPAQUE:
            return self._opaque(at, place, step)
        if kind == LITERAL:
            self._use(at, 1)
            return LITERALS[self._data[at]]
        raise ValueError(f"unknown type {kind}")

    def _variable_length(self, at: int) -> tuple[int, int]:
        """A length in seven-bit groups, lowest first, and the offset after it."""
        length = 0
        for shift in range(0, 35, 7):
            octet = self._data[at]
            at += 1
            length |= (octet & 0x7F) << shift
            if octet < 0x80:
                return length, at
        raise ValueError("a length has more than five bytes")

    def _opaque(self, at: int, place: _Place, step: str) -> str:
        """A value of a column type that JSON does not have."""
        column_type = self._data[at]
        length, start = self._variable_length(at + 1)
        value = self._data[start : self._use(at, start - at + length)]
        if column_type == NEWDECIMAL:
            precision, scale, digits = value[0], value[1], value[2:]
            if not 0 < precision <= 65 or scale > min(precision, 30) or len(digits) != decimal_size(precision, scale):
                raise ValueError(f"a DECIMAL({precision},{scale}) has {len(digits)} bytes")
            text = decimal_decoder(precision, scale)(digits)
            self._list(place, step, f"decimal({precision},{scale})", text)
            return text
        if column_type in (DATE, TIME, DATETIME):
            if length != 8:
                raise ValueError(f"a moment has {length} bytes")
            name, text = _moment(column_type, int.from_bytes(value, "little", signed=True))
            self._list(place, step, name, text)
            return json_string(text)
        if column_type == BINARY:
            text = base64.b64encode(value).decode()
            self._list(place, step, "binary", text)
            return json_string(f"base64:type15:{text}")
        raise UnsupportedError(
            f"a JSON value at {_path(place, step)} has column type {column_type}, which no SQL literal can express;"
            " write that member as a string or a number"
        )

    def _list(self, place: _Place, step: str, name: str, text: str) -> None:
        """Note the type of a value that text alone would alter."""
        path = _path(place, step)
        self._paths_left -= len(path)
        if self._paths_left < 0:
            raise UnsupportedError(
                f"the paths of a JSON value's typed members are longer than {MOST_PATHS} bytes together; write it"
                " with shorter names, or its dates and decimals as strings"
            )
        self.typed.append((path, name, text))


def _read_names(width: _Width, table: bytes, keys: bytes, first: int) -> tuple[str, ...]:
    """JSON text of the keys that `table` names; `keys` begins at offset `first`."""
    names = []
    for offset, length in width.key.iter_unpack(table):
        name = keys[offset - first : offset - first + length]
        if offset < first or offset - first + length > len(keys):
            raise ValueError("a key is not among the keys")
        names.append(_text(name))
    if len(set(names)) != len(names):
        raise ValueError("an object has a key twice")
    return tuple(names)


def _step(names: tuple[str, ...], index: int) -> str:
    return f".{names[index]}" if names else f"[{index}]"


def _path(place: _Place, step: str) -> str:
    steps = [step]
    while place is not None:
        place, step = place
        steps.append(step)
    return "$" + "".join(reversed(steps))


def _moment(column_type: int, packed: int) -> tuple[str, str]:
    """SQL type and text of a packed DATE, TIME or DATETIME."""
    sign, whole, micros = "-" if packed < 0 else "", abs(packed) >> 24, abs(packed) & 0xFFFFFF
    hours, minute, second = whole >> 12, whole >> 6 & 0x3F, whole & 0x3F
    months, day = divmod(hours >> 5, 32)
    year, month = divmod(months, 13)
    hour = hours if column_type == TIME else hours & 0x1F
    if hour > (838 if column_type == TIME else 23) or minute > 59 or second > 59 or micros > 999_999:
        raise ValueError(f"no time of day is {packed:#x}")
    clock = f"{hour:02d}:{minute:02d}:{second:02d}.{micros:06d}"
    if column_type == TIME:
        return "time(6)", sign + clock
    if year > 9999 or sign:
        raise ValueError(f"no date is {packed:#x}")
    date = f"{year:04d}-{month:02d}-{day:02d}"
    return ("date", date) if column_type == DATE else ("datetime(6)", f"{date} {clock}")
