"""Statements: what one does, and which databases it writes.

Only a statement's head is read, never its body: `_HEADS` lists the heads, and a statement that is not in it is refused.
The list is complete for MySQL 8.0 to 9.7 but for what the server never logs, and for MASKING POLICY and IMPORT TABLE,
which cannot be replayed from their text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from shared.errors import UnsupportedError
from shared.statements.tokens import Tokens, Unreadable


@dataclass(frozen=True, slots=True)
class Statement:
    #: its first word
    verb: str
    #: what it acts on: TABLE, VIEW, INDEX, DATABASE, TRIGGER, PROCEDURE, FUNCTION, EVENT, LIBRARY; or what it is
    #: instead: TEMPORARY (acts on temporary tables), TRANSACTION, ACCOUNT, MAINTENANCE, DML
    kind: str
    #: the first object it acts on, without its database; of an index the index, "" for none
    name: str
    #: databases it writes, in the order it mentions them
    databases: tuple[str, ...]


#: database and name of each object a statement writes
Targets = list[tuple[str, str]]
#: reads the targets that follow a head, none when the server itself is the target; takes the session's database
Reader = Callable[[Tokens, str], Targets]


def read_statement(sql: bytes, sql_mode: int, database: str, charset: str = "utf8mb4") -> Statement:
    """Read a statement as the binlog holds it.

    `database` is the session's, "" for none; `charset` is the name of its character_set_client. Raises UnsupportedError
    when the statement is not known or cannot be read for certain.
    """
    start = 0
    try:
        tokens = Tokens(sql, sql_mode, charset)
        start = tokens.start
        return _read(tokens, database, charset, filled=sql.endswith(b"START TRANSACTION"))
    except Unreadable as problem:
        words = " ".join(sql[start : start + 200].decode(errors="replace").split())
        raise UnsupportedError(f"cannot tell which databases {words[:80]!r} writes: {problem}") from None


def _read(tokens: Tokens, database: str, charset: str, filled: bool) -> Statement:
    head = _head(tokens, charset)
    verb, _, _ = head.partition(" ")
    kind, read = RULES[head]
    if read is None:
        return Statement(verb, kind, "", ("mysql",) if kind == "ACCOUNT" else ())
    if (verb, kind) in _NAMES_IN_UTF8 or (filled and kind == "TABLE"):
        tokens.switch("utf8mb4")
    if tokens.take("IF"):
        tokens.take("NOT")
        tokens.expect("EXISTS")
    targets = read(tokens, database)
    if not targets:
        return Statement(verb, "MAINTENANCE", "", ())
    return Statement(verb, kind, targets[0][1], tuple(dict.fromkeys(home for home, _ in targets)))


def _head(tokens: Tokens, charset: str) -> str:
    """Step over a statement's first words and the clauses between them; the words, as `RULES` has them."""
    head = ""
    while True:
        longer = f"{head} {tokens.word}" if head else tokens.word
        if longer in _BEGINNINGS:
            head = longer
            tokens.advance()
        elif head in RULES:
            return head
        elif not _skip_clause(tokens, charset):
            raise Unreadable("no known statement begins with these words")


def _skip_clause(tokens: Tokens, charset: str) -> bool:
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
        tokens.switch("utf8mb4")  # the leader writes this clause itself
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
    tokens.advance()
    if tokens.take("@"):
        tokens.advance()
        while tokens.take("."):
            tokens.advance()


# readers: what follows a head


def _object(tokens: Tokens, database: str) -> Targets:
    """[database.]name"""
    home, name = database, tokens.name()
    if tokens.take("."):
        home, name = name, tokens.name()
    return [(_known(home), name)]


def _objects(tokens: Tokens, database: str) -> Targets:
    """[database.]name, ... [RESTRICT | CASCADE]"""
    targets = _object(tokens, database)
    while tokens.take(","):
        targets += _object(tokens, database)
    tokens.take("RESTRICT", "CASCADE")
    return targets


def _renames(tokens: Tokens, database: str) -> Targets:
    """[database.]name TO [database.]name, ..."""
    targets: Targets = []
    while not targets or tokens.take(","):
        targets += _object(tokens, database)
        tokens.expect("TO")
        targets += _object(tokens, database)
    return targets


def _altered_table(tokens: Tokens, database: str) -> Targets:
    """[database.]name, then actions, of which two write another table.

    RENAME and PARTITION are reserved, so neither can be a column of that name.
    """
    targets = _object(tokens, database)
    renamed: Targets = []
    while not tokens.at_end:
        if tokens.take("RENAME"):
            if tokens.word not in ("COLUMN", "INDEX", "KEY"):
                tokens.take("TO", "AS", "=")
                renamed = _object(tokens, database)  # of several the last one counts
        elif tokens.take("EXCHANGE"):
            if tokens.take("PARTITION") and not tokens.take("BY"):
                tokens.name()
                tokens.expect("WITH")
                tokens.expect("TABLE")
                targets += _object(tokens, database)
        elif tokens.word == ";":
            tokens.expect_end()
        else:
            tokens.advance()
    return targets + renamed


