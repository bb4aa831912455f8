"""CREATE and ALTER TABLE: whether rows come with it, and from where; and which tables its foreign keys name.

A leader logs CREATE TABLE ... SELECT as CREATE TABLE ... START TRANSACTION, with the rows behind it in one transaction;
what SHOW CREATE TABLE writes behind the columns stands behind these two words, or before them.
"""

from __future__ import annotations

from collections.abc import Iterator

from shared.statements.targets import one_object
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


def reaching_words(sql: bytes, sql_mode: int, charset: str, version: int) -> str:
    """Return the words with which a CREATE or ALTER TABLE reaches beyond the table it names, "" without any.

    A query in its text may call anything, and the union of a MERGE table is written with it. A leader logs no query.
    `version` is that of the server it will run on. Raises Unreadable.
    """
    before = ""
    for _, word, _ in _words(sql, sql_mode, charset, version):
        # reserved words, so none of them is a name; VALUES alone begins a partition's
        if word in ("SELECT", "UNION") or (word == "TABLE" and before != "WITH"):
            return word
        if (before, word) == ("VALUES", "ROW"):
            return "VALUES ROW"
        before = word
    return ""


def referenced_databases(sql: bytes, sql_mode: int, charset: str, version: int) -> tuple[str, ...]:
    """Return the databases that REFERENCES in a CREATE or ALTER TABLE names, each once.

    One that is not named is not among them: it is that of the table itself, whatever the session's is. `version` is
    that of the server it will run on. Raises Unreadable.
    """
    found: dict[str, None] = {}
    tokens = _at_name(sql, sql_mode, charset, version)
    while tokens is not None and not tokens.at_end:
        # a reserved word, so it is no name
        if tokens.take("REFERENCES"):
            ((database, _),) = one_object(tokens, ITSELF)
            found[database] = None
        else:
            tokens.advance()
    found.pop(ITSELF, None)
    return tuple(found)


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
