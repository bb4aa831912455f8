"""Tells what a statement does, and which databases it writes.

Only a statement's head is read, never its body: `_HEADS` lists the heads, and a statement that is not in it is refused.
The list is complete for MySQL 8.0 to 9.7 but for what the server never logs, and for MASKING POLICY and IMPORT TABLE,
which cannot be replayed from their text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

from shared.errors import UnsupportedError
from shared.statements.create_table import empty_table
from shared.statements.targets import (
    Reader,
    altered_database,
    altered_event,
    altered_table,
    created_function,
    database_name,
    dropped_function,
    index,
    objects,
    one_object,
    renames,
    whole,
)
from shared.statements.tokens import Tokens, Unreadable

#: bytes of a statement that an error shows
SHOWN_BYTES = 200


@dataclass(frozen=True, slots=True)
class Statement:
    """Tells what a statement is, and what it writes."""

    #: its first word
    verb: str
    #: what it acts on: TABLE, VIEW, INDEX, DATABASE, TRIGGER, PROCEDURE, FUNCTION, EVENT, LIBRARY; or what it is
    #: instead: TEMPORARY (acts on temporary tables), TRANSACTION, ACCOUNT, MAINTENANCE, DML
    kind: str
    #: the first object it acts on, without its database; of an index the index, "" for none
    name: str
    #: databases it writes, in the order it mentions them
    databases: tuple[str, ...]
    #: database and name of each object it names as written; of an index itself, then its table
    targets: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    #: where its rows follow in the same transaction (CREATE TABLE ... SELECT): the statement that creates the table
    #: without them
    empty: bytes | None = field(default=None, compare=False)

    @property
    def tables(self) -> tuple[tuple[str, str], ...]:
        """Return database and name of each table or view that it creates, alters, drops or empties."""
        if self.kind == "INDEX":
            return self.targets[1:]
        return self.targets if self.kind in ("TABLE", "VIEW") else ()

    @property
    def drops_database(self) -> bool:
        """Tell whether it drops a database with all that is in it."""
        return (self.verb, self.kind) == ("DROP", "DATABASE")

    def folded(self, folds: bool) -> Statement:
        """Return the same with names as a server that `folds` them to lower case stores them."""
        if not folds:
            return self
        targets = tuple((database.lower(), name.lower()) for database, name in self.targets)
        databases = tuple(dict.fromkeys(name.lower() for name in self.databases))
        return replace(self, targets=targets, databases=databases)


def read_statement(
    sql: bytes, sql_mode: int, database: str, charset: str = "utf8mb4", version: int | None = None
) -> Statement:
    """Read a statement as the binlog holds it.

    `database` is the session's, "" for none; `charset` is the name of its character_set_client. `version` is that of
    the server it will run on, as a number like 80036, where that is another than the one that wrote it: then it is read
    as that server will read it, in the client's character set throughout. Raises UnsupportedError when the statement is
    not known or cannot be read for certain.
    """
    start = 0
    try:
        empty = empty_table(sql, sql_mode)
        tokens = Tokens(sql, sql_mode, charset, version)
        start = tokens.start
        # the leader writes some parts itself, in utf8mb4; a server that runs the text does not know that
        own = "utf8mb4" if version is None else charset
        return replace(_read(tokens, database, charset, own, filled=empty is not None), empty=empty)
    except Unreadable as problem:
        words = " ".join(sql[start : start + 200].decode(errors="replace").split())
        raise UnsupportedError(f"cannot tell which databases {words[:80]!r} writes: {problem}") from None


def _read(tokens: Tokens, database: str, charset: str, own: str, filled: bool) -> Statement:
    """Read a statement of which the leader's own parts are in the character set `own`."""
    head = _head(tokens, charset, own)
    verb, _, _ = head.partition(" ")
    kind, read = RULES[head]
    if read is None:
        return Statement(verb, kind, "", ("mysql",) if kind == "ACCOUNT" else ())
    if filled and kind == "TABLE":
        tokens.switch("utf8mb4")  # it runs in that, too
    elif (verb, kind) in _NAMES_IN_UTF8:
        tokens.switch(own)
    if tokens.take("IF"):
        tokens.take("NOT")
        tokens.expect("EXISTS")
    targets = read(tokens, database)
    if not targets:
        return Statement(verb, "MAINTENANCE", "", ())
    databases = tuple(dict.fromkeys(home for home, _ in targets))
    return Statement(verb, kind, targets[0][1], databases, tuple(targets))


