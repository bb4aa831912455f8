"""Reads the documents of a column that are alike, by a function that is generated for their form.

Documents have the same form when their objects have the same keys, and the values in these the same kinds; arrays may
differ. A function knows where everything is but strings, and reads such a document in half the time that going from
entry to entry takes. Whatever is not exactly of its form it leaves to that.
"""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring as json_string
from struct import Struct
from struct import error as StructError
from typing import Any, Protocol

from cdc_producer.decode.documents.keys import key_table
from cdc_producer.decode.documents.layout import (
    DOUBLE,
    INT16,
    INT32,
    INT64,
    LITERAL,
    LITERALS,
    NUMBERS,
    SMALL,
    SMALL_ARRAY,
    SMALL_OBJECT,
    STRING,
    UNSIGNED_FROM,
    string_text,
    variable_length,
)

#: documents after which a form is generated for their like; it is another one after twice as many that differ
MANY = 100
#: members of all objects of a form, and characters of the source of all forms
MOST_MEMBERS, MOST_SOURCE = 64, 1 << 20
#: combinations of keys and kinds that are remembered, and bytes of the largest of them
MOST_ROOTS, LARGEST_ROOT = 4096, 1 << 10
#: kind, number of members and size of a small object, and bytes of each of its keys and entries
HEAD, KEY, ENTRY = 1 + SMALL.head_size, SMALL.key_size, SMALL.entry_size

#: makes a document's text; None for one that is not of its form
Read = Callable[[bytes], "str | None"]


class ArrayReader(Protocol):
    """Reads arrays in a document, which is given when it is made."""

    typed: list[tuple[str, str, str]]

    def array(self, start: int, depth: int, left: int) -> tuple[str, int]:
        """Return the text of the array at `start`, and how many of `left` bytes no value has used yet."""


class Forms:
    """Keeps the forms by keys and kinds of the outermost object."""

    def __init__(self, arrays: Callable[[bytes], ArrayReader]) -> None:
        self._arrays = arrays
        self._forms: dict[bytes, _Form] = {}
        self._source = 0

    def text(self, data: bytes) -> str | None:
        """Return the text of a document without typed values; None when no form is its own."""
        if data[:1] != _OBJECT or data[2]:
            return None
        entries = HEAD + KEY * data[1]
        root = data[HEAD:entries] + data[entries : entries + ENTRY * data[1] : ENTRY]
        form = self._forms.get(root)
        if form is None:
            self._add(root)
            return None
        try:
            text = form.read(data)
        except (StructError, LookupError, ValueError):
            text = None
        if text is None:
            form.misses += 1
            if form.misses >= form.patience:
                self._generate(form, data)
        return text

    def _add(self, root: bytes) -> None:
        if len(self._forms) >= MOST_ROOTS or self._source > MOST_SOURCE:
            self._forms.clear()
            self._source = 0
        if 0 < len(root) <= LARGEST_ROOT:
            self._forms[root] = _Form()

    def _generate(self, form: _Form, data: bytes) -> None:
        form.misses, form.patience = 0, 2 * form.patience
        source = _Source(self._arrays)
        try:
            form.read = source.function(data)
        except (StructError, LookupError, ValueError):
            form.read = _unread
        self._source += sum(map(len, source.lines))


_OBJECT = bytes((SMALL_OBJECT,))


def _unread(data: bytes) -> None:
    return None


class _Form:
    """The function of a form, and how many documents it did not fit since it was generated."""

    __slots__ = ("misses", "patience", "read")

    def __init__(self) -> None:
        self.read: Read = _unread
        self.misses, self.patience = 0, MANY


