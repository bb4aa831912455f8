"""The grammar and the characters of a real leader: what it reads as a statement, a name or a blank, we read so too."""

from __future__ import annotations

from typing import Any

import pytest
from pymysql.err import MySQLError

from docker.local.mysql_servers import Server
from shared.errors import UnsupportedError
from shared.statements.heads import RULES, read_statement
from shared.statements.tokens import CODECS

#: what the leader understands and never logs, or logs as something else
NEVER_LOGGED = """
BINLOG CACHE CHANGE CHECKSUM CLONE DEALLOCATE DESC DESCRIBE EXECUTE EXPLAIN GET HANDLER HELP LOCK PREPARE PURGE RESET
RESIGNAL RESTART SHOW SHUTDOWN SIGNAL STOP TABLE UNLOCK USE VALUES
"""
#: what it logs and we refuse
REFUSED = {"IMPORT", "CREATE MASKING", "DROP MASKING", "DROP PREPARE"}
#: the first words of clauses
CLAUSES = {f"{verb} {word}" for verb in ("CREATE", "ALTER") for word in ("ALGORITHM", "DEFINER", "OR", "SQL")}


def accepted(connection: Any, beginning: str, words: list[str]) -> set[str]:
    """Those beginnings, one word longer, that the leader's grammar goes on from."""
    found = set()
    for word in words:
        longer = f"{beginning} {word}".strip()
        with pytest.raises(MySQLError) as refusal:
            connection.query(f"{longer} ~~~")  # with this behind it nothing can run
        number, message = refusal.value.args
        if number != 1064 or message.partition("near '")[2].startswith("~~~"):
            found.add(longer)
    return found


def test_no_statement_of_the_leaders_grammar_is_missing(leader: Server) -> None:
    words = [word for (word,) in leader.execute("select word from information_schema.keywords")]
    with leader.connect() as connection:
        first = accepted(connection, "", words)
        second = set().union(*(accepted(connection, verb, words) for verb in ("CREATE", "ALTER", "DROP", "RENAME")))
    known = {" ".join(head.split()[:length]) for head in RULES for length in (1, 2)}
    assert first - known - set(NEVER_LOGGED.split()) - REFUSED == set()
    assert second - known - CLAUSES - REFUSED == set()


def decoded(code: bytes, codec: str) -> str | None:
    try:
        text = code.decode(codec)
    except UnicodeDecodeError:
        return None
    return text if len(text) == 1 else None


@pytest.mark.parametrize(
    "charset", sorted(set(CODECS) - {name for name in CODECS if CODECS[name] in ("ascii", "utf-8")})
)
def test_what_our_codec_decodes_the_leader_decodes_alike(leader: Server, charset: str) -> None:
    """Every code of one and of two bytes. What the leader has no character for stands in no name."""
    codes = [bytes([byte]) for byte in range(0x80, 0x100)]
    if decoded(b"\xb0\xa1", CODECS[charset]):
        codes += [bytes([first, byte]) for first in range(0x80, 0x100) for byte in range(0x40, 0x100)]
    with leader.connect() as connection, connection.cursor() as cursor:
        for start in range(0, len(codes), 2000):
            some = codes[start : start + 2000]
            columns = (f"hex(convert(convert(x'{code.hex()}' using {charset}) using utf8mb4))" for code in some)
            cursor.execute("select " + ", ".join(columns))
            for code, text in zip(some, cursor.fetchone(), strict=True):
                ours = decoded(code, CODECS[charset])
                if ours is not None and text not in (None, "3F"):
                    assert ours == bytes.fromhex(text).decode(), code


@pytest.mark.parametrize("charset", sorted(CODECS.keys() - {"utf8"}))
def test_blanks_are_those_of_the_leader(leader: Server, charset: str) -> None:
    with leader.connect() as connection:
        connection.query(f"set character_set_client = {charset}")
        for byte in (*range(0x01, 0x21), *range(0x7F, 0x100)):
            try:
                connection.query(b"select%c1" % byte)
                theirs = True
            except MySQLError:
                theirs = False
            try:
                ours = read_statement(b"drop%ctable t" % byte, 0, "home", charset).kind == "TABLE"
            except UnsupportedError:
                ours = False
            assert ours == theirs, hex(byte)
