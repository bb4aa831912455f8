"""Holds one of several topics that are written, or read, together: it knows what it has, and what must follow."""

from __future__ import annotations

import time
from collections import deque

from shared.errors import OffsetGoneError, SequenceError, TopicError, TopicLinkError
from shared.topic import Record, Sealed, TopicReader, TopicWriter
from shared.topic.marks import Head, Route, closing_of, head_of, route_of, routed
from shared.topic.walk import TopicWalk

#: seconds within which a record must come that is durable, and of one wait for it
RECORD_SECONDS, WAIT_SECONDS = 30.0, 0.5
ADVICE = "load the follower anew from topics that are whole"
CHANGED = (
    "filters or routes were changed while a batch was under way: start once with those of before; or the topic belongs"
    " to another producer: name another one in [topic.routes]"
)

#: sequence, whether it only tells something, name of its topic, and the record; in this order
LaneEntry = tuple[int, bool, str, Record]


def require_route(record: Record, journal: str, where: str) -> Route:
    """Return the route of an operation that marks of this journal tell of. Raises TopicError for another producer's."""
    route = route_of(record.value)
    if route is None or route.of != journal:
        raise TopicError(f"{where} was not written by the producer of {journal}, whose marks tell of it; {ADVICE}")
    return route


class WrittenLane:
    """Holds one topic that is written, beside others."""

    def __init__(self, name: str, writer: TopicWriter, sequence: int, tail: list[Head]) -> None:
        self.name = name
        self.writer = writer
        #: of its last operation
        self.sequence = sequence
        #: operations it holds beyond the journal's last mark
        self.tail = tail
        self.pending: list[Sealed] = []

    def put(self, record: Sealed, head: Head, of: str) -> None:
        """Take an operation, unless the topic has it from before. Raises TopicError when it has another there."""
        if self.tail:
            known = self.tail.pop(0)
            if (known.sequence, known.uri, known.file, known.offset) != (
                head.sequence, head.uri, head.file, head.offset,
            ):  # fmt: skip
                theirs, ours = (each.file.decode(errors="replace") for each in (known, head))
                raise TopicError(
                    f"topic {self.name} holds sequence {known.sequence} of {theirs}:{known.offset}, which was not"
                    f" appended whole, where the leader has sequence {head.sequence} of {ours}:{head.offset} now:"
                    f" {CHANGED}"
                )
        else:
            self.pending.append(routed(record, of, self.sequence))
        self.sequence = head.sequence

    def flush(self) -> None:
        records, self.pending = self.pending, []
        if records:
            self.writer.append(records)


class ReadLane:
    """Reads one topic beside the journal, up to what the marks tell of."""

    def __init__(self, name: str, reader: TopicReader, sequence: int, journal: str, begin: int | None = None) -> None:
        """Begin with the first record behind `sequence`; `journal` is that of the topic's producer.

        `begin` is the offset it has, if that is known: `left` of the lane that was closed at this sequence.
        """
        self.name = name
        self._reader = reader
        self._journal = journal
        self._waiting: deque[LaneEntry] = deque()
        #: what was read of it so far
        self.read = sequence
        #: sequence of the last operation of it
        self._last = sequence
        #: of the last one that was met in it, of those before it too; -1 for none
        self._met = -1
        first = reader.first_offset()
        if begin is None:
            walk = TopicWalk(f"topic {name}", reader)
            begin = first if sequence < 0 else walk.find(lambda entry: entry.sequence > sequence)
        #: offset of the first record that is told; the one in front tells only what that one must follow
        self._begin = self._next = begin
        reader.seek(max(first, begin - 1))

    @property
    def left(self) -> int:
        """Tell the offset of the first record that was not given out."""
        return self._waiting[0][3].offset if self._waiting else self._next

    def until(self, sequence: int) -> list[LaneEntry]:
        """Return its records up to this sequence, of which it holds one. Raises TopicError when it does not."""
        deadline = time.monotonic() + RECORD_SECONDS
        found: list[LaneEntry] = []
        while self.read < sequence or (self._waiting and self._waiting[0][0] <= sequence):
            if not self._waiting:
                self._fill(sequence, deadline)
            elif self._waiting[0][0] > sequence:
                raise self._lost(sequence)
            else:
                found.append(self._waiting.popleft())
                self.read = max(self.read, found[-1][0])
        return found

    def _fill(self, sequence: int, deadline: float) -> None:
        records = self._reader.read(WAIT_SECONDS)
        if not records and time.monotonic() > deadline:
            raise TopicLinkError(
                f"{self._lacks(sequence)}, within {RECORD_SECONDS:.0f} s; look whether its server is well"
            )
        if not records and not self._reader.return_seconds:
            raise self._lost(sequence)
        for record in records:
            self._take(record, f"topic {self.name} offset {record.offset}")

    def _take(self, record: Record, where: str) -> None:
        """Let a record wait that stands in its place; raise TopicError where that is not what its route says."""
        self._next = max(self._next, record.offset + 1)
        head = head_of(record.value, where)
        closing = closing_of(record, where) if head.heartbeat else None
        # a repeat says nothing, but for a closing, which has the sequence of an operation that may be here too
        new = head.sequence > self._last or (head.heartbeat and head.sequence == self._last)
        if new and record.offset >= self._begin:
            if not head.heartbeat:
                self._require_place(require_route(record, self._journal, where), where)
                self._last = head.sequence
            elif closing is not None:
                self._require_place(closing[0], where)
            self._waiting.append((head.sequence, head.heartbeat, self.name, record))
        if not head.heartbeat:
            self._met = max(self._met, head.sequence)
        elif closing is not None:
            self._met = max(self._met, closing[0].follows)

    def _require_place(self, route: Route, where: str) -> None:
        """Raise TopicError when an operation is missing before what has this route, or one stands there besides."""
        if route.follows > self._last:
            raise SequenceError(f"{where} follows sequence {route.follows}, which the topic has lost; {ADVICE}")
        if route.follows < self._met:
            raise SequenceError(
                f"{where} follows sequence {route.follows}, and the topic holds sequence {self._met} before it, which"
                f" its producer did not append there; {ADVICE}"
            )

    def _lost(self, sequence: int) -> TopicError:
        return OffsetGoneError(f"{self._lacks(sequence)}: retention removed it, or it was lost; {ADVICE}")

    def _lacks(self, sequence: int) -> str:
        return f"topic {self.name} does not hold sequence {sequence}, which the journal says it does"

    def close(self) -> None:
        self._reader.close()
