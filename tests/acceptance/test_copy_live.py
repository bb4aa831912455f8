"""Copies of a leader that is written all the time, killed at every point: the consumer goes on strictly, and all is equal."""

from __future__ import annotations

import random

import pytest
from fix_copy import Copies, Copying
from fix_crash import KILLS
from kit.swapper import Swapper, fill


@pytest.fixture(params=["gtids", "plain"])
def live(request: pytest.FixtureRequest, copies: Copies, database: str) -> Copying:
    """A leader with data, whose producer runs; an empty follower."""
    plain = request.param == "plain"
    leader = request.getfixturevalue("plain_leader" if plain else "leader")
    leader.execute(f"CREATE DATABASE {database}")
    fill(leader, database)
    return copies(plain=plain, source=leader)


def test_while_it_is_written(live: Copying, seed: int) -> None:
    with Swapper(live.leader, live.database, seed) as writer:
        writer.go_on(20)
        live.copy()
        live.replication.consumer.start()
        writer.go_on(40, live.replication.consumer)
    live.replication.catch_up()
    live.replication.same()
    live.same_gtids()


#: functions at which a copy is killed, in the order in which it comes to them: before or after their call of a number
POINTS = (
    ("state:CopyState.begin", "after", 1),
    ("state:CopyState.planned", "before", 1),
    ("rounds:Rounds._plan_table", "after", 2),
    ("state:CopyState.plan", "before", 2),
    ("moment:shown", "after", 1),
    ("rows.load:Writer.fill", "after", 3),
    ("rows.load:Writer.fill", "before", 9),
    ("rows.load:Writer.expect", "after", 5),
    ("rows.task:_copy", "after", 8),
    ("moment:executed", "after", 1),
    ("disturbed:Disturbed.unsettled", "after", 1),
    ("window:Window._write", "before", 1),
    ("window:Window._write", "after", 1),
    ("window:Window.insert", "after", 2),
    ("window:Window.settle_copies", "after", 1),
    ("state:CopyState.ending", "after", 1),
    ("finish:_run", "after", 1),
    ("finish:_run", "after", 2),
    ("state:CopyState.step_done", "after", 1),
    ("state:CopyState.moment", "after", 1),
    ("state:CopyState.done", "before", 1),
    ("state:CopyState.done", "after", 1),
)
#: with GTIDs, before the last two
GTID_POINTS = (("finish:take_gtids", "before", 1), ("finish:take_gtids", "after", 1))
#: kills at random moments while ranges are copied: within so many seconds after one of the first ranges was begun.
#: All kills together leave most of the ranges open, on any machine: see AHEAD in kit/kill_at.py
RANDOM_KILLS, KILL_RANGES, KILL_SECONDS = 3, 12, 0.05
#: changes of the leader that a window has at least, so that it has rows of several tables
WINDOW_CHANGES = 20


def test_killed_at_every_point(live: Copying, seed: int, kills: int) -> None:
    """Once through all points; with --kills of more than that as often as it takes, each time anew."""
    rng = random.Random(seed)
    with_gtids = live.leader.value("SELECT @@GLOBAL.gtid_mode") == "ON"
    points = [*POINTS[:-2], *(GTID_POINTS if with_gtids else ()), *POINTS[-2:]]
    with Swapper(live.leader, live.database, seed) as writer:
        for number, (target, when, count) in enumerate(points * -(-kills // KILLS)):
            if target.startswith("window:"):
                writer.go_on(WINDOW_CHANGES)
            live.killed(target, when, count, arguments=["--replace"] if number and number % len(points) == 0 else [])
            if target == "rows.load:Writer.fill":
                for _ in range(RANDOM_KILLS):
                    seconds = rng.uniform(0.0, KILL_SECONDS)
                    live.killed("rows.task:_copy", f"{seconds:.3f}", rng.randint(1, KILL_RANGES))
            if number % 6 == 0:
                refused = live.replication.consume()
                assert refused.returncode == 1 and "the copy that fills the follower" in refused.stderr, refused.stderr
        live.replication.consumer.start()
        writer.go_on(40, live.replication.consumer)
    live.replication.catch_up()
    live.replication.same()
    live.same_gtids()
