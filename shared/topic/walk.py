"""Walks a topic by position and sequence: where a record is, and the way from there on, without decoding each.

The first keys of a record are the contract's and in its order, so its head tells where it stands. Records stand in the
leader's order; a repeat, which a topic may hold, says nothing new and is left out.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from shared.decode import decode
from shared.errors import EventError, HistoryError, OffsetGoneError, TopicLinkError
from shared.events import Event, Heartbeat, Position
from shared.topic import Record, TopicReader
from shared.topic.marks import HEAD, end_of

#: a record the topic holds must come within this time (seconds)
READ_SECONDS = 30.0
#: one wait for a record is this long at most (seconds)
WAIT_SECONDS = 0.5
#: what comes behind a topic's last operation comes within this time (seconds), from a cluster within the second one
BEHIND_SECONDS, FAR_SECONDS = 0.1, 2.0
#: how far before the end a search begins
NEAR_RECORDS = 128
#: records that are read at once backwards: at first, and at most
BACKWARDS_RECORDS, MOST_BACKWARDS = 16, 4096

#: a position in its order: the number in the binlog file's name, and the offset
Place = tuple[int, int]


def forwards(reader: TopicReader, name: str) -> Iterator[Record]:
    """Yield a topic's records up to where it ends now, the oldest first. Raises TopicLinkError."""
    yield from _between(reader, name, reader.first_offset(), reader.next_offset())


def backwards(reader: TopicReader, name: str, end: int | None = None) -> Iterator[Record]:
    """Yield a topic's records before offset `end`, or where it ends now, the newest first. Raises TopicLinkError."""
    first, step = reader.first_offset(), BACKWARDS_RECORDS
    end = reader.next_offset() if end is None else end
    while first < end:
        start = max(first, end - step)
        found = list(_between(reader, name, start, end))
        yield from reversed(found)
        end, step = start, min(step * 4, MOST_BACKWARDS)


def _between(reader: TopicReader, name: str, start: int, end: int) -> Iterator[Record]:
    deadline = time.monotonic() + READ_SECONDS
    reader.seek(start)
    while start < end:
        records = reader.read(WAIT_SECONDS)
        if not records and time.monotonic() > deadline:
            raise TopicLinkError(
                f"topic {name} has not delivered offset {start} within {READ_SECONDS:.0f} s; see whether its"
                " server is well"
            )
        for record in records:
            if record.offset < end:
                yield record
            start, deadline = record.offset + 1, time.monotonic() + READ_SECONDS


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
        end = end_of(self.value)
        return self.place if end is None else (self.place[0], end)

    def decode(self) -> Event:
        return decode(self.value, f"topic offset {self.offset}")


def entry(record: Record) -> Entry:
    """Raises EventError."""
    head = HEAD.match(record.value)
    if head is None:
        raise EventError(
            f"topic offset {record.offset} is not an event: {record.value[:60]!r}...; find out who else writes to it"
        )
    uri, sequence, _, number, offset, heartbeat = head.groups()
    where = (int(number), int(offset))
    return Entry(record.offset, record.value, uri, int(sequence), where, heartbeat is not None)


def told_leader(entries: Iterable[Entry]) -> str:
    """Return the server_uuid of the first of these records that names its leader, "" where none does.

    Heartbeats may, but not all of them do. Raises EventError.
    """
    for found in entries:
        if found.heartbeat:
            told = found.decode().operation
            if isinstance(told, Heartbeat) and told.leader:
                return told.leader
    return ""


