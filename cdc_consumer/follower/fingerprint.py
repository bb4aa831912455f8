"""Makes a digest of what a statement is about to change, and of nothing else.

Without GTIDs it tells whether a statement that commits by itself ran before a crash: two equal fingerprints mean that
nothing of it is there, and then it may run. What leaves no trace in them does no harm when it runs twice: TRUNCATE, or
an ALTER that changes nothing. It reads the objects the statement names, so it costs the same in any database, and what
others do to other objects does not matter. Only where definitions do not tell, InnoDB is asked for all its tables.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from cdc_consumer.follower.tables import Ask
from cdc_consumer.sql import literals
from shared.mysql import quote_name
from shared.statements.heads import Statement

#: the next value of a counter is data, and an ALTER of nothing else may run twice
_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")
#: what may give columns of one table each other's names
_RENAMES = re.compile(rb"\b(CHANGE|RENAME)\b", re.IGNORECASE)
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def fingerprint(ask: Ask, statement: Statement, sql: bytes) -> str:
    """Hash it to 64 hexadecimal digits; `sql` is the statement's text.

    Needs the privilege PROCESS, and to see the objects the statement names.
    """
    digest = hashlib.sha256()
    facts = _FACTS[statement.kind]
    # an index is told by its table, which the statement names second
    targets = statement.targets[1:] if statement.kind == "INDEX" else statement.targets
    # two tables, or two columns, may change places and look as before; what InnoDB keeps of a table tells
    hidden = statement.kind == "TABLE" and statement.verb != "DROP" and (len(targets) > 1 or _RENAMES.search(sql))
    for database, name in targets:
        digest.update(repr((database, name, *facts(ask, database, name))).encode("utf-8", "surrogateescape"))
        if hidden:
            digest.update(repr(ask(_innodb_tables(database, name))).encode())
    return digest.hexdigest()


def _table(ask: Ask, database: str, name: str) -> Iterator[Any]:
    found = ask(
        f"SELECT TABLE_TYPE FROM information_schema.TABLES WHERE {_is('TABLE', 'SCHEMA', database)}"
        f" AND {_is('TABLE', 'NAME', name)}"
    )
    yield found
    for (kind,) in found:
        if kind == "BASE TABLE":
            ((_, create),) = ask(f"SHOW CREATE TABLE {quote_name(database)}.{quote_name(name)}")
            yield _COUNTER.sub("", create)
        else:
            yield from _view(ask, database, name)


def _view(ask: Ask, database: str, name: str) -> Iterator[Any]:
    yield ask(
        "SELECT VIEW_DEFINITION, CHECK_OPTION, DEFINER, SECURITY_TYPE, CHARACTER_SET_CLIENT, COLLATION_CONNECTION"
        f" FROM information_schema.VIEWS WHERE {_is('TABLE', 'SCHEMA', database)} AND {_is('TABLE', 'NAME', name)}"
    )


def _database(ask: Ask, database: str, name: str) -> Iterator[Any]:
    yield ask(
        "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME, DEFAULT_ENCRYPTION, OPTIONS"
        " FROM information_schema.SCHEMATA JOIN information_schema.SCHEMATA_EXTENSIONS USING (SCHEMA_NAME)"
        f" WHERE {_is('SCHEMA', 'NAME', database)}"
    )


def _listed(view: str, columns: str, kind: str = "") -> Callable[[Ask, str, str], Iterator[Any]]:
    """What a view of information_schema says of an object; `view` is ROUTINES, EVENTS or LIBRARIES."""
    prefix = view[:-1] if view != "LIBRARIES" else "LIBRARY"

    def facts(ask: Ask, database: str, name: str) -> Iterator[Any]:
        which = f"{_is(prefix, 'SCHEMA', database)} AND {_is(prefix, 'NAME', name)}"
        yield ask(f"SELECT {columns} FROM information_schema.{view} WHERE {which}{kind}")

    return facts


_ROUTINE = (
    "DTD_IDENTIFIER, ROUTINE_DEFINITION, IS_DETERMINISTIC, SQL_DATA_ACCESS, SECURITY_TYPE, SQL_MODE, ROUTINE_COMMENT,"
    " DEFINER, CREATED, LAST_ALTERED"
)
_EVENT = (
    "EVENT_DEFINITION, EXECUTE_AT, INTERVAL_VALUE, INTERVAL_FIELD, SQL_MODE, STARTS, ENDS, STATUS, ON_COMPLETION,"
    " EVENT_COMMENT, DEFINER, CREATED, LAST_ALTERED"
)

#: what tells each kind of object; those of one name
_FACTS: dict[str, Callable[[Ask, str, str], Iterator[Any]]] = {
    "TABLE": _table,
    "INDEX": _table,
    "VIEW": _view,
    "DATABASE": _database,
    "PROCEDURE": _listed("ROUTINES", _ROUTINE, " AND ROUTINE_TYPE = 'PROCEDURE'"),
    "FUNCTION": _listed("ROUTINES", _ROUTINE, " AND ROUTINE_TYPE = 'FUNCTION'"),
    "EVENT": _listed("EVENTS", _EVENT),
    "LIBRARY": _listed("LIBRARIES", "LIBRARY_DEFINITION, CREATED, LAST_ALTERED"),
}


def _is(object_kind: str, part: str, name: str) -> str:
    return f"{object_kind}_{part} = {literals.text(name)}"


def _innodb_tables(database: str, table: str) -> str:
    """Selects what InnoDB keeps of a table and of its partitions, by the names of their files.

    That is their ids, and how often columns were added and dropped under the same id (TOTAL_ROW_VERSIONS).
    """
    names = "NAME LIKE '%@%'"
    if database.isascii() and table.isascii():
        name = f"{_file_name(database)}/{_file_name(table)}"
        names = f"NAME = {literals.text(name)} OR LEFT(NAME, {len(name) + 1}) = {literals.text(name + '#')}"
    # of a name with letters beyond ASCII the code is not known here: every table with such letters is taken
    return f"SELECT * FROM information_schema.INNODB_TABLES WHERE {names} ORDER BY NAME"


def _file_name(name: str) -> str:
    """A name as its file has it: other characters than letters and digits are written as @ and a code."""
    return "".join(letter if letter in _PLAIN else f"@{ord(letter):04x}" for letter in name)
