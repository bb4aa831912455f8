"""One difference between two schemas at a time: its grade, its words, and the SQL that mends it."""

from __future__ import annotations

import pytest
from kit.helpers import tables_of

#: a foreign key may refer to the first columns of a key
from kit.schema import RELAXED, compare, create, repair, schema_of

from cdc_consumer.parity.schema.compare import schema_mends
from docker.local.mysql_servers import Server

COLUMN = "CREATE TABLE t (id int PRIMARY KEY, a {})"
TABLE = "CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL, b varchar(20){}){}"
LIBRARY = "CREATE LIBRARY l LANGUAGE JAVASCRIPT AS $$ export const a = 'DEFINER={} ' $$"
ONE = [
    (COLUMN.format("int"), COLUMN.format("bigint"), "breaking", "column", "t.a is bigint on the follower, not int"),
    (COLUMN.format("int"), COLUMN.format("int unsigned"), "breaking", "column", "int unsigned"),
    (COLUMN.format("tinyint(1)"), COLUMN.format("tinyint"), "cosmetic", "column", "tinyint(1)"),
    (COLUMN.format("int(5) zerofill"), COLUMN.format("int(6) zerofill"), "breaking", "column", "zerofill"),
    (COLUMN.format("int"), COLUMN.format("int NOT NULL"), "breaking", "column", "may be NULL on the leader only"),
    (COLUMN.format("varchar(9)"), COLUMN.format("varchar(9) CHARACTER SET latin1"), "breaking", "column", "latin1_swedish_ci"),
    (COLUMN.format("varchar(9)"), COLUMN.format("varchar(9) COLLATE utf8mb4_bin"), "breaking", "column", "utf8mb4_bin"),
    (COLUMN.format("enum('x','y')"), COLUMN.format("enum('y','x')"), "breaking", "column", "enum"),
    (COLUMN.format("point SRID 4326"), COLUMN.format("point"), "breaking", "column", "SRID"),
    (COLUMN.format("int AS (id + 1)"), COLUMN.format("int AS (id + 1) STORED"), "breaking", "column", "VIRTUAL generated on the leader"),
    (COLUMN.format("int AS (id + 1) STORED"), COLUMN.format("int"), "breaking", "column", "not generated on the follower"),
    (COLUMN.format("int AS (id + 1)"), COLUMN.format("int AS (id + 2)"), "behaviour", "column", "another expression"),
    (COLUMN.format("int DEFAULT 1"), COLUMN.format("int DEFAULT 2"), "behaviour", "column", "DEFAULT '2' on the follower"),
    (COLUMN.format("int DEFAULT 1"), COLUMN.format("int"), "behaviour", "column", "DEFAULT NULL"),
    # information_schema shows both as '0x'
    (COLUMN.format("varbinary(9) DEFAULT 0x00aa"), COLUMN.format("varbinary(9) DEFAULT 0x00bb"), "behaviour", "column", "0x00BB"),
    (COLUMN.format("json DEFAULT (json_array(1))"), COLUMN.format("json DEFAULT (json_array(2))"), "behaviour", "column", "json_array"),
    (COLUMN.format("datetime DEFAULT NULL ON UPDATE now()"), COLUMN.format("datetime"), "behaviour", "column", "update of its row on the leader"),
    (COLUMN.format("int INVISIBLE"), COLUMN.format("int"), "behaviour", "column", "invisible on the leader"),
    (COLUMN.format("int COMMENT 'x'"), COLUMN.format("int"), "cosmetic", "column", "comment"),
    ("CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT)", "CREATE TABLE t (id int PRIMARY KEY)", "behaviour", "column", "AUTO_INCREMENT on the leader"),
    ("CREATE TABLE t (id int PRIMARY KEY, a int)", "CREATE TABLE t (id int PRIMARY KEY)", "breaking", "column", "t.a is missing"),
    ("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE t (id int PRIMARY KEY, a int)", "breaking", "column", "on the follower only"),
    ("CREATE TABLE t (id int PRIMARY KEY, a int)", "CREATE TABLE t (id int PRIMARY KEY, A int)", "breaking", "column", "is called A"),
    ("CREATE TABLE t (id int PRIMARY KEY, a int, b int)", "CREATE TABLE t (id int PRIMARY KEY, b int, a int)", "cosmetic", "table", "order"),
    (TABLE.format("", ""), "CREATE TABLE t (id int NOT NULL, a int NOT NULL, b varchar(20))", "breaking", "key", "PRIMARY is missing"),
    (TABLE.format(", UNIQUE (b)", ""), TABLE.format("", ""), "integrity", "key", "t.b is missing"),
    (TABLE.format(", UNIQUE (b)", ""), TABLE.format(", KEY (b)", ""), "integrity", "key", "defined differently"),
    (TABLE.format(", KEY (a)", ""), TABLE.format("", ""), "performance", "key", "t.a is missing"),
    (TABLE.format("", ""), TABLE.format(", KEY (a)", ""), "performance", "key", "on the follower only"),
    (TABLE.format(", KEY (a)", ""), TABLE.format(", KEY (a) INVISIBLE", ""), "performance", "key", "defined differently"),
    (TABLE.format(", KEY k (a)", ""), TABLE.format(", KEY k (a DESC)", ""), "performance", "key", "defined differently"),
    (TABLE.format(", KEY k (b(5))", ""), TABLE.format(", KEY k (b(6))", ""), "performance", "key", "defined differently"),
    (TABLE.format(", KEY k ((a + 1))", ""), TABLE.format(", KEY k ((a + 2))", ""), "performance", "key", "defined differently"),
    (TABLE.format(", FULLTEXT KEY k (b) WITH PARSER ngram", ""), TABLE.format(", FULLTEXT KEY k (b)", ""), "performance", "key", "defined differently"),
    (TABLE.format(", KEY k (a)", ""), TABLE.format(", KEY l (a)", ""), "behaviour", "key", "is called l"),
    (TABLE.format(", KEY a_2 (a)", ""), TABLE.format(", KEY (a)", ""), "cosmetic", "key", "is called a "),
    (TABLE.format(", KEY k (a) COMMENT 'x'", ""), TABLE.format(", KEY k (a) INVISIBLE", ""), "performance", "key", "defined differently"),
    (TABLE.format(", KEY k (a) COMMENT 'x'", ""), TABLE.format(", KEY k (a)", ""), "cosmetic", "key", "comment"),
    (TABLE.format(", CHECK (a > 0)", ""), TABLE.format("", ""), "integrity", "check", "is missing"),
    (TABLE.format(", CHECK (a > 0)", ""), TABLE.format(", CHECK (a > 1)", ""), "integrity", "check", "defined differently"),
    (TABLE.format(", CHECK (a > 0)", ""), TABLE.format(", CHECK (a > 0) NOT ENFORCED", ""), "integrity", "check", "defined differently"),
    (TABLE.format(", CONSTRAINT c1 CHECK (a > 0)", ""), TABLE.format(", CONSTRAINT c2 CHECK (a > 0)", ""), "behaviour", "check", "is called c2"),
    (TABLE.format(", KEY (a), FOREIGN KEY (a) REFERENCES t (id)", ""), TABLE.format(", KEY (a)", ""), "integrity", "foreign key", "missing"),
    (
        TABLE.format(", FOREIGN KEY (a) REFERENCES t (id) ON DELETE CASCADE", ""),
        TABLE.format(", FOREIGN KEY (a) REFERENCES t (id)", ""), "integrity", "foreign key", "defined differently",
    ),
    (TABLE.format("", " COMMENT 'x'"), TABLE.format("", " COMMENT 'it''s'"), "cosmetic", "table", "comment"),
    (TABLE.format("", " ROW_FORMAT=COMPRESSED"), TABLE.format("", ""), "cosmetic", "table", "ROW_FORMAT"),
    (TABLE.format("", ""), TABLE.format("", " STATS_PERSISTENT=1"), "cosmetic", "table", "STATS_PERSISTENT"),
    (TABLE.format("", ""), TABLE.format("", " ENGINE=MyISAM"), "breaking", "table", "engine MyISAM on the follower"),
    (TABLE.format("", " ENGINE=MyISAM"), TABLE.format("", ""), "expected", "table", "engine InnoDB on the follower"),
    (
        "CREATE TABLE t (id int PRIMARY KEY) DEFAULT CHARSET latin1", "CREATE TABLE t (id int PRIMARY KEY)",
        "behaviour", "table", "default collation",
    ),
    (TABLE.format("", " PARTITION BY HASH (id) PARTITIONS 3"), TABLE.format("", ""), "performance", "partition", "partitioned"),
    (TABLE.format("", ""), TABLE.format("", " PARTITION BY KEY (id) PARTITIONS 3"), "performance", "partition", "partitioned"),
    (
        TABLE.format("", " PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (9), PARTITION q VALUES LESS THAN (99))"),
        TABLE.format("", " PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (9))"), "breaking", "partition", "partitioned",
    ),
    ("CREATE TABLE t (id int)", "DO 0", "breaking", "table", "t is missing"),
    ("DO 0", "CREATE TABLE t (id int)", "breaking", "table", "on the follower only"),
    ("CREATE VIEW v AS SELECT 'it''s' AS a", "DO 0", "behaviour", "view", "v is missing"),
    ("CREATE VIEW v AS SELECT 1 AS a", "CREATE VIEW v AS SELECT 2 AS a", "behaviour", "view", "defined differently"),
    ("CREATE VIEW v AS SELECT 1 AS a", "CREATE ALGORITHM=TEMPTABLE VIEW v AS SELECT 1 AS a", "behaviour", "view", "defined differently"),
    (r"CREATE PROCEDURE p() SELECT 'a\\b'", r"CREATE PROCEDURE p() SELECT 'a\b'", "behaviour", "routine", "defined differently"),
    ("CREATE FUNCTION f(a int) RETURNS int DETERMINISTIC RETURN a", "DO 0", "behaviour", "routine", "f is missing"),
    ("DO 0", "CREATE PROCEDURE p() BEGIN SELECT 1; END", "behaviour", "routine", "on the follower only"),
    ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DO DO 1", "DO 0", "behaviour", "event", "e is missing"),
    (
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DISABLE DO DO 1",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DO DO 1", "behaviour", "event", "ENABLED on the follower",
    ),
    (LIBRARY.format("a@b"), LIBRARY.format("c@d"), "behaviour", "routine", "defined differently"),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "ours", "grade", "kind", "words"), ONE)
