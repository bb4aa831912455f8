"""Two servers' schemas: every difference is found, graded, and removed by the SQL that comes with it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import pytest
from helpers import tables_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mysql_servers import Server

from cdc_consumer.parity.model import SchemaDifference, TableName
from cdc_consumer.parity.schema import read
from cdc_consumer.parity.schema.compare import compare_schemas, repair_statements
from cdc_consumer.parity.schema.read import Schema, read_schema, read_tables
from shared.errors import CdcError
from shared.filters import DatabaseFilter
from shared.mysql import Connection, MySQLError
from shared.profile import Filters

#: a foreign key may refer to the first columns of a key
RELAXED = "SET /*!80400 SESSION restrict_fk_on_non_standard_key = 0, */ SESSION sql_mode = ''"


@contextmanager
def connected(server: Server, **options: str) -> Iterator[Connection]:
    with closing(server.connect(charset="utf8mb4", **options)) as connection:
        yield connection


def schema_of(server: Server, *databases: str) -> Schema:
    with connected(server) as connection:
        return read_schema(connection, frozenset(databases))


def compare(leader: Server, follower: Server, *databases: str) -> list[SchemaDifference]:
    return compare_schemas(schema_of(leader, *databases), schema_of(follower, *databases))


def create(server: Server, database: str, *statements: str) -> None:
    server.execute(f"CREATE DATABASE IF NOT EXISTS {database}", f"USE {database}", *statements)


def repair(leader: Server, follower: Server, *databases: str) -> None:
    """Run what makes the follower's schema the leader's; what is left must be expected."""
    statements = repair_statements(schema_of(leader, *databases), schema_of(follower, *databases))
    try:
        follower.execute("DO 0", *statements, "SELECT 1")
    except MySQLError as error:
        raise AssertionError("\n".join([str(error), *statements])) from None
    left = [each.text for each in compare(leader, follower, *databases) if each.grade != "expected"]
    assert not left, "\n".join([*left, *statements])


# one difference each: on the leader, on the follower, how it is graded, words of its sentence
COLUMN = "CREATE TABLE t (id int PRIMARY KEY, a {})"
TABLE = "CREATE TABLE t (id int PRIMARY KEY, a int NOT NULL, b varchar(20){}){}"
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
    (TABLE.format(", UNIQUE (b)", ""), TABLE.format(", KEY (b)", ""), "integrity", "key", "another one"),
    (TABLE.format(", KEY (a)", ""), TABLE.format("", ""), "performance", "key", "t.a is missing"),
    (TABLE.format("", ""), TABLE.format(", KEY (a)", ""), "performance", "key", "on the follower only"),
    (TABLE.format(", KEY (a)", ""), TABLE.format(", KEY (a) INVISIBLE", ""), "performance", "key", "another one"),
    (TABLE.format(", KEY k (a)", ""), TABLE.format(", KEY k (a DESC)", ""), "performance", "key", "another one"),
    (TABLE.format(", KEY k (b(5))", ""), TABLE.format(", KEY k (b(6))", ""), "performance", "key", "another one"),
    (TABLE.format(", KEY k ((a + 1))", ""), TABLE.format(", KEY k ((a + 2))", ""), "performance", "key", "another one"),
    (TABLE.format(", FULLTEXT KEY k (b) WITH PARSER ngram", ""), TABLE.format(", FULLTEXT KEY k (b)", ""), "performance", "key", "another one"),
    (TABLE.format(", KEY k (a)", ""), TABLE.format(", KEY l (a)", ""), "behaviour", "key", "is called l"),
    (TABLE.format(", KEY a_2 (a)", ""), TABLE.format(", KEY (a)", ""), "cosmetic", "key", "is called a "),
    (TABLE.format(", KEY k (a) COMMENT 'x'", ""), TABLE.format(", KEY k (a) INVISIBLE", ""), "performance", "key", "another one"),
    (TABLE.format(", KEY k (a) COMMENT 'x'", ""), TABLE.format(", KEY k (a)", ""), "cosmetic", "key", "comment"),
    (TABLE.format(", CHECK (a > 0)", ""), TABLE.format("", ""), "integrity", "check", "is missing"),
    (TABLE.format(", CHECK (a > 0)", ""), TABLE.format(", CHECK (a > 1)", ""), "integrity", "check", "another one"),
    (TABLE.format(", CHECK (a > 0)", ""), TABLE.format(", CHECK (a > 0) NOT ENFORCED", ""), "integrity", "check", "another one"),
    (TABLE.format(", CONSTRAINT c1 CHECK (a > 0)", ""), TABLE.format(", CONSTRAINT c2 CHECK (a > 0)", ""), "behaviour", "check", "is called c2"),
    (TABLE.format(", KEY (a), FOREIGN KEY (a) REFERENCES t (id)", ""), TABLE.format(", KEY (a)", ""), "integrity", "foreign key", "missing"),
    (
        TABLE.format(", FOREIGN KEY (a) REFERENCES t (id) ON DELETE CASCADE", ""),
        TABLE.format(", FOREIGN KEY (a) REFERENCES t (id)", ""), "integrity", "foreign key", "another one",
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
    ("CREATE VIEW v AS SELECT 1 AS a", "CREATE VIEW v AS SELECT 2 AS a", "behaviour", "view", "another one"),
    ("CREATE VIEW v AS SELECT 1 AS a", "CREATE ALGORITHM=TEMPTABLE VIEW v AS SELECT 1 AS a", "behaviour", "view", "another one"),
    (r"CREATE PROCEDURE p() SELECT 'a\\b'", r"CREATE PROCEDURE p() SELECT 'a\b'", "behaviour", "routine", "another one"),
    ("CREATE FUNCTION f(a int) RETURNS int DETERMINISTIC RETURN a", "DO 0", "behaviour", "routine", "f is missing"),
    ("DO 0", "CREATE PROCEDURE p() BEGIN SELECT 1; END", "behaviour", "routine", "on the follower only"),
    ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DO DO 1", "DO 0", "behaviour", "event", "e is missing"),
    (
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DISABLE DO DO 1",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DO DO 1", "behaviour", "event", "ENABLED on the follower",
    ),
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
    ("CREATE DEFINER = 'one'@'h' VIEW v AS SELECT 1", "CREATE DEFINER = `t'wo`@`%` VIEW v AS SELECT 1"),
    ("CREATE DEFINER = 'one'@'h' PROCEDURE p() SELECT 1", "CREATE PROCEDURE p() SELECT 1"),
    (
        "CREATE EVENT e ON SCHEDULE AT '2037-01-01 00:00:00' DO DO 1",
        "CREATE DEFINER = a@b EVENT e ON SCHEDULE AT '2037-01-01 00:00:00' DO DO 1",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "ours"), SAME)
def test_another_spelling_is_no_difference(
    leader: Server, follower: Server, database: str, theirs: str, ours: str
) -> None:
    create(leader, database, theirs)
    create(follower, database, ours)
    assert compare(leader, follower, database) == []
    assert repair_statements(schema_of(leader, database), schema_of(follower, database)) == []


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


@pytest.fixture
def account(leader: Server, database: str) -> Iterator[str]:
    """An account without privileges, and tables, a trigger... for it to look at."""
    create(
        leader, database,
        "CREATE TABLE t (a int PRIMARY KEY, b int, KEY (b), CHECK (b > 0), FOREIGN KEY (b) REFERENCES t (a))",
        "CREATE VIEW v AS SELECT a FROM t",
        "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
        "CREATE PROCEDURE p() SELECT 1",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE DO DO 1",
        f"CREATE USER {database}",
        f"CREATE ROLE {database}_role",
        f"GRANT {database}_role TO {database}",
    )  # fmt: skip
    yield database
    leader.execute(f"DROP USER {database}", f"DROP ROLE {database}_role")


@contextmanager
def connected_as(server: Server, account: str) -> Iterator[Connection]:
    with connected(server, user=account) as connection, connection.cursor() as cursor:
        cursor.execute("SET ROLE ALL")
        yield connection


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["SELECT, SHOW VIEW, EVENT ON `{0}`.* TO {0}", "SHOW_ROUTINE ON *.* TO {0}_role"],
        ["SELECT, SHOW VIEW, TRIGGER ON `{0}%`.* TO {0}_role"],
        ["SELECT ON *.* TO {0}", "ALL ON `{0}`.`t` TO {0}"],
        ["SHOW_ROUTINE ON *.* TO {0}", "ALL ON `{0}\\_`.* TO {0}"],
    ],
)
def test_a_missing_privilege_is_refused(leader: Server, account: str, given: list[str]) -> None:
    """With the grants the error names everything is seen."""
    leader.execute("DO 0", *(f"GRANT {grant.format(account)}" for grant in given), "SELECT 1")
    with connected_as(leader, account) as connection, pytest.raises(CdcError) as caught:
        read_schema(connection, {account}, named=[account])
    leader.execute(*str(caught.value).partition("run on it: ")[2].split("; "), "SELECT 1")
    with connected_as(leader, account) as connection:
        schema = read_schema(connection, {account}, named=[account])
    assert schema == schema_of(leader, account)
    assert len(schema.objects) == 4


def test_databases_that_may_be_hidden_are_refused(leader: Server, account: str) -> None:
    leader.execute(f"GRANT ALL ON `{account}`.* TO {account}", f"GRANT SHOW_ROUTINE ON *.* TO {account}", "SELECT 1")
    with connected_as(leader, account) as connection:
        read_schema(connection, {account})
        with pytest.raises(CdcError, match=r"run on it: GRANT SHOW DATABASES ON \*\.\* TO"):
            read_schema(connection, DatabaseFilter(Filters(exclude_dbs=("other",))))


def test_tables_for_the_row_audit(leader: Server, database: str) -> None:
    create(
        leader, database,
        "SET sql_generate_invisible_primary_key = 1, show_gipk_in_create_table_and_information_schema = 0",
        "CREATE TABLE hidden (a int)",
        "CREATE TABLE t (b varchar(9) NOT NULL, a int NOT NULL, c int, d int AS (a + 1) STORED, e int AS (a + 2), PRIMARY KEY (a, b(3)),"
        " UNIQUE KEY whole (b, a), UNIQUE KEY nulls (c), UNIQUE KEY part (b(4)), UNIQUE KEY ex ((a + 1)), KEY other (a)) DEFAULT CHARSET latin1",
    )  # fmt: skip
    name, hidden = TableName(database, "t"), TableName(database, "hidden")
    with connected(leader) as connection:
        schema = read_schema(connection, {database})
        table = schema.tables[name]
        assert [column.name for column in table.columns] == ["b", "a", "c", "d", "e"]
        assert [column.generated for column in table.columns] == ["", "", "", "STORED", "VIRTUAL"]
        assert (table.columns[0].charset, table.columns[0].nullable, table.columns[2].nullable) == (
            "latin1",
            False,
            True,
        )
        assert (table.primary_key, table.unique_keys, table.engine) == (("a", "b"), (("b", "a"),), "InnoDB")
        assert schema.tables[hidden].primary_key == ("my_row_id",)
        assert read_tables(connection, [name, hidden, TableName(database, "none")]) == schema.tables
        assert read_tables(connection, []) == {}
        for change, noticed in (
            ("COMMENT 'x'", False),
            ("DROP KEY other", False),
            ("MODIFY c bigint", True),
            ("DROP KEY whole", True),
        ):
            before = read_tables(connection, [name])[name].fingerprint
            leader.execute(f"ALTER TABLE {name.sql} {change}")
            assert (read_tables(connection, [name])[name].fingerprint != before) is noticed, change


@pytest.mark.parametrize(
    "ddl", ["ALTER TABLE t ADD b int", "ALTER TABLE t ADD KEY (a)", "DROP TABLE t", "RENAME TABLE t TO v"]
)
def test_ddl_during_the_read(leader: Server, database: str, ddl: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No record is half before and half after it."""
    create(leader, database, "CREATE TABLE t (a int)")
    show_create, waiting = read._show_create, [ddl]

    def after_ddl(connection: Connection, kind: str, name: TableName) -> dict[str, object]:
        if waiting:
            create(leader, database, waiting.pop())
        return show_create(connection, kind, name)

    monkeypatch.setattr(read, "_show_create", after_ddl)
    found = schema_of(leader, database)
    assert not waiting
    assert found == schema_of(leader, database)


