"""Records what a server holds besides rows, as frozen types.

Facts that decide something are fields, read from information_schema. Everything else is compared in the text that SHOW
CREATE prints: information_schema cuts a binary default at its first zero byte, shows the default of a TIMESTAMP in the
time zone of whoever set it, loses backslashes in the bodies of routines, and has no word of a parser of full texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cdc_consumer.parity.model import TableName

#: of an object with a body of its own
ObjectKind = Literal["VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "LIBRARY", "EVENT"]


@dataclass(frozen=True, slots=True)
class ColumnRecord:
    """Records a column."""

    name: str
    #: COLUMN_TYPE, for example "int unsigned"
    type: str
    #: DATA_TYPE, for example "int"
    data_type: str
    #: None where the type has none
    charset: str | None
    collation: str | None
    nullable: bool
    generated: Literal["", "STORED", "VIRTUAL"]
    auto_increment: bool
    invisible: bool
    #: spatial reference system its values are limited to
    srs_id: int | None
    comment: str
    #: its line of SHOW CREATE TABLE, name included
    definition: str


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """Records a key, unique or not."""

    #: "PRIMARY" for the primary key
    name: str
    unique: bool
    #: names of the columns it begins with or holds, without its expressions
    columns: tuple[str, ...]
    #: its parts are columns from end to end: no prefix, no expression
    whole: bool
    #: its line of SHOW CREATE TABLE
    definition: str


@dataclass(frozen=True, slots=True)
class ConstraintRecord:
    """Records a foreign key or a check."""

    name: str
    kind: Literal["foreign key", "check"]
    #: its line of SHOW CREATE TABLE
    definition: str


@dataclass(frozen=True, slots=True)
class TableRecord:
    """Records a table."""

    name: TableName
    engine: str
    #: for columns that name none
    collation: str
    comment: str
    #: the engine's estimate
    rows: int
    #: in their order; a hidden column of an index over an expression is none, the generated my_row_id is one
    columns: tuple[ColumnRecord, ...]
    keys: tuple[KeyRecord, ...]
    constraints: tuple[ConstraintRecord, ...]
    #: what SHOW CREATE TABLE prints after the last parenthesis: "ENGINE=InnoDB ..."; and its PARTITION BY, "" without
    options: str
    partitioning: str
    #: all of SHOW CREATE TABLE
    definition: str

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of its columns, () without one."""
        return next((key.columns for key in self.keys if key.name == "PRIMARY"), ())

    @property
    def unique_keys(self) -> tuple[tuple[str, ...], ...]:
        """Return the columns of each unique key that tells any two rows apart, whole and without NULL; not the primary
        key.
        """
        required = {column.name for column in self.columns if not column.nullable}
        return tuple(
            key.columns
            for key in self.keys
            if key.unique and key.whole and key.name != "PRIMARY" and required.issuperset(key.columns)
        )

    @property
    def fingerprint(self) -> str:
        """Return the SHA-256, in hexadecimal, of what an audit of its rows relies on."""
        columns = [
            (each.name, each.type, each.charset, each.collation, each.nullable, each.generated, each.srs_id)
            for each in self.columns
        ]
        facts = (self.name, columns, self.primary_key, self.unique_keys)
        return hashlib.sha256(repr(facts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Context:
    """The session an object was created in, which decides what its body means."""

    #: None where the object has none
    sql_mode: str | None
    collation_connection: str | None
    database_collation: str | None
    time_zone: str | None


@dataclass(frozen=True, slots=True)
class ObjectRecord:
    """Records a view, trigger, routine or event."""

    kind: ObjectKind
    name: TableName
    #: all of what SHOW CREATE prints
    definition: str
    context: Context
    #: a trigger's table, "" for others
    table: str = ""
    #: of events: "ENABLED", "DISABLED" or "..._DISABLED", which means disabled on a replica
    status: str = ""


@dataclass(frozen=True, slots=True)
class DatabaseRecord:
    """Records a database and its defaults."""

    name: str
    charset: str
    collation: str
    encrypted: bool
    #: nothing in it may be altered, by nobody
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """Records the selected databases of one server."""

    databases: Mapping[str, DatabaseRecord]
    tables: Mapping[TableName, TableRecord]
    #: two kinds of object may have the same name
    objects: Mapping[tuple[ObjectKind, TableName], ObjectRecord]
    #: events that are ENABLED do run
    runs_events: bool

    def fingerprint(self, table: TableName) -> str:
        """Changes with whatever an audit of the table's rows relies on. Raises KeyError without the table."""
        return self.tables[table].fingerprint
