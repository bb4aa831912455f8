"""Keeps a place in bytes that moves as they are read, and never beyond their end."""

from __future__ import annotations


class Cursor:
    """Every method raises ValueError when the bytes end before what is read."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def __bool__(self) -> bool:
        """Whether there is more."""
        return self.position < len(self.data)

    def take(self, size: int) -> bytes:
        start, self.position = self.position, self.position + size
        if self.position > len(self.data):
            raise ValueError(f"{size} bytes are announced and {max(0, len(self.data) - start)} are there")
        return self.data[start : self.position]

    def rest(self) -> bytes:
        """Read all that is left."""
        start, self.position = self.position, len(self.data)
        return self.data[start:]

    def number(self, size: int) -> int:
        """Read an unsigned number of so many bytes, lowest first."""
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """Read MySQL's length-encoded integer."""
        value, self.position = length_encoded(self.data, self.position)
        return value

    def counted(self) -> bytes:
        """Read bytes with their length, a length-encoded integer, before them."""
        return self.take(self.packed())


def length_encoded(data: bytes, position: int) -> tuple[int, int]:
    """Read MySQL's length-encoded integer at `position`, and tell the position after it.

    Raises ValueError, IndexError.
    """
    first = data[position]
    if first < 251:
        return first, position + 1
    size = {252: 2, 253: 3, 254: 8}.get(first)
    if size is None:
        raise ValueError(f"{first} where a length begins")
    end = position + 1 + size
    if end > len(data):
        raise ValueError("the bytes end within a length")
    return int.from_bytes(data[position + 1 : end], "little"), end
