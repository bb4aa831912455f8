"""Walks a topic by position and sequence: where a record is, and the way from there on, without decoding each.

The first keys of a record are the contract's and in its order, so its head tells where it stands. Records stand in the
leader's order; a repeat, which a topic may hold, says nothing new and is left out.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

from shared.decode import decode
from shared.errors import EventError, HistoryError, OffsetGoneError, TopicLinkError
from shared.events import Event, Position
from shared.profile import TopicSettings
from shared.topic import Record, TopicReader, open_reader

#: a record the topic holds must come within this time (seconds)
READ_SECONDS = 30.0
#: one wait for a record is this long at most (seconds)
WAIT_SECONDS = 0.5
#: how far before the end a search begins
NEAR_RECORDS = 2048

_CHARACTERS = rb'[^"\\]*(?:\\.[^"\\]*)*'
_HEAD = re.compile(
    rb'\{"uri":"(' + _CHARACTERS + rb')","sequence":(-?\d+),"bn_file":\{"fileName":"' + _CHARACTERS + rb'\.(\d+)"'
    rb',"offset":(\d+)\}(,"operation":"Heartbeat")?'
)
_END = re.compile(rb',"end":(\d+)\}\}$')
#: the last bytes of a record, which `end` is in
_TAIL = -40

#: a position in its order: the number in the binlog file's name, and the offset
Place = tuple[int, int]


def place(position: Position) -> Place:
    """Put positions in the order of the binlog."""
    return position.number, position.offset


class Entry(NamedTuple):
    """Holds a record of which only the head was read."""

    offset: int
    value: bytes
    #: as it stands in the JSON text
    uri: bytes
    sequence: int
    #: where its binlog event starts; of a Heartbeat: how far the producer has read
    place: Place
    heartbeat: bool

    @property
    def edge(self) -> Place:
        """Tell how far the leader's binlog is in the topic once this record is."""
        found = _END.search(self.value[_TAIL:])
        return self.place if found is None else (self.place[0], int(found[1]))

    def decode(self) -> Event:
        return decode(self.value, f"topic offset {self.offset}")


def entry(record: Record) -> Entry:
    """Raises EventError."""
    head = _HEAD.match(record.value)
    if head is None:
        raise EventError(f"topic offset {record.offset} is not an event: {record.value[:60]!r}...")
    uri, sequence, file, offset, heartbeat = head.groups()
    where = (int(file), int(offset))
    return Entry(record.offset, record.value, uri, int(sequence), where, heartbeat is not None)


class TopicWalk:
    """Reads one topic, used by one thread at a time."""

    def __init__(self, settings: TopicSettings) -> None:
        """Raises TopicError."""
        self.name = f"topic {settings.name}"
        self._reader: TopicReader = open_reader(settings)

    def close(self) -> None:
        self._reader.close()

    def first_offset(self) -> int:
        """Return the offset of the oldest record still held."""
        return self._reader.first_offset()

    def next_offset(self) -> int:
        """Return the offset of the next record."""
        return self._reader.next_offset()

    def find(self, reached: Callable[[Entry], bool]) -> int:
        """Return the offset of the first record for which this is true, once true for ever; else the topic's end.

        Reads a logarithm of the topic, and less near the end, where most that are asked for are.
        """
        low, high, step = self._reader.first_offset(), self._reader.next_offset(), NEAR_RECORDS
        while low < high:
            probe = max((low + high) // 2, high - step)
            entries = self._read_at(probe)
            if reached(entries[0]):
                high, step = probe, step * 16
            elif reached(entries[-1]):
                return entries[bisect_left(entries, True, key=reached)].offset
            else:
                low, step = entries[-1].offset + 1, high
        return low

    def at(self, offset: int) -> Entry:
        """Return the record at this offset, which the topic holds."""
        return self._read_at(offset)[0]

    def walk(self, start: int, stop: int | None = None, timeout: float = READ_SECONDS) -> Iterator[Entry]:
        """Yield the records from `start` to before `stop`, without it on and on.

        Raises HistoryError when the topic has lost one, or when none came for `timeout` seconds.
        """
        self._reader.seek(start)
        sequence: int | None = None
        offset = start
        while stop is None or offset < stop:
            for found in self._read(offset, timeout):
                offset = found.offset + 1
                if stop is not None and found.offset >= stop:
                    return
                if sequence is not None and found.sequence > sequence + (not found.heartbeat):
                    raise HistoryError(
                        f"{self.name} has lost the events between sequence {sequence} and {found.sequence}"
                        f" (offset {found.offset}), and cannot tell what happened"
                    )
                # a Heartbeat repeats the sequence before it
                if sequence is None or found.sequence > sequence - found.heartbeat:
                    sequence = found.sequence
                    yield found

    def _read_at(self, offset: int) -> list[Entry]:
        self._reader.seek(offset)
        return self._read(offset, READ_SECONDS)

    def _read(self, offset: int, timeout: float) -> list[Entry]:
        """The next records, at least one; the reader stands at `offset`."""
        deadline = time.monotonic() + timeout
        while True:
            left = deadline - time.monotonic()
            failure: TopicLinkError | None = None
            try:
                if records := self._reader.read(max(0.0, min(left, WAIT_SECONDS))):
                    return [entry(record) for record in records]
            except OffsetGoneError as error:
                raise HistoryError(f"{self.name} lost records while it was read") from error
            except TopicLinkError as error:
                failure = error
                time.sleep(WAIT_SECONDS)
            if left <= 0:
                raise HistoryError(f"{self.name}: no record came at offset {offset} within {timeout:g} s") from failure
