"""The initial copy of a leader that rests: exact for every type, with all that is defined."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress

import pytest
from fix_copy import MODULE, Copies, Copying
from kit.faults import holding
from kit.helpers import assert_same_database, wait_until
from kit.programs import ENVIRONMENT, Program
from kit.type_cases import CASES, JSONS, SESSION

from docker.local.mysql_servers import Server


def test_a_table(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}",
        "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(20), KEY (b))",
        "INSERT INTO t (b) VALUES ('one'), (NULL), ('it''s\\n\\\\')",
    )  # fmt: skip
    copy = copies()
    copy.copy()
    assert_same_database(leader, copy.follower, database)
    leader.execute(f"UPDATE {database}.t SET b = 'two'")
    copy.follow()
    copy.same_gtids()


def contents(server: Server, database: str, number: int, exact: str) -> list[tuple[object, ...]]:
    return server.execute(f"SELECT id, {exact} FROM {database}.t{number} ORDER BY id")


@pytest.mark.parametrize("by", ["load", "insert"])
def test_every_type_and_odd_value(copies: Copies, leader: Server, database: str, by: str) -> None:
    """By LOAD DATA, and by INSERT where the follower takes no local files; with a key, and without one."""
    cases = [*CASES, JSONS]
    leader.execute(f"CREATE DATABASE {database}")
    for number, case in enumerate(cases):
        leader.execute(
            SESSION, f"CREATE TABLE t{number} (id INT PRIMARY KEY, c {case.type})",
            *(f"INSERT INTO t{number} VALUES ({place}, {value})" for place, value in enumerate([*case.values, "NULL"])),
            *([] if case is JSONS else [f"CREATE TABLE u{number} SELECT * FROM t{number}"]),
            database=database,
        )  # fmt: skip
    copy = copies()
    if by == "insert":
        copy.follower.execute("SET GLOBAL local_infile = OFF")
    copy.copy()
    for number, case in enumerate(cases):
        assert contents(leader, database, number, case.exact) == contents(
            copy.follower, database, number, case.exact
        ), case.id
    assert_same_database(leader, copy.follower, database)
    copy.follow()


OBJECTS = (
    "CREATE TABLE parent (id INT PRIMARY KEY, code VARCHAR(20) CHARACTER SET latin1, UNIQUE KEY (code), CHECK (id > 0))",
    "CREATE TABLE child (id INT AUTO_INCREMENT, parent INT, note TEXT, hidden INT INVISIBLE DEFAULT 7,"
    " twice INT AS (hidden * 2) STORED, thrice INT AS (parent * 3), PRIMARY KEY (id), KEY (twice), FULLTEXT KEY (note),"
    " KEY ((parent + 1)), CONSTRAINT belongs FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE)"
    " AUTO_INCREMENT = 1000 COMMENT 'it''s'",
    "CREATE TABLE parted (id INT, at DATE, PRIMARY KEY (id, at), KEY (at)) PARTITION BY RANGE (YEAR(at))"
    " (PARTITION p0 VALUES LESS THAN (2000), PARTITION p1 VALUES LESS THAN MAXVALUE)",
    "CREATE TABLE named (a VARCHAR(9) NOT NULL, b BINARY(4) NOT NULL, n INT, UNIQUE KEY pair (a, b), KEY (n))",
    "CREATE TABLE counted (n INT, id INT AUTO_INCREMENT, KEY (id))",
    "CREATE TABLE said (id INT PRIMARY KEY) COMMENT 'begins with AUTO_INCREMENT=9'",
    "CREATE VIEW last_of_all AS SELECT * FROM first_of_all",
    "INSERT INTO parent VALUES (1, 'ä'), (2, 'b')",
    "INSERT INTO child (parent, note, hidden) VALUES (1, 'one', 1), (NULL, 'none', 2), (2, 'two', NULL)",
    "INSERT INTO parted VALUES (1, '1999-01-01'), (2, '2020-01-01')",
    "INSERT INTO named VALUES ('a', 'x', 1), ('a', 'y', 2), ('b', 'x', NULL)",
    "INSERT INTO counted (n) VALUES (5), (5), (6)",
    "CREATE FUNCTION plus_one (n INT) RETURNS INT DETERMINISTIC RETURN n + 1",
    "CREATE PROCEDURE twice () BEGIN SELECT 1; SELECT ';'; END",
    "CREATE EVENT cleaning ON SCHEDULE EVERY 1 DAY DO DELETE FROM parted WHERE id < 0",
    "CREATE TRIGGER writes BEFORE INSERT ON parent FOR EACH ROW SET NEW.code = UPPER(NEW.code)",
)  # fmt: skip


def test_all_that_is_defined(copies: Copies, leader: Server, database: str) -> None:
    first = f"CREATE DATABASE {database}", f"USE {database}", "CREATE VIEW first_of_all AS SELECT 1 AS one"
    leader.execute(*first, *OBJECTS, f"ALTER DATABASE {database} COLLATE utf8mb4_bin")
    copy = copies()
    copy.copy()
    assert_same_database(leader, copy.follower, database)
    for question in (
        f"SHOW CREATE DATABASE {database}", f"SHOW CREATE TABLE {database}.child", f"SHOW CREATE FUNCTION {database}.plus_one",
        f"SHOW CREATE PROCEDURE {database}.twice", f"SELECT * FROM {database}.last_of_all",
        f"SELECT id, hidden, twice, thrice FROM {database}.child",
    ):  # fmt: skip
        assert leader.execute(question) == copy.follower.execute(question)
    assert "DISABLE ON" in copy.follower.execute(f"SHOW CREATE EVENT {database}.cleaning")[0][3]
    assert not copy.follower.execute(f"SHOW TRIGGERS FROM {database}")
    leader.execute("DELETE FROM parent WHERE id = 1", "INSERT INTO counted (n) VALUES (7)", database=database)
    copy.follow()


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


def test_one_server_is_not_its_own_follower(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT PRIMARY KEY)")
    copy = copies()
    text = copy.profile.read_text()
    copy.profile.write_text(text.replace(str(copy.follower.port), str(leader.port)))
    for arguments in ([], ["--replace"]):
        copy.refused("the same server_uuid", arguments=arguments)
    text = text.replace(str(leader.port), "PORT").replace(str(copy.follower.port), str(leader.port))
    copy.profile.write_text(text.replace("PORT", str(copy.follower.port)))
    copy.refused("holds what the server", "wrote", arguments=["--replace"])
    assert leader.execute(f"SHOW TABLES FROM {database}") == [("t",)]


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


def test_a_topic_that_begins_too_late(copies: Copies, plain_leader: Server, database: str) -> None:
    plain_leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT PRIMARY KEY)")
    copy = copies(plain=True, source=plain_leader, start="latest")
    copy.refused("does not reach back", "FLUSH BINARY LOGS")
    plain_leader.execute("FLUSH BINARY LOGS", f"INSERT INTO {database}.t VALUES (1)")
    copy.copy()
    copy.follow()


def test_another_history(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(f"CREATE DATABASE {database}")
    copy = copies()
    uuid = leader.value("SELECT @@server_uuid")
    copy.follower.execute(f"SET GLOBAL gtid_purged = '+{uuid}:999999'")
    copy.refused(f"{uuid}:999999", "another history", "RESET BINARY LOGS AND GTIDS")


def test_what_cannot_be_copied(copies: Copies, leader: Server, database: str) -> None:
    """It is refused before what the follower has is dropped."""
    leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT) ENGINE = MyISAM")
    copy = copies()
    copy.refused(f"{database}.t", "MyISAM", "ENGINE=InnoDB")
    copy.follower.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.kept (a INT)")
    copy.refused(f"{database}.t", "MyISAM", arguments=("--replace",))
    assert copy.follower.execute(f"SHOW TABLES FROM {database}") == [("kept",)]


def test_statements_between_two_rounds(copies: Copies, leader: Server, database: str) -> None:
    """A copy that is killed when all ranges are there, and statements that rows do not tell of, before it goes on."""
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}",
        *(f"CREATE TABLE {name} (a INT PRIMARY KEY, b INT)" for name in ("kept", "cut", "gone", "one", "two", "wider")),
        *(f"INSERT INTO {name} VALUES (1, 1), (2, {number})" for number, name in enumerate(("kept", "cut", "gone", "one", "two", "wider"))),
    )  # fmt: skip
    copy = copies()
    copy.killed("moment:executed", "before", 1)
    leader.execute(
        "TRUNCATE TABLE cut", "DROP TABLE gone", "RENAME TABLE one TO swap, two TO one, swap TO two",
        "ALTER TABLE wider ADD c INT DEFAULT 9", "CREATE TABLE new (a INT PRIMARY KEY)", "INSERT INTO new VALUES (5)",
        "CREATE VIEW seen AS SELECT * FROM new", "UPDATE kept SET b = 7", database=database,
    )  # fmt: skip
    copy.copy()
    copy.follow()


#: statements that may not change a definition now
WAITING = (
    "SELECT COUNT(*) FROM performance_schema.metadata_locks"
    " WHERE object_type = 'BACKUP LOCK' AND lock_status = 'PENDING'"
)


def goes_on(program: Program) -> bool:
    """Let it go on if it stands still, now or a moment later; tell whether it has ended."""
    if program.running:
        os.kill(program.pid, signal.SIGCONT)
    return not program.running


def test_limits_and_settings(copies: Copies, leader: Server, database: str) -> None:
    """Statements that change definitions wait when they are told to, rows are read as slowly as is allowed."""
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE left_out (id INT)",
        f"INSERT INTO t VALUES {', '.join(f'({number})' for number in range(500))}", "ANALYZE TABLE t",
    )  # fmt: skip
    copy = copies(
        copy={"range_rows": 100, "hold_ddl": True}, limits={"rows_per_second": 100, "connections": 1},
        filters={"include_dbs": [database], "exclude_tables": [f"{database}.left_out"]},
    )  # fmt: skip
    began = time.monotonic()
    alter = f"ALTER TABLE {database}.t ADD COLUMN n INT DEFAULT 3"
    statement = threading.Thread(target=leader.execute, args=(alter,), daemon=True)
    program = copy.program.start(until="cdc_consumer.copy.rows.task:_copy", calls=2)
    with ExitStack() as stack:
        stack.callback(program.kill)
        wait_until(lambda: "copying" in program.stderr, "it copies", alive=[program])
        statement.start()
        wait_until(lambda: leader.value(WAITING), "the statement waits", alive=[program])
        wait_until(lambda: goes_on(program), "it ends")
    assert program.status == 0, program.stderr
    statement.join()
    assert time.monotonic() - began > 2, "it read faster than it may"
    assert copy.follower.execute(f"SHOW TABLES FROM {database}") == [("t",)]
    assert copy.follower.value(f"SELECT COUNT(*) FROM {database}.t") == 500


def test_a_request_to_stop_ends_a_wait_between_rows(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "CREATE TABLE t (id INT PRIMARY KEY)",
        f"INSERT INTO t VALUES {', '.join(f'({number})' for number in range(1000))}", "ANALYZE TABLE t",
    )  # fmt: skip
    copy = copies(limits={"rows_per_second": 1, "connections": 1})
    copy.program.start()
    wait_until(lambda: "copying" in copy.program.stderr, "it copies", alive=[copy.program])
    assert copy.program.stop() == 1, copy.program.stderr
    assert "asked to stop, and the copy is not whole" in copy.program.stderr


def test_a_table_without_a_key_that_may_not_be_locked(copies: Copies, plain_leader: Server, database: str) -> None:
    """Without GTIDs nothing tells which part of the current binlog file a snapshot shows."""
    plain_leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT)")
    copy = copies(plain=True, source=plain_leader, copy={"lock_keyless": False})
    plain_leader.execute(f"INSERT INTO {database}.t VALUES (1), (1)")
    copy.refused(f"{database}.t", "has no key", "lock_keyless")


def test_a_table_without_a_key_that_is_locked_by_others(copies: Copies, plain_leader: Server, database: str) -> None:
    plain_leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT)")
    copy = copies(plain=True, source=plain_leader)
    with holding(plain_leader, f"INSERT INTO {database}.t VALUES (1), (1)"):
        plain_leader.execute(f"INSERT INTO {database}.t VALUES (2)")
        copy.program.start()
        wait_until(lambda: "trying again" in copy.program.stderr, "it waits for the lock", alive=[copy.program])
    assert copy.program.wait() == 0, copy.program.stderr
    copy.follow()
