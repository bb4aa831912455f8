"""Names moments of a live leader: those that a snapshot shows, and the one at which a copy ends.

A position is no bound of what rows show: a commit may be in the binlog and not show for a while. What surely shows is
what `LeaderConnection.visible` tells; what surely is in the binlog is what a position read after the rows tells.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from typing import TypeVar
from urllib.parse import unquote

from cdc_consumer.copy.state import CopyMoment
from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.servers.pair import LeaderConnection
from cdc_consumer.sql import literals
from cdc_consumer.sql.positions import Mark, mark_of
from shared.errors import LeaderError, OffsetGoneError
from shared.events import Position
from shared.recovery import Stopping, sleep
from shared.topic.walk import Entry, TopicWalk, place

logger = logging.getLogger(__name__)

T = TypeVar("T")
#: seconds a commit may hang before the copy gives up
COMMIT_SECONDS = 300.0
#: seconds between two looks at the topic, and after which the log says that nothing comes
LOOK_SECONDS, TELL_SECONDS = 0.1, 30.0
#: seconds LOCK TABLES may wait for statements that write; those behind it wait as long
LOCK_SECONDS = 5
_GTID = re.compile(r"SET @@SESSION\.GTID_NEXT= '([^']+:\d+)'")


class Ended(Exception):
    """Tells that the program was asked to stop."""


def snapshot(leader: LeaderConnection, look: Callable[[], T]) -> T:
    """Return what `look` makes of a snapshot, which the leader's connection has open meanwhile.

    A lost link is an error at once. Raises AuditError and its kinds, and what `look` does.
    """
    with leader.at_once():
        leader.rows("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        leader.rows("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
        found = look()
        leader.rows("COMMIT")
        return found


def shown(
    leader: LeaderConnection, table: TableName, look: Callable[[], T], *, locked: bool
) -> tuple[T, Position, Position]:
    """Return what `look` makes of a snapshot, and the two positions between which the table stands as it shows.

    All transactions that end up to the first do show; of those from the second on none does. They are the same where
    the table was `locked` against writes while the snapshot was begun; else an event of the table in between, if the
    topic holds one, tells that nobody knows which moment that was.
    """
    found: list[Position] = []
    if locked:
        beside = LeaderConnection(leader.address)

        def under_lock() -> T:
            found.append(beside.position())
            beside.rows("UNLOCK TABLES")
            return look()

        try:
            with beside.at_once():
                beside.rows(f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
                beside.rows(f"LOCK TABLES {table.sql} READ")
                result = snapshot(leader, under_lock)
        finally:
            beside.close()
        return result, found[0], found[0]
    before = leader.visible().position

    def then() -> T:
        found.append(leader.position())
        return look()

    result = snapshot(leader, then)
    return result, before, found[0]


def executed(leader: LeaderConnection, *, gtids: bool) -> tuple[Position, str]:
    """Return a position behind all that was read so far, and what the leader had executed there.

    That is "" without `gtids`. What is in `gtid_executed` and not yet at the position is read off the binlog: one GTID
    too many would be a transaction that every follower passes over in silence.
    """
    if not gtids:
        return leader.position(), ""
    deadline = time.monotonic() + COMMIT_SECONDS
    while True:
        visible = leader.visible()
        if not visible.doubt:
            break
        if time.monotonic() > deadline:
            raise LeaderError(f"{visible.doubt}; nobody knows which transactions it has executed: look at its commits")
        time.sleep(LOOK_SECONDS)
    ((all_of_them,),) = leader.rows("SELECT @@GLOBAL.gtid_executed")
    later = ",".join(_gtids(leader, visible.position, leader.position()))
    ((exact,),) = leader.rows(f"SELECT GTID_SUBTRACT({literals.text(all_of_them)}, {literals.text(later)})")
    return visible.position, "".join(str(exact).split())


def _gtids(leader: LeaderConnection, start: Position, end: Position) -> Iterator[str]:
    """Yield the GTIDs of the transactions that begin between two positions."""
    files = [start.file]
    if start.file != end.file:
        names = [str(row[0]) for row in leader.rows("SHOW BINARY LOGS")]
        files = names[names.index(start.file) : names.index(end.file) + 1]
    for file in files:
        offset = start.offset if file == start.file else 4
        if file == end.file and offset >= end.offset:
            continue
        for _, at, _, _, _, info in leader.rows(f"SHOW BINLOG EVENTS IN {literals.text(file)} FROM {offset:d}"):
            if file == end.file and at >= end.offset:
                break
            if gtid := _GTID.match(info):
                yield gtid[1]


def wait_for_topic(walk: TopicWalk, position: Position, stopping: Stopping) -> int:
    """Wait until the topic holds all up to a position of the leader; return the offset behind the last of it.

    Raises Ended.
    """
    began = told = time.monotonic()
    while not _holds(walk, position):
        if stopping():
            raise Ended
        if time.monotonic() - told > TELL_SECONDS:
            told = time.monotonic()
            logger.warning(
                "%s does not hold all up to %s of the leader since %.0f s: does cdc-producer run?",
                walk.name, position, told - began,
            )  # fmt: skip
        sleep(LOOK_SECONDS, stopping)
    edge = place(position)
    return walk.find(lambda entry: entry.place > edge or (entry.place == edge and not entry.heartbeat))


def _holds(walk: TopicWalk, position: Position) -> bool:
    last = walk.last()
    return last is not None and last.edge >= place(position)


def refuse_late(walk: TopicWalk, begin: Position) -> None:
    """Raise OffsetGoneError unless the topic reaches back to a position of the leader."""
    first = walk.first()
    if first is not None and first.place <= place(begin):
        return
    raise OffsetGoneError(
        f"{walk.name} does not reach back to {begin} of the leader, from where on the copy needs it; start it empty"
        ' with start = "copy" in the producer\'s profile; where it has begun already, run on the leader: FLUSH BINARY'
        " LOGS, and this again; where its retention has removed that, keep records longer, and copy with --replace"
    )


def end_at(walk: TopicWalk, stop: int, end: Position, gtids: str) -> CopyMoment:
    """Return the moment of the last record before an offset; `end` is the leader's position then."""
    if walk.by_sequence and stop <= walk.first_offset():
        return CopyMoment(Mark(stop - 1, stop - 1, end.file, end.offset, None, None), gtids)
    return CopyMoment(mark_of(walk.at(stop - 1).decode(), stop - 1), gtids)


def since(walk: TopicWalk, begin: Position) -> int:
    """Return the offset of the first record that stands at or behind a position of the leader.

    Raises OffsetGoneError when the topic does not reach back to it any more.
    """
    refuse_late(walk, begin)
    return walk.since(place(begin))


class TableNames:
    """Reads of records whose rows they hold."""

    def __init__(self) -> None:
        self._known: dict[bytes, TableName] = {}

    def of(self, entry: Entry) -> TableName:
        """Return the table of flv://resource/database/table; of a statement one that cannot be."""
        name = self._known.get(entry.uri)
        if name is None:
            parts = [unquote(part) for part in json.loads(b'"' + entry.uri + b'"').split("/")]
            name = self._known[entry.uri] = TableName(*parts[3:5]) if len(parts) > 4 else TableName("", "")
        return name


def entries(walk: TopicWalk, start: int, stop: int) -> Iterator[Entry]:
    """Yield the operations between two offsets."""
    return (entry for entry in walk.walk(start, stop) if not entry.heartbeat)
