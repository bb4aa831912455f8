"""Reads the keys of objects in a document, and remembers them: the objects of a column repeat a few."""

from __future__ import annotations

from typing import NamedTuple

from cdc_producer.decode.documents.layout import Width, string_text

#: bytes of key tables and keys that are remembered, and of the largest of them
MOST_KEYS, LARGEST_KEYS = 1 << 20, 1 << 10


class Keys(NamedTuple):
    """Holds what objects with the same keys have in common, as narrow JSON text."""

    #: each key and its colon
    names: tuple[str, ...]
    #: the object with a place for each value, for the operator `%`
    text: str


class KeyTable(dict[bytes, Keys]):
    """Maps keys, one behind the other, to what is known of the objects that have this table of them."""

    __slots__ = ("first", "size", "table", "width")

    def __init__(self, width: Width, table: bytes) -> None:
        """`table` says where each key is. Raises ValueError."""
        super().__init__()
        self.width, self.table = width, table
        # MySQL writes all keys one behind the other
        places = list(width.keys(table))
        (self.first, _), (last, length) = places[0], places[-1]
        self.size = last + length - self.first
        if self.size < 0:
            raise ValueError("its keys are not in their order")

    def __missing__(self, keys: bytes) -> Keys:
        names = []
        for offset, length in self.width.keys(self.table):
            name = keys[offset - self.first : offset - self.first + length]
            if offset < self.first or offset - self.first + length > len(keys):
                raise ValueError("a key is not among the keys")
            names.append(f"{string_text(name)}: ")
        if len(set(names)) != len(names):
            raise ValueError("an object has a key twice")
        members = ", ".join(name.replace("%", "%%") + "%s" for name in names)
        found = Keys(tuple(names), f"{{{members}}}")
        _TABLES.remember(self, keys, found)
        return found


class _Tables(dict[bytes, KeyTable]):
    """Maps the table of an object's keys to what is known of it."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = 0

    def remember(self, known: KeyTable, keys: bytes, found: Keys) -> None:
        size = len(known.table) + len(keys)
        if size <= LARGEST_KEYS:
            if self._bytes > MOST_KEYS:
                self.clear()
                self._bytes = 0
            self.setdefault(known.table, known)[keys] = found
            self._bytes += size


_TABLES = _Tables()


def key_table(width: Width, table: bytes) -> KeyTable:
    """Return what is known of the objects with this table of keys, which is not empty. Raises ValueError."""
    known = _TABLES.get(table)
    # a small and a large table may be the same bytes
    return known if known is not None and known.width is width else KeyTable(width, table)
