"""Statements in the forms in which a leader logs them, through both programs to a follower."""

from __future__ import annotations

import pytest
from fix_replication import Replicate, Replication, assert_refused
from kit.helpers import tables_of

from docker.local.mysql_servers import Server


def definition(server: Server, table: str) -> str:
    # with show_create_table_verbosity a leader logs what is the default anyway
    return str(server.execute(f"SHOW CREATE TABLE {table}")[0][1]).replace(" ROW_FORMAT=DYNAMIC", "")


SELECTS = (
    "CREATE TABLE t ENGINE=InnoDB AS SELECT 1 AS a",
    "CREATE TABLE t CHARSET=latin1 COMMENT='START TRANSACTION' ROW_FORMAT=COMPACT AS SELECT 'x' AS a",
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT=7 AS SELECT 5 AS b",
    "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 2 AS SELECT 3 AS a",
    "CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS `start transaction`, 2 AS b",
)
#: in this session a leader logs a name that needs quotes without them, which no server can read
UNQUOTED = "SET sql_quote_show_create = 0"
SESSIONS = (
    "SET sql_mode = DEFAULT",
    "SET sql_mode = ANSI_QUOTES",
    UNQUOTED,
    "SET show_create_table_verbosity = 1",
)


@pytest.mark.parametrize(
    ("session", "sql"),
    [(session, sql) for session in SESSIONS for sql in SELECTS if session != UNQUOTED or "`" not in sql],
)
def test_create_table_select_with_options(replication: Replication, session: str, sql: str) -> None:
    replication.play(session, sql)
    replication.replicate()
    table = f"{replication.database}.t"
    assert definition(replication.leader, table) == definition(replication.follower, table)
    rows = replication.leader.execute(f"SELECT * FROM {table}")
    assert rows
    assert replication.follower.execute(f"SELECT * FROM {table}") == rows


def test_alter_database_without_a_name(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    """It is the session's default database that is altered, and not the one the consumer used last."""
    other = f"{database}_2"
    replication = replicate(leader, follower, [database, other])
    leader.execute(
        f"CREATE DATABASE {database}", f"CREATE DATABASE {other}", f"USE {database}", "CREATE TABLE x (a INT)",
        f"USE {other}", "CREATE TABLE y (a INT)", f"USE {database}", "ALTER DATABASE CHARACTER SET latin1",
        "CREATE TABLE z (a VARCHAR(5))",
    )  # fmt: skip
    replication.replicate()
    for name in (database, other):
        query = f"SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{name}'"
        assert leader.value(query) == follower.value(query)
    assert definition(leader, f"{database}.z") == definition(follower, f"{database}.z")


def test_alter_database_as_the_first_statement_of_a_session(replication: Replication) -> None:
    replication.replicate()
    replication.play("ALTER DATABASE CHARACTER SET latin1")
    replication.replicate()


@pytest.mark.parametrize(
    "session",
    [
        "SET NAMES utf8mb4 COLLATE utf8mb4_0900_bin",
        "SET NAMES utf8mb4 COLLATE utf8mb4_ja_0900_as_cs",
        "SET collation_connection = utf32_unicode_ci",
        "SET collation_connection = utf16_general_ci",
        "SET collation_connection = ucs2_general_ci",
    ],
)
def test_any_collation_of_a_client(replication: Replication, session: str) -> None:
    replication.play(session, "CREATE TABLE t (a VARCHAR(9) DEFAULT 'x')", "INSERT INTO t VALUES (DEFAULT)")
    replication.replicate()
    replication.same()


def test_a_client_of_swe7_stops_and_is_passed_by_a_decision(replication: Replication) -> None:
    """Which bytes are its quotes cannot be told."""
    replication.play("CREATE TABLE t (a INT)", "SET NAMES swe7", "CREATE TABLE u LIKE t")
    assert_refused(replication.produce(), "swe7 is not supported", "cdc-producer --skip")


def test_a_default_database_that_is_gone(replication: Replication) -> None:
    gone = f"{replication.database}_gone"
    replication.leader.execute(f"CREATE DATABASE {gone}")
    with replication.leader.connect() as session, session.cursor() as cursor:
        cursor.execute(f"USE {gone}")
        replication.leader.execute(f"DROP DATABASE {gone}")
        cursor.execute(f"CREATE TABLE {replication.database}.t (a INT)")
    replication.replicate()
    assert tables_of(replication.follower, replication.database) == ["t"]


def test_a_default_database_that_is_gone_and_took_part(
    replicate: Replicate, leader: Server, follower: Server, database: str
) -> None:
    gone = f"{database}_gone"
    replication = replicate(leader, follower, [database, gone])
    leader.execute(f"CREATE DATABASE {database}", f"CREATE DATABASE {gone}")
    with leader.connect() as session, session.cursor() as cursor:
        cursor.execute(f"USE {gone}")
        leader.execute(f"DROP DATABASE {gone}")
        cursor.execute(f"CREATE TABLE {database}.t (a INT)")
    replication.replicate()
    assert tables_of(follower, database) == ["t"]


def test_who_alters_an_event_is_its_definer(replication: Replication) -> None:
    """Without the clause an event belongs to who altered it last, and that is not the consumer's account."""
    name = replication.database
    replication.leader.execute(f"CREATE USER `{name}`@localhost", f"GRANT ALL ON {name}.* TO `{name}`@localhost")
    try:
        event = "CREATE DEFINER=nobody@nowhere EVENT {} ON SCHEDULE EVERY 1 YEAR DISABLE DO SELECT 1"
        replication.play(event.format("e"), event.format("f"), event.format("g"))
        with replication.leader.connect(user=name) as session, session.cursor() as cursor:
            cursor.execute(f"USE {name}")
            cursor.execute("/*!50106 ALTER EVENT e COMMENT 'x' */")
            cursor.execute(f"ALTER EVENT {name}.f ENABLE")
            cursor.execute("ALTER EVENT g RENAME TO h")
        replication.replicate()
    finally:
        replication.leader.execute(f"DROP USER `{name}`@localhost")
    query = f"SELECT EVENT_NAME, DEFINER FROM information_schema.EVENTS WHERE EVENT_SCHEMA = '{name}'"
    events = sorted(replication.leader.execute(query))
    assert [definer for _, definer in events] == [f"{name}@localhost"] * 3
    assert sorted(replication.follower.execute(query)) == events


@pytest.mark.parametrize("kind", ["ENUM", "SET"])
@pytest.mark.parametrize("members", [r"'a\\b', 'c'", r"'a\nb', 'c\\n'", "'🎉', 'x'", "'it''s', 'a b'", r"'x\\', '\r'"])
def test_members_that_are_shown_otherwise(replication: Replication, kind: str, members: str) -> None:
    """The binlog has a member's own letters, information_schema escapes them or shows a question mark."""
    replication.play(
        f"CREATE TABLE t (e {kind}({members}))", "INSERT INTO t VALUES (1), (2)", "DELETE FROM t WHERE e = 2"
    )
    replication.replicate()
    replication.same()