class _Source:
    """The lines of one generated function. Names and keys of the document are constants of it, and never source."""

    def __init__(self, arrays: Callable[[bytes], ArrayReader]) -> None:
        self.names: dict[str, Any] = {
            "literals": LITERALS, "quote": json_string, "string_text": string_text, "arrays": arrays,
            "variable_length": variable_length, "int32": NUMBERS[INT32].unpack_from,
            "int64": NUMBERS[INT64].unpack_from, "double": NUMBERS[DOUBLE].unpack_from,
        }  # fmt: skip
        self.lines: list[str] = []
        self._values: list[str] = []
        #: bytes that every document of the form uses besides strings and arrays
        self._used = 1

    def function(self, data: bytes) -> Read:
        """Generate it for documents like this one. Raises ValueError where its kinds are not the usual ones."""
        text = self._object(data, 1, 1)
        self.names["text"] = text
        lines = [
            "def read(data):",
            "  size, document = len(data), arrays(data)",
            f"  left, p0 = size - {self._used}, 1",
            *(f"  {line}" for line in self.lines),
            "  if left < 0 or document.typed: return None",
            f"  return text % ({' '.join(f'{value},' for value in self._values)})",
        ]
        exec("\n".join(lines), self.names)
        read: Read = self.names["read"]
        return read

    def _object(self, data: bytes, start: int, depth: int) -> str:
        """Add what reads the object at `start` of the document; returns its text with a place for each value."""
        own = sum(name.startswith("unpack") for name in self.names)
        # one that was altered may hold itself
        if own > MOST_MEMBERS:
            raise ValueError("an object in too many others, or with too many in it")
        count, _ = SMALL.head(data, start)
        entries = start + SMALL.head_size + KEY * count
        end = entries + ENTRY * count
        table, kinds = data[start + SMALL.head_size : entries], data[entries:end:ENTRY]
        keys = key_table(SMALL, table)
        found = data[end : end + keys.size]
        if keys.first != end - start or len(self._values) + count > MOST_MEMBERS:
            raise ValueError("an object whose keys stand elsewhere, or are too many")
        names = keys[found].names
        self._used += end - start + keys.size
        unpack = Struct(f"<HH{len(table)}s{'xH' * count}{len(found)}s").unpack_from
        self.names |= {f"unpack{own}": unpack, f"table{own}": table, f"kinds{own}": kinds, f"keys{own}": found}
        offsets = "".join(f"o{own}_{index}, " for index in range(count))
        at = f"data[p{own} + {entries - start} : p{own} + {end - start} : {ENTRY}]"
        self.lines += [
            f"count, length, table, {offsets}keys = unpack{own}(data, p{own})",
            f"if table != table{own} or keys != keys{own} or {at} != kinds{own}: return None",
            f"if count != {count} or p{own} + length > size: return None",
        ]
        parts = []
        for index, (name, kind) in enumerate(zip(names, kinds, strict=True)):
            place = start + int.from_bytes(data[entries + ENTRY * index + 1 : entries + ENTRY * (index + 1)], "little")
            parts.append(name.replace("%", "%%") + self._member(data, kind, place, f"{own}_{index}", depth))
        return f"{{{', '.join(parts)}}}"

    def _member(self, data: bytes, kind: int, place: int, own: str, depth: int) -> str:
        """Add what reads one member, whose value or offset is `o` and its `own` number; returns its text."""
        at = f"p{own.partition('_')[0]} + o{own}"
        if kind == SMALL_OBJECT:
            self.lines.append(f"p{sum(name.startswith('unpack') for name in self.names)} = {at}")
            return self._object(data, place, depth + 1)
        if kind not in _MEMBERS:
            raise ValueError(f"a member of kind {kind}")
        used, lines, value = _MEMBERS[kind]
        self._used += used
        self.lines += [line.replace("@", at).replace("$", own).replace("?", str(depth + 1)) for line in lines]
        self._values.append(value.replace("$", own))
        return "%s"


#: by kind: bytes besides the entry, lines of source, and the value; @ is where it is, $ its number, ? the depth
_MEMBERS: dict[int, tuple[int, tuple[str, ...], str]] = {
    INT16: (0, (), "(o$ ^ 32768) - 32768"),
    LITERAL: (0, (), "literals[o$ & 255]"),
    INT32: (4, ("v$, = int32(data, @)",), "v$"),
    # a larger one is listed with its type
    INT64: (8, ("v$, = int64(data, @)", f"if v$ >= {UNSIGNED_FROM}: return None"), "v$"),
    DOUBLE: (8, ("v$, = double(data, @)", "if v$ - v$ != 0: return None"), "v$"),
    STRING: (
        0,
        (
            "s = @ + 1",
            "e = s + data[s - 1]",
            "if data[s - 1] > 127: e, s = variable_length(data, s - 1); e += s",
            "v$ = data[s:e]",
            "left -= e - (@)",
            "if e > size: return None",
            'v$ = quote(v$.decode("latin-1")) if v$.isascii() else string_text(v$)',
        ),
        "v$",
    ),
    SMALL_ARRAY: (0, ("v$, left = document.array(@, ?, left)",), "v$"),
}
