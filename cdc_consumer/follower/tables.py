"""Asks the follower's information_schema about its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cdc_consumer.decision import WAY_PAST
from cdc_consumer.sql import column_types, literals
from shared.errors import DivergedError
from shared.events import Rows
from shared.mysql import quote_name

#: runs one SELECT on the follower
Ask = Callable[[str], Sequence[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class FollowerColumn:
    """Describes a column of the follower."""

    name: str
    #: COLUMN_TYPE
    type: str
    generated: bool
    #: a generated one whose value is kept in the row
    stored: bool
    #: an INSERT that leaves it out fails
    required: bool


@dataclass(frozen=True, slots=True)
class FollowerTable:
    """Describes a table of the follower."""

    database: str
    name: str
    columns: dict[str, FollowerColumn]
    #: columns of the primary key, in its order; empty without one
    key: tuple[str, ...]
    #: a foreign key of it refers to itself, so that the order of its deletes matters
    refers_to_itself: bool

    def key_in(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The primary key's columns when the leader's rows hold them all; the follower may have a key of its own."""
        return self.key if all(name in columns for name in self.key) else ()

    @property
    def computes(self) -> bool:
        """Tell whether the follower computes values in it that the leader computed otherwise: in another session."""
        return any(column.stored or column.type.startswith("float(") for column in self.columns.values())

    @property
    def sql(self) -> str:
        return f"{quote_name(self.database)}.{quote_name(self.name)}"


class FollowerTables:
    """Keeps tables by name, asked for once; `forget` after anything that may have changed one."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._tables: dict[tuple[str, str], FollowerTable] = {}
        self._fitting: set[tuple[Any, ...]] = set()

    def forget(self) -> None:
        self._tables.clear()
        self._fitting.clear()

    def find(self, database: str, name: str) -> FollowerTable:
        """Return the table of this name. Raises DivergedError when it cannot be written as the leader's was."""
        place = (database, name)
        table = self._tables.get(place)
        if table is None:
            table = self._tables[place] = self._read(*place)
        return table

    def get(self, rows: Rows) -> FollowerTable:
        """Return the table these rows go to. Raises DivergedError when it cannot take them as they are."""
        table = self.find(rows.database, rows.table)
        images = (rows.database, rows.table, rows.columns, rows.types)
        if images not in self._fitting:
            _check(table, rows)
            self._fitting.add(images)
        return table

    def _read(self, database: str, name: str) -> FollowerTable:
        where = f"TABLE_SCHEMA = {literals.text(database)} AND TABLE_NAME = {literals.text(name)}"
        columns = self._ask(
            "SELECT COLUMN_NAME, COLUMN_TYPE, EXTRA, IS_NULLABLE, COLUMN_DEFAULT IS NULL"
            f" FROM information_schema.COLUMNS WHERE {where} ORDER BY ORDINAL_POSITION"
        )
        if not columns:
            raise DivergedError(
                f"table {database}.{name} does not exist on the follower; create it there as it was on the leader,"
                f" {WAY_PAST}"
            )
        self._refuse_other_storage(where, f"{quote_name(database)}.{quote_name(name)}")
        self._refuse_triggers(database, name)
        key = self._ask(
            "SELECT COLUMN_NAME FROM information_schema.STATISTICS"
            f" WHERE {where} AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX"
        )
        itself = self._ask(
            f"SELECT 1 FROM information_schema.KEY_COLUMN_USAGE WHERE {where}"
            " AND REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA AND REFERENCED_TABLE_NAME = TABLE_NAME LIMIT 1"
        )
        return FollowerTable(
            database, name, {row[0]: _column(*row) for row in columns}, tuple(row[0] for row in key), bool(itself)
        )

    def _refuse_other_storage(self, where: str, table: str) -> None:
        """Refuse all but InnoDB's base tables: rows given to a view would be written to tables it does not name."""
        found = self._ask(f"SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE {where}")
        for kind, engine in found:
            if kind != "BASE TABLE":
                raise DivergedError(
                    f"{table} of the follower is a {kind}, and the leader's rows are those of a table; drop it on the"
                    f" follower and create the leader's table in its place, {WAY_PAST}"
                )
            if engine != "InnoDB":
                raise DivergedError(
                    f"table {table} of the follower is stored by {engine}, which cannot write it in one transaction"
                    f" with the position; run on the follower: ALTER TABLE {table} ENGINE=InnoDB"
                )
        if not found:
            raise DivergedError(f"table {table} went away on the follower while it was looked at; start again")

    def _refuse_triggers(self, database: str, name: str) -> None:
        triggers = self._ask(
            "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS"
            f" WHERE EVENT_OBJECT_SCHEMA = {literals.text(database)} AND EVENT_OBJECT_TABLE = {literals.text(name)}"
        )
        for (trigger,) in triggers:
            raise DivergedError(
                f"table {database}.{name} of the follower has the trigger {trigger}, whose effects the leader's rows"
                f" already contain; run on the follower: DROP TRIGGER {quote_name(database)}.{quote_name(trigger)}"
            )


def _column(name: str, kind: str, extra: str, nullable: str, without_default: int) -> FollowerColumn:
    generated = "GENERATED" in extra.replace("DEFAULT_GENERATED", "")
    defaulted = not without_default or nullable == "YES" or "auto_increment" in extra or "DEFAULT_GENERATED" in extra
    return FollowerColumn(name, kind, generated, "STORED GENERATED" in extra, not defaulted and not generated)


def _check(table: FollowerTable, rows: Rows) -> None:
    where = f"{rows.database}.{rows.table}"
    for index, name in enumerate(rows.columns):
        column = table.columns.get(name)
        if column is None:
            raise DivergedError(
                f"column {where}.{name} does not exist on the follower; add it there as it was on the leader,"
                f" {WAY_PAST}"
            )
        leader = rows.types[index] if rows.types else ""
        if leader and not column_types.stores(column.type, leader):
            raise DivergedError(
                f"column {where}.{name} is {column.type} on the follower, which would alter values of {leader},"
                f" its type on the leader; give it that type on the follower, {WAY_PAST}"
            )
    for name, column in table.columns.items():
        if column.required and name not in rows.columns:
            raise DivergedError(
                f"column {where}.{name} exists on the follower only, and has no default for the leader's rows; drop it"
                " there, or give it a default"
            )
