"""Tokens and a real server: where it sees the words that decide what a statement reaches, so do we, or we refuse it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymysql.err import MySQLError

from docker.local.mysql_servers import Server
from shared.statements.tokens import ANSI, CODECS, Tokens, Unreadable

#: words by which a statement reaches another table
REACHING = frozenset({"EXCHANGE", "REFERENCES", "RENAME", "SELECT", "TABLE", "UNION", "VALUES"})
#: statements in which a number, and what stands behind it, is followed by such words
FORMS = (
    "ALTER TABLE d.t AUTO_INCREMENT={}RENAME TO v.x",
    "ALTER TABLE d.t AUTO_INCREMENT={}, RENAME TO v.x",
    "ALTER TABLE d.t ADD a INT DEFAULT {}REFERENCES v.x(id)",
    "CREATE TABLE d.z (a INT DEFAULT (a + {}), b INT REFERENCES v.x(id))",
    "CREATE TABLE d.z (a INT) AUTO_INCREMENT={}SELECT 1 AS a",
    "CREATE TABLE d.z (a INT) AUTO_INCREMENT={}UNION=(v.x)",
    "CREATE TABLE d.{}(a INT) SELECT 1 AS a",
    "ALTER EVENT d.e ON SCHEDULE AT {}RENAME TO v.e",
    "ALTER EVENT d.e ON SCHEDULE EVERY 1 YEAR STARTS {}RENAME TO v.e",
)
#: without what is not for clients, and binary, in which a server cannot be asked
CHARSETS = sorted(CODECS.keys() - {"binary", "utf8"})
number = st.one_of(
    st.from_regex(r"[0-9]{1,3}(\.[0-9]{0,2})?([eE][-+]?[0-9]{0,2})?|\.[0-9]{0,2}([eE][-+]?[0-9]?)?", fullmatch=True),
    st.text("0123459.eEx+-bf'`\"", max_size=6),
)
gap = st.one_of(
    st.sampled_from(["", " ", "\n", "/**/", "/*!*/", "/*!50000 ", "-- '\n", "#'\n", "--\n", ",", ".", "@", " a@ "]),
    st.builds("--{}'\n".format, st.characters(min_codepoint=1, max_codepoint=255)),
    st.characters(min_codepoint=1, max_codepoint=255),
)


class Lexer:
    """A session that tells what its server makes of a text, which it does not run."""

    def __init__(self, connection: pymysql.connections.Connection[Any]) -> None:
        self._cursor = connection.cursor()

    def words(self, sql: bytes, charset: str, ansi: bool) -> list[str] | None:
        """The words, None where it cannot parse the statement."""
        try:
            self._cursor.execute(f"SET sql_mode = '{'ANSI' if ansi else ''}'")
            self._cursor.execute(f"SELECT STATEMENT_DIGEST_TEXT(_{charset} x'{sql.hex()}')")
        except MySQLError:
            return None
        ((text,),) = self._cursor.fetchall()
        return None if text is None else [word for word in re.sub("`[^`]*`", "", text).split() if word in REACHING]


def seen_by_us(sql: bytes, charset: str, ansi: bool) -> list[str] | None:
    """The words, None where the statement is refused."""
    found = []
    try:
        tokens = Tokens(sql, ANSI if ansi else 0, charset)
        while not tokens.at_end:
            found.append(tokens.word)
            tokens.advance()
    except Unreadable:
        return None
    return [word for word in found if word in REACHING]


@pytest.fixture
def lexer(leader: Server) -> Iterator[Lexer]:
    with leader.connect() as connection:
        yield Lexer(connection)


def test_no_word_that_reaches_is_hidden(lexer: Lexer) -> None:
    parsed = 0

    @given(st.sampled_from(FORMS), number, gap, gap, st.sampled_from(CHARSETS), st.booleans())
    @settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def agree(form: str, digits: str, one: str, two: str, charset: str, ansi: bool) -> None:
        nonlocal parsed
        sql = form.format(digits + one + two).encode("latin-1")
        words = lexer.words(sql, charset, ansi)
        ours = seen_by_us(sql, charset, ansi)
        if words is not None:
            parsed += 1
            assert ours is None or ours == words

    agree()
    assert parsed > 50


@pytest.mark.parametrize(
    "sql, charset",
    [
        (b"ALTER EVENT d.e ON SCHEDULE AT 20300101000000. RENAME TO v.e", "utf8mb4"),
        (b"CREATE TABLE d.z (a INT) AUTO_INCREMENT=1e1SELECT 1 AS a", "utf8mb4"),
        (b"CREATE TABLE d.z (a INT) AUTO_INCREMENT=.5SELECT 1 AS a", "utf8mb4"),
        (b"CREATE TABLE d.1e1SELECT (a INT)", "utf8mb4"),
        (b"CREATE TABLE d.z (a INT DEFAULT 1.REFERENCES v.x(id))", "utf8mb4"),
        (b'ALTER TABLE d.t COMMENT "a", RENAME TO v.x', "utf8mb4"),
    ],
)
def test_numbers_end_where_they_do_on_the_server(lexer: Lexer, sql: bytes, charset: str) -> None:
    words = lexer.words(sql, charset, ansi=False)
    assert words is not None
    assert seen_by_us(sql, charset, ansi=False) == words


@pytest.mark.parametrize(
    "sql, charset",
    [
        (b"ALTER TABLE d.t AUTO_INCREMENT=1 --\xa0'\n, RENAME TO v.x", "latin1"),
        (b"ALTER TABLE d.t AUTO_INCREMENT=1 --\x81'\n, RENAME TO v.x", "hp8"),
        (b"ALTER EVENT d.e ON SCHEDULE AT 1.5e-- 20300101000000 RENAME TO v.e", "utf8mb4"),
    ],
)
def test_what_a_character_set_decides_is_refused(lexer: Lexer, sql: bytes, charset: str) -> None:
    words = lexer.words(sql, charset, ansi=False)
    assert words is not None
    assert words[-1] == "RENAME"
    assert seen_by_us(sql, charset, ansi=False) is None


def test_ansi_quotes_are_a_part_of_ansi(lexer: Lexer) -> None:
    sql = b'ALTER TABLE d.t RENAME COLUMN "a\\" TO b, RENAME TO v.x -- " TO c'
    words = lexer.words(sql, "utf8mb4", ansi=True)
    assert words == ["TABLE", "RENAME", "RENAME"] == seen_by_us(sql, "utf8mb4", ansi=True)
