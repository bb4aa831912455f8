"""Describes a table of the follower as the repair writes it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Set
from dataclasses import dataclass, field

from cdc_consumer.parity.canonical import row_hash
from cdc_consumer.parity.model import Shape, TableName
from cdc_consumer.sql import literals
from shared.mysql import Connection, quote_name, rows

#: a name that MySQL tells in an expression as it is
_PLAIN = re.compile(r"[A-Za-z0-9_$]+")


@dataclass(frozen=True, slots=True)
class Target:
    """Describes a table that the repair writes."""

    shape: Shape
    #: SQL of a row's hash
    hash: str
    #: columns a statement writes: those the follower does not generate
    written: tuple[str, ...]
    #: columns an UPDATE would move by itself
    moving: tuple[str, ...] = ()
    #: columns of its unique keys besides `shape.key`, of those with whole columns only
    uniques: tuple[tuple[str, ...], ...] = ()
    #: columns from which its other unique keys are made: those of a virtual column, an expression or a prefix
    hidden: frozenset[str] = frozenset()
    #: columns the follower's table has and the shape does not, and that no expression generates
    outside: tuple[str, ...] = ()
    #: why no row of it may be repaired, "" when they may
    refusal: str = ""

    @property
    def sql(self) -> str:
        return self.shape.name.sql

    @property
    def enums(self) -> frozenset[str]:
        return frozenset(column.name for column in self.shape.columns if column.data_type == "enum")

    @property
    def documents(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.shape.columns if column.data_type == "json")

    @property
    def text_key(self) -> bool:
        """Tell whether two keys that compare equal may be different bytes."""
        return any(self.shape.column(name).charset is not None for name in self.shape.key)


def read_target(connection: Connection, shape: Shape, system_database: str) -> Target:
    """Ask the follower. Raises pymysql.err.MySQLError."""
    name = shape.name
    where = f"TABLE_SCHEMA = {literals.text(name.database)} AND TABLE_NAME = {literals.text(name.table)}"
    columns = rows(
        connection,
        f"SELECT COLUMN_NAME, UPPER(EXTRA) FROM information_schema.COLUMNS WHERE {where} ORDER BY ORDINAL_POSITION",
    )
    generated = {column for column, extra in columns if "GENERATED" in extra.replace("DEFAULT_GENERATED", "")}
    compared = {column.name for column in shape.columns}
    uniques, hidden = _uniques(connection, where, shape)
    return Target(
        shape,
        row_hash(shape),
        tuple(column.name for column in shape.columns if column.name not in generated),
        tuple(column for column, extra in columns if "ON UPDATE" in extra),
        uniques,
        hidden,
        tuple(column for column, _ in columns if column not in compared | generated),
        _refusal(connection, where, name, system_database),
    )


@dataclass(slots=True)
class _Unique:
    columns: list[str] = field(default_factory=list)
    #: columns of which only the beginning counts
    prefixes: list[str] = field(default_factory=list)
    expressions: list[str] = field(default_factory=list)


def _uniques(connection: Connection, where: str, shape: Shape) -> tuple[tuple[tuple[str, ...], ...], frozenset[str]]:
    """`Target.uniques` and `Target.hidden`."""
    keys: dict[str, _Unique] = defaultdict(_Unique)
    for index, column, prefix, expression in rows(
        connection,
        f"SELECT INDEX_NAME, COLUMN_NAME, SUB_PART, EXPRESSION FROM information_schema.STATISTICS WHERE {where}"
        " AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX",
    ):
        key = keys[index]
        if column is None:
            key.expressions.append(expression)
        else:
            (key.columns if prefix is None else key.prefixes).append(column)
    compared = {column.name for column in shape.columns}
    plain, hidden = [], set()
    for key in keys.values():
        if not key.prefixes and not key.expressions and compared >= set(key.columns):
            plain.append(tuple(key.columns))
        else:
            hidden |= _made_from(connection, where, compared, key)
    return tuple(names for names in plain if names != shape.key), frozenset(hidden)


def _made_from(connection: Connection, where: str, compared: Set[str], key: _Unique) -> set[str]:
    """The columns from which the values of such a key are made."""
    texts, names = list(key.expressions), {*key.columns, *key.prefixes}
    if key.expressions or names - compared:
        # a column may be generated from generated ones, and an expression name them
        found = f"SELECT GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE {where}"
        texts += [text for (text,) in rows(connection, found) if text]
    odd = {name for name in compared if texts and not _PLAIN.fullmatch(name)}
    named = {name for name in compared if any(quote_name(name) in text for text in texts)}
    return (names & compared) | named | odd


def _refusal(connection: Connection, where: str, name: TableName, system_database: str) -> str:
    if name.database == system_database:
        return "it belongs to the system itself"
    tables = rows(
        connection,
        "SELECT t.TABLE_TYPE, t.ENGINE, e.TRANSACTIONS FROM information_schema.TABLES t"
        f" LEFT JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE WHERE {where}",
    )
    if not tables:
        return "the follower does not have it"
    ((kind, engine, transactions),) = tables
    if kind != "BASE TABLE":
        return "it is not a table on the follower"
    if transactions != "YES":
        return f"it is stored by {engine}, where nothing can be rolled back"
    triggers = rows(
        connection,
        "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS"
        f" WHERE EVENT_OBJECT_SCHEMA = {literals.text(name.database)}"
        f" AND EVENT_OBJECT_TABLE = {literals.text(name.table)}",
    )
    return f"it has the trigger {triggers[0][0]}, which would change other rows" if triggers else ""
