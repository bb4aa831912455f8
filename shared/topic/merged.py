"""Reads the topics of one producer with routes as the one ordered topic they are: all of them, or some.

The journal is followed, mark by mark. What a mark tells of is durable, so it is read from the topics that the mark
names and put in the order of its sequence; a topic the leader does not write is not even looked at. An offset here is a
sequence: that of an operation, and of what stands behind it.

With all topics nothing is missing between two sequences. With some, an operation tells which one stands before it in
its topic, so a loss is seen there too; and where the last operation of a transaction is in a topic that is not read,
the last one that is read ends it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import chain

from shared.errors import OffsetGoneError, SequenceError
from shared.topic import Record, TopicReader
from shared.topic.lanes import ADVICE, LaneEntry, ReadLane, require_route
from shared.topic.marks import JournalMark, closed, closing_of, has_tables, head_of, mark_of, plain_heartbeat, route_of
from shared.topic.walk import TopicWalk, backwards, forwards


class MergedReader:
    """Reads a producer's topics; stays usable after a TopicLinkError once it is sought anew."""

    by_sequence = True

    def __init__(
        self, journal: str, names: Sequence[str] | None, readers: Callable[[str], TopicReader], most_open: int
    ) -> None:
        """`names` are the topics to read, None for all; `readers` opens one, and `most_open` stay open.

        Raises TopicError.
        """
        self.name = journal
        self._most_open = most_open
        self._readers = readers
        self._names = None if names is None else frozenset(names)
        self.gaps = names is not None
        self._journal = readers(journal)
        self.return_seconds = self._journal.return_seconds
        self._lanes: dict[str, ReadLane] = {}
        self._begin(0)

    def _begin(self, offset: int) -> None:
        for lane in self._lanes.values():
            lane.close()
        self._lanes = {}
        #: where those that had to be closed go on, by their names: to search for it costs more than to open them
        self._left: dict[str, int] = {}
        #: offset in the journal before which heartbeats belong to what stands before the sequence sought
        self._fresh = 0
        #: sequence up to which all was given out, and of the journal's last operation
        self._told = self._own_last = offset - 1
        #: whether its operations have routes from here on: a mark was met
        self._routed = False
        #: operations and heartbeats of the journal that no mark tells of yet
        self._own: list[LaneEntry] = []
        self._ready: deque[Record] = deque()
        #: the last operation of a part whose end is not known yet
        self._held: Record | None = None

    # bounds

    def first_offset(self) -> int:
        with closing(self._readers(self.name)) as reader:
            for record in forwards(reader, self.name):
                mark = mark_of(record, self._where(record))
                if mark is not None:
                    return mark.after + 1
                head = head_of(record.value, self._where(record))
                if not head.heartbeat and route_of(record.value) is None:
                    return head.sequence
        return 0

    def next_offset(self) -> int:
        with closing(self._readers(self.name)) as reader:
            for record in backwards(reader, self.name):
                mark = mark_of(record, self._where(record))
                # some topics say nothing of a transaction that is not whole
                if mark is not None and not (self.gaps and mark.open):
                    return mark.sequence + 1
        return 0

    def seek(self, offset: int) -> None:
        self._begin(offset)
        walk = TopicWalk(f"topic {self.name}", self._journal)
        start = self._journal.first_offset() if offset <= 0 else walk.find(lambda entry: entry.sequence >= offset)
        self._fresh = start
        self._journal.seek(self._edge(start, offset))

    def _edge(self, start: int, sequence: int) -> int:
        """Go back in the journal from `start` to where all behind a mark is of this sequence or a later one."""
        for record in backwards(self._journal, self.name, start):
            mark = mark_of(record, self._where(record))
            if mark is not None and mark.sequence < sequence and not mark.beyond:
                self._routed = True
                break
            head = head_of(record.value, self._where(record))
            if mark is None and not head.heartbeat and route_of(record.value) is None:
                break
            start = record.offset
        return start

    # reading

    def read(self, timeout: float) -> list[Record]:
        deadline = time.monotonic() + timeout
        while True:
            if self._ready:
                records, self._ready = list(self._ready), deque()
                return records
            left = deadline - time.monotonic()
            records = self._journal.read(max(0.0, left))
            for record in records:
                self._take(record)
            if not records and left <= 0:
                return []

    def _take(self, record: Record) -> None:
        """Take a record of the journal: what a mark tells of leaves with it."""
        where = self._where(record)
        mark = mark_of(record, where)
        if mark is not None:
            self._routed = True
            self._follow(mark, record)
            return
        head = head_of(record.value, where)
        route = None
        if not head.heartbeat and (self._routed or route_of(record.value) is not None):
            route = require_route(record, self.name, where)
        if head.sequence <= self._told:
            new = head.sequence == self._told and record.offset >= self._fresh
            if head.heartbeat and new and self._held is None:
                self._give(head.sequence, record)
        elif route is None and not head.heartbeat:  # from before there were routes
            self._told = self._own_last = head.sequence
            self._give(head.sequence, record)
        else:
            if route is not None and head.sequence > self._own_last:
                if route.follows > self._own_last:
                    raise SequenceError(f"{where} follows sequence {route.follows}, which is not there; {ADVICE}")
                self._own_last = head.sequence
            self._own.append((head.sequence, head.heartbeat, self.name, record))

    def _follow(self, mark: JournalMark, record: Record) -> None:
        """Give out what a mark tells of, in order."""
        own = [entry for entry in self._own if self._told < entry[0] <= mark.sequence]
        self._own = [entry for entry in self._own if entry[0] > mark.sequence]
        if mark.sequence <= self._told:
            return
        if mark.after > self._told:
            raise OffsetGoneError(
                f"topic {self.name} no longer holds sequence {self._told + 1}: retention removed it, or it was lost"
                f" (the next is {mark.after + 1}); {ADVICE}"
            )
        if mark.own > self._own_last:
            raise SequenceError(f"the journal {self.name} has lost its operation of sequence {mark.own}; {ADVICE}")
        names = [name for name in mark.topics if self._names is None or name in self._names]
        parts = [self._lane(name).until(mark.topics[name]) for name in names]
        # a topic may tell once more what it told before a kill
        new = sorted(entry for entry in chain(own, *parts) if entry[0] > self._told)
        for sequence, tells, name, found in new:
            if self._names is None:
                self._give_next(sequence, tells, found)
            elif sequence > self._told or tells:
                self._give_part(sequence, tells, name, found)
        if self._names is None:
            if self._told != mark.sequence:
                raise self._gap(self._told + 1, mark.sequence + 1)
        elif not mark.open:
            if self._held is not None:
                raise SequenceError(
                    f"the transaction of sequence {self._held.offset} has ended, and topic {self.name} does not say"
                    f" where; {ADVICE}"
                )
            if self._told < mark.sequence:
                self._give(mark.sequence, plain_heartbeat(record))
        self._told = mark.sequence

    def _give_next(self, sequence: int, tells: bool, record: Record) -> None:
        """Give out an operation of all topics; a closing of one topic's part says nothing here."""
        if tells:
            if sequence == self._told and closing_of(record, self.name) is None:
                self._give(sequence, record)
        elif sequence > self._told + 1:
            raise self._gap(self._told + 1, sequence)
        elif sequence > self._told:
            self._told = sequence
            self._give(sequence, record)

    def _give_part(self, sequence: int, tells: bool, name: str, record: Record) -> None:
        """Give out an operation of some topics, the last one of its transaction with that one's end."""
        where = f"topic {name} sequence {sequence}"
        closing = closing_of(record, where) if tells else None
        end = head_of(record.value, where).end if closing is None else closing[1]
        if tells or (name not in (self._names or ()) and has_tables(record)):
            if end is not None:
                self._give_held(end)
            elif tells and self._held is None:
                self._give(sequence, record)
            return
        self._told = sequence
        self._give_held(None)
        if end is None:
            self._held = record._replace(offset=sequence)
        else:
            self._give(sequence, record)

    def _give_held(self, end: int | None) -> None:
        """Give out the operation that waits, as the last one of its transaction if that ends at offset `end`."""
        held, self._held = self._held, None
        if held is not None:
            self._give(held.offset, held if end is None else closed(held, end))

    def _give(self, sequence: int, record: Record) -> None:
        self._ready.append(record._replace(offset=sequence))

    def _lane(self, name: str) -> ReadLane:
        lane = self._lanes.pop(name, None)
        if lane is None:
            while len(self._lanes) >= self._most_open:
                oldest = self._lanes.pop(next(iter(self._lanes)))
                self._left[oldest.name] = oldest.left
                oldest.close()
            lane = ReadLane(name, self._readers(name), self._told, self.name, self._left.get(name))
        self._lanes[name] = lane  # the last one used stands last
        return lane

    def _gap(self, expected: int, found: int) -> SequenceError:
        return SequenceError(
            f"the topics of {self.name} hold sequence {found} where {expected} must follow: {found - expected} events"
            f" are lost; {ADVICE}"
        )

    def _where(self, record: Record) -> str:
        return f"topic {self.name} offset {record.offset}"

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()
        self._journal.close()
