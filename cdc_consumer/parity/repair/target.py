"""Describes a table of the follower as the repair writes it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from cdc_consumer.parity.canonical import row_hash
from cdc_consumer.parity.model import Shape, TableName
from cdc_consumer.sql import literals
from shared.mysql import Connection, rows


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
    return Target(
        shape,
        row_hash(shape),
        tuple(column.name for column in shape.columns if column.name not in generated),
        tuple(column for column, extra in columns if "ON UPDATE" in extra),
        _uniques(connection, where, shape),
        tuple(column for column, _ in columns if column not in compared | generated),
        _refusal(connection, where, name, system_database),
    )


def _uniques(connection: Connection, where: str, shape: Shape) -> tuple[tuple[str, ...], ...]:
    parts: dict[str, list[str | None]] = defaultdict(list)
    for index, column, prefix in rows(
        connection,
        f"SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE {where}"
        " AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX",
    ):
        # of an expression, or of the beginning of a value: who holds the value is not asked, the server refuses it
        parts[index].append(None if prefix is not None else column)
    compared = {column.name for column in shape.columns}
    found = [tuple(name for name in names if name in compared) for names in parts.values() if compared >= set(names)]
    return tuple(names for names in found if names != shape.key)


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