def test_one_difference(
    leader: Server, follower: Server, database: str, theirs: str, ours: str, grade: str, kind: str, words: str
) -> None:
    create(leader, database, theirs)
    create(follower, database, ours)
    (found,) = compare(leader, follower, database)
    assert (found.grade, found.object, found.database) == (grade, kind, database)
    assert words in found.text
    repair(leader, follower, database)


#: a schema and another spelling of it
SAME = [
    (
        "CREATE TABLE t (a int(11), b varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci, c datetime DEFAULT now(), KEY (a) USING BTREE)",
        "CREATE TABLE t (a int, b varchar(9), c datetime DEFAULT CURRENT_TIMESTAMP(), KEY (a))",
    ),
    (
        "CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, b varchar(9) CHARACTER SET latin1) AUTO_INCREMENT=7",
        "CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, b varchar(9) CHARACTER SET latin1)",
    ),
    (
        "CREATE TABLE t (id int, a int, CONSTRAINT t_chk_1 CHECK (id > 0), CONSTRAINT t_chk_2 CHECK (a > _latin1'1'))",
        "CREATE TABLE t (id int, a int, CONSTRAINT t_chk_5 CHECK (a > _utf8mb4'1'), CONSTRAINT t_chk_1 CHECK (id > 0))",
    ),
]


