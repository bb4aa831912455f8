"""Whoever can write to the topic can harm no database outside the filter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fix_replay import Stage
from kit.events import integer

from shared.errors import CdcError, causes
from shared.profile import Filters


@pytest.fixture
def victim(gtid_stage: Stage) -> Iterator[Stage]:
    """A follower with a database in the filter, and one beside it."""
    stage = gtid_stage
    stage.create()
    stage.filters = Filters(include_dbs=(stage.database,))
    stage.replay()
    stage.server.execute(
        f"CREATE DATABASE {stage.database}_v", f"CREATE TABLE {stage.database}_v.x (a INT)",
        f"INSERT INTO {stage.database}_v.x VALUES (1)",
    )  # fmt: skip
    yield stage
    assert stage.server.execute(f"SELECT a FROM {stage.database}_v.x") == [(1,)]
    assert stage.position() == (1, 1)


#: {v} is the database beside; each says that it writes the database in the filter
HOSTILE = [
    ("DROP TABLE {v}.x", "its text writes"),
    ("CREATE TABLE z (q INT); DROP DATABASE {v}", "SQL syntax"),
    ("CREATE VIEW w AS SELECT 1; DROP TABLE {v}.x", "SQL syntax"),
    ("/*! DROP TABLE {v}.x */", "its text writes"),
    ("/*!99999 CREATE TABLE z (q INT) -- */ DROP TABLE {v}.x", "for MySQL 99999 and later"),
    ("CREATE TABLE z (q INT) /*!99999 comment='*/ ; DROP TABLE {v}.x -- '", "for MySQL 99999 and later"),
    ("DROP TABLE t, {v}.x", "its text writes"),
    ("RENAME TABLE {v}.x TO z", "its text writes"),
    ("ALTER TABLE t RENAME TO {v}.t", "its text writes"),
    ("DROP DATABASE {v}", "its text writes"),
    ("ALTER DATABASE {v} CHARACTER SET latin1", "its text writes"),
    ("GRANT ALL ON *.* TO root@'%'", "changes accounts"),
    ("CREATE USER evil", "changes accounts"),
    ("SET PASSWORD = 'x'", "changes accounts"),
    ("SET GLOBAL max_connections = 99", "may change rows or the server"),
    ("DELETE FROM {v}.x", "may change rows or the server"),
    ("DO SLEEP(20)", "may change rows or the server"),
    ("CALL {v}.p()", "may change rows or the server"),
    ("TRUNCATE {v}.x", "its text writes"),
    ("FLUSH TABLES", "acts on the server"),
    ("CREATE FUNCTION f RETURNS STRING SONAME 'x.so'", "acts on the server"),
    ("CREATE TEMPORARY TABLE z (a INT)", "acts on temporary tables"),
    ("BEGIN", "part of a transaction"),
    ("CREATE TABLE z AS SELECT 1 AS a", "with SELECT it reaches beyond"),
    ("CREATE TABLE z (a INT) AS TABLE {v}.x", "with TABLE it reaches beyond"),
    ("CREATE TABLE z VALUES ROW(SLEEP(20))", "with VALUES ROW it reaches beyond"),
    ("CREATE TABLE z (a INT) ENGINE=MRG_MYISAM UNION=({v}.x)", "names test_"),
    ("CREATE TABLE z (a INT) ENGINE=MRG_MYISAM UNION (t, `{v}`.x)", "in a foreign key, in LIKE or in UNION"),
    ("ALTER TABLE t UNION=({v}.x)", "names test_"),
    ("CREATE TABLE z LIKE {v}.x", "names test_"),
    ("CREATE TABLE z (a INT) UNION SELECT SLEEP(20)", "UNION"),
    ("ALTER TABLE t ADD FOREIGN KEY (id) REFERENCES {v}.x (a)", "names test_"),
    ("CREATE TABLE z (a INT REFERENCES `{v}`.x (a))", "with cdc-consumer --skip"),
]


#: the same, with the session's SQL mode or client
HOSTILE_SESSIONS: list[tuple[str, dict[str, int], str]] = [
    ("ALTER TABLE t AUTO_INCREMENT=1. RENAME TO {v}.t", {}, "its text writes"),
    ("CREATE TABLE z (a INT) AUTO_INCREMENT=1e1SELECT SLEEP(20)", {}, "with SELECT it reaches beyond"),
    ("CREATE TABLE z (a INT DEFAULT .5REFERENCES {v}.x (a))", {}, "names test_"),
    ('ALTER TABLE t RENAME COLUMN "a\\" TO b, RENAME TO {v}.t -- " TO c', {"sql_mode": 1 << 18}, "its text writes"),
    # in gbk the last byte of the letter takes the backtick with it
    (
        "CREATE DEFINER=`漢`@`@b VIEW {v}.w AS SELECT 1 AS a -- ` VIEW {d}.w AS SELECT 1 AS a",
        {"character_set_client": 28}, "its text writes",
    ),
    ("ALTER TABLE t COMMENT 'x' --\xa0 , COMMENT '\n, RENAME {v}.t -- '", {"character_set_client": 8}, "depends on"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "session", "words"), HOSTILE_SESSIONS, ids=[sql for sql, _, _ in HOSTILE_SESSIONS])
def test_a_statement_is_read_as_its_server_will_read_it(
    victim: Stage, sql: str, session: dict[str, int], words: str
) -> None:
    text = sql.format(v=f"{victim.database}_v", d=victim.database)
    encoding = "latin-1" if session.get("character_set_client") == 8 else "utf-8"
    victim.log.ddl(text.encode(encoding), victim.database, [victim.database], **session)
    with pytest.raises(CdcError) as caught:
        victim.replay()
    assert words in causes(caught.value), causes(caught.value)


@pytest.mark.parametrize(("sql", "words"), HOSTILE, ids=[sql for sql, _ in HOSTILE])
def test_a_statement_that_reaches_beyond_is_refused(victim: Stage, sql: str, words: str) -> None:
    victim.log.ddl(sql.format(v=f"{victim.database}_v"), victim.database)
    with pytest.raises(CdcError) as caught:
        victim.replay()
    assert words in causes(caught.value), causes(caught.value)


def test_a_statement_that_says_it_writes_more_is_refused(victim: Stage) -> None:
    victim.log.ddl("CREATE TABLE z (a INT)", victim.database, [victim.database, f"{victim.database}2"])
    with pytest.raises(CdcError) as caught:
        victim.replay()
    assert "its event says that it writes" in causes(caught.value)


@pytest.mark.parametrize("value", [{"String": ["'); DROP TABLE x; --"]}, {"SignedInteger": True}, {"Json": {"'": 1}}])
def test_a_value_of_another_type_is_refused(victim: Stage, value: object) -> None:
    victim.log.add(victim.table, ["id", "name"], [integer(1), value])
    with pytest.raises(CdcError, match="cannot be written"):
        victim.replay()
