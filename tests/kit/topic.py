"""Records of a topic, as tests write and read them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from shared.topic import Record, Sealed, TopicReader
from shared.topic.record import seal

VALUES = [b"%d" % number for number in range(4)]


class ListTopic:
    """The writer of a topic in memory."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def last(self) -> Record | None:
        return Record(len(self.values) - 1, self.values[-1]) if self.values else None

    def append(self, records: Sequence[Sealed]) -> None:
        self.values += [record.value for record in records]

    def close(self) -> None:
        pass


def numbered(values: Sequence[bytes], start: int = 0) -> list[Record]:
    """The records that hold these values from offset `start` on."""
    return [Record(offset, value) for offset, value in enumerate(values, start)]


def sealed(values: Sequence[bytes]) -> list[Sealed]:
    """Records that hold these values and no binlog events."""
    return [seal(value) for value in values]


def read(reader: TopicReader, count: int, seconds: float = 20.0) -> list[Record]:
    """The next `count` records or a few more; fewer when they do not come in time."""
    found: list[Record] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        found += reader.read(0.1)
    return found