def _head(tokens: Tokens, charset: str, own: str) -> str:
    """Step over a statement's first words and the clauses between them; the words, as `RULES` has them."""
    head = ""
    while True:
        longer = f"{head} {tokens.word}" if head else tokens.word
        if longer in _BEGINNINGS:
            head = longer
            tokens.advance()
        elif head in RULES:
            return head
        elif not _skip_clause(tokens, charset, own):
            raise Unreadable("no known statement begins with these words")


def _skip_clause(tokens: Tokens, charset: str, own: str) -> bool:
    """Step over one clause of those that may stand before what is created or altered."""
    if tokens.take("OR"):
        tokens.expect("REPLACE")
    elif tokens.take("ALGORITHM"):
        tokens.expect("=")
        tokens.advance()
    elif tokens.take("SQL"):
        tokens.expect("SECURITY")
        tokens.advance()
    elif tokens.take("DEFINER"):
        tokens.expect("=")
        tokens.switch(own)  # the leader writes this clause itself
        _skip_user(tokens)
        tokens.switch(charset)
    else:
        return False
    return True


def _skip_user(tokens: Tokens) -> None:
    if tokens.take("CURRENT_USER"):
        if tokens.take("("):
            tokens.expect(")")
        return
    tokens.skip_text()
    at = tokens.end
    if tokens.take("@"):
        if tokens.start != at:
            raise Unreadable("a host is missing")
        tokens.skip_text()
        while tokens.take("."):
            tokens.skip_text()


# the table of heads

