"""Appends to the topics of one producer, which its routes name: a kill at any instant loses and repeats nothing.

What is appended at once goes to the other topics first, each durable before the next, and then to the journal, with a
mark behind it. So the last mark tells what is whole, and all that any topic holds beyond it is the beginning of what
was under way: the producer makes that again from the binlog, and what a topic has already is compared, not written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from urllib.parse import unquote

from shared.errors import TopicError, TopicLinkError
from shared.topic import Record, Sealed, TopicReader, TopicWriter
from shared.topic.lanes import WrittenLane
from shared.topic.marks import (
    Head,
    JournalMark,
    Routes,
    closing_of,
    closing_record,
    head_of,
    mark_of,
    mark_record,
    marked_heartbeat,
    require_journal,
    route_of,
)
from shared.topic.record import ALTERED_ADVICE, enclose
from shared.topic.walk import backwards

#: the journal's marks name all topics this often (seconds)
ROSTER_SECONDS = 10.0
#: names of tables whose topics are remembered
MAX_TABLES = 100_000
#: what is told apart from operations, and goes to the control topic
CONTROL, BEAT = b'"operation":{"Control":', b'"operation":{"Control":{"Heartbeat":'


class RoutedWriter:
    """Writes the topics of one producer as if they were one. Of no use after an error: open a new one."""

    def __init__(
        self, routes: Routes, control: str | None, writers: Callable[[str], TopicWriter],
        readers: Callable[[str], TopicReader], most_open: int,
    ) -> None:  # fmt: skip
        """`writers` and `readers` open a topic by its name; `most_open` stay open. Raises TopicError."""
        self._routes = routes
        self._most_open = most_open
        self._writers = writers
        self._readers = readers
        self._control = control
        self._failed = False
        #: topics of a row's table by its uri
        self._homes: dict[bytes, str] = {}
        self._lanes: dict[str, WrittenLane] = {}
        #: sequence of the last record that each of them got since the journal's last mark, and ever
        self._told: dict[str, int] = {}
        self._put_last: dict[str, int] = {}
        #: place of the last record in the control topic
        self._control_at = (-1, -1)
        self._roster_at = float("-inf")
        name = routes.default
        writer = writers(name)
        try:
            self._journal = WrittenLane(name, writer, -1, [])
            require_journal(name, writer.last())
            self._resume()
        except BaseException:
            writer.close()
            raise

    def _resume(self) -> None:
        """Find the journal's last mark, and what the journal holds behind it."""
        name, writer = self._journal.name, self._journal.writer
        self._roster: dict[str, None] = {}
        last = writer.last()
        found: JournalMark | None = None
        tail: list[Head] = []
        left, roster_known = 0, False
        for record in () if last is None else self._backwards(name):
            mark = mark_of(record, self._where(name, record))
            if mark is None:
                head = head_of(record.value, self._where(name, record))
                if not head.heartbeat and route_of(record.value) is None:
                    break  # nothing routed yet
                if not head.heartbeat and (found is None or left > 0):
                    tail.append(head)
                    left -= 1
            elif found is None:
                found, left = mark, mark.beyond
            if mark is not None and mark.roster is not None and not roster_known:
                self._roster, roster_known = dict.fromkeys(mark.roster), True
            if roster_known and left <= 0:
                break
        if found is None:
            found = self._begin(last)
        self._mark = found._replace(after=found.sequence)
        self._open = set(found.open)
        self._journal.tail = [head for head in reversed(tail) if head.sequence > found.sequence]
        self._journal.sequence = found.own

    def _begin(self, last: Record | None) -> JournalMark:
        """Make the first mark; what was there before had no routes, and its last record comes in front once more."""
        name = self._journal.name
        if last is None:
            head, before = Head(b"flv://", -1, b"binlog.000000", 0, True, None), []
        else:
            head = head_of(last.value, self._where(name, last))
            before = [enclose(last.value, int(last.checksums), last.binlog)]
        opened = (name,) if not head.heartbeat and head.end is None else ()
        mark = JournalMark(head.sequence, head.sequence, head.sequence, 0, {}, opened, name, ())
        self._journal.writer.append([*before, mark_record(head, name, mark)])
        return mark

    def last(self) -> Record | None:
        """Return the last record that is whole: a heartbeat behind the last operation, or that."""
        name, sequence = self._journal.name, self._mark.sequence
        for record in self._backwards(name):
            where = self._where(name, record)
            head = head_of(record.value, where)
            if head.sequence < sequence or (not head.heartbeat and head.sequence == sequence):
                break
            tells_position = head.heartbeat and mark_of(record, where) is None and closing_of(record, where) is None
            if tells_position and head.sequence == sequence:
                return record
        if sequence < 0:
            return None
        for record in self._backwards(self._mark.last):
            head = head_of(record.value, self._where(self._mark.last, record))
            if not head.heartbeat and head.sequence == sequence:
                return record
        raise TopicError(f"topic {self._mark.last} does not hold sequence {sequence}, as its journal {name} says")

    def append(self, records: Sequence[Sealed]) -> None:
        """Append all records in order; they are durable on return. After an error open a new writer."""
        if self._failed:
            raise TopicLinkError(f"topic {self._journal.name}: this writer failed; open a new one")
        self._failed = True
        head = None
        for record in records:
            if CONTROL in record.value[:1000] and self._control is not None:
                self._put_control(self._control, record)
                continue
            head = head_of(record.value, "a record that is to be appended")
            if head.heartbeat:
                self._journal.pending.append(marked_heartbeat(record, self._journal.name))
            else:
                self._put(record, head)
        self._flush(head)
        self._failed = False

    def _put(self, record: Sealed, head: Head) -> None:
        topics = self._topics(record.value, head)
        for name in topics:
            self._lane(name).put(record, head, self._journal.name)
            self._told[name] = self._put_last[name] = head.sequence
        self._open.update(topics)
        if head.end is not None:
            for name in sorted(self._open.difference(topics)):
                lane = self._lane(name)
                if not lane.tail:  # else it has that too
                    lane.pending.append(closing_record(head, self._journal.name, lane.sequence))
                self._told[name] = head.sequence
            self._open.clear()
        self._mark = self._mark._replace(sequence=head.sequence, last=topics[0])

    def _flush(self, head: Head | None) -> None:
        """Make all durable, the journal last; `head` is that of the last record for a follower."""
        for lane in self._lanes.values():
            lane.flush()
        if head is None:
            return
        now, roster = time.monotonic(), None
        if now - self._roster_at > ROSTER_SECONDS:
            self._roster_at, roster = now, tuple(self._roster)
        self._told.pop(self._journal.name, None)
        mark = self._mark._replace(
            own=self._journal.sequence, beyond=len(self._journal.tail), topics=self._told,
            open=tuple(sorted(self._open)), roster=roster,
        )  # fmt: skip
        self._journal.pending.append(mark_record(head, self._journal.name, mark))
        self._journal.flush()
        self._mark = mark._replace(after=mark.sequence)
        self._told = {}

    def _topics(self, value: bytes, head: Head) -> list[str]:
        """The topics of an operation: that of its table, those of the tables a Query names, or all."""
        home = self._homes.get(head.uri)
        if home is not None:
            return [home]
        parts = [unquote(part) for part in json.loads(b'"%s"' % head.uri)[len("flv://") :].split("/")]
        if len(parts) == 3:
            if len(self._homes) >= MAX_TABLES:
                self._homes.clear()
            home = self._homes[head.uri] = self._routes.topic(parts[1], parts[2])
            return [home]
        tables = json.loads(value).get("tables")
        if tables is not None:
            return self._routes.topics((database, table) for database, table in tables)
        return list(dict.fromkeys((self._routes.default, *self._roster)))

    def _lane(self, name: str, control: bool = False) -> WrittenLane:
        if name == self._journal.name:
            return self._journal
        if name == self._control and not control:
            raise TopicError(f"topic {name} is control, and [topic.routes] sends a table's events there: rename one")
        lane = self._lanes.pop(name, None)
        if lane is None:
            while len(self._lanes) >= self._most_open:
                oldest = self._lanes.pop(next(iter(self._lanes)))
                oldest.flush()
                oldest.writer.close()
            lane = self._open_lane(name, control)
        self._lanes[name] = lane  # the last one used stands last
        return lane

    def _open_lane(self, name: str, control: bool) -> WrittenLane:
        if not control and name not in self._roster:
            self._roster[name] = None
            self._roster_at = float("-inf")
        writer = self._writers(name)
        try:
            if control:
                for record in self._backwards(name):
                    if CONTROL not in record.value[:1000]:
                        raise TopicError(f"topic {name}, which is to be control, holds events; name another one")
                    if BEAT not in record.value:
                        self._control_at = head_of(record.value, self._where(name, record)).place
                        break
                return WrittenLane(name, writer, -1, [])
            sequence = self._last_routed(name, writer.last())
            known = max(self._mark.after, self._put_last.get(name, -1))
            if sequence < self._put_last.get(name, -1):
                raise TopicError(f"topic {name} lost what was appended to it up to sequence {known}; {ALTERED_ADVICE}")
            return WrittenLane(name, writer, sequence, [] if sequence <= known else self._tail(name, known))
        except BaseException:
            writer.close()
            raise

    def _put_control(self, name: str, record: Sealed) -> None:
        """Take what is only told, unless the control topic has it from before."""
        lane = self._lane(name, control=True)
        place = head_of(record.value, "a record that is to be appended").place
        if BEAT in record.value:
            lane.pending.append(record)
        elif place > self._control_at:
            self._control_at = place
            lane.pending.append(record)

    def _last_routed(self, name: str, record: Record | None) -> int:
        """Sequence of a topic's last operation, -1 for none. Raises TopicError unless this producer wrote it."""
        if record is None:
            return -1
        where = self._where(name, record)
        closing = closing_of(record, where)
        route = route_of(record.value) if closing is None else closing[0]
        if route is None or route.of != self._journal.name:
            whose = "no producer with routes" if route is None else f"the producer of topic {route.of}"
            raise TopicError(
                f"topic {name}, which [topic.routes] names, was written by {whose}; name another one there, or move it"
                " away"
            )
        return head_of(record.value, where).sequence if closing is None else route.follows

    def _tail(self, name: str, known: int) -> list[Head]:
        """What a topic holds beyond a sequence: it is put once more, and is the same then."""
        tail = []
        for record in self._backwards(name):
            head = head_of(record.value, self._where(name, record))
            if head.sequence <= known:
                break
            if not head.heartbeat:
                tail.append(head)
        return tail[::-1]

    def _backwards(self, name: str) -> Iterator[Record]:
        """A topic's records, the newest first."""
        with closing(self._readers(name)) as reader:
            yield from backwards(reader, name)

    @staticmethod
    def _where(name: str, record: Record) -> str:
        return f"topic {name} offset {record.offset}"

    def close(self) -> None:
        """Close every topic."""
        self._failed = True
        for lane in (*self._lanes.values(), self._journal):
            lane.writer.close()
