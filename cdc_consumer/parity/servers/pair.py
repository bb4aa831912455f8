"""Holds the leader and the follower of an audit: how far each of them is, and waiting for one to reach the other.

A position read *after* rows were read from the leader is a fence: MySQL writes its binlog before a change shows in
the rows, so whatever they showed lies before it. (`gtid_executed` is not: it grows after the change shows.)

For the same reason a position read *before* the rows is no bound of what they show: a commit may hang between the
binlog and the rows, while a disk stalls or a semi-synchronous replica does not answer. See `LeaderConnection.visible`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from cdc_consumer.parity.model import Omission
from cdc_consumer.parity.profile import ParityProfile
from cdc_consumer.parity.servers.connection import Select, ServerConnection
from cdc_consumer.sql import literals
from cdc_consumer.sql.positions import Mark, PositionTables, mark_from
from shared.errors import AuditError, TableMovedError
from shared.events import Position
from shared.mysql import binlog_end, error_number, quote_name
from shared.profile import Database

T = TypeVar("T")
_UUID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
#: MySQL's number for it
NO_SUCH_TABLE = 1146
#: seconds between two looks at the follower, or at the leader's commits
POLL = 0.02
#: where the first binlog event of a file starts, in bytes
FIRST_OFFSET = 4
#: seconds after which a commit hangs
COMMIT_SECONDS = 1.0

PLAIN = "without GTIDs nothing tells which part of the leader's current binlog file its rows show"
MOVED_ON = "the follower has moved since the audit: run cdc-parity --repair, or audit again with the consumer stopped"
HANGS = "a commit hangs on the leader: its binlog holds more than its rows show"


class Visible(NamedTuple):
    """Names a position of the leader whose rows show everything that was written before it."""

    position: Position
    #: why it is only the start of the current binlog file; "" when it is where the binlog ended
    doubt: str


class LeaderConnection(ServerConnection):
    """Connects to the leader, and tells how far its binlog is and how busy the server is."""

    def __init__(self, address: Database, *, statement_seconds: float = 600.0, slots: int = 0) -> None:
        super().__init__("leader", address, statement_seconds=statement_seconds, slots=slots)

    def position(self) -> Position:
        """Ask where the leader writes its binlog next."""
        found = self.use(binlog_end)
        if found is None:
            raise AuditError(f"the {self} writes no binlog, by which both sides are compared; start it with log_bin")
        return Position(*found)

    def visible(self) -> Visible:
        """Ask up to which position the leader's binlog shows to those who read its rows from now on.

        With GTIDs a transaction in the binlog that does not show is one of `gtid_owned`, so those are waited for. What
        hangs, and without GTIDs everything, may be anywhere in the current file but not in an earlier one: MySQL
        begins a file, and tells of it, when all that is in the last one shows.
        """
        position = self.position()
        waiting = self._owned()
        deadline = time.monotonic() + COMMIT_SECONDS
        while waiting and time.monotonic() < deadline:
            time.sleep(POLL)
            still = self._owned()
            waiting = None if still is None else waiting & still
        if waiting is not None and not waiting:
            return Visible(position, "")
        return Visible(Position(position.file, FIRST_OFFSET), PLAIN if waiting is None else HANGS)

    def _owned(self) -> frozenset[str] | None:
        """Ask which GTIDs are in use, each with its thread; None when a transaction may have no GTID."""
        ((mode, owned),) = self.rows("SELECT @@GLOBAL.gtid_mode, @@GLOBAL.gtid_owned")
        if mode != "ON":
            return None
        # nothing stands between the last thread and the next UUID: 'uuid:5#12:4#11uuid:tag:7#13'
        _, *parts = _UUID.split(owned)
        groups = zip(parts[::2], parts[1::2], strict=True)
        found = frozenset(f"{uuid}:{part}" for uuid, numbers in groups for part in numbers.split(":") if "#" in part)
        return found or frozenset(filter(None, [owned]))

    def threads_running(self) -> int:
        """Ask how many threads the leader runs at this moment."""
        return int(self.rows("SHOW GLOBAL STATUS LIKE 'Threads_running'")[0][1])


class FollowerConnection(ServerConnection):
    """Connects to the follower, and tells how far the consumer has applied the leader's binlog."""

    def __init__(
        self, address: Database, system_database: str, topic: str | None, *, statement_seconds: float = 600.0,
        slots: int = 0,
    ) -> None:  # fmt: skip
        """`topic` is the name of the one whose position is asked for; None stands for the only one there is."""
        super().__init__("follower", address, statement_seconds=statement_seconds, slots=slots)
        self._database = system_database
        self._topic = topic
        self._found: PositionTables | None = None

    def ahead(self, ask: Select) -> Position | None:
        """Ask up to where the follower may have applied some transactions behind `applied`; None for nowhere."""
        return max((Position(file, int(offset)) for file, offset in ask(self._tables().read_ahead())), default=None)

    def applied(self, ask: Select | None = None) -> Mark:
        """Ask how far the follower is, inside the snapshot of `ask` when one is given.

        It has applied everything up to there.

        Raises AuditError when the follower holds no position, or several and no topic says which.
        """
        return mark_from((ask or self.rows)(self._tables().read())[0])

    def still(self, mark: Mark, executed: str) -> str:
        """Return a statement that fails, with a sentence, once the follower has moved on from there.

        mark:      where the consumer was
        executed:  the follower's gtid_executed then, by which a statement shows that commits before its position

        Heartbeats move neither, and transactions of the follower's own are not the consumer's.
        """
        tables = self._tables()
        since = f"GTID_SUBTRACT(@@GLOBAL.gtid_executed, {literals.text(executed)})"
        there = (
            f"(SELECT COUNT(*) = 1 AND MAX(p.sequence) = {literals.integer(mark.sequence)} FROM ({tables.read()}) AS p)"
            f" AND NOT EXISTS ({tables.read_ahead()}) AND NOT EXISTS ({tables.read_intent()})"
            f" AND REGEXP_LIKE({since}, CONCAT('^(', @@GLOBAL.server_uuid, '[^,]*)?$'))"
        )
        # no function but this one tells a whole sentence; 128 characters of it
        return f"SELECT UUID_TO_BIN(IF({there}, UUID(), {literals.text(MOVED_ON)})) INTO @still"

    def omissions(self) -> list[Omission]:
        """Ask which transactions an operator has left out; none where the consumer has not yet made a table for them.

        Raises AuditError as `applied` does.
        """
        try:
            found = self.rows(self._tables().read_all_left_out())
        except TableMovedError as error:
            if error_number(error.__cause__ or error) != NO_SUCH_TABLE:
                raise
            return []
        return [Omission(first, last, f"{file}:{offset}", *rest) for first, last, file, offset, *rest in found]

    def _tables(self) -> PositionTables:
        if self._found is None:
            self._found = PositionTables(self._database, self._find_topic())
        return self._found

    def _find_topic(self) -> str:
        table = f"{quote_name(self._database)}.`position`"
        try:
            topics = [name for (name,) in self.rows(f"SELECT DISTINCT topic FROM {table}")]
        except TableMovedError:
            topics = []
        topic = topics[0] if self._topic is None and len(topics) == 1 else self._topic
        if topic is None or topic not in topics:
            which = f"topic {topic}" if topic is not None else "one topic; name it in [topic]"
            raise AuditError(
                f"{table} on the {self} has no position of {which}"
                f" (it has {', '.join(topics) or 'none'}): has the consumer ever run there?"
            )
        return topic


