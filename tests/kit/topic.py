"""Records of a topic, as tests write and read them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from shared.topic import Record, TopicReader

VALUES = [b"%d" % number for number in range(4)]


class ListTopic:
    """The writer of a topic in memory."""

    max_record_bytes = 1 << 30

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def last(self) -> Record | None:
        return Record(len(self.values) - 1, self.values[-1]) if self.values else None

    def append(self, values: Sequence[bytes]) -> None:
        self.values += values

    def close(self) -> None:
        pass


def numbered(values: Sequence[bytes], start: int = 0) -> list[Record]:
    """The records that hold these values from offset `start` on."""
    return [Record(offset, value) for offset, value in enumerate(values, start)]


def read(reader: TopicReader, count: int, seconds: float = 20.0) -> list[Record]:
    """The next `count` records or a few more; fewer when they do not come in time."""
    found: list[Record] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        found += reader.read(0.1)
    return found
