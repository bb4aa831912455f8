"""A row that cannot be applied is named, and all transactions before it are committed."""

from __future__ import annotations

import pytest
from fix_replication import Replicate, Replication, assert_refused
from kit.written_topic import TABLE

from docker.local.mysql_servers import Server


def spoil(kind: str, number: int) -> tuple[str, str]:
    """A statement on the follower after which the row of this number cannot be applied, and one that mends it."""
    return {
        "missing": (f"DELETE FROM t WHERE id = {number}", f"INSERT INTO t VALUES ({number}, 'old')"),
        "double": (f"INSERT INTO t VALUES ({number + 100}, 'mine')", f"DELETE FROM t WHERE id = {number + 100}"),
        "parent": (f"DELETE FROM p WHERE id = {number}", f"INSERT INTO p VALUES ({number})"),
    }[kind]


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize(
    ("kind", "write", "words"),
    [
        ("missing", "UPDATE t SET name = 'new' WHERE id = {}", "Update of {}.t (id={}), sequence"),
        ("double", "INSERT INTO t VALUES (100 + {}, 'new')", "Duplicate entry '10{}' for key 't.PRIMARY'"),
        ("missing", "DELETE FROM t WHERE id = {}", "Delete of {}.t (id={}), sequence"),
    ],
)
def test_the_row_is_named(replication: Replication, kind: str, write: str, words: str, place: str) -> None:
    """Wherever it stands among transactions that follow each other in one breath, all before it are committed."""
    replication.play(f"CREATE TABLE t {TABLE}", *(f"INSERT INTO t VALUES ({n}, 'old')" for n in range(9)))
    replication.replicate()
    base = replication.sequence()
    replication.play(*(write.format(n) for n in range(9)))
    assert replication.produce().returncode == 0
    number = {"first": 0, "middle": 4, "last": 8}[place]
    before, after = spoil(kind, number)
    replication.follower.execute("SET sql_log_bin = 0", before, database=replication.database)
    named = words.format(*([replication.database, number] if words.startswith(("Update", "Delete")) else [number]))
    assert_refused(replication.consume(), named, f"sequence {base + number + 1}")
    assert replication.sequence() == base + number
    replication.follower.execute("SET sql_log_bin = 0", after, database=replication.database)
    result = replication.consume()
    assert result.returncode == 0, result.stderr
    replication.same()


def test_a_refusal_is_not_taken_for_a_missing_table(replication: Replication) -> None:
    """The result of a transaction is judged while the next one asks for its table; its error is not about that one."""
    replication.play(
        "CREATE TABLE g (id INT PRIMARY KEY, up INT AS (id + 1) STORED)", "INSERT INTO g (id) VALUES (1), (2), (3)",
        f"CREATE TABLE a {TABLE}",
    )  # fmt: skip
    replication.replicate()
    replication.follower.execute("SET sql_log_bin = 0", "DELETE FROM g WHERE id = 1", database=replication.database)
    replication.play("DELETE FROM g WHERE id < 3", "INSERT INTO a VALUES (1, 'x')")
    assert replication.produce().returncode == 0
    assert_refused(replication.consume(), "Delete of", "(id=1)")
    assert replication.follower.value(f"SELECT COUNT(*) FROM {replication.database}.g") == 2


@pytest.mark.parametrize(("rows", "columns"), [("sql", ""), ("auto", "g INT AS (v + 1) VIRTUAL, ")])
def test_a_closer_look_is_not_taken_for_a_missing_table(
    replicate: Replicate, leader: Server, follower: Server, database: str, rows: str, columns: str
) -> None:
    """Some of several equal rows go, which needs one; the next transaction asks for a table not known before."""
    replication = replicate(leader, follower, [database], consumer={"apply": {"rows": rows}})
    replication.play(
        f"CREATE DATABASE {database}", f"USE {database}", "CREATE TABLE a (v INT)", f"CREATE TABLE n ({columns}v INT)",
        "INSERT INTO n (v) VALUES (1), (1), (2), (2), (2), (2), (77), (1), (1), (77)", "DELETE FROM n LIMIT 5",
        "INSERT INTO a VALUES (9)",
    )  # fmt: skip
    replication.replicate()
    replication.same()


@pytest.mark.parametrize("number", [0, 4, 8, 150])
def test_the_row_of_one_of_many_is_named(plain_replication: Replication, number: int) -> None:
    """All transactions before it are committed, though it was tried together with them."""
    replication = plain_replication
    replication.play(f"CREATE TABLE t {TABLE}", *(f"INSERT INTO t VALUES ({n}, 'old')" for n in range(160)))
    replication.replicate()
    base = replication.sequence()
    replication.play(*(f"UPDATE t SET name = 'new' WHERE id = {n}" for n in range(160)))
    assert replication.produce().returncode == 0
    replication.follower.execute(f"DELETE FROM t WHERE id = {number}", database=replication.database)
    named = f"Update of {replication.database}.t (id={number}), sequence {base + number + 1}"
    assert_refused(replication.consume(), named)
    assert replication.sequence() == base + number
    replication.follower.execute(f"INSERT INTO t VALUES ({number}, 'old')", database=replication.database)
    assert replication.consume().returncode == 0
    replication.same()