class Pair:
    """Both servers; each of the two connections is used by one thread at a time."""

    def __init__(self, leader: LeaderConnection, follower: FollowerConnection) -> None:
        self.leader = leader
        self.follower = follower

    def close(self) -> None:
        """Close both connections; what uses them later opens them again."""
        self.leader.close()
        self.follower.close()

    def both(self, ask: Callable[[ServerConnection], T]) -> tuple[T, T]:
        """Ask both servers at the same time; return the leader's answer and the follower's."""
        with ThreadPoolExecutor(1) as beside:
            leader = beside.submit(ask, self.leader)
            follower = ask(self.follower)
            return leader.result(), follower

    def lag(self) -> float | None:
        """Return how many seconds the follower is behind; None when it has applied nothing yet."""
        end = self.leader.position()
        ((now,),) = self.leader.rows("SELECT UNIX_TIMESTAMP(NOW(6))")
        mark = self.follower.applied()
        if _has_reached(mark, end):
            return 0.0
        return None if mark.committed is None else max(float(now) - mark.committed / 1e6, 0.0)

    def wait_until_applied(
        self, edge: Position, seconds: float, stopped: Callable[[], bool] = lambda: False
    ) -> Mark | None:
        """Return the follower's mark once it has reached `edge`; None when it does not within `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            mark = self.follower.applied()
            if _has_reached(mark, edge):
                return mark
            if time.monotonic() > deadline or stopped():
                return None
            time.sleep(POLL)


def open_pair(profile: ParityProfile, *, with_slots: bool = False) -> Pair:
    """Make the two connections of a profile, which open when they are first used.

    `with_slots`: they take part in the profile's limits on connections that read rows, see `take_slot`.
    """
    limits = profile.limits
    seconds = limits.statement_seconds
    leader_slots, follower_slots = (limits.leader_connections, limits.follower_connections) if with_slots else (0, 0)
    topic = None if profile.topic is None else profile.topic.identity
    return Pair(
        LeaderConnection(profile.leader, statement_seconds=seconds, slots=leader_slots),
        FollowerConnection(
            profile.follower, profile.follower.system_database, topic, statement_seconds=seconds, slots=follower_slots
        ),
    )


def _has_reached(mark: Mark, edge: Position) -> bool:
    return mark.position is not None and edge <= mark.position
