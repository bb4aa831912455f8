"""Reads the rows of one range from the leader as text that the follower takes, thousands in one answer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from cdc_consumer.copy.moment import Ended
from cdc_consumer.copy.profile import CopyLimits
from cdc_consumer.copy.rows import documents, texts
from cdc_consumer.copy.rows.typed_rows import TypedRow, refusal, typed_rows
from cdc_consumer.parity.model import Key, Shape
from cdc_consumer.parity.rows.ranges import Range, TableQueries, inside
from cdc_consumer.parity.servers.pair import LeaderConnection
from shared.errors import LeaderError

logger = logging.getLogger(__name__)

#: rows of one answer at most, and bytes that it should have at most
LEAF_ROWS, LEAF_BYTES = 2000, 4 << 20
#: bytes beyond which the leader cuts an answer, less when its packets are smaller
MOST_BYTES = 64 << 20
#: rows of the first answer of a table whose rows may be long
FIRST_ROWS = 50
_LONG = frozenset({"text", "mediumtext", "longtext", "blob", "mediumblob", "longblob", "json", "geometry", "vector"})
#: seconds for which a server waits for the other one, which is read slowly or written while something is locked
SLOW_SECONDS = 3600
#: seconds between two looks at a busy leader
LOOK_SECONDS = 1.0


class Pace:
    """Limits how fast one reader of the leader is, as the profile limits all of them."""

    #: rows that all readers of this process have read, about: several threads count here
    read = 0
    #: the tasks of this process are to end: nobody waits any longer
    ending = threading.Event()

    def __init__(self, limits: CopyLimits, leader: LeaderConnection) -> None:
        self.leader = leader
        self._most_threads = limits.leader_threads
        rate = limits.rows_per_second
        self._seconds_a_row = 0.0 if rate is None else limits.connections / rate
        #: rows of one answer at most: who may read few a second reads them second by second, and counts them so
        self.most_rows = LEAF_ROWS if rate is None else max(min(rate // limits.connections, LEAF_ROWS), 1)
        self._looked = time.monotonic()

    def keep(self, count: int) -> None:
        """Wait as long as it must after so many rows. Raises Ended."""
        self._wait(count * self._seconds_a_row)
        Pace.read += count
        told = False
        while time.monotonic() - self._looked > LOOK_SECONDS:
            running = self.leader.threads_running()
            if running <= self._most_threads:
                self._looked = time.monotonic()
                return
            if not told:
                told = True
                logger.info(
                    "waiting while %d threads run on the leader, and [limits] leader_threads is %d", running,
                    self._most_threads,
                )  # fmt: skip
            self._wait(LOOK_SECONDS)

    @staticmethod
    def _wait(seconds: float) -> None:
        if Pace.ending.wait(seconds):
            raise Ended


class LeaderRows:
    """Yields the text of a range's rows, leaf by leaf; then it knows how many there were, and what is odd of them."""

    def __init__(
        self, shape: Shape, part: Range, leader: LeaderConnection, pace: Pace, *, by_load: bool, room: int
    ) -> None:
        """`leader` has a snapshot open; `by_load`: for LOAD DATA, else for INSERT; `room`: see Writer."""
        self.shape = shape
        self.part = part
        #: rows yielded so far, and the error values of ENUMs in them
        self.count = self.zeros = 0
        #: leaves with rows that are not among these, as their documents need more than their text
        self._typed: list[Range] = []
        self._leader = leader
        self._select = leader.rows
        self._pace = pace
        self._queries = TableQueries(shape)
        first = FIRST_ROWS if any(column.data_type in _LONG for column in shape.columns) else LEAF_ROWS
        self._rows = min(first, pace.most_rows)
        self._line, self._join = (texts.line(shape), r"\n") if by_load else (texts.values(shape), ",")
        self._tail = texts.LINE_END if by_load else b""
        self._room = room
        #: bytes that a leaf should have at most
        self._aim = min(LEAF_BYTES, room // 2)

    def digest(self) -> Sequence[Any]:
        """Return number and XOR of the hashes of the leader's rows."""
        return self._select(self._queries.digest(self.part))[0]

    def typed(self) -> Iterator[list[TypedRow]]:
        """Yield the rows that were left out of the lines, some at once; after those."""
        for leaf in self._typed:
            for some in typed_rows(self.shape, leaf, self._select):
                self._pace.keep(len(some))
                yield some

    def __iter__(self) -> Iterator[bytes]:
        return self._leaves() if self.shape.key else self._streamed()

    def _streamed(self) -> Iterator[bytes]:
        """Read a table that has no key to cut it by in one go, row by row."""
        self._select(f"SET SESSION max_execution_time = 0, net_write_timeout = {SLOW_SECONDS}")
        odd = f"{texts.zeros(self.shape)}, {documents.lossy(self.shape)}"
        sql = f"SELECT {odd}, {self._line} FROM {self.shape.name.sql}"
        joined: list[bytes] = []
        size, join = 0, texts.LINE_END if self._tail else b","
        most = min(LEAF_BYTES // 4, self._room)
        for zeros, lossy, text in self._leader.stream(sql):
            if text is None or len(text) > self._room:
                raise self._too_long("leader" if text is None else "follower")
            if lossy:
                raise refusal(self.shape)
            if joined and (size + len(text) > most or len(joined) >= self._pace.most_rows):
                yield self._joined(joined, join)
                joined, size = [], 0
            self.zeros += int(zeros)
            joined.append(text)
            size += len(text) + len(join)
        if joined:
            yield self._joined(joined, join)

    def _joined(self, lines: Sequence[bytes], join: bytes) -> bytes:
        self.count += len(lines)
        self._pace.keep(len(lines))
        return join.join(lines) + self._tail

    def _leaves(self) -> Iterator[bytes]:
        most = self._limit()
        low = self.part.low
        while True:
            end = self._end(low)
            leaf = Range(low, self.part.high if end is None else end)
            ((count, zeros, lossy, text),) = self._select(self._leaf(leaf))
            if text is not None and len(text) >= most:
                if self._rows > 1:
                    self._rows = max(self._rows // 4, 1)
                    continue
                raise self._too_long("follower" if most == self._room else "leader")
            if lossy:
                self._typed.append(leaf)
            if count:
                if text is None:
                    raise self._too_long("leader")
                self.zeros += int(zeros)
                self._keep(int(count), len(text))
                yield text + self._tail
            if end is None:
                return
            low = end

    def _keep(self, count: int, size: int) -> None:
        self.count += count
        if size > self._aim:
            self._rows = max(self._rows // 2, 1)
        elif size < self._aim // 4:
            self._rows = min(self._rows * 2, self._pace.most_rows)
        self._pace.keep(count)

    def _limit(self) -> int:
        """Let the leader join as many lines as packets hold; return the length at which it cuts."""
        ((packet,),) = self._select("SELECT @@GLOBAL.max_allowed_packet")
        most = min(int(packet) - (1 << 10), MOST_BYTES, self._room)
        self._select(f"SET SESSION group_concat_max_len = {most}")
        return most

    def _end(self, low: Key | None) -> Key | None:
        """Return the key at which a leaf that begins behind `low` ends, None of the last one."""
        found = self._select(self._queries.step(Range(low, self.part.high), self._rows))
        return tuple(found[0]) if found else None

    def _leaf(self, leaf: Range) -> str:
        predicates = inside(self.shape.key, leaf)
        where = f" WHERE {' AND '.join(predicates)}" if predicates else ""
        # a line that is NULL is passed over, also where a row is too long for one; the follower's count tells
        lossy = documents.lossy(self.shape)
        return (
            f"SELECT COUNT(*) - IFNULL(SUM({lossy}), 0), IFNULL(SUM(IF({lossy}, 0, {texts.zeros(self.shape)})), 0),"
            f" IFNULL(SUM({lossy}), 0), GROUP_CONCAT(IF({lossy}, NULL, {self._line}) SEPARATOR '{self._join}')"
            f" FROM {self.shape.name.sql}{where}"
        )

    def _too_long(self, server: str) -> LeaderError:
        return LeaderError(
            f"a row of {self.shape.name} is longer, as text, than a packet of the {server}; run there: SET GLOBAL"
            " max_allowed_packet = 1073741824"
        )
