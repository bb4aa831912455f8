"""Tables of several databases copied at once beside those a follower has, whose checks have the same names."""

from __future__ import annotations

import re

import pytest
from fix_copy import Copies, Copying

from docker.local.mysql_servers import Server

TABLE = (
    "t (id INT PRIMARY KEY, a INT COMMENT 'CONSTRAINT `nm` CHECK ((`a` > 0))', b INT, CHECK (b < 9), CONSTRAINT nm CHECK (a > 0),"
    " CONSTRAINT Aa CHECK (a <> b) NOT ENFORCED, CONSTRAINT t_chk_7 CHECK (b <> 8), CONSTRAINT copy_chk_1 CHECK (id > 0))"
)


def definitions(server: Server, databases: tuple[str, str]) -> list[tuple[object, ...]]:
    return [row for database in databases for row in server.execute(f"SHOW CREATE TABLE {database}.t")]


@pytest.fixture
def two(copies: Copies, leader: Server, database: str) -> tuple[Copying, tuple[str, str]]:
    """A follower that has applied a row, of two databases with like tables."""
    databases = database, f"{database}_other"
    for name in databases:
        leader.execute(
            f"CREATE DATABASE {name}",
            f"USE {name}",
            f"CREATE TABLE {TABLE}",
            "INSERT INTO t VALUES (1, 1, 2), (2, 2, 1)",
        )
    copy = copies(others=databases[1:])
    copy.copy()
    leader.execute(f"INSERT INTO {database}.t VALUES (3, 3, 3)")
    copy.replication.consumer.start()
    copy.replication.catch_up(60)
    assert copy.replication.consumer.stop() == 0
    return copy, databases


def test_checks_of_the_same_name(two: tuple[Copying, tuple[str, str]], leader: Server) -> None:
    copy, databases = two
    tables = ",".join(f"{name}.t" for name in databases)
    # the statement that names the checks of the second table ran, and nothing says so
    copy.killed("finish:_run", "after", 5, arguments=("--tables", tables))
    copy.copy("--tables", tables)
    assert definitions(copy.follower, databases) == definitions(leader, databases)
    copy.follow()


def test_a_copy_that_cannot_be_made_is_given_up(two: tuple[Copying, tuple[str, str]], leader: Server) -> None:
    """What it had made goes, and what the follower had stays, until the consumer goes on."""
    copy, databases = two
    only, system = ("--tables", f"{databases[0]}.t"), copy.replication.system_database
    copy.refused("there is nothing to give up", arguments=("--give-up",))
    before = copy.follower.execute(f"SHOW TABLES FROM {system}")
    copy.killed("rows.task:_copy", "before", 1, arguments=only)
    (built,) = (
        name
        for (name,) in copy.follower.execute(f"SHOW TABLES FROM {system}")
        if re.fullmatch("copy_[0-9a-f]{32}", name)
    )
    trigger = f"CREATE TRIGGER refuses BEFORE INSERT ON {built} FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'never'"
    copy.follower.execute("SET sql_log_bin = 0", trigger, database=system)
    copy.refused("has not ended; run it again", "--give-up", "never", arguments=only)
    copy.refused("has not ended: run that again", "--give-up", arguments=("--tables", f"{databases[1]}.t"))
    refused = copy.replication.consume()
    assert refused.returncode == 1 and "cdc-copy with --give-up" in refused.stderr, refused.stderr
    copy.copy("--give-up")
    assert copy.follower.execute(f"SHOW TABLES FROM {system}") == before
    copy.follow()
