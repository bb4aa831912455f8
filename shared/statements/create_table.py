"""CREATE and ALTER TABLE: whether rows come with it, and from where; and which other tables it names.

A leader logs CREATE TABLE ... SELECT as CREATE TABLE ... START TRANSACTION, with the rows behind it in one transaction;
what SHOW CREATE TABLE writes behind the columns stands behind these two words, or before them.
"""

from __future__ import annotations

from collections.abc import Iterator

from shared.statements.targets import Targets, objects, one_object
from shared.statements.tokens import Tokens, Unreadable

#: what such a text holds, beside others that only mention it
FILLED = b"START TRANSACTION"
#: stands for the database of the table itself; no name ends with a blank
ITSELF = " "


def empty_table(sql: bytes, sql_mode: int) -> bytes | None:
    """Return the statement that creates the table alone, where its rows follow in the same transaction; else None."""
    if FILLED not in sql:
        return None
    name, before, start = 0, "", 0
    try:
        # the leader writes this text itself, in utf8mb4 whatever its client speaks
        for name, word, place in _words(sql, sql_mode, "utf8mb4"):
            if (before, word) == ("START", "TRANSACTION"):
                return b"CREATE TABLE IF NOT EXISTS " + sql[name:start] + sql[place + len(word) :]
            before, start = word, place
    except Unreadable:
        pass
    return None


def renamed_table(sql: bytes, sql_mode: int, name: bytes) -> bytes:
    """Return a CREATE TABLE as it reads for a table of another name, which is quoted. Raises Unreadable."""
    # the leader writes this text itself
    tokens = _at_name(sql, sql_mode, "utf8mb4", None)
    if tokens is None:
        raise Unreadable("it is no CREATE TABLE")
    one_object(tokens, ITSELF)
    return b"CREATE TABLE " + name + b" " + sql[tokens.start :]


def reaching_words(sql: bytes, sql_mode: int, charset: str, version: int | None = None) -> str:
    """Return the words with which a CREATE or ALTER TABLE begins a query, "" without any.

    A query in its text may read and call anything. A leader that logs rows never logs one. `version` is that of the
    server it will run on, None for the one that wrote it. Raises Unreadable.
    """
    before = ""
    for _, word, _ in _words(sql, sql_mode, charset, version):
        # reserved words, so none of them is a name; VALUES alone begins a partition's
        if word == "SELECT" or (word == "TABLE" and before != "WITH"):
            return word
        if (before, word) == ("VALUES", "ROW"):
            return "VALUES ROW"
        before = word
    return ""


def referenced_tables(
    sql: bytes, sql_mode: int, database: str, charset: str, version: int
) -> tuple[tuple[str, str], ...]:
    """Return database and name of other tables that a CREATE or ALTER TABLE without a query reaches, each once.

    These are the tables that REFERENCES names, where "" is the database of the table itself, which one without a
    database is in whatever the session's is; and that of LIKE and those of the option UNION, where it is in the
    session's `database`. `version` is that of the server it will run on. Raises Unreadable.
    """
    found: dict[tuple[str, str], None] = {}
    tokens = _at_name(sql, sql_mode, charset, version)
    if tokens is None:
        return ()
    one_object(tokens, ITSELF)
    tokens.take("(")
    if tokens.take("LIKE"):
        found.update(dict.fromkeys(one_object(tokens, database)))
    while not tokens.at_end:
        # reserved words, so neither is a name
        if tokens.take("REFERENCES"):
            ((home, table),) = one_object(tokens, ITSELF)
            found["" if home == ITSELF else home, table] = None
        elif tokens.take("UNION"):
            found.update(dict.fromkeys(_united(tokens, database)))
        else:
            tokens.advance()
    return tuple(found)


def _united(tokens: Tokens, database: str) -> Targets:
    """The tables of a MERGE table: [=] ([database.]name, ...)."""
    tokens.take("=")
    tokens.expect("(")
    if tokens.take(")"):
        return []
    tables = objects(tokens, database)
    tokens.expect(")")
    return tables


def _words(sql: bytes, sql_mode: int, charset: str, version: int | None = None) -> Iterator[tuple[int, str, int]]:
    """Where the table's name begins, and each word from there on with its place; nothing of another statement."""
    tokens = _at_name(sql, sql_mode, charset, version)
    if tokens is None:
        return
    name = tokens.start
    while not tokens.at_end:
        yield name, tokens.word, tokens.start
        tokens.advance()


def _at_name(sql: bytes, sql_mode: int, charset: str, version: int | None) -> Tokens | None:
    """A cursor on the name of the table that a statement creates or alters; None for another statement."""
    tokens = Tokens(sql, sql_mode, charset, version)
    if not tokens.take("CREATE", "ALTER"):
        return None
    tokens.take("TEMPORARY", "EXTERNAL")
    if not tokens.take("TABLE"):
        return None
    if tokens.take("IF"):
        tokens.take("NOT")
        tokens.take("EXISTS")
    return tokens
