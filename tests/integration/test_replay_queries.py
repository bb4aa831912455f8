"""Statements other than row changes: in the session they ran in, or not at all."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
from fix_replay import COLUMNS, Stage, row
from kit.events import string

from shared.errors import CdcError, FollowerError, causes
from shared.profile import Filters


def test_a_query_runs_in_its_session(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create()
    database = stage.database
    ansi_quotes, no_backslash = 4, 1 << 20
    stage.log.ddl('CREATE TABLE "q" ("a" INT)', database, sql_mode=ansi_quotes)
    stage.log.ddl(r"CREATE TABLE n (a VARCHAR(9) DEFAULT '\')", database, sql_mode=no_backslash)
    stage.log.ddl("CREATE TABLE z (d DATE DEFAULT '0000-00-00')", database, sql_mode=0)
    stage.log.ddl("CREATE TABLE c (a INT COMMENT '注释')".encode("gbk"), database, character_set_client=28)
    stage.log.ddl("ALTER TABLE t ADD ts TIMESTAMP DEFAULT '2024-01-01 12:00:00'", database, time_zone="+05:00")
    stage.log.ddl("CREATE TABLE f (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES later (a))", database,
                  foreign_key_checks=0)  # fmt: skip
    stage.log.ddl("CREATE TABLE d (a VARCHAR(9)) CHARACTER SET utf8mb4", database, default_collation_for_utf8mb4=45)
    stage.log.ddl(f"CREATE DATABASE {database}_l", f"{database}_l", collation_server=8)
    # the rows after them need the consumer's own session again
    stage.log.add(f"{database}.n", ["a"], [string("b\\s 名")])
    stage.replay()
    execute = stage.server.execute
    assert execute(f"SELECT a FROM {database}.n") == [("b\\s 名",)]
    assert stage.server.value(f"SELECT COLUMN_DEFAULT FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{database}'"
                              " AND TABLE_NAME = 'n'") == "\\"  # fmt: skip
    assert stage.server.value("SELECT COLUMN_COMMENT FROM information_schema.COLUMNS"
                              f" WHERE TABLE_SCHEMA = '{database}' AND TABLE_NAME = 'c'") == "注释"  # fmt: skip
    assert "2024-01-01 07:00:00" in execute("SET time_zone = '+00:00'", f"SHOW CREATE TABLE {database}.t")[0][1]
    assert "utf8mb4_general_ci" in execute(f"SHOW CREATE TABLE {database}.d")[0][1]
    assert "latin1" in execute(f"SHOW CREATE DATABASE {database}_l")[0][1]
    execute(f"DROP DATABASE {database}_l")


def test_the_moment_of_a_query(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    stage.log.ddl(
        "ALTER TABLE t ADD at DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)", stage.database, timestamp="1700000000.123456"
    )
    stage.replay()
    assert stage.rows(columns="CAST(at AS CHAR)") == [("2023-11-14 22:13:20.123456",)]


def test_databases_come_and_go(gtid_stage: Stage) -> None:
    stage, database = gtid_stage, gtid_stage.database
    stage.create()
    stage.log.ddl(f"DROP DATABASE {database}", database)
    stage.log.ddl(f"CREATE DATABASE {database} CHARACTER SET latin1", database)
    stage.log.ddl("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))", database)
    stage.log.ddl(f"ALTER DATABASE {database} CHARACTER SET utf8mb4", database)
    stage.log.ddl(f"CREATE TABLE {database}.u (a INT)", "")
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    stage.replay()
    assert stage.rows() == [(1, "a")]


def test_the_session_of_a_database_that_takes_no_part(gtid_stage: Stage) -> None:
    stage, database = gtid_stage, gtid_stage.database
    stage.filters = Filters(include_dbs=(database,))
    stage.create()
    stage.log.ddl(f"ALTER TABLE {database}.t ADD b INT", "elsewhere", [database])
    stage.replay()
    assert len(stage.rows(columns="id, name, b")) == 0
    stage.log.ddl(f"CREATE TABLE {database}.like_other LIKE other", "elsewhere", [database])
    with pytest.raises(FollowerError, match=r"names elsewhere\.other in a foreign key, in LIKE or in UNION"):
        stage.replay()


@pytest.mark.parametrize(
    ("sql", "session", "message"),
    [
        (
            "CREATE TABLE t (id INT)",
            {},
            r"CREATE TABLE t \(id INT\) in database \S+, sequence 2: .*already exists .*--skip",
        ),
        ("CREATE TABLE v (id INT)", {"wild_variable": 1}, "unknown session variable 'wild_variable'"),
        ("CREATE TABLE v (id INT)", {"sql_mode": "1; DROP"}, "session variable sql_mode cannot be"),
        ("CREATE TABLE v (id INT)", {"lower_case_table_names": 1}, "lower_case_table_names is 0 on the follower and 1"),
        ("CREATE TABLE v (id INT)", {"time_zone": "Mars/Base"}, "Mars/Base"),
        ("FROBNICATE v", {}, "cannot be replayed"),
    ],
)
def test_a_query_that_cannot_run_stops(stage: Stage, sql: str, session: dict[str, Any], message: str) -> None:
    stage.create()
    stage.log.ddl(sql, stage.database, **session)
    with pytest.raises(CdcError) as caught:
        stage.replay()
    assert re.search(message, causes(caught.value)), causes(caught.value)
    assert stage.position() == (1, 1)


def test_a_database_that_is_not_there_is_told_with_its_statement(stage: Stage) -> None:
    stage.log.ddl("CREATE TABLE t (id INT)", stage.database)
    words = rf"^CREATE TABLE t \(id INT\) in database {stage.database}, sequence 0, USE .*Unknown database .*--skip"
    with pytest.raises(FollowerError, match=words):
        stage.replay()


def test_triggers_stay_on_the_leader(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.create()
    stage.log.ddl("CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.name = 'x'", stage.database)
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    stage.log.ddl("DROP TRIGGER tr", stage.database)
    with caplog.at_level(logging.WARNING):
        stage.replay()
    assert stage.rows() == [(1, "a")]
    assert stage.position() == (4, 4)
    assert "CREATE TRIGGER tr" in caplog.text
    assert "DROP TRIGGER tr" in caplog.text


def test_events_do_not_run_twice(gtid_stage: Stage) -> None:
    stage = gtid_stage
    scheduler = stage.server.value("SELECT @@GLOBAL.event_scheduler")
    event = "CREATE EVENT e ON SCHEDULE EVERY 1 YEAR STARTS '2099-01-01 00:00:00' DO DELETE FROM t"
    stage.create()
    stage.replay()
    stage.log.ddl(event, stage.database)
    try:
        stage.server.execute("SET GLOBAL event_scheduler = ON")
        with pytest.raises(FollowerError, match="event_scheduler = OFF"):
            stage.replay()
        stage.server.execute("SET GLOBAL event_scheduler = OFF")
        stage.replay()
        assert stage.position() == (2, 2)
        stage.server.execute("SET GLOBAL event_scheduler = ON")
        with pytest.raises(FollowerError, match=rf"event {stage.database}\.e would run"):
            stage.replay()
    finally:
        stage.server.execute(f"SET GLOBAL event_scheduler = {scheduler}")
