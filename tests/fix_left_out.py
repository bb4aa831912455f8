"""Two servers and the programs with a decision on a transaction between them, and what is left of it."""

from __future__ import annotations

import subprocess

import pytest
from fix_replication import Replicate, Replication
from kit.programs import run_program

from docker.local.mysql_servers import Server

REASON = "the operator's words, with a 'quote'"


@pytest.fixture(params=["gtids", "plain"])
def pair(request: pytest.FixtureRequest, replicate: Replicate, database: str) -> Replication:
    """Two servers with GTIDs, and two without; the database and its table t are on both."""
    prefix = "" if request.param == "gtids" else "plain_"
    leader, follower = request.getfixturevalue(f"{prefix}leader"), request.getfixturevalue(f"{prefix}follower")
    replication = replicate(leader, follower, [database])
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))", "INSERT INTO t VALUES (1, 'a')")
    replication.replicate()
    return replication


def consume(replication: Replication, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_program("cdc_consumer", replication.profiles.consumer, "--exit-at-end", *arguments)


def produce(replication: Replication, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_program("cdc_producer", replication.profiles.producer, "--exit-at-end", *arguments)


def rows(server: Server, replication: Replication) -> list[tuple[object, ...]]:
    return server.execute(f"SELECT * FROM {replication.database}.t ORDER BY 1")


def left_out(replication: Replication) -> list[tuple[object, ...]]:
    columns = "first_sequence, last_sequence, side, reason, instead"
    return replication.follower.execute(f"SELECT {columns} FROM {replication.system_database}.left_out ORDER BY 1")


def assert_executed(replication: Replication) -> None:
    """Fail unless the follower has executed what was left out, where there are GTIDs."""
    gtids = replication.follower.execute(f"SELECT gtid FROM {replication.system_database}.left_out")
    assert gtids
    for (gtid,) in gtids:
        if replication.leader.value("SELECT @@GLOBAL.gtid_mode") == "ON":
            assert replication.follower.value(f"SELECT GTID_SUBSET('{gtid}', @@GLOBAL.gtid_executed)") == 1
        else:
            assert gtid is None
