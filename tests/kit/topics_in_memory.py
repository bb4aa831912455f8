"""Topics in memory, many by their names, whose writers can die between any two appends."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import OffsetGoneError, TopicMissingError
from shared.topic import Record, Sealed
from shared.topic.record import unseal


class KilledError(Exception):
    """Stands for the end of a process."""


class MemoryTopics:
    """Holds topics; `writer` and `reader` open one as the routed writer and the merged reader want it."""

    def __init__(self) -> None:
        self.records: dict[str, list[Sealed]] = {}
        #: appends until the process dies, and how many records of that last one arrive; None for never
        self.appends_left: int | None = None
        self.arriving = 0
        #: the longest list a reader returns
        self.read_most = 1 << 30

    def writer(self, name: str) -> MemoryWriter:
        self.records.setdefault(name, [])
        return MemoryWriter(self, name)

    def reader(self, name: str) -> MemoryReader:
        if name not in self.records:
            raise TopicMissingError(name)
        return MemoryReader(self, name)

    def held(self, name: str, first: int = 0, most: int = 1 << 30) -> list[Record]:
        """So many records of a topic at most, from offset `first` on."""
        records = self.records.get(name, [])[first : first + most]
        return [unseal(offset, value, key, name) for offset, (value, key) in enumerate(records, first)]


class MemoryWriter:
    def __init__(self, topics: MemoryTopics, name: str) -> None:
        self._topics = topics
        self._name = name

    def last(self) -> Record | None:
        held = self._topics.held(self._name, max(0, len(self._topics.records[self._name]) - 1))
        return held[-1] if held else None

    def append(self, records: Sequence[Sealed]) -> None:
        topics = self._topics
        if topics.appends_left is not None:
            if topics.appends_left == 0:
                topics.records[self._name] += records[: topics.arriving]
                raise KilledError
            topics.appends_left -= 1
        topics.records[self._name] += records

    def close(self) -> None:
        pass


class MemoryReader:
    by_sequence = gaps = False
    return_seconds = 0.0

    def __init__(self, topics: MemoryTopics, name: str) -> None:
        self._topics = topics
        self._name = name
        self._next = 0

    def first_offset(self) -> int:
        return 0

    def next_offset(self) -> int:
        return len(self._topics.records[self._name])

    def seek(self, offset: int) -> None:
        self._next = offset

    def read(self, timeout: float) -> list[Record]:
        if self._next > self.next_offset():
            raise OffsetGoneError(self._name)
        found = self._topics.held(self._name, self._next, self._topics.read_most)
        self._next += len(found)
        return found

    def close(self) -> None:
        pass
