"""The initial copy of a leader that rests: exact for every type, with all that is defined."""

from __future__ import annotations

import pytest
from fix_copy import Copies
from kit.helpers import assert_same_database
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
)


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
