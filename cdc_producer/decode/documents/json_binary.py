"""Turns MySQL's binary JSON into text that MySQL reads back as the same document.

Text alone loses the type of some values (a DECIMAL becomes a DOUBLE, a DATE a string); those are listed beside the text
with their path, as shared/values.py describes. All text here is *narrow*, as in columns.py.
"""

from __future__ import annotations

from json.encoder import encode_basestring as json_string
from typing import Any

from cdc_producer.decode.documents.forms import Forms
from cdc_producer.decode.documents.keys import Keys, key_table
from cdc_producer.decode.documents.layout import (
    CONTAINERS,
    DOUBLE,
    INT16,
    INT32,
    LITERAL,
    LITERALS,
    NUMBERS,
    OPAQUE,
    SIGNED,
    SMALL_ARRAY,
    STRING,
    UINT16,
    UNSIGNED_FROM,
    Width,
    string_text,
    variable_length,
)
from cdc_producer.decode.documents.opaque import read_opaque
from shared.errors import UnsupportedError

#: MySQL's own limit of arrays and objects in each other
DEEPEST = 100
#: bytes of all paths of one document: they can be long, and each value that is listed repeats its own
MOST_PATHS = 128 << 20
_NO_KEYS = Keys((), "{}")
_UNPACK_DOUBLE = NUMBERS[DOUBLE].unpack_from

#: where a value is: (the place of the object or array around it, the keys of that, its index); None for the document
_Place = Any


def json_value(data: bytes) -> str:
    """Return the wire form of one JSON column value. Raises UnsupportedError for what no SQL literal can express.

    Bytes that MySQL did not write raise ValueError and its like: what is nested deeper than it allows, or uses bytes
    twice, so that the work is bounded by the value's size. Source: MySQL's json_binary.h.
    """
    known = _FORMS.text(data)
    if known is not None:
        return f'{{"Json":{json_string(known)}}}'
    document = _Document(data)
    # An empty value is what an old server stored for NULL in a NOT NULL column; MySQL reads it as null.
    text = document.text() if data else "null"
    if not document.typed:
        return f'{{"Json":{json_string(text)}}}'
    typed = ",".join(f"[{','.join(map(json_string, entry))}]" for entry in document.typed)
    return f'{{"JsonTyped":{{"text":{json_string(text)},"typed":[{typed}]}}}}'


def _overused(left: int) -> ValueError:
    """What to raise when `left` bytes are left, or more than there are were announced."""
    return ValueError("its values use the same bytes" if left < 0 else "a value ends behind its end")


def _double(data: bytes, at: int) -> str:
    (number,) = _UNPACK_DOUBLE(data, at)
    # what is not finite differs from itself, or from itself less itself
    if number - number != 0:
        raise ValueError("a number is not finite")
    return repr(number)


