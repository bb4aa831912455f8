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
        start = self.position
        self.position = end = start + size
        found = self.data[start:end]
        if len(found) < size:
            raise ValueError(f"{size} bytes are announced and {len(found)} are there")
        return found

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


def counted_strings(data: bytes) -> list[bytes]:
    """Read all byte strings that `data` consists of, each with its length before it. Raises ValueError, IndexError."""
    found = []
    position, end = 0, len(data)
    while position < end:
        length, start = (data[position], position + 1) if data[position] < 251 else length_encoded(data, position)
        position = start + length
        found.append(data[start:position])
    if position > end:
        raise ValueError(f"{position - end} bytes more are announced than are there")
    return found


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
