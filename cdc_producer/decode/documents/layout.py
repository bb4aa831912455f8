"""Says how MySQL lays out a binary document: its kinds of values, and the parts of objects and arrays."""

from __future__ import annotations

from json.encoder import encode_basestring as json_string
from struct import Struct

(SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY, LITERAL) = (0, 1, 2, 3, 4)
(INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING, OPAQUE) = (5, 6, 7, 8, 9, 10, 11, 12, 15)
LITERALS = ("null", "true", "false")
NUMBERS = {
    INT16: Struct("<h"), UINT16: Struct("<H"), INT32: Struct("<i"), UINT32: Struct("<I"), INT64: Struct("<q"),
    UINT64: Struct("<Q"), DOUBLE: Struct("<d"),
}  # fmt: skip
SIGNED = frozenset({INT16, INT32, INT64})
#: MySQL reads integer text below this as INTEGER, from it on as UNSIGNED INTEGER
UNSIGNED_FROM = 1 << 32


class Width:
    """Says how the parts of a small (2 bytes) or large (4 bytes) object or array are read, and what bytes they take."""

    def __init__(self, code: str, inline: frozenset[int]) -> None:
        """`code` is the struct format of a size; values of the `inline` kinds stand in their entries."""
        head, key, entry = Struct(f"<{code}{code}"), Struct(f"<{code}H"), Struct(f"<B{code}")
        #: number of members, bytes of all
        self.head, self.head_size = head.unpack_from, head.size
        #: offset and length of each key
        self.keys, self.key_size = key.iter_unpack, key.size
        #: kind of each value; its offset, or it itself
        self.entries, self.entry_size = entry.iter_unpack, entry.size
        self.inline = inline


SMALL = Width("H", frozenset({LITERAL, INT16, UINT16}))
LARGE = Width("I", frozenset({LITERAL, INT16, UINT16, INT32, UINT32}))
#: kind -> width, whether it has keys
CONTAINERS = {
    SMALL_OBJECT: (SMALL, True), LARGE_OBJECT: (LARGE, True), SMALL_ARRAY: (SMALL, False), LARGE_ARRAY: (LARGE, False),
}  # fmt: skip


def string_text(value: bytes) -> str:
    """Write a string in UTF-8 as narrow JSON text. Raises UnicodeDecodeError."""
    if not value.isascii():
        value.decode()
    return json_string(value.decode("latin-1"))


def variable_length(data: bytes, at: int) -> tuple[int, int]:
    """Read a length in seven-bit groups, lowest first; and the offset after it. Raises ValueError, IndexError."""
    length = 0
    for shift in range(0, 35, 7):
        octet = data[at]
        at += 1
        length |= (octet & 0x7F) << shift
        if octet < 0x80:
            return length, at
    raise ValueError("a length has more than five bytes")