@pytest.mark.parametrize(("theirs", "ours"), SAME)
def test_another_spelling_is_no_difference(
    leader: Server, follower: Server, database: str, theirs: str, ours: str
) -> None:
    create(leader, database, theirs)
    create(follower, database, ours)
    assert compare(leader, follower, database) == []
    assert schema_mends(schema_of(leader, database), schema_of(follower, database)) == []


def test_a_definer_is_kept(leader: Server, follower: Server, database: str) -> None:
    """With whose rights something runs is a part of what it does."""
    objects = (
        "CREATE DEFINER = {} VIEW v AS SELECT 1",
        "CREATE DEFINER = {} PROCEDURE p() SELECT 1",
        "CREATE DEFINER = {} EVENT e ON SCHEDULE AT '2037-01-01 00:00:00' DISABLE DO DO 1",
    )
    create(leader, database, *(sql.format("one@h") for sql in objects))
    create(follower, database, *(sql.format("`t'wo`@`%`") for sql in objects))
    found = compare(leader, follower, database)
    assert [(each.grade, each.object) for each in found] == [
        ("behaviour", kind) for kind in ("event", "routine", "view")
    ]
    words = "has the definer `t'wo`@`%` on the follower, `one`@`h` on the leader"
    assert all(words in each.text for each in found)
    repair(leader, follower, database)