def _altered_event(tokens: Tokens, database: str) -> Targets:
    """[database.]name [ON SCHEDULE ...] [RENAME TO [database.]name] [DO body]"""
    targets = _object(tokens, database)
    while not tokens.at_end and tokens.word != "DO":
        if tokens.take("RENAME"):
            tokens.expect("TO")
            targets += _object(tokens, database)
        else:
            tokens.advance()
    return targets


def _index(tokens: Tokens, database: str) -> Targets:
    """name [USING method] ON [database.]table"""
    name = tokens.name()
    while not tokens.take("ON"):
        if tokens.at_end:
            raise Unreadable("ON is missing")
        tokens.advance()
    ((home, _),) = _object(tokens, database)
    return [(home, name)]


def _database(tokens: Tokens, database: str) -> Targets:
    name = _known(tokens.name())
    return [(name, name)]


def _altered_database(tokens: Tokens, database: str) -> Targets:
    """[name], then options. CHARSET and ENCRYPTION are not reserved: MySQL takes the first of them for the name."""
    if tokens.word in ("CHARACTER", "COLLATE", "DEFAULT", "READ"):
        return [(_known(database), database)]
    targets = _database(tokens, database)
    if tokens.word not in ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "ENCRYPTION", "READ"):
        raise Unreadable("no option follows the database")
    return targets


def _created_function(tokens: Tokens, database: str) -> Targets:
    """[database.]name(; without the parenthesis it is a loadable function, which belongs to the server."""
    name = tokens.name()
    if tokens.word == "RETURNS":
        return []
    if tokens.take("."):
        return [(_known(name), tokens.name())]
    return [(_known(database), name)]


def _dropped_function(tokens: Tokens, database: str) -> Targets:
    """[database.]name; without any database it can only be a loadable function."""
    name = tokens.name()
    if tokens.take("."):
        return [(_known(name), tokens.name())]
    return [(_known(database), name)] if database else []


def _known(database: str) -> str:
    if not database:
        raise Unreadable("it names no database and its session has none")
    if "\ufffd" in database:
        raise Unreadable("the name of its database cannot be known in the client's character set")
    return database


def _whole(read: Reader) -> Reader:
    """That, and nothing after it."""

    def whole(tokens: Tokens, database: str) -> Targets:
        targets = read(tokens, database)
        tokens.expect_end()
        return targets

    return whole


# the table of heads

#: A statement's first words, without OR REPLACE, ALGORITHM, DEFINER and SQL SECURITY between them and IF [NOT] EXISTS
#: after them: what kind it is, and how its targets are written. `A|B` is one word, either of them; of two heads that
#: fit, the longer counts.
_HEADS: dict[str, tuple[str, Reader | None]] = {
    "CREATE TABLE": ("TABLE", _object),
    "CREATE EXTERNAL TABLE": ("TABLE", _object),
    "ALTER TABLE": ("TABLE", _altered_table),
    "DROP TABLE|TABLES": ("TABLE", _whole(_objects)),
    "RENAME TABLE|TABLES": ("TABLE", _whole(_renames)),
    "TRUNCATE": ("TABLE", _whole(_object)),
    "TRUNCATE TABLE": ("TABLE", _whole(_object)),
    "CREATE TEMPORARY TABLE": ("TEMPORARY", _object),
    "DROP TEMPORARY TABLE|TABLES": ("TEMPORARY", _whole(_objects)),
    "CREATE INDEX": ("INDEX", _index),
    "CREATE UNIQUE|FULLTEXT|SPATIAL INDEX": ("INDEX", _index),
    "DROP INDEX": ("INDEX", _index),
    "CREATE|ALTER VIEW": ("VIEW", _object),
    "CREATE|ALTER MATERIALIZED VIEW": ("VIEW", _object),
    "CREATE|ALTER JSON DUALITY VIEW": ("VIEW", _object),
    "CREATE|ALTER JSON RELATIONAL DUALITY VIEW": ("VIEW", _object),
    "CREATE|ALTER MATERIALIZED JSON DUALITY VIEW": ("VIEW", _object),
    "CREATE|ALTER MATERIALIZED JSON RELATIONAL DUALITY VIEW": ("VIEW", _object),
    "DROP VIEW": ("VIEW", _whole(_objects)),
    "CREATE DATABASE|SCHEMA": ("DATABASE", _database),
    "ALTER DATABASE|SCHEMA": ("DATABASE", _altered_database),
    "DROP DATABASE|SCHEMA": ("DATABASE", _whole(_database)),
    "CREATE TRIGGER": ("TRIGGER", _object),  # its table is always in the trigger's own database
    "DROP TRIGGER": ("TRIGGER", _whole(_object)),
    "CREATE|ALTER PROCEDURE": ("PROCEDURE", _object),
    "DROP PROCEDURE": ("PROCEDURE", _whole(_object)),
    "CREATE FUNCTION": ("FUNCTION", _created_function),
    "ALTER FUNCTION": ("FUNCTION", _object),
    "DROP FUNCTION": ("FUNCTION", _whole(_dropped_function)),
    "CREATE EVENT": ("EVENT", _object),
    "ALTER EVENT": ("EVENT", _altered_event),
    "DROP EVENT": ("EVENT", _whole(_object)),
    "CREATE|ALTER LIBRARY": ("LIBRARY", _object),
    "DROP LIBRARY": ("LIBRARY", _whole(_object)),
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
