"""Somebody changes a table of the follower while the consumer applies rows to it."""

from __future__ import annotations

import pytest
from fix_replication import Replicate
from kit.helpers import wait_until
from kit.side_by_side import on_follower

from docker.local.mysql_servers import Server

CHANGED = "of the follower was changed while rows were applied to it"


@pytest.mark.parametrize("apply", [{}, {"workers": 4}])
def test_columns_in_another_order(
    replicate: Replicate, leader: Server, follower: Server, database: str, apply: dict[str, object]
) -> None:
    """MySQL takes the leader's bytes for the columns that stand there now; the log tells, and goes on by names."""
    replication = replicate(leader, follower, [database], consumer={"apply": apply})
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE t (id INT PRIMARY KEY, n INT, m INT)", "INSERT INTO t VALUES (1, 1, -1)")
    replication.start()
    replication.catch_up()
    on_follower(replication, "ALTER TABLE t MODIFY m INT AFTER id")
    replication.play("INSERT INTO t VALUES (2, 2, -2)")
    wait_until(
        lambda: f"table {database}.t {CHANGED} (other columns; its rows go by SQL" in replication.consumer.stderr,
        "it is told", alive=[replication.consumer],
    )  # fmt: skip
    replication.play("INSERT INTO t VALUES (3, 3, -3)")
    replication.catch_up()
    assert follower.execute(f"SELECT n, m FROM {database}.t WHERE id = 3") == [(3, -3)]
    assert replication.consumer.stop() == 0
    assert replication.consumer.stderr.count(CHANGED) == 1


def test_a_trigger(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    replication = replicate(leader, follower, [database], consumer={"apply": {"rows": "sql"}})
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)")
    replication.start()
    replication.catch_up()
    on_follower(replication, "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.n = 1000")
    replication.play("INSERT INTO t VALUES (2, 2)")
    wait_until(lambda: "has the trigger g" in replication.consumer.stderr, "it is told")
    replication.play("INSERT INTO t VALUES (3, 3)")
    assert replication.consumer.wait() == 1
    assert follower.execute(f"SELECT * FROM {database}.t WHERE id = 3") == []


@pytest.mark.parametrize("apply", [{"workers": 4}, {"rows": "sql"}])
def test_what_changes_nothing_for_rows(
    replicate: Replicate, leader: Server, follower: Server, database: str, apply: dict[str, object]
) -> None:
    """Other tables, statistics, the leader's own statements: nothing is told."""
    replication = replicate(leader, follower, [database], consumer={"apply": apply})
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)")
    replication.start()
    replication.catch_up()
    on_follower(replication, "CREATE TABLE other (id INT)", "ANALYZE TABLE t", "FLUSH TABLES", "DROP TABLE other")
    replication.play("INSERT INTO t VALUES (2, 2)", "ALTER TABLE t ADD m INT FIRST", "INSERT INTO t VALUES (3, 3, 3)")
    replication.play("RENAME TABLE t TO u", "INSERT INTO u VALUES (4, 4, 4)", "DROP TABLE u")
    replication.catch_up()
    assert replication.consumer.stop() == 0
    assert CHANGED not in replication.consumer.stderr


def test_a_position_that_is_gone(
    replicate: Replicate, plain_leader: Server, plain_follower: Server, database: str
) -> None:
    """Without GTIDs nothing else tells what was applied: it is not applied again."""
    replication = replicate(plain_leader, plain_follower, [database])
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1)")
    replication.replicate()
    committed = replication.sequence()
    replication.start()
    wait_until(lambda: "replaying topic" in replication.consumer.stderr, "it begins", alive=[replication.consumer])
    on_follower(replication, f"DELETE FROM {replication.system_database}.position")
    replication.play("INSERT INTO t VALUES (2)")
    assert replication.consumer.wait() == 1
    assert (
        f"up to sequence {committed}, and its table position tells of nothing any more" in replication.consumer.stderr
    )
    assert plain_follower.execute(f"SELECT n FROM {database}.t") == [(1,)]
