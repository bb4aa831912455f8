"""Copies into a follower that has something already: refused, or dropped once somebody has said so."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress

from fix_copy import MODULE, Copies, Copying
from kit.programs import ENVIRONMENT

from docker.local.mysql_servers import Server


def test_a_follower_that_is_not_empty(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT PRIMARY KEY)")
    copy = copies()
    copy.follower.execute("SET sql_log_bin = 0", f"CREATE DATABASE {database}", f"CREATE TABLE {database}.old (a INT)")
    copy.refused(f"the follower has {database} already", "--replace")
    assert copy.follower.execute(f"SHOW TABLES FROM {database}") == [("old",)]
    copy.copy("--replace")
    assert copy.follower.execute(f"SHOW TABLES FROM {database}") == [("t",)]
    copy.refused("has ended already")
    leader.execute(f"INSERT INTO {database}.t VALUES (1), (2)")
    copy.follow()
    assert copy.replication.consumer.stop() == 0
    copy.copy("--replace")
    copy.follow()


def test_a_replacement_that_is_killed(copies: Copies, leader: Server, database: str) -> None:
    """Whatever was dropped by then: the consumer waits, and the copy goes on, without being told again."""
    leader.execute(
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.t (a INT PRIMARY KEY)",
        f"INSERT INTO {database}.t VALUES (1)",
    )
    copy = copies()
    copy.copy()
    leader.execute(f"UPDATE {database}.t SET a = 3")
    copy.follow()
    assert copy.replication.consumer.stop() == 0
    for point in (
        ("state:CopyState.begin", "after", 1),
        ("state:CopyState.planned", "before", 1),
        ("rows.task:_copy", "after", 1),
    ):
        copy.killed(*point, arguments=("--replace",))
        refused = copy.replication.consume()
        assert refused.returncode == 1 and "cdc-copy again" in refused.stderr, refused.stderr
    leader.execute(f"INSERT INTO {database}.t VALUES (2)")
    copy.copy()
    copy.follow()
    copy.same_gtids()


def answered(copy: Copying, answer: bytes) -> tuple[int, str]:
    """Status and words of a replacement on a terminal where somebody types this."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, str(copy.profile), "--replace"], stdin=theirs, stderr=theirs, env=ENVIRONMENT
    )
    os.close(theirs)
    os.write(ours, answer)
    seen = b""
    with suppress(OSError):  # how Linux tells that a terminal has nobody left
        while found := os.read(ours, 65536):
            seen += found
    os.close(ours)
    return process.wait(60), seen.decode()


def test_a_terminal_is_asked_before_anything_is_dropped(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT PRIMARY KEY)")
    copy = copies()
    copy.follower.execute("SET sql_log_bin = 0", f"CREATE DATABASE {database}", f"CREATE TABLE {database}.old (a INT)")
    status, words = answered(copy, b"no\n")
    assert status == 1 and f"this drops {database} on the follower" in words and "nothing was dropped" in words
    assert copy.follower.execute(f"SHOW TABLES FROM {database}") == [("old",)]
    status, words = answered(copy, b"yes\n")
    assert status == 0, words
    assert copy.follower.execute(f"SHOW TABLES FROM {database}") == [("t",)]
