"""Reads a server's databases, tables and other objects in a dozen queries and one SHOW CREATE for each object."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.schema.ddl import CreateTable, read_create_table
from cdc_consumer.parity.schema.privileges import refuse_missing_privileges
from cdc_consumer.parity.schema.records import (
    ColumnRecord,
    ConstraintRecord,
    Context,
    DatabaseRecord,
    KeyRecord,
    ObjectKind,
    ObjectRecord,
    Schema,
    TableRecord,
)
from cdc_consumer.sql import literals
from shared.errors import AuditError
from shared.filters import DatabaseFilter
from shared.mysql import Connection, MySQLError, bytes_as_text, error_number, rows, variables

__all__ = ["ColumnRecord", "KeyRecord", "Schema", "TableRecord", "read_schema", "read_tables"]

#: what the queries below, and SHOW CREATE, depend on; without the first the leader would store fresh estimates of rows
SESSION = {
    "information_schema_stats_expiry": "0",
    "show_gipk_in_create_table_and_information_schema": "1",
    "sql_quote_show_create": "1",
    "sql_mode": "''",
    "time_zone": "'+00:00'",
}
#: how often a read begins anew because something was altered during it
ATTEMPTS = 5
#: error numbers that mean "what was listed a moment ago is gone": database, table or view, routine, trigger, event
_GONE = frozenset({1049, 1146, 1305, 1360, 1539})
#: where the kinds of object are listed, the column of their database and name, and of what else is read of them
_LISTS: Mapping[str, tuple[str, str, str]] = {
    "VIEWS": ("TABLE_SCHEMA", "TABLE_NAME", "'VIEW', '', ''"),
    "TRIGGERS": ("TRIGGER_SCHEMA", "TRIGGER_NAME", "'TRIGGER', EVENT_OBJECT_TABLE, ''"),
    "ROUTINES": ("ROUTINE_SCHEMA", "ROUTINE_NAME", "ROUTINE_TYPE, '', ''"),
    "LIBRARIES": ("LIBRARY_SCHEMA", "LIBRARY_NAME", "'LIBRARY', '', ''"),
    "EVENTS": ("EVENT_SCHEMA", "EVENT_NAME", "'EVENT', '', STATUS"),
}

T = TypeVar("T")


class _Changed(Exception):
    """Something was altered between two queries."""


def read_schema(connection: Connection, databases: Container[str], named: Collection[str] = ()) -> Schema:
    """Return everything in those of the server's databases that are in `databases`.

    `named` are databases that must not go unseen even where the account has no privilege on them: those a profile
    includes by name. The session is left with information_schema for its default database and the variables in SESSION.
    Raises AuditError naming a privilege that is missing, since information_schema hides what one may not see.
    """
    _prepare(connection)
    return _undisturbed(lambda: _read_schema(connection, databases, named), "the schema")


def taken(schema: Schema, databases: DatabaseFilter) -> Schema:
    """Return the same without the tables and views that the filters leave out, and the triggers on them."""
    if databases.whole_databases:
        return schema
    tables = {name: table for name, table in schema.tables.items() if databases.takes(*name)}
    objects = {
        (kind, name): record
        for (kind, name), record in schema.objects.items()
        if kind not in ("VIEW", "TRIGGER") or databases.takes(name.database, record.table or name.table)
    }
    return replace(schema, tables=tables, objects=objects)


def read_tables(connection: Connection, names: Sequence[TableName]) -> Mapping[TableName, TableRecord]:
    """Return only these tables, those that exist. Raises AuditError as `read_schema` does."""
    if not names:
        return {}
    _prepare(connection)
    pairs = ", ".join(f"({literals.text(name.database)}, {literals.text(name.table)})" for name in names)
    where = f"(TABLE_SCHEMA, TABLE_NAME) IN ({pairs})"
    return _undisturbed(lambda: _tables(connection, where), f"table {names[0]}")


def _prepare(connection: Connection) -> None:
    known = variables(connection, *SESSION)
    rows(
        connection, "SET " + ", ".join(f"SESSION {name} = {value}" for name, value in SESSION.items() if name in known)
    )


def _undisturbed(read: Callable[[], T], what: str) -> T:
    for _ in range(ATTEMPTS):
        try:
            return read()
        except _Changed:
            continue
    raise AuditError(f"{what} was altered during each of {ATTEMPTS} attempts to read it; run this again when it rests")


def _read_schema(connection: Connection, databases: Container[str], named: Collection[str]) -> Schema:
    views = _information(connection)
    closed = _read_only(connection) if "SCHEMATA_EXTENSIONS" in views else frozenset()
    found = {
        name: DatabaseRecord(name, charset, collation, encryption == "YES", name in closed)
        for name, charset, collation, encryption in rows(
            connection,
            "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME, DEFAULT_ENCRYPTION"
            " FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME",
        )
        if name in databases
    }
    refuse_missing_privileges(connection, sorted({*found, *named}), databases)
    scheduler = variables(connection, "event_scheduler").get("event_scheduler")
    if not found:
        return Schema({}, {}, {}, scheduler == "ON")
    among = f"IN ({', '.join(map(literals.text, found))})"
    tables = _tables(connection, f"TABLE_SCHEMA {among}")
    return Schema(found, tables, dict(_objects(connection, among, views)), scheduler == "ON")


def _information(connection: Connection) -> frozenset[str]:
    """Return what information_schema can tell of: each version has more."""
    sql = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'information_schema'"
    return frozenset(name for (name,) in rows(connection, sql))


def _read_only(connection: Connection) -> frozenset[str]:
    sql = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA_EXTENSIONS WHERE OPTIONS LIKE '%READ ONLY=1%'"
    return frozenset(name for (name,) in rows(connection, sql))


def _tables(connection: Connection, where: str) -> dict[TableName, TableRecord]:
    """Base tables. `where` chooses by TABLE_SCHEMA and TABLE_NAME."""
    columns = _by_table(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, CHARACTER_SET_NAME, COLLATION_NAME,"
        f" IS_NULLABLE, EXTRA, SRS_ID, COLUMN_COMMENT FROM information_schema.COLUMNS WHERE {where}"
        " ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION",
    )
    keys = _by_table(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, NON_UNIQUE, COLUMN_NAME, SUB_PART"
        f" FROM information_schema.STATISTICS WHERE {where}"
        " ORDER BY TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX",
    )
    found = {}
    for database, table, *facts in rows(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE, TABLE_COLLATION, TABLE_COMMENT, TABLE_ROWS"
        f" FROM information_schema.TABLES WHERE {where} AND TABLE_TYPE = 'BASE TABLE'"
        " ORDER BY TABLE_SCHEMA, TABLE_NAME",
    ):
        name = TableName(database, table)
        create = read_create_table(_show_create(connection, "TABLE", name)["Create Table"])
        found[name] = _table(name, facts, columns[name], keys[name], create)
    # a check's name is the only one in its database: where two tables have it, it has moved from one to the other
    checks = [(name.database, each.name) for name in found for each in found[name].constraints if each.kind == "check"]
    if len(checks) != len(set(checks)):
        raise _Changed
    return found


def _by_table(connection: Connection, sql: str) -> Mapping[TableName, list[tuple[Any, ...]]]:
    grouped: defaultdict[TableName, list[tuple[Any, ...]]] = defaultdict(list)
    for database, table, *facts in rows(connection, sql):
        grouped[TableName(database, table)].append(tuple(facts))
    return grouped


def _table(
    name: TableName, facts: list[Any], columns: Iterable[Any], keys: Iterable[Any], create: CreateTable
) -> TableRecord:
    engine, collation, comment, count = facts
    own_columns = tuple(_column(create, *each) for each in columns)
    # in SHOW CREATE's order: without a primary key the first unique one without NULL is how rows are stored
    order = {name: place for place, name in enumerate(create.keys)}
    own_keys = tuple(sorted(_keys(create, keys), key=lambda key: order[key.name]))
    if len(own_columns) != len(create.columns) or len(own_keys) != len(create.keys):
        raise _Changed
    return TableRecord(
        name, engine or "", collation or "", comment, count or 0, own_columns, own_keys,
        tuple(ConstraintRecord(*each) for each in create.constraints),
        create.options, create.partitioning, create.sql,
    )  # fmt: skip


def _column(
    create: CreateTable, name: str, kind: str, data_type: str, charset: str | None, collation: str | None,
    nullable: str, extra: str, srs_id: int | None, comment: str,
) -> ColumnRecord:  # fmt: skip
    if name not in create.columns:
        raise _Changed
    words = extra.split()
    generated = words[0] if words[1:2] == ["GENERATED"] else ""
    return ColumnRecord(
        name, kind, data_type, charset, collation, nullable == "YES",
        "STORED" if generated == "STORED" else "VIRTUAL" if generated == "VIRTUAL" else "",
        "auto_increment" in words, "INVISIBLE" in words, srs_id, comment, create.columns[name],
    )  # fmt: skip


def _keys(create: CreateTable, parts: Iterable[tuple[str, int, str | None, int | None]]) -> Iterator[KeyRecord]:
    grouped: defaultdict[tuple[str, int], list[tuple[str | None, int | None]]] = defaultdict(list)
    for name, not_unique, column, prefix in parts:
        grouped[name, not_unique].append((column, prefix))
    for (name, not_unique), own in grouped.items():
        if name not in create.keys:
            raise _Changed
        columns = tuple(column for column, _ in own if column is not None)
        whole = all(column is not None and prefix is None for column, prefix in own)
        yield KeyRecord(name, not not_unique, columns, whole, create.keys[name])


def _objects(
    connection: Connection, among: str, views: Container[str]
) -> Iterator[tuple[tuple[ObjectKind, TableName], ObjectRecord]]:
    for view, (database, name, facts) in _LISTS.items():
        if view not in views:  # libraries came with 9.2
            continue
        where = f"WHERE {database} {among} ORDER BY {database}, {name}"
        for of, own, kind, table, status in rows(
            connection, f"SELECT {database}, {name}, {facts} FROM information_schema.{view} {where}"
        ):
            record = _object(connection, kind, TableName(of, own), table, status)
            yield (record.kind, record.name), record


def _object(connection: Connection, kind: ObjectKind, name: TableName, table: str, status: str) -> ObjectRecord:
    shown = _show_create(connection, kind, name)
    definition = shown.get("SQL Original Statement") or shown.get(f"Create {kind.capitalize()}")
    if definition is None:
        raise AuditError(f"the definition of {kind.lower()} {name} is hidden; grant the account SHOW_ROUTINE ON *.*")
    context = Context(
        shown.get("sql_mode"), shown.get("collation_connection"),
        shown.get("Database Collation"), shown.get("time_zone"),
    )  # fmt: skip
    return ObjectRecord(kind, name, definition, context, table, status)


def _show_create(connection: Connection, kind: str, name: TableName) -> dict[str, Any]:
    """Column -> value of SHOW CREATE. Raises _Changed when there is nothing of the name any more."""
    with connection.cursor() as cursor, bytes_as_text(connection) as decoded:
        try:
            cursor.execute(f"SHOW CREATE {kind} {name.sql}")
        except MySQLError as error:
            if error_number(error) in _GONE:
                raise _Changed from None
            raise
        (shown,) = cursor.fetchall()
        return {column[0]: decoded(value) for column, value in zip(cursor.description, shown, strict=True)}
