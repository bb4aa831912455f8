"""Parts: a record of a Fluvio topic too large for one request, cut for the way and put together again.

A part is a record of its own: its value is a piece of the framed record, its key is of the form PART. The parts of a
record follow each other, and the offset of the last one is the record's. What an append that failed leaves behind,
parts without their last, is passed over: the next append repeats the record from its first part.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from shared.topic.record import PART, Record, Sealed, damaged, disclose, enclose, form_of, frame, unframe, unseal

#: Bytes of a record that goes in one piece, and of each part of one that does not. A server takes 32 MB. But it passes
#: only 10 MB on to the replicas of a topic, and what is larger is lost there without a word.
PART_BYTES = 8 << 20
#: what belongs to a part: its index, and the number of parts
_PLACE = Struct("<II")

#: gives what stands at an offset
At = Callable[[int], Sealed]


def split(record: Sealed) -> list[Sealed]:
    """Return the parts of a record; itself when it is small enough."""
    if record.size <= PART_BYTES:
        return [record]
    data = b"".join(frame([record]))
    pieces = [data[start : start + PART_BYTES] for start in range(0, len(data), PART_BYTES)]
    return [enclose(piece, PART, _PLACE.pack(index, len(pieces))) for index, piece in enumerate(pieces)]


def place(offset: int, stored: Sealed, topic: str) -> tuple[int, int]:
    """Return the index of a part and the number of parts; (0, 1) for a record in one piece.

    Raises RecordDamagedError.
    """
    if form_of(stored.key) != PART:
        return 0, 1
    _, content = disclose(offset, *stored, topic)
    index, count = _PLACE.unpack(content) if len(content) == _PLACE.size else (0, 0)
    if index >= count:
        raise damaged(topic, offset, f"is a part ({content.hex()}) of no record")
    return index, count


def whole_end(end: int, at: At, topic: str) -> int:
    """Return the offset after the last record that is whole, in a topic that ends at `end`.

    Raises RecordDamagedError.
    """
    while end > 0:
        index, count = place(end - 1, at(end - 1), topic)
        if index + 1 == count:
            break
        end -= index + 1
    return end


def whole_start(start: int, end: int, at: At, topic: str) -> int:
    """Return the offset of the first record that is whole, in a topic from `start` to `end`.

    Raises RecordDamagedError.
    """
    while start < end:
        index, count = place(start, at(start), topic)
        start += count - 1 - index
        if index == 0:
            break
        start += 1
    return start


class Joiner:
    """Puts the records together that come one after the other."""

    def __init__(self, topic: str) -> None:
        """`topic` names it in errors."""
        self._topic = topic
        self._pieces: list[bytes] = []

    def add(self, offset: int, stored: Sealed) -> Record | None:
        """Return the record that is whole with what stands at this offset, if one is. Raises RecordDamagedError."""
        index, count = place(offset, stored, self._topic)
        if count == 1:
            self._pieces.clear()
            return unseal(offset, *stored, self._topic)
        if index != len(self._pieces):
            self._pieces.clear()
        if index == len(self._pieces):
            self._pieces.append(stored.value)
        if index + 1 < count or len(self._pieces) < count:
            return None
        data = b"".join(self._pieces)
        self._pieces.clear()
        try:
            (record,) = unframe(data)
        except ValueError:
            raise damaged(self._topic, offset, "ends a record whose parts do not fit together") from None
        return unseal(offset, *record, self._topic)
