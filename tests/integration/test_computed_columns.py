"""Columns that a follower computes hold what the leader stored: in its session, and compared after they were written."""

from __future__ import annotations

import pytest
from fix_replay import Stage
from fix_replication import Replication
from kit.events import integer, string

from shared.errors import DivergedError


def table_of(replication: Replication, columns: str = "*") -> list[tuple[object, ...]]:
    """The rows of t, which must be the same on both sides."""
    query = f"SELECT {columns} FROM {replication.database}.t ORDER BY 1, 2"
    rows = replication.leader.execute(query)
    assert rows
    assert replication.follower.execute(query) == rows
    return rows


HOUR = "ts TIMESTAMP(3) NULL, h VARCHAR(30) AS (DATE_FORMAT(ts, '%Y-%m-%d %H')) STORED, KEY (h)"


def test_a_moment_is_computed_in_the_leaders_time_zone(replication: Replication) -> None:
    replication.play(
        "SET time_zone = '+05:30'", f"CREATE TABLE t (id INT PRIMARY KEY, {HOUR})",
        "INSERT INTO t (id, ts) VALUES (1, '2020-01-01 03:00:00'), (2, NULL)",
        "UPDATE t SET ts = '2021-01-01 03:00:00.25' WHERE id = 2",
        "SET time_zone = '-03:00'", "UPDATE t SET ts = '2022-01-01 03:00:00' WHERE id = 1",
    )  # fmt: skip
    replication.replicate()
    assert [row[2] for row in table_of(replication)] == ["2022-01-01 03", "2021-01-01 03"]


def test_a_moment_in_a_table_without_a_key(replication: Replication) -> None:
    replication.play(
        "SET time_zone = '+05:30', sql_mode = ''", f"CREATE TABLE t (id INT, {HOUR})",
        "INSERT INTO t (id, ts) VALUES (1, '2020-01-01 03:00:00'), (1, '2020-01-01 03:00:00'), (2, NULL)",
        "UPDATE t SET ts = '2021-01-01 03:00:00.25' WHERE id = 1 LIMIT 1",
        "UPDATE t SET ts = '0000-00-00 00:00:00' WHERE id = 2", "DELETE FROM t WHERE ts = '2020-01-01 03:00:00'",
    )  # fmt: skip
    replication.replicate()
    table_of(replication)


def test_a_moment_that_is_the_key(replication: Replication) -> None:
    replication.play(
        "SET time_zone = '+05:30'", f"CREATE TABLE t (id TIMESTAMP PRIMARY KEY, {HOUR})",
        "INSERT INTO t (id, ts) VALUES ('2020-06-01 00:00:00', '2020-01-01 03:00:00')",
        "UPDATE t SET ts = '2022-01-01 03:00:00'", "UPDATE t SET id = '2020-06-02 00:00:00'",
    )  # fmt: skip
    replication.replicate()
    table_of(replication)


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10), c VARCHAR(3) AS (a) STORED)",
         "INSERT IGNORE INTO t (id, a) VALUES (1, 'toolong')"),
        ("SET sql_mode = ''", "CREATE TABLE t (id INT PRIMARY KEY, a INT, c TINYINT AS (a) STORED)",
         "INSERT INTO t (id, a) VALUES (1, 1000)", "UPDATE t SET a = -1000"),
        ("SET sql_mode = ''", "CREATE TABLE t (id INT PRIMARY KEY, a INT, c TIMESTAMP AS (FROM_UNIXTIME(a)) STORED NOT NULL)",
         "INSERT IGNORE INTO t (id, a) VALUES (1, NULL)"),
        ("SET sql_mode = 'NO_UNSIGNED_SUBTRACTION'",
         "CREATE TABLE t (id INT PRIMARY KEY, a INT UNSIGNED, c BIGINT AS (a - 5) STORED)",
         "INSERT INTO t (id, a) VALUES (1, 1)"),
        ("SET sql_mode = 'TIME_TRUNCATE_FRACTIONAL'",
         "CREATE TABLE t (id INT PRIMARY KEY, a DATETIME(6), c DATETIME AS (a) STORED)",
         "INSERT INTO t (id, a) VALUES (1, '2020-01-01 10:00:00.9')"),
        ("SET sql_mode = ''", "CREATE TABLE t (id INT, c FLOAT(10,5), d FLOAT(10,2) UNSIGNED)",
         "INSERT INTO t VALUES (1, 99999.999999, 99999999.999)", "UPDATE t SET id = 2", "INSERT INTO t VALUES (3, 1.5, 2)",
         "DELETE FROM t WHERE id = 3"),
    ],
    ids=["too long", "out of range", "null", "unsigned", "truncated", "float"],
)  # fmt: skip
def test_what_a_strict_session_would_refuse(replication: Replication, statements: tuple[str, ...]) -> None:
    replication.play(*statements)
    replication.replicate()
    table_of(replication)


def test_a_value_that_comes_out_otherwise_stops(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create("(id INT PRIMARY KEY, a VARCHAR(10), c VARCHAR(10) AS (UPPER(a)) STORED)")
    columns = ("id", "a", "c")
    stage.log.add(stage.table, columns, [integer(1), string("x"), string("X")])
    stage.log.add(stage.table, columns, [integer(2), string("y"), string("other")])
    with pytest.raises(DivergedError, match=r"Add of \S+ \(id=2\), read again with the columns that the follower comp"):
        stage.replay()
    assert stage.rows() == [(1, "x", "X")]


def test_a_time_zone_that_the_follower_does_not_know(replication: Replication) -> None:
    replication.replicate()
    replication.play(
        "CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP, d DATE AS (DATE(ts)) STORED)",
        "SET time_zone = 'SYSTEM'", "INSERT INTO t (id, ts) VALUES (1, '2020-01-01 03:00:00')",
    )  # fmt: skip
    replication.replicate()
    table_of(replication)


@pytest.mark.parametrize("kind", ["TIME", "TIME(3)", "TIME(6)"])
@pytest.mark.parametrize("other", ["INT", "VARCHAR(9)", "DATE", "TIME(2)"])
def test_a_time_in_a_key_of_several_columns(replication: Replication, kind: str, other: str) -> None:
    """DELETE of one row by (k, t) IN ((1, '10:00:00')) would compare the time as a text."""
    value = {"INT": "1", "VARCHAR(9)": "'x'", "DATE": "'2020-01-01'", "TIME(2)": "'-01:02:03.5'"}[other]
    replication.play(
        f"CREATE TABLE t (k {other}, t {kind}, PRIMARY KEY (k, t))",
        f"INSERT INTO t VALUES ({value}, '09:00:00'), ({value}, '10:00:00.5'), ({value}, '-800:00:00')",
        "DELETE FROM t WHERE t BETWEEN '10:00:00' AND '10:00:02'", "DELETE FROM t WHERE t < 0",
    )  # fmt: skip
    replication.replicate()
    assert len(table_of(replication)) == 1
