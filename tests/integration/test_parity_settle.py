"""Settling suspects: positions that cannot be trusted, topics that cannot tell, rows that change there and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fix_differing_pair import TABLE, address
from fix_parity import Parity, parity_of
from fix_replication import Replication
from kit.helpers import wait_until
from kit.programs import binlog_end

from cdc_consumer.parity.model import Column, Shape, TableName
from cdc_consumer.parity.servers.connection import Select
from cdc_consumer.parity.servers.pair import FollowerConnection, LeaderConnection, Pair, Visible
from cdc_consumer.parity.state import Suspect
from cdc_consumer.parity.suspects import settle
from cdc_consumer.parity.suspects.hot import Hot
from cdc_consumer.parity.suspects.settle import Interval
from cdc_consumer.parity.witness.history import History
from cdc_consumer.sql.positions import Mark
from docker.local.mysql_servers import Server
from shared.errors import HistoryError, TopicLinkError
from shared.events import Position


@pytest.fixture
def damaged(parity: Parity) -> Parity:
    """Two rows that differ; no topic."""
    parity.leader.execute(TABLE, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')", database=parity.database)
    parity.follower.execute(TABLE, "INSERT INTO t VALUES (1, 'a'), (2, 'x')", database=parity.database)
    return parity


def position(server: Server, *, files: int = 0, more: int = 0) -> str:
    """The server's, moved on."""
    file, _, offset = binlog_end(server).partition(":")
    name, _, number = file.rpartition(".")
    return f"{name}.{int(number) + files:06}:{int(offset) + more}"


@pytest.mark.parametrize("ahead", [{"files": 1}, {"more": 1}], ids=["file", "offset"])
def test_a_follower_that_is_ahead_of_its_leader(damaged: Parity, ahead: dict[str, int]) -> None:
    """The leader's binlog was reset, or it is the leader of somebody else: nothing can be told."""
    damaged.keep_position(position(damaged.leader, **ahead))
    audited = damaged.audit()
    assert (audited.status, audited.differences) == (3, []), audited.out
    assert len(audited.run["undecided"]) == 2
    assert all("is not the leader of this follower" in each["reason"] for each in audited.run["undecided"])


def test_positions_of_a_look_are_in_order() -> None:
    one, two, three = Position("b.999999", 900), Position("b.1000000", 4), Position("b.1000000", 157)
    assert Interval(Visible(one, ""), two, three, two).in_order
    # reset after the first look: the interval ends before it began, and holds no event
    assert not Interval(Visible(three, ""), three, one, three).in_order
    assert not Interval(Visible(one, ""), one, two, three).in_order


def test_a_binlog_that_ends_without_a_transaction(running: Replication) -> None:
    parity = parity_of(running, [running.database], limits={"fence_seconds": 20})
    for statement in (
        "FLUSH BINARY LOGS",
        "CREATE DATABASE IF NOT EXISTS test_elsewhere",
        "DROP DATABASE test_elsewhere",
    ):
        running.leader.execute(statement)
        audited = parity.audit()
        assert (audited.status, len(audited.differences)) == (1, 1), audited.out