def test_a_schema_that_never_rests(leader: Server, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create(leader, database, "CREATE TABLE t (a int)")
    show_create, names = read._show_create, iter("bcdefgh")

    def after_ddl(connection: Connection, kind: str, name: TableName) -> dict[str, object]:
        create(leader, database, f"ALTER TABLE t ADD {next(names)} int")
        return show_create(connection, kind, name)

    monkeypatch.setattr(read, "_show_create", after_ddl)
    with pytest.raises(CdcError, match="altered during each of 5 attempts"):
        schema_of(leader, database)


def test_many_tables_are_read_at_once(leader: Server, database: str) -> None:
    create(
        leader,
        database,
        *(f"CREATE TABLE t{index} (id int PRIMARY KEY, a varchar(9), KEY (a))" for index in range(50)),
    )
    schema_of(leader, database)
    started = time.monotonic()
    assert len(schema_of(leader, database).tables) == 50
    assert time.monotonic() - started < 2


# random schemas

NUMBERS = [
    "int",
    "int unsigned NOT NULL DEFAULT 5",
    "bigint",
    "date NOT NULL",
    "decimal(10,2) COMMENT 'x'",
    "tinyint(1)",
    "year",
    "int INVISIBLE",
]
TEXTS = [
    "varchar(20)",
    "varchar(20) CHARACTER SET latin1",
    "varchar(30) COLLATE utf8mb4_bin NOT NULL",
    "text",
    "char(9) DEFAULT 'it''s\\\\'",
    "varchar(20) CHARACTER SET utf8mb3",
]
OTHERS = [
    "json DEFAULT (json_array('a', 1))", "timestamp NULL DEFAULT '2020-01-01 00:00:00'", "bit(3) DEFAULT b'101'",
    "datetime(3) DEFAULT now(3) ON UPDATE now(3)", "binary(4) DEFAULT 0x00ff", "enum('a','b''c') CHARACTER SET latin1",
    "point SRID 4326", "int AS (n + 1) STORED COMMENT 'y'", "int AS (n + 1)", "int AS (n * 2) INVISIBLE", "varchar(40) DEFAULT (uuid())",
    "int(5) zerofill", "double NOT NULL", "set('x','y')", "longblob",
]  # fmt: skip
KEYS = [
    "KEY kn (n)", "UNIQUE KEY un (n, k)", "UNIQUE KEY kn (k, n)", "KEY ks (s(5) DESC)", "KEY ks (s(6), n)", "KEY kx ((n + 1))", "KEY (k) INVISIBLE",
    "KEY kc (k) COMMENT 'c'", "UNIQUE KEY uk (k)", "KEY kd (k DESC, n)",
]  # fmt: skip
CHECKS = [
    "CHECK (s <> 'A')",
    "CONSTRAINT chk CHECK (s <> 'a')",
    "CONSTRAINT chk CHECK (s <> 'a') NOT ENFORCED",
    "CONSTRAINT named CHECK (n IS NOT NULL)",
]
OPTIONS = [
    "COMMENT = 'it''s'",
    "STATS_PERSISTENT = 1",
    "ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 8",
    "DEFAULT CHARSET = latin1",
    "ROW_FORMAT = REDUNDANT",
]
PARTITIONS = [
    "", "", "", "PARTITION BY HASH (k) PARTITIONS 3", "PARTITION BY KEY (k) PARTITIONS 2",
    "PARTITION BY RANGE (k) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)",
]  # fmt: skip
OBJECTS = [
    "CREATE VIEW a AS SELECT k FROM t", "CREATE VIEW b AS SELECT k, 'é' AS s FROM t WHERE k > 1", "CREATE TABLE b (x int)",
    "CREATE PROCEDURE p() BEGIN SELECT 'a\\'b'; END", "CREATE PROCEDURE p(a int) SELECT a", "CREATE FUNCTION a() RETURNS int NO SQL RETURN 1",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DISABLE DO DO 1", "CREATE EVENT e ON SCHEDULE EVERY 2 DAY STARTS '2030-01-01 00:00:00' DO DO 1",
]  # fmt: skip


def subset(items: Sequence[str], size: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(items), max_size=size, unique_by=name_in)


def name_in(definition: str) -> str:
    """What only one of them can be called; a view counts as a table."""
    words = definition.replace("VIEW", "TABLE").replace("UNIQUE KEY", "KEY").partition("(")[0].split()
    return " ".join(words[:3]) if len(words) > 1 else definition


@st.composite
def schemas(draw: st.DrawFn) -> list[str]:
    """Statements that create a table t, perhaps one that refers to it, and other objects."""
    kind = draw(st.sampled_from(["int", "bigint", "int unsigned"]))
    key = draw(st.sampled_from(["PRIMARY KEY (k)", "PRIMARY KEY (k, n)", ""]))
    partition = draw(st.sampled_from(PARTITIONS))
    others = [other for other in OTHERS if not (partition and other.startswith("point"))]
    columns = [
        f"k {kind} NOT NULL{' AUTO_INCREMENT' if key and draw(st.booleans()) else ''}",
        f"n {draw(st.sampled_from(NUMBERS))}",
        f"s {draw(st.sampled_from(TEXTS))}",
        *(f"{name} {draw(st.sampled_from(others))}" for name in draw(st.lists(st.sampled_from("xyz"), unique=True))),
    ]
    columns = draw(st.permutations(columns))
    lines = [*columns, *([key] if key else []), *draw(subset(KEYS, 4)), *draw(subset(CHECKS, 2))]
    options = draw(st.lists(st.sampled_from(OPTIONS), max_size=2, unique_by=lambda option: option.split()[0]))
    statements = [f"CREATE TABLE t ({', '.join(lines)}) {' '.join(options)} {partition}"]
    if key and not partition and draw(st.booleans()):
        action = draw(st.sampled_from(["", "ON DELETE CASCADE"]))
        statements.append(f"CREATE TABLE c (id int PRIMARY KEY, k {kind}, FOREIGN KEY (k) REFERENCES t (k) {action})")
    return [*statements, *draw(subset(OBJECTS, 4))]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(theirs=schemas(), ours=schemas())
def test_random_schemas(leader: Server, follower: Server, database: str, theirs: list[str], ours: list[str]) -> None:
    """Any schema becomes any other."""
    for server, statements in ((leader, theirs), (follower, ours)):
        server.execute(f"DROP DATABASE IF EXISTS {database}")
        create(server, database, RELAXED, *statements)
    if theirs == ours:
        assert compare(leader, follower, database) == []
    repair(leader, follower, database)
