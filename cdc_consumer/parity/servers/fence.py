"""How far leader and follower are, and waiting for one to reach the other.

A position read *after* rows were read from the leader is a fence: MySQL writes its binlog before a change becomes
visible, so whatever the rows showed lies before it. (`gtid_executed` is not: it grows after the change is visible.)
"""

from __future__ import annotations

import time
from collections.abc import Callable

from cdc_consumer.parity.servers.connection import Reader
from cdc_consumer.sql.positions import Mark, mark_from
from shared.events import Position

#: seconds between two looks at the follower
POLL = 0.02


def leader_position(leader: Reader) -> Position:
    return Position.parse(leader.position())


def reached(mark: Mark, fence: Position) -> bool:
    return bool(mark.file) and fence <= Position(mark.file, mark.leader_offset)


def applied(follower: Reader, position_sql: str) -> Mark:
    """How far the follower is; `position_sql` is from servers.position_query."""
    return mark_from(follower.rows(position_sql)[0])


def wait_until_applied(
    follower: Reader, position_sql: str, fence: Position, seconds: float, stopped: Callable[[], bool] = lambda: False
) -> Mark | None:
    """The follower's mark once it has reached the fence; None when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        mark = applied(follower, position_sql)
        if reached(mark, fence):
            return mark
        if time.monotonic() > deadline or stopped():
            return None
        time.sleep(POLL)


def lag_seconds(leader: Reader, follower: Reader, position_sql: str) -> float | None:
    """How far the follower is behind; None when it has applied nothing yet."""
    end = leader_position(leader)
    ((now,),) = leader.rows("SELECT UNIX_TIMESTAMP(NOW(6))")
    mark = applied(follower, position_sql)
    if reached(mark, end):
        return 0.0
    return None if mark.committed is None else max(float(now) - mark.committed / 1e6, 0.0)