class TopicWalk:
    """Reads one topic, used by one thread at a time."""

    def __init__(self, name: str, reader: TopicReader) -> None:
        """`name` is for errors; `reader` is the topic's."""
        self.name = name
        self._reader = reader
        #: whether offsets are sequences, so that a heartbeat has that of the operation before it
        self.by_sequence = reader.by_sequence
        self._behind = FAR_SECONDS if reader.return_seconds else BEHIND_SECONDS
        #: where the topic began when somebody asked last, and its first record
        self._first: tuple[int, Entry] | None = None
        #: places of the binlog that were asked for, and the offsets of their first records
        self._places: dict[Place, int] = {}

    def close(self) -> None:
        self._reader.close()

    def first_offset(self) -> int:
        """Return the offset of the oldest record still held."""
        return self._reader.first_offset()

    def next_offset(self) -> int:
        """Return the offset of the next record."""
        return self._reader.next_offset()

    def first(self) -> Entry | None:
        """Return the oldest record still held; None where there is none."""
        first = self._reader.first_offset()
        if self._first is not None and self._first[0] == first:
            return self._first[1]
        if self._reader.next_offset() > first:
            self._first = first, self._read_at(first)[0]
            return self._first[1]
        self._reader.seek(first)
        if self.by_sequence and (records := self._reader.read(self._behind)):
            self._first = first, entry(records[0])
            return self._first[1]
        return None

    def last(self) -> Entry | None:
        """Return the newest record, which may be a heartbeat; None where there is none."""
        first, end = self._reader.first_offset(), self._reader.next_offset()
        found = self.at(end - 1) if end > first else None
        if self.by_sequence:
            self._reader.seek(max(first, end - 1))
            while (found is None or found.offset < end) and (records := self._reader.read(self._behind)):
                found = entry(records[-1])
        return found

    def find(self, reached: Callable[[Entry], bool]) -> int:
        """Return the offset of the first record for which this is true, once true for ever; else the topic's end.

        Where offsets are sequences only operations are looked at. Reads a logarithm of the topic, and less near the
        end, where most that are asked for are.
        """
        low, high, step = self._reader.first_offset(), self._reader.next_offset(), NEAR_RECORDS
        while low < high:
            probe = max((low + high) // 2, high - step)
            entries = self._probe(probe)
            if reached(entries[0]):
                high, step = probe, step * 16
            elif reached(entries[-1]):
                return entries[bisect_left(entries, True, key=reached)].offset
            else:
                low, step = entries[-1].offset + 1, high
        return low

    def since(self, edge: Place) -> int:
        """Return the offset of the first record at or behind a place of the binlog; else the topic's end.

        Where that is stays known: a topic only grows.
        """
        found = self._places.get(edge)
        if found is None:
            end = self._reader.next_offset()
            found = self.find(lambda entry: entry.place >= edge)
            if found < end:
                self._places[edge] = found
        return found

    def at(self, offset: int) -> Entry:
        """Return the record at this offset, which the topic holds."""
        return self._probe(offset)[0]

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
                        f" (offset {found.offset}), and cannot tell what happened: load the follower anew from a topic"
                        " that is whole"
                    )
                # a Heartbeat repeats the sequence before it
                if sequence is None or found.sequence > sequence - found.heartbeat:
                    sequence = found.sequence
                    yield found

    def _probe(self, offset: int) -> list[Entry]:
        found = self._read_at(offset)
        while self.by_sequence:
            operations = [entry for entry in found if not entry.heartbeat]
            if operations:
                return operations
            found = self._read(offset, READ_SECONDS)
        return found

    def back(self, start: int, stop: int) -> Iterator[Entry]:
        """Yield the records before `stop` down to `start`, the newest first.

        Raises HistoryError when the topic has lost one.
        """
        sequence: int | None = None
        for record in backwards(self._reader, self.name, stop):
            found = entry(record)
            if found.offset < start:
                return
            if sequence is not None and found.sequence < sequence - 1:
                raise HistoryError(f"{self.name} has lost the events between sequence {found.sequence} and {sequence}")
            # the newer one of a repeat comes first, and behind a Heartbeat comes the event whose sequence it repeats
            if sequence is None or found.sequence < sequence or found.heartbeat:
                yield found
            if not found.heartbeat:
                sequence = found.sequence if sequence is None else min(sequence, found.sequence)

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
                raise HistoryError(
                    f"{self.name} lost records while it was read: see what removes them, and run this again"
                ) from error
            except TopicLinkError as error:
                failure = error
                time.sleep(WAIT_SECONDS)
            if left <= 0:
                raise HistoryError(
                    f"{self.name}: no record came at offset {offset} within {timeout:g} s; see whether its"
                    " server is well"
                ) from failure
