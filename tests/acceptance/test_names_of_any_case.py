"""Servers that take names in any case of letters for the same: a filter holds for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate, Replication
from kit.helpers import assert_same_database

from docker.local.mysql_servers import FOLLOWER, LEADER

FOLDS = "--lower-case-table-names=1"
#: statements whose databases the binlog tells by their text alone, and others
STATEMENTS = (
    "TRUNCATE {}.a", "TRUNCATE TABLE {}.b", "ALTER TABLE {}.p TRUNCATE PARTITION p0",
    "ALTER TABLE {}.p EXCHANGE PARTITION p1 WITH TABLE {}.x", "CREATE TABLE {}.Likeness LIKE {}.A",
    "ALTER PROCEDURE {}.r COMMENT 'y'", "RENAME TABLE {}.b TO {}.Renamed", "ALTER TABLE {}.a ADD COLUMN C INT",
    "CREATE INDEX i ON {}.a (c)", "INSERT INTO {}.A VALUES (9, 9)", "DROP TABLE {}.Renamed", "CREATE VIEW {}.V AS SELECT 1",
)  # fmt: skip
TABLES = (
    "CREATE TABLE {}.a (id INT PRIMARY KEY)", "INSERT INTO {}.a VALUES (1), (2)", "CREATE TABLE {}.b LIKE {}.a",
    "INSERT INTO {}.b VALUES (3)", "CREATE TABLE {}.p (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (5),"
    " PARTITION p1 VALUES LESS THAN (10))", "INSERT INTO {}.p VALUES (1), (6)", "CREATE TABLE {}.x (id INT PRIMARY KEY)",
    "INSERT INTO {}.x VALUES (7)", "CREATE PROCEDURE {}.r() SELECT 1",
)  # fmt: skip


@pytest.fixture
def pair(own_server: StartServer, replicate: Replicate) -> Callable[..., Replication]:
    leader, follower = own_server([*LEADER, FOLDS], 61), own_server([*FOLLOWER, FOLDS], 62)

    def make(include_dbs: Sequence[str] | None = None, **filters: Sequence[str]) -> Replication:
        own = {"filters": filters}
        return replicate(leader, follower, include_dbs, producer=own, consumer=own, system_database="own_cdc")

    return make


def test_what_is_included_is_replicated(pair: Callable[..., Replication]) -> None:
    own = pair(["dd"])
    own.leader.execute("CREATE DATABASE Dd", *(sql.format("dd", "dd") for sql in TABLES))
    own.replicate()
    own.leader.execute(*(sql.format("DD", "dD") for sql in STATEMENTS))
    own.replicate()
    assert_same_database(own.leader, own.follower, "dd")


def test_what_is_excluded_is_left_alone(pair: Callable[..., Replication]) -> None:
    own = pair(exclude_dbs=["ee"])
    for server in (own.leader, own.follower):
        server.execute("CREATE DATABASE ee", *(sql.format("ee", "ee") for sql in TABLES))
    before = own.follower.execute("SELECT * FROM ee.a, ee.b, ee.p, ee.x")
    own.leader.execute(*(sql.format("EE", "eE") for sql in STATEMENTS))
    own.replicate()
    assert own.follower.execute("SELECT * FROM ee.a, ee.b, ee.p, ee.x") == before
