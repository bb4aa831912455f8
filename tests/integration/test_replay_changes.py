"""Rows by the leader's own binlog events: which go that way, and which transactions together."""

from __future__ import annotations

from typing import Any

import pytest
from fix_replication import Replicate, Replication
from kit.helpers import tables_of
from kit.written_topic import TABLE, statements

from docker.local.mysql_servers import Server


def test_what_one_way_does_not_take_goes_the_other(replication: Replication) -> None:
    """Tables with and without generated columns in one transaction, and both within one statement of the leader."""
    replication.play(
        f"CREATE TABLE a {TABLE}", "CREATE TABLE g (id INT PRIMARY KEY, up INT AS (id + 1) STORED, name VARCHAR(20))",
        "BEGIN", "INSERT INTO a VALUES (1, 'x'), (2, 'y')", "INSERT INTO g (id, name) VALUES (1, 'x'), (2, 'y')",
        "UPDATE a, g SET a.name = 'both', g.name = 'both' WHERE a.id = g.id AND a.id = 1", "DELETE FROM a WHERE id = 2",
        "COMMIT", "INSERT INTO a VALUES (3, 'z')", "INSERT INTO g (id) VALUES (4)", "INSERT INTO a VALUES (5, 'z')",
        "CREATE TABLE c AS SELECT * FROM a", "CREATE TABLE h (up INT AS (id + 1) STORED) AS SELECT id FROM a", "ALTER TABLE a ADD d INT DEFAULT 3", "INSERT INTO a VALUES (6, 'w', 4)",
    )  # fmt: skip
    before = statements(replication.follower)
    assert replication.produce().returncode == 0
    result = replication.consume()
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("made outside of the follower's binlog") == 1
    replication.same()
    assert statements(replication.follower) > before + 4


def test_a_session_of_the_leader_without_foreign_keys(replication: Replication) -> None:
    """A child without its parent is taken where the leader did not look, in whatever order the rows come."""
    replication.play(
        f"CREATE TABLE p {TABLE}", "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "INSERT INTO p VALUES (1, 'a'), (2, 'b')", "INSERT INTO c VALUES (1, 1), (2, 2)", "DELETE FROM p WHERE id = 1",
        "BEGIN", "INSERT INTO p VALUES (3, 'c')", "SET foreign_key_checks = 0", "INSERT INTO c VALUES (9, 9)",
        "SET foreign_key_checks = 1", "INSERT INTO c VALUES (3, 3)", "COMMIT", "UPDATE p SET name = 'z'",
    )  # fmt: skip
    replication.replicate()
    replication.same()


@pytest.mark.parametrize("rows", ["auto", "sql"])
def test_a_parent_that_is_replaced_keeps_its_children(
    replicate: Replicate, leader: Server, follower: Server, database: str, rows: str
) -> None:
    """The leader does not cascade there, and a native replica does; it logs what it cascades elsewhere."""
    replication = replicate(leader, follower, [database], consumer={"apply": {"rows": rows}})
    replication.play(f"CREATE DATABASE {database}")
    keyed = "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE {0} ON UPDATE {0})"
    replication.play(
        f"CREATE TABLE p {TABLE}", f"CREATE TABLE c {keyed.format('CASCADE')}", f"CREATE TABLE n {keyed.format('SET NULL')}",
        "INSERT INTO p VALUES (1, 'a'), (2, 'b'), (3, 'c')", *(f"INSERT INTO {name} VALUES (1, 1), (2, 2), (3, 3)" for name in "cn"),
        "REPLACE INTO p VALUES (1, 'new')", "DELETE FROM p WHERE id = 2", "UPDATE p SET id = 33 WHERE id = 3",
    )  # fmt: skip
    replication.replicate()
    replication.same()
    assert follower.execute(f"SELECT * FROM {database}.c") == [(1, 1), (3, 33)]