@pytest.mark.parametrize("back", [True, False])
def test_there_and_back_again_between_two_looks(
    running: Replication, back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader's row is alike before and after, and a follower that is right shows another one in between."""
    reach, frozen, turns = Pair.wait_until_applied, FollowerConnection.frozen, iter([back])

    def write(note: str) -> None:
        running.play(f"UPDATE t SET note = '{note}' WHERE id = 1")
        running.catch_up()

    def reach_later(self: Pair, *arguments: Any) -> Mark | None:
        if next(turns, False):
            write("there")
            monkeypatch.setattr(FollowerConnection, "frozen", look_and_turn_back)
        return reach(self, *arguments)

    def look_and_turn_back(self: FollowerConnection, look: Callable[[Select], Any]) -> Any:
        monkeypatch.setattr(FollowerConnection, "frozen", frozen)
        seen = frozen(self, look)
        write("a")
        return seen

    monkeypatch.setattr(Pair, "wait_until_applied", reach_later)
    audited = parity_of(running, [running.database]).audit()
    assert (audited.status, len(audited.differences)) == ((0, 0) if back else (1, 1)), audited.err


@pytest.mark.parametrize("error", [HistoryError, TopicLinkError])
def test_a_topic_that_cannot_tell(
    running: Replication, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        running.leader.execute("FLUSH BINARY LOGS")
        raise error("the topic is gone")

    def busy(self: Pair, *arguments: Any) -> Mark | None:
        running.leader.execute("FLUSH BINARY LOGS")
        return reach(self, *arguments)

    reach = Pair.wait_until_applied
    monkeypatch.setattr(settle, "ROUNDS", settle.HOT_ROUNDS + 1)
    monkeypatch.setattr(Pair, "wait_until_applied", busy)
    for method in ("touched", "images_at"):
        monkeypatch.setattr(History, method, fails)
    audited = parity_of(running, [running.database]).audit()
    assert (audited.status, audited.differences) == (3, []), audited.err
    assert [each["reason"] for each in audited.run["undecided"]] == ["the topic is gone"]


def test_a_stop_while_the_follower_is_waited_for(running: Replication, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not settled is no more undecided than it was: the resumed run settles it."""
    parity, asked = parity_of(running, [running.database]), []
    parity.stopped = lambda: bool(asked)
    with monkeypatch.context() as patch:
        patch.setattr(Pair, "wait_until_applied", lambda *_: asked.append(True))
        stopped = parity.audit()
    assert (stopped.status, stopped.differences) == (130, []), stopped.err
    asked.clear()
    assert stopped.folder is not None
    resumed = parity.audit("--resume", stopped.folder.name)
    assert resumed.status == 1
    assert len(replace(resumed, folder=stopped.folder).differences) == 1


@pytest.mark.parametrize("slot", [True, False], ids=["ahead", "damaged"])
def test_a_row_of_a_transaction_that_ended_before_its_turn(
    running: Replication, connect: Callable[..., LeaderConnection], slot: bool
) -> None:
    """It shows an image behind the position: only where a slot tells of that one can it be right."""
    assert running.consumer.stop() == 0
    running.play("UPDATE t SET note = 'x' WHERE id = 1", "UPDATE t SET note = 'c' WHERE id = 1")
    end = Position.parse(binlog_end(running.leader))
    wait_until(lambda: running.events()[-1]["transaction"].get("end") == end.offset, "they are in the topic")
    ended = running.events()[-2]
    own, file = f"{running.system_database}.position", ended["bn_file"]["fileName"]
    follower = FollowerConnection(address(running.follower), running.system_database, running.topic.name)
    running.follower.execute(
        "SET sql_log_bin = 0",
        f"INSERT INTO {own} (topic, worker, topic_offset, sequence, leader_file, leader_offset, link)"
        f" SELECT topic, 1, 0, {ended['sequence']}, '{file}', {ended['transaction']['end']}, {ended['sequence']} FROM {own}"
        f" WHERE {slot:d}",
    )
    assert follower.ahead(follower.rows) == (Position(file, ended["transaction"]["end"]) if slot else None)
    name = TableName(running.database, "t")
    columns = (
        Column("id", "int", "int", None, True, False),
        Column("note", "varchar(20)", "varchar", "utf8mb4", True, False),
    )
    suspect = Suspect(1, 0, ("1",), 0.5, 1)
    shape = Shape(name, columns, ("id",))
    pair = Pair(connect(running.leader), follower)
    with History(running.topic, {name: shape}) as history:
        found = Hot(pair, history, 5.0).judge([suspect], shape)
    pair.close()
    assert (suspect.state, len(found)) == (("open", 0) if slot else ("proven", 1))
