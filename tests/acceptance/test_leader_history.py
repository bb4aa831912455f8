"""A leader that went back in time: whatever the topic ends with, its binlog is not what it was, and that is seen."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate, Replication, assert_refused
from kit.helpers import wait_until

from docker.local.mysql_servers import LEADER, PLAIN, MySQLServer, Server

BACK = "the leader went back to an earlier state"


def insert(replication: Replication, *numbers: int) -> None:
    replication.play(*(f"INSERT INTO t VALUES ({number})" for number in numbers))


def let_a_second_pass(server: Server) -> None:
    """The leader's files are told apart by the second in which they began."""
    second = server.value("SELECT UNIX_TIMESTAMP()")
    wait_until(lambda: server.value("SELECT UNIX_TIMESTAMP()") > second, "a second has passed")


@pytest.fixture(params=["GTIDs", "no GTIDs"])
def own_leader(request: pytest.FixtureRequest, own_server: StartServer) -> MySQLServer:
    options: Sequence[str] = LEADER if request.param == "GTIDs" else ["--binlog-row-metadata=FULL", *PLAIN]
    return own_server(options, server_id=71)


@pytest.fixture
def ahead(replicate: Replicate, own_leader: MySQLServer, plain_follower: Server, database: str) -> Replication:
    """A row is on both servers."""
    replication = replicate(own_leader, plain_follower, [database])
    replication.play(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT PRIMARY KEY)")
    insert(replication, 1)
    return replication


def test_its_binlog_was_reset(ahead: Replication, own_leader: MySQLServer) -> None:
    """The topic ends with a heartbeat behind a rotation, and the new binlog is longer than the former was."""
    ahead.play("FLUSH LOGS", "FLUSH LOGS")
    ahead.replicate()
    assert ahead.last()[1]["operation"] == "Heartbeat" and "transaction" not in ahead.last()[1]
    let_a_second_pass(own_leader)
    reset = "RESET BINARY LOGS AND GTIDS" if "9." in own_leader.value("SELECT VERSION()")[:2] else "RESET MASTER"
    ahead.play(reset)
    for number in range(2, 6):
        insert(ahead, number)
        ahead.play("FLUSH LOGS")
    records = ahead.records()
    assert_refused(ahead.produce(), BACK, "load the follower anew and start an empty topic")
    assert ahead.records() == records


def test_its_data_was_rolled_back(ahead: Replication, own_leader: MySQLServer) -> None:
    data, copy = own_leader.folder / "data", own_leader.folder / "copy"
    own_leader.stop()
    shutil.copytree(data, copy)
    own_leader.start()
    insert(ahead, 2, 3)
    own_leader.restart()
    ahead.replicate()
    assert ahead.last()[1]["operation"] == "Heartbeat" and "transaction" not in ahead.last()[1]
    own_leader.stop()
    shutil.rmtree(data)
    shutil.copytree(copy, data)
    own_leader.start()
    insert(ahead, 20, 30)
    own_leader.restart()
    insert(ahead, 40)
    records = ahead.records()
    assert_refused(ahead.produce(), BACK)
    assert ahead.records() == records


def test_it_only_rotated_and_restarted(ahead: Replication, own_leader: MySQLServer) -> None:
    """Nothing is wrong: it has the very files that the topic knows."""
    for number in range(2, 4):
        ahead.play("FLUSH LOGS")
        ahead.replicate()
        own_leader.restart()
        ahead.replicate()
        insert(ahead, number)
    ahead.replicate()
    ahead.same()
