"""The SQL that would make a follower's schema its leader's; text only, nothing here runs it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import IntEnum, auto
from typing import NamedTuple

from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.schema import normal
from cdc_consumer.parity.schema.records import (
    ColumnRecord,
    ConstraintRecord,
    Context,
    DatabaseRecord,
    KeyRecord,
    ObjectRecord,
    TableRecord,
)
from cdc_consumer.sql.column_types import SPATIAL
from cdc_consumer.sql.literals import text
from shared.mysql import quote_name

#: the session every statement but those of `create_object` relies on; it is left in this state
SESSION = (
    "SET /*!80013 SESSION sql_require_primary_key = 0, */ /*!80030 SESSION sql_generate_invisible_primary_key = 0, */"
    " /*!80400 SESSION restrict_fk_on_non_standard_key = 0, */ SESSION foreign_key_checks = 0,"
    " SESSION time_zone = '+00:00', SESSION sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'"
)
#: what gives a table option its default, of those that can be taken back
_RESET = {
    "AVG_ROW_LENGTH": "0", "CHECKSUM": "0", "COMPRESSION": "''", "DELAY_KEY_WRITE": "0", "ENCRYPTION": "'N'",
    "KEY_BLOCK_SIZE": "0", "MAX_ROWS": "0", "MIN_ROWS": "0", "PACK_KEYS": "DEFAULT", "ROW_FORMAT": "DEFAULT",
    "STATS_AUTO_RECALC": "DEFAULT", "STATS_PERSISTENT": "DEFAULT", "STATS_SAMPLE_PAGES": "DEFAULT",
}  # fmt: skip
#: the next number of a table, which is data; before any quote, since a comment may say the same
_COUNTER = re.compile(r"^([^']*?) AUTO_INCREMENT=\d+")


class Phase(IntEnum):
    """Says when a step is to run, first to last."""

    WRITABLE = auto()
    DATABASE = auto()
    DROP_OBJECT = auto()
    DROP_FOREIGN_KEY = auto()
    DROP_TABLE = auto()
    ALTER_TABLE = auto()
    DROP_COLUMN = auto()
    ORDER_COLUMNS = auto()
    SET_DEFAULT = auto()
    #: its foreign keys need what they refer to
    CREATE_TABLE = auto()
    ADD_FOREIGN_KEY = auto()
    DROP_DATABASE = auto()
    CREATE_ROUTINE = auto()
    CREATE_VIEW = auto()
    CREATE_EVENT = auto()


class SchemaStep(NamedTuple):
    """Holds one step of a schema's repair."""

    phase: Phase
    #: statements; of a step with a table clauses of ALTER TABLE
    sql: tuple[str, ...]
    table: TableName | None = None
    #: the clause of ALTER TABLE that no comma precedes
    last: str = ""
    #: the table, view, routine or event that it creates or drops as a whole
    whole: TableName | None = None
    #: what it removes with all that is in it, "" when nothing
    loses: str = ""
    #: the sentence of the difference it mends
    mends: str = ""


def alter_table(table: TableName, clauses: Iterable[str], last: str = "") -> str:
    """Write an ALTER TABLE statement."""
    return " ".join(part for part in (f"ALTER TABLE {table.sql}", ", ".join(clauses), last) if part)


def alter(table: TableName, *clauses: str) -> SchemaStep:
    """Alter a table by these clauses."""
    return SchemaStep(Phase.ALTER_TABLE, clauses, table)


def create_database(database: DatabaseRecord) -> SchemaStep:
    """Create a database as the leader has it."""
    return SchemaStep(Phase.DATABASE, (f"CREATE DATABASE {quote_name(database.name)} {_defaults(database)}",))


def alter_database(database: DatabaseRecord) -> SchemaStep:
    """Give a database the leader's defaults."""
    return SchemaStep(Phase.DATABASE, (f"ALTER DATABASE {quote_name(database.name)} {_defaults(database)}",))


def _defaults(database: DatabaseRecord) -> str:
    encryption = "Y" if database.encrypted else "N"
    return (
        f"CHARACTER SET {database.charset} COLLATE {database.collation} /*!80016 DEFAULT ENCRYPTION = '{encryption}' */"
    )


def let_write(name: str) -> SchemaStep:
    """Let a database of the follower be written to, before all else."""
    return SchemaStep(Phase.WRITABLE, (f"ALTER DATABASE {quote_name(name)} READ ONLY = 0",))


def drop_database(name: str) -> SchemaStep:
    """Drop a database with all that is in it."""
    return SchemaStep(Phase.DROP_DATABASE, (f"DROP DATABASE {quote_name(name)}",), loses=f"database {name}")


