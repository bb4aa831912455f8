"""What a statement is and writes: our own reading, on both sides, and sqlglot's beside it."""

from __future__ import annotations

from kit.programs import ROOT

from cdc_consumer.follower.preflight import Facts
from cdc_consumer.read_query import read_query
from fuzz.leader_targets import CHARSETS
from fuzz.targets import WrongResult
from shared.errors import CdcError, UnsupportedError
from shared.events import Query
from shared.statements.heads import read_statement
from shared.statements.stored_text import in_one_charset
from shared.statements.tokens import ANSI_QUOTES, NO_BACKSLASH_ESCAPES
from shared.statements.touched import touched_tables

#: collations of clients: utf8mb4, latin1, gbk, sjis, cp932, binary, swe7
CLIENTS = (255, 8, 28, 13, 95, 63, 10)
MODES = (0, ANSI_QUOTES, NO_BACKSLASH_ESCAPES, ANSI_QUOTES | NO_BACKSLASH_ESCAPES)
FACTS = Facts("9.7.0", "", True, True, 1 << 26, 0, {number: charset.name for number, charset in CHARSETS.items()})
CORPUS = ROOT / "tests/unit/shared/corpus/statements.txt"
#: what stands in front of a statement and means nothing
BLANK = b" /* x */\n"


def statements(data: bytes) -> None:
    """A statement. First byte: the session's SQL mode and database; second: its client; then the text."""
    if len(data) < 2:
        return
    sql_mode, database = MODES[data[0] & 3], "d" if data[0] & 4 else ""
    client, sql = CLIENTS[data[1] % len(CLIENTS)], data[2:]
    charset = FACTS.charsets[client]
    in_one_charset(sql, sql_mode, charset)
    tables = touched_tables(sql, sql_mode, database, charset, bool(data[0] & 8))
    try:
        found = read_statement(sql, sql_mode, database, charset)
    except UnsupportedError:
        if tables is not None:
            raise WrongResult("tables of what cannot be read") from None
        raise
    finally:
        session = {"sql_mode": sql_mode, "character_set_client": client}
        reading = _as_the_consumer(Query(sql, database, (), session))
    if read_statement(BLANK + sql, sql_mode, database, charset) != found:
        raise WrongResult("another one behind a comment")
    if tables and not {home for home, _ in tables} <= {name.lower() for name in found.databases} | set(found.databases):
        raise WrongResult("a table of a database that it does not write")
    # the leader's own words are not in the character set of its client, which is all that a follower knows
    one_way = sql.isascii() or client == CLIENTS[0]
    if one_way and reading is not None and reading != found.databases:
        raise WrongResult("the consumer reads another one")


def _as_the_consumer(query: Query) -> tuple[str, ...] | None:
    """The databases it writes; None for what the consumer does not run."""
    try:
        return read_query(query, 0, FACTS).statement.databases
    except CdcError:
        return None


def seeds_of_statements() -> list[bytes]:
    """Every kind of statement, and some that are long or deep."""
    seeds, mode = [], 0
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        if line.startswith("@sql_mode "):
            mode = MODES.index(int(line.split()[1]) & MODES[-1])
        elif line.count("|") >= 3 and not line.startswith(("#", "refused")):
            seeds.append(bytes([4 | mode, 0]) + line.split("|", 3)[3].strip().encode())
    deep = "CREATE TABLE t (a INT DEFAULT (" + "(" * 400 + "1" + ")" * 400 + "))"
    wide = "CREATE TABLE t (" + ", ".join(f"c{number} INT COMMENT 'x'" for number in range(600)) + ")"
    view = "CREATE VIEW v AS SELECT " + " + ".join("a" for _ in range(800)) + " FROM t"
    case = "CREATE VIEW v AS SELECT " + "CASE WHEN a THEN " * 60 + "1" + " END" * 60 + " FROM t"
    return seeds + [bytes([4, number]) + text.encode() for number, text in enumerate((deep, wide, view, case))]