class _Document:
    """Reads one document."""

    __slots__ = ("_data", "_left", "_paths_left", "typed")

    def __init__(self, data: bytes) -> None:
        self._data = data
        #: (path, SQL type, text) of the values that text alone would alter
        self.typed: list[tuple[str, str, str]] = []
        #: bytes that no value has used yet
        self._left = len(data) - 1
        self._paths_left = MOST_PATHS

    def text(self) -> str:
        kind = self._data[0]
        return self._container(kind, 1, None, 1) if kind in CONTAINERS else self._scalar(kind, 1, None)

    def array(self, start: int, depth: int, left: int) -> tuple[str, int]:
        """Return the text of the small array at `start`, and how many of `left` bytes no value has used yet."""
        self._left = left
        return self._container(SMALL_ARRAY, start, None, depth), self._left

    def _use(self, at: int, size: int) -> int:
        """The end of `size` bytes at `at`, which no other value may use."""
        end = at + size
        self._left -= size
        if end > len(self._data) or self._left < 0:
            raise _overused(self._left)
        return end

    def _container(self, kind: int, start: int, place: _Place, depth: int) -> str:
        if depth > DEEPEST:
            raise ValueError(f"it is nested more than {DEEPEST} deep")
        width, keyed = CONTAINERS[kind]
        data, total, inline = self._data, len(self._data), width.inline
        count, size = width.head(data, start)
        if start + size > total:
            raise ValueError(f"an object or array of {size} bytes begins at {start} of {total}")
        at = start + width.head_size
        entries = at + count * width.key_size if keyed else at
        end = self._use(start, entries + count * width.entry_size - start)
        names, text = self._keys(width, start, data[at:entries]) if keyed and count else _NO_KEYS
        texts: list[str] = []
        add = texts.append
        # what is most frequent is read here, and not by methods of its own
        left = self._left
        for child, offset in width.entries(data[entries:end]):
            if child == STRING:
                at = start + offset
                length, at = (data[at], at + 1) if data[at] < 0x80 else variable_length(data, at)
                value = data[at : at + length]
                left -= at + length - start - offset
                if left < 0 or len(value) < length:
                    raise _overused(left)
                add(json_string(value.decode("latin-1")) if value.isascii() else string_text(value))
            elif child == INT16:
                add(str((offset & 0xFFFF ^ 0x8000) - 0x8000))
            elif child == LITERAL:
                add(LITERALS[offset & 0xFF])
            elif child == DOUBLE:
                left -= 8
                add(_double(data, start + offset))
            elif child in CONTAINERS:
                self._left = left
                add(self._container(child, start + offset, (place, names, len(texts)), depth + 1))
                left = self._left
            elif child in inline:
                add(self._inline(child, offset, (place, names, len(texts))))
            else:
                self._left = left
                add(self._scalar(child, start + offset, (place, names, len(texts))))
                left = self._left
        self._left = left
        if left < 0:
            raise _overused(left)
        return text % tuple(texts) if keyed else f"[{', '.join(texts)}]"

    def _keys(self, width: Width, start: int, table: bytes) -> Keys:
        """The keys of an object at `start`."""
        known = key_table(width, table)
        at = start + known.first
        return known[self._data[at : self._use(at, known.size)]]

    def _inline(self, kind: int, packed: int, place: _Place) -> str:
        """A value that stands in its entry, and is no INT16 and no literal."""
        if kind == INT32:
            return str(packed - (1 << 32) if packed & 1 << 31 else packed)
        text = str(packed & 0xFFFF if kind == UINT16 else packed)
        self._list(place, "unsigned", text)
        return text

    def _scalar(self, kind: int, at: int, place: _Place) -> str:
        """A value of its own at `at`."""
        structure = NUMBERS.get(kind)
        if structure is not None:
            self._use(at, structure.size)
            (number,) = structure.unpack_from(self._data, at)
            if kind == DOUBLE:
                return _double(self._data, at)
            if (kind in SIGNED) != (number < UNSIGNED_FROM):
                self._list(place, "signed" if kind in SIGNED else "unsigned", str(number))
            return str(number)
        if kind == STRING:
            length, start = variable_length(self._data, at)
            return string_text(self._data[start : self._use(at, start - at + length)])
        if kind == OPAQUE:
            return self._opaque(at, place)
        if kind == LITERAL:
            self._use(at, 1)
            return LITERALS[self._data[at]]
        raise ValueError(f"unknown type {kind}")

    def _opaque(self, at: int, place: _Place) -> str:
        """A value of a column type that JSON does not have."""
        length, start = variable_length(self._data, at + 1)
        text, name, typed = read_opaque(self._data[at], self._data[start : self._use(at, start - at + length)])
        self._list(place, name, typed)
        return text

    def _list(self, place: _Place, name: str, text: str) -> None:
        """Note the type of a value that text alone would alter."""
        path = _path(place)
        self._paths_left -= len(path)
        if self._paths_left < 0:
            raise UnsupportedError(
                f"the paths of a JSON value's typed members are longer than {MOST_PATHS} bytes together; write it"
                " with shorter names, or its dates and decimals as strings"
            )
        self.typed.append((path, name, text))


_FORMS = Forms(_Document)


def _path(place: _Place) -> str:
    steps = []
    while place is not None:
        place, names, index = place
        steps.append(f".{names[index].removesuffix(': ')}" if names else f"[{index}]")
    return "$" + "".join(reversed(steps))
