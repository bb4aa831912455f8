"""A digest of everything a statement can change in some databases, rows excepted.

Without GTIDs it tells whether a statement that commits by itself ran before a crash: two equal fingerprints mean that
nothing of it is there. The ids that InnoDB gives to tables and tablespaces make a RENAME that swaps two identical
tables, or a TRUNCATE, visible.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from cdc_consumer.follower.tables import Ask
from cdc_consumer.sql import literals
from shared.mysql import quote_name

#: the next value of a counter is data, and an ALTER of nothing else may run twice
_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


def fingerprint(ask: Ask, databases: Sequence[str]) -> str:
    """64 hexadecimal digits. Needs the privilege PROCESS, and to see the objects of the databases."""
    digest = hashlib.sha256()
    for database in sorted(set(databases)):
        for fact in _facts(ask, database):
            digest.update(repr(fact).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _facts(ask: Ask, database: str) -> Iterator[Any]:
    name = literals.text(database)
    yield database
    yield ask(
        "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME, DEFAULT_ENCRYPTION, OPTIONS"
        " FROM information_schema.SCHEMATA JOIN information_schema.SCHEMATA_EXTENSIONS USING (SCHEMA_NAME)"
        f" WHERE SCHEMA_NAME = {name}"
    )
    tables = ask(
        "SELECT TABLE_NAME FROM information_schema.TABLES"
        f" WHERE TABLE_SCHEMA = {name} AND TABLE_TYPE = 'BASE TABLE' ORDER BY TABLE_NAME"
    )
    for (table,) in tables:
        ((_, create),) = ask(f"SHOW CREATE TABLE {quote_name(database)}.{quote_name(table)}")
        yield _COUNTER.sub("", create)
    yield ask(
        "SELECT TABLE_NAME, VIEW_DEFINITION, CHECK_OPTION, DEFINER, SECURITY_TYPE, CHARACTER_SET_CLIENT,"
        f" COLLATION_CONNECTION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = {name} ORDER BY TABLE_NAME"
    )
    yield ask(
        "SELECT TRIGGER_NAME, EVENT_MANIPULATION, EVENT_OBJECT_TABLE, ACTION_ORDER, ACTION_STATEMENT, ACTION_TIMING,"
        " SQL_MODE, DEFINER, CREATED FROM information_schema.TRIGGERS"
        f" WHERE TRIGGER_SCHEMA = {name} ORDER BY TRIGGER_NAME"
    )
    yield ask(
        "SELECT ROUTINE_TYPE, ROUTINE_NAME, DTD_IDENTIFIER, ROUTINE_DEFINITION, IS_DETERMINISTIC, SQL_DATA_ACCESS,"
        " SECURITY_TYPE, SQL_MODE, ROUTINE_COMMENT, DEFINER, CREATED, LAST_ALTERED FROM information_schema.ROUTINES"
        f" WHERE ROUTINE_SCHEMA = {name} ORDER BY ROUTINE_TYPE, ROUTINE_NAME"
    )
    yield ask(
        "SELECT EVENT_NAME, EVENT_DEFINITION, EXECUTE_AT, INTERVAL_VALUE, INTERVAL_FIELD, SQL_MODE, STARTS, ENDS,"
        " STATUS, ON_COMPLETION, EVENT_COMMENT, DEFINER, CREATED, LAST_ALTERED FROM information_schema.EVENTS"
        f" WHERE EVENT_SCHEMA = {name} ORDER BY EVENT_NAME"
    )
    if ask(
        "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = 'LIBRARIES'"
    ):
        yield ask(
            "SELECT LIBRARY_NAME, LIBRARY_DEFINITION, CREATED, LAST_ALTERED FROM information_schema.LIBRARIES"
            f" WHERE LIBRARY_SCHEMA = {name} ORDER BY LIBRARY_NAME"
        )
    yield ask(
        "SELECT NAME, TABLE_ID, SPACE FROM information_schema.INNODB_TABLES"
        f" WHERE {_innodb_names(database)} ORDER BY NAME"
    )


def _innodb_names(database: str) -> str:
    """Selects the tables of a database by the names of their files, where other letters are written as @ and a code.

    Of a name with letters beyond ASCII the code is not known here: every database with such letters is taken.
    """
    folder = "SUBSTRING_INDEX(NAME, '/', 1)"
    if database.isascii():
        name = "".join(letter if letter in _PLAIN else f"@{ord(letter):04x}" for letter in database)
        return f"{folder} = {literals.text(name)}"
    return f"{folder} LIKE '%@%'"
