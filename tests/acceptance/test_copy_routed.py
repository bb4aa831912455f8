"""A copy from a leader whose events travel in many topics: the same as from one."""

from __future__ import annotations

import pytest
from fix_copy import Copies

from docker.local.mysql_servers import Server

#: a database is of one test alone, and so are the names of its topics
EACH = {'"*.*"': "{database}_{table}"}
TABLES = (
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, UNIQUE (n))",
    "CREATE TABLE cased (name VARCHAR(20) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, n INT)",
    "CREATE TABLE keyless (n INT)",
    f"INSERT INTO t (n) VALUES {', '.join(f'({n})' for n in range(900))}",
    "INSERT INTO cased VALUES " + ", ".join(f"('name{n}', {n})" for n in range(300)),
    "INSERT INTO keyless VALUES (1), (1), (2)",
)
CHANGES = (
    "BEGIN", "UPDATE t SET n = -n - 1 WHERE id % 97 = 3", "UPDATE cased SET name = IF(BINARY name = LOWER(name),"
    " UPPER(name), LOWER(name)), n = n + 1 WHERE n % 59 = 1", "INSERT INTO keyless VALUES (3)", "COMMIT",
    "DELETE FROM keyless ORDER BY n DESC LIMIT 1", "INSERT INTO t (n) VALUES (NULL)",
)  # fmt: skip


@pytest.mark.parametrize("plain", [False, True], ids=["gtids", "plain"])
def test_killed_while_it_is_written(copies: Copies, request: pytest.FixtureRequest, database: str, plain: bool) -> None:
    leader: Server = request.getfixturevalue("plain_leader" if plain else "leader")
    leader.execute(f"CREATE DATABASE {database}")
    leader.execute(*TABLES, database=database)
    copy = copies(plain=plain, source=leader, routes=EACH)
    copy.killed("moment:executed", "before", 1)
    leader.execute(*CHANGES * 30, database=database)
    copy.killed("window:Window._write", "after", 2)
    leader.execute(*CHANGES * 10, "CREATE TABLE later (n INT)", "INSERT INTO later VALUES (4)", database=database)
    copy.copy()
    leader.execute(*CHANGES, database=database)
    copy.follow()
    copy.same_gtids()


@pytest.mark.parametrize("routes", [EACH, {}], ids=["many", "journal"])
def test_a_leader_that_rests(copies: Copies, leader: Server, database: str, routes: dict[str, str]) -> None:
    """The topics hold nothing but the leader's position."""
    leader.execute(f"CREATE DATABASE {database}", "FLUSH BINARY LOGS")
    leader.execute("SET sql_log_bin = 0", *TABLES, database=database)
    copy = copies(routes=routes)
    copy.copy()
    assert copy.replication.events() == []
    leader.execute(f"UPDATE {database}.t SET n = NULL")
    copy.follow()
    copy.same_gtids()