#: A statement's first words, without OR REPLACE, ALGORITHM, DEFINER and SQL SECURITY between them and IF [NOT] EXISTS
#: after them: what kind it is, and how its targets are written. `A|B` is one word, either of them; of two heads that
#: fit, the longer counts.
_HEADS: dict[str, tuple[str, Reader | None]] = {
    "CREATE TABLE": ("TABLE", one_object),
    "CREATE EXTERNAL TABLE": ("TABLE", one_object),
    "ALTER TABLE": ("TABLE", altered_table),
    "DROP TABLE|TABLES": ("TABLE", whole(objects)),
    "RENAME TABLE|TABLES": ("TABLE", whole(renames)),
    "TRUNCATE": ("TABLE", whole(one_object)),
    "TRUNCATE TABLE": ("TABLE", whole(one_object)),
    "CREATE TEMPORARY TABLE": ("TEMPORARY", one_object),
    "DROP TEMPORARY TABLE|TABLES": ("TEMPORARY", whole(objects)),
    "CREATE INDEX": ("INDEX", index),
    "CREATE UNIQUE|FULLTEXT|SPATIAL INDEX": ("INDEX", index),
    "DROP INDEX": ("INDEX", index),
    "CREATE|ALTER VIEW": ("VIEW", one_object),
    "CREATE|ALTER MATERIALIZED VIEW": ("VIEW", one_object),
    "CREATE|ALTER JSON DUALITY VIEW": ("VIEW", one_object),
    "CREATE|ALTER JSON RELATIONAL DUALITY VIEW": ("VIEW", one_object),
    "CREATE|ALTER MATERIALIZED JSON DUALITY VIEW": ("VIEW", one_object),
    "CREATE|ALTER MATERIALIZED JSON RELATIONAL DUALITY VIEW": ("VIEW", one_object),
    "DROP VIEW": ("VIEW", whole(objects)),
    "CREATE DATABASE|SCHEMA": ("DATABASE", database_name),
    "ALTER DATABASE|SCHEMA": ("DATABASE", altered_database),
    "DROP DATABASE|SCHEMA": ("DATABASE", whole(database_name)),
    "CREATE TRIGGER": ("TRIGGER", one_object),  # its table is always in the trigger's own database
    "DROP TRIGGER": ("TRIGGER", whole(one_object)),
    "CREATE|ALTER PROCEDURE": ("PROCEDURE", one_object),
    "DROP PROCEDURE": ("PROCEDURE", whole(one_object)),
    "CREATE FUNCTION": ("FUNCTION", created_function),
    "ALTER FUNCTION": ("FUNCTION", one_object),
    "DROP FUNCTION": ("FUNCTION", whole(dropped_function)),
    "CREATE EVENT": ("EVENT", one_object),
    "ALTER EVENT": ("EVENT", altered_event),
    "DROP EVENT": ("EVENT", whole(one_object)),
    "CREATE|ALTER LIBRARY": ("LIBRARY", one_object),
    "DROP LIBRARY": ("LIBRARY", whole(one_object)),
    "BEGIN|COMMIT|ROLLBACK|SAVEPOINT|XA": ("TRANSACTION", None),
    "START TRANSACTION": ("TRANSACTION", None),
    "RELEASE SAVEPOINT": ("TRANSACTION", None),
    "CREATE|ALTER|DROP|RENAME USER": ("ACCOUNT", None),
    "CREATE|DROP ROLE": ("ACCOUNT", None),
    "GRANT|REVOKE": ("ACCOUNT", None),
    "SET PASSWORD": ("ACCOUNT", None),
    "SET DEFAULT ROLE": ("ACCOUNT", None),
    "ANALYZE|OPTIMIZE|REPAIR|CHECK|FLUSH|INSTALL|UNINSTALL": ("MAINTENANCE", None),
    "CREATE|ALTER|DROP TABLESPACE|SERVER": ("MAINTENANCE", None),
    "CREATE|ALTER|DROP UNDO TABLESPACE": ("MAINTENANCE", None),
    "CREATE|ALTER|DROP LOGFILE|RESOURCE GROUP": ("MAINTENANCE", None),
    "CREATE|DROP SPATIAL REFERENCE SYSTEM": ("MAINTENANCE", None),
    "SET RESOURCE GROUP": ("MAINTENANCE", None),
    "CREATE AGGREGATE FUNCTION": ("MAINTENANCE", None),  # aggregates are always loadable
    "ALTER INSTANCE": ("MAINTENANCE", None),
    "INSERT|UPDATE|DELETE|REPLACE|SELECT|WITH|LOAD|CALL|DO|SET": ("DML", None),
}

#: The leader rewrites these before it logs them, and writes their names in UTF-8 whatever the client's character set
#: is; so it does with CREATE TABLE ... SELECT, which it logs as CREATE TABLE ... START TRANSACTION.
_NAMES_IN_UTF8 = frozenset(
    {("CREATE", "VIEW"), ("ALTER", "VIEW"), ("CREATE", "PROCEDURE"), ("CREATE", "FUNCTION"), ("CREATE", "LIBRARY")}
)


def _spelled_out(heads: dict[str, tuple[str, Reader | None]]) -> Iterator[tuple[str, tuple[str, Reader | None]]]:
    for head, rule in heads.items():
        for words in product(*(word.split("|") for word in head.split())):
            yield " ".join(words), rule


#: the same, every head by itself
RULES = dict(_spelled_out(_HEADS))
#: every head, and what it begins with, word by word
_BEGINNINGS = frozenset(
    " ".join(words[:length]) for words in map(str.split, RULES) for length in range(1, len(words) + 1)
)


def shown_sql(sql: bytes) -> str:
    """Return the beginning of a statement, on one line."""
    text = " ".join(sql[:SHOWN_BYTES].decode(errors="replace").split())
    return f"{text}..." if len(sql) > SHOWN_BYTES else text
