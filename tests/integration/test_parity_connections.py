"""An audit's connections: snapshots that break, statements that are ended, slots, servers that are away, and pauses."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from fix_differing_pair import TABLE, address
from fix_parity import Parity
from fix_replication import Replication
from kit.helpers import wait_until

from cdc_consumer.parity.profile import Limits
from cdc_consumer.parity.servers import connection as servers
from cdc_consumer.parity.servers import throttle
from cdc_consumer.parity.servers.connection import Select
from cdc_consumer.parity.servers.pair import FollowerConnection, LeaderConnection, Pair
from cdc_consumer.parity.servers.throttle import Throttle
from docker.local.mysql_servers import Server
from shared.errors import HistoryError, ServerGoneError


def test_a_snapshot_that_breaks_is_taken_again(parity: Parity, connect: Callable[..., LeaderConnection]) -> None:
    server, database = parity.leader, parity.database
    server.execute(TABLE, "INSERT INTO t VALUES (1, 'a')", database=database)
    one = connect()
    breaks = [
        lambda: server.execute(f"TRUNCATE {database}.t"),
        lambda: server.execute(f"KILL {one.rows('SELECT CONNECTION_ID()')[0][0]}"),
    ]

    def look(ask: Select) -> Any:
        ask("SELECT 1")
        if breaks:
            breaks.pop()()
        return ask(f"SELECT COUNT(*) FROM {database}.t")

    assert one.frozen(look) == [(0,)]
    assert not breaks

    def fail(ask: Select) -> None:
        ask(f"SELECT COUNT(*) FROM {database}.t")
        raise HistoryError

    with pytest.raises(HistoryError):
        one.frozen(fail)
    # no later look may see that snapshot
    server.execute(f"INSERT INTO {database}.t VALUES (2, 'b')")
    assert one.rows(f"SELECT COUNT(*) FROM {database}.t") == [(1,)]


def test_statements_that_somebody_ends(connect: Callable[..., LeaderConnection], leader: Server) -> None:
    one, ended = connect(statement_seconds=30.0), []

    def slow(ask: Any) -> Any:
        if not ended:
            ended.append(leader.execute(f"KILL QUERY {ask.thread_id()}"))
        return servers.rows(ask, "SELECT COUNT(*) FROM information_schema.columns")

    assert one.use(slow)
    with pytest.raises(Exception, match=r"longer than limits\.statement_seconds"):
        connect(statement_seconds=0.05).rows(
            "SELECT COUNT(*) FROM information_schema.columns a, information_schema.columns b"
        )


def test_slots_count_connections(connect: Callable[..., LeaderConnection], leader: Server) -> None:
    one, two = connect(slots=1), connect(slots=1)
    soon = time.time() - 1
    assert one.take_slot(soon)
    assert not two.take_slot(soon)
    # one that is cut off takes its slot along
    leader.execute(f"KILL {one.rows('SELECT CONNECTION_ID()')[0][0]}")
    assert one.rows("SELECT 1")
    assert not two.take_slot(soon)
    one.free_slot()
    assert two.take_slot(soon)
    two.free_slot()
    one.free_slot()


def test_a_server_that_is_away(connect: Callable[..., LeaderConnection], monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = Server("127.0.0.1", 1)
    with pytest.raises(ServerGoneError), (away := connect(nobody)).at_once():
        away.rows("SELECT 1")
    monkeypatch.setattr(servers, "PATIENCE", 0.5)
    began = time.monotonic()
    with pytest.raises(ServerGoneError):
        connect(nobody).rows("SELECT 1")
    assert 0.5 <= time.monotonic() - began < 20


def test_the_audit_pauses(
    running: Replication, connect: Callable[..., LeaderConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = FollowerConnection(address(running.follower), running.system_database, running.topic.name)
    pair = Pair(connect(running.leader), follower)
    monkeypatch.setattr(throttle, "INTERVAL", 0.0)
    monkeypatch.setattr(throttle, "PATIENCE", 0.0)

    def allows(**limits: Any) -> bool:
        return Throttle(Limits(**limits), pair, 1.0).allows(1)

    assert allows(leader_threads=1000)
    assert not allows(leader_threads=0)
    assert allows(lag_seconds=0.2)
    running.consumer.stop()
    running.play("INSERT INTO t VALUES (3, 'c')")
    wait_until(lambda: not allows(lag_seconds=0.2), "the lag is seen")
    running.consumer.start()
    running.catch_up()
    assert allows(lag_seconds=0.2)
    pair.close()