def test_an_introducer_says_what_bytes_mean(leader: Server, follower: Server, database: str) -> None:
    objects = (
        "CREATE TABLE t (id int PRIMARY KEY, a varchar(9) DEFAULT (concat(_{0} x'c3a9')), b int AS (char_length(_{0} x'c3a9')),"
        " CHECK (a <> _{0} x'c3a9'), KEY k ((concat(a, _{0} x'c3a9'))))",
        "CREATE VIEW v AS SELECT _{0} x'c3a9' AS a",
    )
    for server, charset in ((leader, "utf8mb4"), (follower, "latin1")):
        create(server, database, *(sql.format(charset) for sql in objects))
    found = [each.text.partition(".")[2] for each in compare(leader, follower, database)]
    assert [text.split()[0] for text in found] == ["t.a", "t.b", "t.k", "t.t_chk_1", "v"], found
    repair(leader, follower, database)


def test_a_read_only_database(leader: Server, follower: Server, database: str) -> None:
    """What is read only on the leader is not so on a follower: no binlog has it."""
    for server in (leader, follower):
        create(server, database, "CREATE TABLE t (a int)")
    try:
        follower.execute(f"ALTER DATABASE {database} READ ONLY = 1")
        (found,) = compare(leader, follower, database)
        assert (found.grade, found.object) == ("breaking", "database") and "read only on the follower" in found.text
        leader.execute(f"ALTER TABLE {database}.t ADD b int")
        repair(leader, follower, database)
        leader.execute(f"ALTER DATABASE {database} READ ONLY = 1")
        (found,) = compare(leader, follower, database)
        assert found.grade == "expected"
    finally:
        for server in (leader, follower):
            server.execute(f"ALTER DATABASE {database} READ ONLY = 0")


def test_a_timestamp_default_is_a_moment(leader: Server, follower: Server, database: str) -> None:
    """information_schema shows what was typed, in whatever time zone it was."""
    table = "CREATE TABLE t (a timestamp DEFAULT '2020-01-01 {}:00:00')"
    create(leader, database, "SET time_zone = '+02:00'", table.format("02"))
    create(follower, database, "SET time_zone = '+00:00'", table.format("00"))
    assert compare(leader, follower, database) == []
    follower.execute("SET time_zone = '+01:00'", f"ALTER TABLE {database}.t ALTER a SET DEFAULT '2020-01-01 00:00:00'")
    (found,) = compare(leader, follower, database)
    assert found.grade == "behaviour"
    repair(leader, follower, database)