def create_table(table: TableRecord) -> SchemaStep:
    """Create a table as the leader has it, empty."""
    head = len(f"CREATE TABLE {quote_name(table.name.table)}")
    end = table.definition.rindex(table.options)
    options = _COUNTER.sub(r"\1", table.definition[end:])
    sql = f"CREATE TABLE {table.name.sql}{table.definition[head:end]}{options}"
    return SchemaStep(Phase.CREATE_TABLE, (sql,), whole=table.name)


def drop_table(name: TableName) -> SchemaStep:
    """Drop a table with its rows."""
    return SchemaStep(Phase.DROP_TABLE, (f"DROP TABLE {name.sql}",), whole=name, loses=f"table {name}")


def add_column(table: TableRecord, column: ColumnRecord) -> tuple[SchemaStep, ...]:
    """Add it where the leader's `table` has it."""
    definition, default = _explicit(column)
    add = alter(table.name, f"ADD COLUMN {definition} {_place(table, column)}")
    return add, *_set_default(table.name, column, default)


def drop_column(table: TableRecord, column: ColumnRecord) -> SchemaStep:
    """In a statement of its own after the others, unless the leader's `table` could not have the column for a while.

    A column that counts up does not outlive its key, and MySQL partitions no table with a spatial column.
    """
    together = column.auto_increment or (table.partitioning and column.data_type in SPATIAL)
    return _drop_column(table.name, column, Phase.ALTER_TABLE if together else Phase.DROP_COLUMN)


def _drop_column(table: TableName, column: ColumnRecord, phase: Phase) -> SchemaStep:
    clause = f"DROP COLUMN {quote_name(column.name)}"
    return SchemaStep(phase, (clause,), table, loses=f"column {table}.{column.name}")


def change_column(table: TableRecord, column: ColumnRecord, follower: ColumnRecord) -> tuple[SchemaStep, ...]:
    """`table` and `column` are the leader's."""
    if column.generated != follower.generated and "VIRTUAL" in (column.generated, follower.generated):
        # a column in the rows cannot become one beside them, nor the other way round
        return _drop_column(table.name, follower, Phase.ALTER_TABLE), *add_column(table, column)
    definition, default = _explicit(column)
    change = alter(table.name, f"CHANGE COLUMN {quote_name(follower.name)} {definition}")
    return change, *_set_default(table.name, column, default)


def order_columns(table: TableRecord) -> Iterator[SchemaStep]:
    """Put all columns in the order of this table, the leader's."""
    for column in table.columns:
        definition, default = _explicit(column)
        clause = f"MODIFY COLUMN {definition} {_place(table, column)}"
        yield SchemaStep(Phase.ORDER_COLUMNS, (clause,), table.name)
        yield from _set_default(table.name, column, default)


def _set_default(table: TableName, column: ColumnRecord, default: str) -> Iterator[SchemaStep]:
    """Apart from all else: MySQL rebuilds no table with a new DEFAULT (uuid()), which could fill rows."""
    if default:
        yield SchemaStep(Phase.SET_DEFAULT, (f"ALTER COLUMN {quote_name(column.name)} SET {default}",), table)


def _place(table: TableRecord, column: ColumnRecord) -> str:
    index = table.columns.index(column)
    return f"AFTER {quote_name(table.columns[index - 1].name)}" if index else "FIRST"


def _explicit(column: ColumnRecord) -> tuple[str, str]:
    """Its definition without a DEFAULT (expression), and that, "" without one.

    The character set is spelled out, which the server leaves to the table's default.
    """
    definition, default = normal.without_expression_default(column.definition)
    if column.charset is None:
        return definition, default
    clauses = normal.column_clauses(definition)
    end = clauses["TYPE"][-1].end
    rest = max((token.end for head in ("CHARACTER", "COLLATE") for token in clauses.get(head, ())), default=end)
    named = f" CHARACTER SET {column.charset} COLLATE {column.collation}"
    return definition[:end] + named + definition[rest:], default


def add_key(table: TableName, key: KeyRecord) -> SchemaStep:
    """Add a key of the leader."""
    return alter(table, f"ADD {key.definition}")


def drop_key(table: TableName, name: str) -> SchemaStep:
    """Drop a key of the follower."""
    return alter(table, "DROP PRIMARY KEY" if name == "PRIMARY" else f"DROP KEY {quote_name(name)}")


