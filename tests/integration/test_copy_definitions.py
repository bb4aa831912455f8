"""What is defined on the leader, and on the follower once more, to the letter."""

from __future__ import annotations

import random

from fix_copy import Copies

from docker.local.mysql_servers import Server

#: keys of a table with columns a and b (NOT NULL), c and d, and id, which may count up
KEYS = (
    "UNIQUE ba (b, a)", "UNIQUE a (a)", "UNIQUE z (b)", "UNIQUE c (c)", "KEY d (d)", "KEY a_d (a, d)", "UNIQUE e ((a + b))", "UNIQUE c_part (c(2))",
    "UNIQUE id (id)", "KEY id_2 (id, a)", "KEY y (id)", "FULLTEXT f (c)", "FULLTEXT e_f (c, d)", "PRIMARY KEY (d, a)", "UNIQUE id_b (id, b)",
)  # fmt: skip
TABLES = (
    "t (id INT PRIMARY KEY) COMMENT '/*!50100 PARTITION BY HASH (id) */'",
    "said (id INT PRIMARY KEY) COMMENT ' /*!50100 PARTITION BY HASH (id) */' PARTITION BY HASH (id)",
    "plain (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9) COLLATE latin1_bin, c CHAR(3) CHARACTER SET utf8mb4, d TEXT, e VARCHAR(9) DEFAULT 'COLLATE' NOT NULL)",
    "other (id INT PRIMARY KEY, a VARCHAR(9), g VARCHAR(20) AS (CONCAT(a, 'x')) STORED INVISIBLE, KEY (g)) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
)
#: a session that is not strict makes them
EQUAL_VALUES = (
    "equal (id INT PRIMARY KEY, e ENUM('a', 'b', 'Ä') COLLATE latin1_swedish_ci DEFAULT 'b', s SET('x', 'X') NOT NULL, n VARCHAR(9), KEY (e, n(4)), UNIQUE (n), FULLTEXT (n))",
    "counted (id INT AUTO_INCREMENT, e ENUM('a', 'A'), PRIMARY KEY (e, id), UNIQUE (id), CHECK (e IS NOT NULL)) AUTO_INCREMENT = 7 PARTITION BY KEY (id)",
)
VIEWS = (
    "v AS SELECT _latin1 x'e9' AS three",
    "w AS SELECT _binary x'fffe' AS four, _sjis x'835c' AS five, 'é' AS six",
    # the one that is read comes behind it by name
    "`z``z` AS SELECT 1 AS one",
    "a AS SELECT one FROM `z``z`",
)
#: their time has passed
EVENTS = ("e ON SCHEDULE AT '2020-01-01 00:00:00'", "f ON SCHEDULE EVERY 1 HOUR STARTS '2019-01-01' ENDS '2020-01-01'")


def test_tables_views_and_events(copies: Copies, leader: Server, database: str, seed: int) -> None:
    rng, options = random.Random(seed), "CHARACTER SET latin1 COLLATE latin1_german1_ci"
    leader.execute(
        f"CREATE DATABASE {database} {options}", f"USE {database}", *(f"CREATE TABLE {each}" for each in TABLES)
    )
    for number in range(25):
        keys = rng.sample(KEYS, rng.randint(0, 6))
        counts = "AUTO_INCREMENT" if any(key.startswith(("UNIQUE id", "KEY id", "KEY y")) for key in keys) else ""
        columns = f"a INT NOT NULL, b INT NOT NULL, id INT NOT NULL {counts}, c VARCHAR(20), d VARCHAR(20) NOT NULL"
        leader.execute(f"CREATE TABLE k{number} ({', '.join((columns, *keys))})", database=database)
    leader.execute(
        "SET sql_mode = ''", *(f"CREATE TABLE {each}" for each in EQUAL_VALUES),
        "INSERT INTO equal (id, e, s, n) VALUES (1, 3, 2, 'x'), (2, 1, 3, NULL), (3, 0, 0, 'y')", database=database,
    )  # fmt: skip
    leader.execute(*(f"CREATE VIEW {each}" for each in VIEWS), database=database)
    then = "SET SESSION timestamp = UNIX_TIMESTAMP('2019-06-01')"
    leader.execute(then, *(f"CREATE EVENT {each} DISABLE DO SELECT 1" for each in EVENTS), database=database)
    copy = copies()
    copy.copy()
    for name, kind in leader.execute(f"SHOW FULL TABLES FROM {database}"):
        if kind == "BASE TABLE":
            question = f"SHOW CREATE TABLE {database}.{name}"
            assert copy.follower.execute(question) == leader.execute(question)
    for question in ("HEX(three) FROM v", "HEX(four), HEX(five), HEX(six) FROM w"):
        assert copy.follower.execute(f"SELECT {question}", database=database) == leader.execute(
            f"SELECT {question}", database=database
        )
    leader.execute("ALTER EVENT e COMMENT 'it is there'", database=database)
    # the tests read definitions as UTF-8
    leader.execute("DROP VIEW v, w", database=database)
    copy.follow()
    question = f"SELECT EVENT_NAME, EXECUTE_AT, STARTS, ENDS, EVENT_COMMENT FROM information_schema.EVENTS WHERE EVENT_SCHEMA = '{database}'"
    found = sorted(leader.execute(question))
    assert len(found) == len(EVENTS) and sorted(copy.follower.execute(question)) == found