def test_databases(leader: Server, follower: Server, database: str) -> None:
    missing, extra, other = (f"{database}_{index}" for index in range(3))
    create(leader, missing, "CREATE TABLE t (a int)", "CREATE VIEW v AS SELECT a FROM t")
    create(follower, extra, "CREATE TABLE t (a int)")
    create(leader, other)
    create(follower, other, f"ALTER DATABASE {other} COLLATE latin1_bin")
    found = compare(leader, follower, missing, extra, other)
    assert [(each.grade, each.object) for each in found] == [
        ("breaking", "database"), ("breaking", "database"), ("behaviour", "database"),
        ("breaking", "table"), ("breaking", "table"), ("behaviour", "view"),
    ]  # fmt: skip
    repair(leader, follower, missing, extra, other)


def test_triggers_belong_to_the_leader(leader: Server, follower: Server, database: str) -> None:
    table, trigger = "CREATE TABLE t (a int)", "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1"
    create(leader, database, table, trigger)
    create(follower, database, table)
    (found,) = compare(leader, follower, database)
    assert (found.grade, found.object, found.parent, found.name, found.fix) == ("expected", "trigger", "t", "r", "")
    create(follower, database, trigger)
    (found,) = compare(leader, follower, database)
    assert (found.grade, found.object, found.name) == ("behaviour", "trigger", "r")
    repair(leader, follower, database)


def test_an_object_keeps_what_it_was_created_with(leader: Server, follower: Server, database: str) -> None:
    create(
        leader, database,
        "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES', collation_connection = 'utf8mb4_bin', time_zone = '+03:00'",
        f"ALTER DATABASE {database} COLLATE latin1_bin",
        """CREATE PROCEDURE "p; é"(a char(1)) COMMENT 'c' BEGIN SELECT "a", 'é\\'; END""",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DO BEGIN SET @a = 'é\\'; END",
        "CREATE VIEW w AS SELECT 'é\\' AS a",
        "CREATE VIEW v AS SELECT a FROM w",
        f"ALTER DATABASE {database} COLLATE utf8mb4_0900_ai_ci",
    )  # fmt: skip
    create(follower, database)
    repair(leader, follower, database)
    assert tables_of(follower, database) == ["v", "w"]


def test_schemas_far_apart(leader: Server, follower: Server, database: str) -> None:
    """Foreign keys that stay while what they stand on is altered, one object in place of another, all at once."""
    create(
        leader, database,
        RELAXED,
        "CREATE TABLE p (id bigint unsigned AUTO_INCREMENT, a int, PRIMARY KEY (id, a), KEY (a))",
        "CREATE TABLE c (id int PRIMARY KEY, p bigint unsigned, v int AS (id * 2), CONSTRAINT stays FOREIGN KEY (p) REFERENCES p (id))",
        "CREATE TABLE was_view (id int)",
        "CREATE VIEW was_table AS SELECT id FROM was_view",
        "CREATE VIEW a AS SELECT id FROM was_table",
    )  # fmt: skip
    create(
        follower, database,
        "CREATE TABLE p (id int PRIMARY KEY, b int)",
        "CREATE TABLE c (p int, id int AUTO_INCREMENT, v int AS (p) STORED, PRIMARY KEY (id, p), KEY other (p), CONSTRAINT stays FOREIGN KEY (p) REFERENCES p (id))",
        "CREATE TABLE was_table (id int PRIMARY KEY)",
        "CREATE TABLE gone (id int, FOREIGN KEY (id) REFERENCES was_table (id))",
        "CREATE VIEW was_view AS SELECT 1 AS id",
    )  # fmt: skip
    repair(leader, follower, database)


# reading