def change_key(table: TableName, leader: KeyRecord, follower: KeyRecord) -> SchemaStep:
    """MySQL takes a key that goes and comes with the same parts for unchanged, whatever else is said of it."""
    if normal.key_but_visibility(leader.definition) == normal.key_but_visibility(follower.definition):
        visibility = "VISIBLE" if normal.is_visible(leader.definition) else "INVISIBLE"
        return alter(table, f"ALTER INDEX {quote_name(follower.name)} {visibility}")
    alike = normal.key_parts(leader.definition) == normal.key_parts(follower.definition)
    copy = ("ALGORITHM = COPY",) if alike else ()
    return alter(table, *drop_key(table, follower.name).sql, *add_key(table, leader).sql, *copy)


def rename_key(table: TableName, old: str, new: str) -> SchemaStep:
    """Give a key of the follower the leader's name."""
    return alter(table, f"RENAME KEY {quote_name(old)} TO {quote_name(new)}")


def add_constraint(table: TableRecord, constraint: ConstraintRecord, named: bool) -> SchemaStep:
    """Add it to the leader's `table`, as far as its other steps have brought it.

    Without its name the server gives it one.
    """
    definition = constraint.definition
    if not named:
        definition = definition.removeprefix(f"CONSTRAINT {quote_name(constraint.name)} ")
    if constraint.kind == "check":
        return alter(table.name, f"ADD {definition}")
    return SchemaStep(Phase.ADD_FOREIGN_KEY, (*_owned_key(table, constraint), f"ADD {definition}"), table.name)


def _owned_key(table: TableRecord, foreign_key: ConstraintRecord) -> Iterator[str]:
    """Say once more that the key under a foreign key is ours, or MySQL may put one of its own in its place."""
    columns = normal.foreign_key_columns(foreign_key.definition)
    under = [key for key in table.keys if key.columns[: len(columns)] == columns]
    if under and not any(key.unique for key in under):
        yield from drop_key(table.name, under[0].name).sql
        yield from add_key(table.name, under[0]).sql


def drop_constraint(table: TableName, constraint: ConstraintRecord) -> SchemaStep:
    """Drop a constraint of the follower."""
    if constraint.kind == "check":
        return alter(table, f"DROP CHECK {quote_name(constraint.name)}")
    return SchemaStep(Phase.DROP_FOREIGN_KEY, (f"DROP FOREIGN KEY {quote_name(constraint.name)}",), table)


def partition(table: TableRecord) -> SchemaStep:
    """Partition it as this table, the leader's, is."""
    return SchemaStep(Phase.ALTER_TABLE, (), table.name, last=table.partitioning or "REMOVE PARTITIONING")


def table_option(name: str, value: str | None) -> str | None:
    """Return a clause that sets it, without a value to its default; None when that cannot be done."""
    value = value or _RESET.get(name)
    return None if value is None else f"{name} = {value}"


def drop_object(record: ObjectRecord) -> SchemaStep:
    """Drop a view, trigger, routine or event of the follower."""
    return SchemaStep(Phase.DROP_OBJECT, (f"DROP {record.kind} {record.name.sql}",))


def create_object(record: ObjectRecord, database: DatabaseRecord, asleep: bool) -> SchemaStep:
    """Create it as the leader has it, in `database`, definer included. `asleep` disables an event."""
    definition = normal.qualified(record.definition, record.name)
    if asleep:
        definition = normal.with_status(definition, "DISABLE")
    statements = [*enter(record.context), definition, SESSION]
    other = record.context.database_collation
    if other is not None and other != database.collation:
        # what the body leaves to its database was decided when it was created
        name = quote_name(database.name)
        statements = [f"ALTER DATABASE {name} COLLATE {other}", *statements, *alter_database(database).sql]
    phase = {"VIEW": Phase.CREATE_VIEW, "EVENT": Phase.CREATE_EVENT}.get(record.kind, Phase.CREATE_ROUTINE)
    return SchemaStep(phase, tuple(statements), whole=record.name)


def enter(context: Context) -> Iterator[str]:
    """Yield the statement that enters the session an object was created in, if that matters to it."""
    settings = {
        "sql_mode": context.sql_mode,
        "collation_connection": context.collation_connection,
        "time_zone": context.time_zone,
    }
    known = [f"SESSION {name} = {text(value)}" for name, value in settings.items() if value is not None]
    if known:
        yield f"SET {', '.join(known)}"


def set_event_status(name: TableName, enabled: bool) -> SchemaStep:
    """Let an event of the follower run, or not."""
    return SchemaStep(Phase.CREATE_EVENT, (f"ALTER EVENT {name.sql} {'ENABLE' if enabled else 'DISABLE'}",))