def test_other_databases_stay_outside(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    other = f"{database}_other"
    replication = replicate(leader, follower, [database, other], consumer={"filters": {"include_dbs": [database]}})
    replication.play(f"CREATE DATABASE {database}", f"CREATE DATABASE {other}")
    replication.play(f"CREATE TABLE t {TABLE}", f"CREATE TABLE {other}.t {TABLE}")
    replication.play("BEGIN", "INSERT INTO t VALUES (1, 'a')", f"INSERT INTO {other}.t VALUES (1, 'a')", "COMMIT")
    replication.play(f"INSERT INTO {other}.t VALUES (2, 'b')")
    replication.replicate()
    replication.same()
    assert tables_of(follower, other) == []
    assert replication.sequence() == len(replication.events()) - 1


@pytest.mark.parametrize("apply", [{}, {"workers": 3}, {"workers": 3, "order": "independent"}])
def test_rows_that_move_to_another_partition(
    replicate: Replicate, leader: Server, follower: Server, database: str, apply: dict[str, Any]
) -> None:
    """MySQL counts such an update as a row written and one deleted."""
    replication = replicate(leader, follower, [database], consumer={"apply": apply})
    parts = (
        "PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN (20), PARTITION c VALUES LESS THAN MAXVALUE"
    )
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE n (id INT PRIMARY KEY)")
    replication.play(f"CREATE TABLE t (id INT, d INT, PRIMARY KEY (id, d)) PARTITION BY RANGE (d) ({parts})")
    replication.play(*[f"INSERT INTO t VALUES ({number}, {number})" for number in range(30)])
    replication.play(*[f"UPDATE t SET d = (d + 10) % 30 WHERE id = {number}" for number in range(30)])
    replication.play("UPDATE t SET d = (d + 10) % 30 WHERE id < 15", "ALTER TABLE n ADD a INT")
    replication.replicate()
    replication.same()
    assert statements(follower)


@pytest.mark.parametrize(
    "apply",
    [{}, {"rows": "sql"}, *({"workers": 4, "order": order} for order in ("leader", "independent"))],
    ids=["one", "sql", "leader", "independent"],
)
def test_a_transaction_that_somebody_else_ran(
    replicate: Replicate, replication: Replication, apply: dict[str, Any]
) -> None:
    """MySQL passes over a GTID it has, position and all; the transaction is found to be done, and the next follow."""
    consumer = {"topic": {"path": replication.topic.path}, "apply": apply}
    other = replicate(replication.leader, replication.follower, [replication.database], name="o", consumer=consumer)
    replication.play(f"CREATE TABLE t {TABLE}")
    replication.replicate()
    replication.play(*(f"INSERT INTO t VALUES ({n}, 'a')" for n in range(150)))
    assert replication.produce().returncode == 0
    gtids = [event["transaction"]["gtid"] for event in replication.events()][-150:]
    # the position has gone past some of them when it is seen
    for number in (0, 3, 40, 120, 149):
        replication.follower.execute(
            f"SET gtid_next = '{gtids[number]}'", f"INSERT INTO t VALUES ({number}, 'a')", "SET gtid_next = 'AUTOMATIC'",
            database=replication.database,
        )  # fmt: skip
    result = other.consume()
    assert result.returncode == 0, result.stderr
    assert "was executed before: passed over" in result.stderr
    other.same()
    assert other.sequence() == len(replication.events()) - 1


def test_a_transaction_larger_than_a_statement(replication: Replication) -> None:
    replication.play(
        f"CREATE TABLE t {TABLE.replace('20', '600')}", "SET SESSION cte_max_recursion_depth = 100000",
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)"
        " SELECT i, REPEAT('x', i % 600) FROM n",
        "BEGIN", "UPDATE t SET name = CONCAT('y', name) WHERE LENGTH(name) < 600", "DELETE FROM t WHERE id % 3 = 0", "COMMIT",
    )  # fmt: skip
    assert replication.produce().returncode == 0
    before = statements(replication.follower)
    assert replication.consume().returncode == 0
    assert statements(replication.follower) - before > 10
    replication.same()


def test_transactions_that_wait_are_one_without_gtids(plain_replication: Replication) -> None:
    """Up to what cannot go with them: another way, other foreign key checks, a statement, a large one."""
    replication = plain_replication
    replication.play(
        f"CREATE TABLE t {TABLE}", "CREATE TABLE g (id INT PRIMARY KEY, up INT AS (id + 1) STORED)",
        *(f"INSERT INTO t VALUES ({n}, 'a')" for n in range(250)),
        "BEGIN", "INSERT INTO t VALUES (1000, 'a')", "INSERT INTO g (id) VALUES (1)", "COMMIT",
        "INSERT INTO g (id) VALUES (2)", "INSERT INTO t VALUES (1001, 'a')", "SET foreign_key_checks = 0",
        "INSERT INTO t VALUES (1002, 'a')", "SET foreign_key_checks = 1", "UPDATE t SET name = 'b' WHERE id < 3",
        "SET SESSION cte_max_recursion_depth = 100000", "CREATE TABLE big (id INT PRIMARY KEY, s VARCHAR(600))",
        "DELETE FROM t WHERE id = 4",
        "INSERT INTO big WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)"
        " SELECT i, REPEAT('x', i % 600) FROM n", "DELETE FROM t WHERE id = 5",
    )  # fmt: skip
    assert replication.produce().returncode == 0
    before = statements(replication.follower)
    assert replication.consume().returncode == 0
    replication.same()
    assert replication.sequence() == len(replication.events()) - 1
    assert statements(replication.follower) - before < 30


def test_sql_alone(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    replication = replicate(leader, follower, [database], consumer={"apply": {"rows": "sql"}})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(f"CREATE TABLE t {TABLE}", "INSERT INTO t VALUES (1, 'a')")
    before = statements(follower)
    replication.replicate()
    replication.same()
    assert statements(follower) == before


def test_a_position_of_an_earlier_version(replication: Replication) -> None:
    """Its key is changed; where its columns are others rows go by SQL, and the log says so."""
    follower, database = replication.follower, replication.database
    replication.play(f"CREATE TABLE t {TABLE}", "INSERT INTO t VALUES (1, 'a')")
    replication.replicate()
    own = f"{database}_cdc.position"
    follower.execute(
        "SET sql_log_bin = 0",
        f"ALTER TABLE {own} DROP PRIMARY KEY, DROP link, ADD PRIMARY KEY (topic, worker), ADD x INT",
    )
    replication.play("INSERT INTO t VALUES (2, 'a')")
    assert replication.produce().returncode == 0
    before = statements(follower)
    result = replication.consume()
    assert result.returncode == 0 and "rows go by SQL" in result.stderr
    assert statements(follower) == before + 1  # the trial
    follower.execute("SET sql_log_bin = 0", f"ALTER TABLE {own} DROP x")
    replication.play("INSERT INTO t VALUES (3, 'a')")
    replication.replicate()
    replication.same()
    assert statements(follower) == before + 3
