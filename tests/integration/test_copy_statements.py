"""Statements that change definitions between two steps of a copy, each at a moment chosen on purpose."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fix_copy import MODULE, Copies, Copying
from kit.helpers import wait_until
from kit.programs import Program

from docker.local.mysql_servers import Server

#: the first round's, where a call before it looked whether anything would stop a copy
SCHEMA, TASKS, RANGES = ("Rounds._read_schema", 2), ("Rounds._tasks", 1), ("Rounds._copy_ranges", 1)


@contextmanager
def still_behind(copy: Copying, point: tuple[str, int], *arguments: str, status: int = 0) -> Iterator[None]:
    """Start a copy that stands still behind this call of a function, meanwhile; then it must end with this status."""
    function, calls = point
    program = Program(MODULE, copy.profile, *arguments).start(until=f"cdc_consumer.copy.rounds:{function}", calls=calls)
    try:
        stat = Path(f"/proc/{program.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", "it stands still", alive=[program])
        yield
        os.kill(program.pid, signal.SIGCONT)
        assert program.wait() == status, program.stderr
    finally:
        program.kill()


def tables(server: Server, database: str) -> list[tuple[object, ...]]:
    return server.execute(f"SHOW TABLES FROM {database}")


#: each with two rows
TABLES = (
    "kept (id INT PRIMARY KEY)", "t0 (id INT PRIMARY KEY)", "t1 (id INT PRIMARY KEY)", "t2 (id INT PRIMARY KEY)",
    "number (id INT PRIMARY KEY, n INT)", "words (id INT PRIMARY KEY, n VARCHAR(20))", "key_of (id INT PRIMARY KEY, n INT)",
    "sums (id INT PRIMARY KEY, n INT, m INT AS (n + 1) STORED)", "first_checked (id INT PRIMARY KEY)",
    "last_checked (id INT PRIMARY KEY, CONSTRAINT ck CHECK (id > 0))", "z (id INT PRIMARY KEY, CONSTRAINT ck2 CHECK (id > 0))",
)  # fmt: skip
#: tables that go, and come as something else; checks that find another table; rows that fit their table no more
STATEMENTS = (
    "DROP TABLE t0", "RENAME TABLE t1 TO other", "DROP TABLE t2", "CREATE VIEW t2 AS SELECT * FROM kept",
    "UPDATE words SET n = 'é'", "RENAME TABLE number TO swap, words TO number, swap TO words",
    "ALTER TABLE last_checked DROP CHECK ck", "ALTER TABLE first_checked ADD CONSTRAINT ck CHECK (id > 0)", "RENAME TABLE z TO a",
    "DROP TABLE sums", "CREATE TABLE sums (id INT PRIMARY KEY, n INT, m INT AS (n + 2) STORED)",
    "INSERT INTO sums (id, n) VALUES (1, 1), (2, 2)",
    "UPDATE key_of SET n = id", "ALTER TABLE key_of DROP PRIMARY KEY, ADD PRIMARY KEY (n)", "UPDATE key_of SET id = 7",
)  # fmt: skip


@pytest.mark.parametrize("point", [SCHEMA, TASKS, RANGES], ids=["listed", "made", "filled"])
def test_tables_that_change(copies: Copies, leader: Server, database: str, point: tuple[str, int]) -> None:
    """All is copied once more; of what is gone nothing is left on the follower, where each name may be given again."""
    leader.execute(f"CREATE DATABASE {database}", f"USE {database}", *(f"CREATE TABLE {each}" for each in TABLES))
    for table in TABLES:
        leader.execute(f"INSERT INTO {table.split()[0]} (id) VALUES (1), (2)", database=database)
    old, new = f"{database}_old", f"{database}_new"
    leader.execute(f"CREATE DATABASE {old}", f"CREATE TABLE {old}.t (id INT PRIMARY KEY)")
    copy = copies(others=[old, new], limits={"connections": 1})
    with still_behind(copy, point):
        leader.execute(*STATEMENTS, database=database)
        leader.execute(f"DROP DATABASE {old}", f"CREATE DATABASE {new}", f"CREATE TABLE {new}.t (id INT PRIMARY KEY)")
    databases = {name for (name,) in copy.follower.execute("SHOW DATABASES")}
    assert old not in databases and tables(copy.follower, new) == [("t",)]
    assert tables(copy.follower, database) == tables(leader, database)
    for (name,) in tables(leader, database):
        question = f"SHOW CREATE TABLE {database}.{name}"
        assert copy.follower.execute(question) == leader.execute(question)
    leader.execute("CREATE TABLE t0 (a INT PRIMARY KEY)", "CREATE TABLE t1 (a INT PRIMARY KEY)", database=database)
    copy.follow()


@pytest.mark.parametrize("statement", ["DROP TABLE t", "RENAME TABLE t TO u"], ids=["dropped", "renamed"])
def test_a_table_that_goes_while_it_is_copied_anew(
    copies: Copies, leader: Server, database: str, statement: str
) -> None:
    """What was made for it beside the follower's own tables goes too."""
    leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    copy = copies()
    copy.copy()
    leader.execute(f"INSERT INTO {database}.t VALUES (1), (2)")
    copy.follow()
    assert copy.replication.consumer.stop() == 0
    system = copy.replication.system_database
    before = tables(copy.follower, system)
    with still_behind(copy, TASKS, "--tables", f"{database}.t", status=1):
        leader.execute(statement, database=database)
    assert tables(copy.follower, system) == before
    copy.follow()


def test_what_somebody_else_makes_there(copies: Copies, leader: Server, database: str) -> None:
    """Between two runs, in the copy's databases: it is not dropped, and does not stay unseen either."""
    leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (id INT PRIMARY KEY)")
    copy = copies(others=[f"{database}_other"], filters={
        "include_dbs": [database, f"{database}_other"], "exclude_tables": [f"{database}.left_out"],
    })  # fmt: skip
    copy.killed("rows.task:_copy", "before", 1)
    theirs = f"{database}.theirs", f"{database}.left_out", f"{database}_other.t"
    copy.follower.execute(
        "SET sql_log_bin = 0", f"CREATE DATABASE {database}_other", *(f"CREATE TABLE {each} SELECT 1" for each in theirs)
    )  # fmt: skip
    copy.refused(f"table {theirs[0]}", f"table {theirs[2]}", f"database {database}_other", "has not made")
    assert all(copy.follower.value(f"SELECT COUNT(*) FROM {each}") == 1 for each in theirs)
    copy.follower.execute("SET sql_log_bin = 0", f"DROP DATABASE {database}_other", f"DROP TABLE {theirs[0]}")
    copy.copy()
    assert sorted(tables(copy.follower, database)) == [("left_out",), ("t",)]
