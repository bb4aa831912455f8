"""Asks the follower's information_schema about its tables."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any

from cdc_consumer.decision import FOREIGN, WAY_PAST
from cdc_consumer.sql import column_types, literals
from shared.errors import DivergedError
from shared.events import Rows
from shared.mysql import quote_name

#: runs one SELECT on the follower
Ask = Callable[[str], Sequence[tuple[Any, ...]]]


def table_exists(ask: Ask, place: tuple[str, str]) -> bool:
    """Tell whether there is a table or view of this database and name."""
    database, table = map(literals.text, place)
    where = f"TABLE_SCHEMA = {database} AND TABLE_NAME = {table}"
    return bool(ask(f"SELECT 1 FROM information_schema.TABLES WHERE {where}"))


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
    #: an UPDATE that leaves it out gives it the time
    renewed: bool = False


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
    #: an INSERT can meet nothing but the row of its own primary key: no other key is UNIQUE, none refers to a table
    meets_own_row: bool = False
    #: it has no index at all, and so no foreign key either, of its own or to it
    bare: bool = False

    def key_in(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The primary key's columns when the leader's rows hold them all; the follower may have a key of its own."""
        return self.key if all(name in columns for name in self.key) else ()

    def update(self, columns: Sequence[str]) -> str:
        """Return what follows UPDATE when it sets these columns, up to the first: no time comes into others."""
        kept = [quote_name(name) for name, column in self.columns.items() if column.renewed and name not in columns]
        return "".join([f"{self.sql} SET ", *(f"{name} = {name}, " for name in kept)])

    @property
    def computes(self) -> bool:
        """Tell whether the follower computes values in it that the leader computed otherwise: in another session."""
        return any(column.stored or column.type.startswith("float(") for column in self.columns.values())

    @property
    def may_refuse(self) -> bool:
        """Tell whether it has virtual columns, whose expressions a strict session may refuse and the leader took."""
        return any(column.generated and not column.stored for column in self.columns.values())

    @property
    def sql(self) -> str:
        return f"{quote_name(self.database)}.{quote_name(self.name)}"


class FollowerTables:
    """Keeps tables by name, asked for once; `forget` after anything that may have changed one."""

    def __init__(self, ask: Ask, singly: Container[tuple[str, str]] = ()) -> None:
        """`singly` are tables (database, table) whose rows are found one by one where no index finds them."""
        self._ask = ask
        self._singly = singly
        self._tables: dict[tuple[str, str], FollowerTable] = {}
        self._fitting: set[tuple[Any, ...]] = set()
        #: tables that were asked for since somebody emptied this
        self.used: set[tuple[str, str]] = set()

    def forget(self) -> None:
        self._tables.clear()
        self._fitting.clear()
        self.used.clear()

    def see_again(self, place: tuple[str, str]) -> tuple[str, str] | None:
        """Ask anew for a table; return its name, and what is otherwise than before, or None where nothing is."""
        before = self._tables.pop(place, None)
        try:
            if before is None or before == self.find(*place):
                return None
            what = "other columns or keys"
        except DivergedError as error:
            what = str(error)
        self._fitting.clear()
        return ".".join(place), what

    def knows(self, database: str, name: str) -> bool:
        """Tell whether the table of this name was asked for."""
        return (database, name) in self._tables

    def find(self, database: str, name: str) -> FollowerTable:
        """Return the table of this name. Raises DivergedError when it cannot be written as the leader's was."""
        place = (database, name)
        self.used.add(place)
        table = self._tables.get(place)
        if table is None:
            table = self._tables[place] = self._read(*place)
        return table

    def get(self, rows: Rows, about: str = "") -> FollowerTable:
        """Return the table these rows go to. Raises DivergedError, `about` first, when it cannot take them so."""
        try:
            table = self.find(rows.database, rows.table)
            images = (rows.database, rows.table, rows.columns, rows.types)
            if images not in self._fitting:
                _check(table, rows)
                self._fitting.add(images)
            return table
        except DivergedError as error:
            raise DivergedError(f"{about}{error}") from None

    def _read(self, database: str, name: str) -> FollowerTable:
        where = f"TABLE_SCHEMA = {literals.text(database)} AND TABLE_NAME = {literals.text(name)}"
        columns = self._ask(
            "SELECT COLUMN_NAME, COLUMN_TYPE, EXTRA, IS_NULLABLE, COLUMN_DEFAULT IS NULL"
            f" FROM information_schema.COLUMNS WHERE {where} ORDER BY ORDINAL_POSITION"
        )
        if not columns:
            raise DivergedError(
                f"table {database}.{name} does not exist on the follower; create it there as it was on the leader"
                " (run cdc-copy, if nothing has filled this follower yet, with --add for a database that joins a pair),"
                f" {WAY_PAST}"
            )
        self._refuse_other_storage(where, f"{quote_name(database)}.{quote_name(name)}")
        self._refuse_triggers(database, name)
        indexes = self._ask(
            "SELECT INDEX_NAME, NON_UNIQUE, COLUMN_NAME FROM information_schema.STATISTICS"
            f" WHERE {where} ORDER BY SEQ_IN_INDEX"
        )
        references = self._ask(
            "SELECT REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA AND REFERENCED_TABLE_NAME = TABLE_NAME"
            f" FROM information_schema.KEY_COLUMN_USAGE WHERE {where} AND REFERENCED_TABLE_NAME IS NOT NULL"
        )
        others = [name for name, not_unique, _ in indexes if name != "PRIMARY" and not not_unique]
        return FollowerTable(
            database,
            name,
            {row[0]: _column(*row) for row in columns},
            tuple(column for index, _, column in indexes if index == "PRIMARY"),
            refers_to_itself=any(itself for (itself,) in references),
            meets_own_row=not others and not references,
            bare=not indexes and (database, name) not in self._singly,
        )

    def _refuse_other_storage(self, where: str, table: str) -> None:
        """Refuse all but InnoDB's base tables: rows given to a view would be written to tables it does not name."""
        found = self._ask(
            f"SELECT TABLE_TYPE, ENGINE, TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE {where}"
        )
        for kind, engine, *names in found:
            if table != ".".join(map(quote_name, names)):
                # the filter was asked for the name as it stands in the topic, which this server takes in any case
                raise DivergedError(f"table {table} is stored on the follower in other letters: {FOREIGN}")
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
    required, renewed = not defaulted and not generated, "on update" in extra
    return FollowerColumn(name, kind, generated, "STORED GENERATED" in extra, required, renewed)


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
