"""What a server holds, in pieces that are equal exactly when their bytes are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pymysql.err import MySQLError

from docker.local.mysql_servers import MySQLServer
from shared.mysql import Connection, quote_name
from trial.servers import connect_raw, databases

#: everything is read in one session's terms, whatever the server's own are
SESSION = (
    "SET time_zone = '+00:00', sql_mode = '', sql_quote_show_create = 1, information_schema_stats_expiry = 0,"
    " group_concat_max_len = 4294967295, character_set_results = utf8mb4"
)
#: types whose bytes are not what CAST(.. AS BINARY) gives: FLOAT prints fewer digits than it has
EXACT = {
    "float": "POINT({0}, 0)", "double": "POINT({0}, 0)", "enum": "CAST({0} AS UNSIGNED)", "set": "CAST({0} AS UNSIGNED)",
    "bit": "CAST({0} AS UNSIGNED)", "vector": "{0}", "json": "CAST(CAST({0} AS CHAR) AS BINARY)",
}  # fmt: skip
SPATIAL = ("geometry", "point", "linestring", "polygon", "multi", "geom")
#: types of every value inside a document, in its order, and the size it needs: one that was updated in place has gaps
JSON_FORM = """CONCAT_WS(' ', JSON_TYPE({0}), JSON_STORAGE_SIZE({0}) - JSON_STORAGE_FREE({0}),
    (SELECT GROUP_CONCAT(JSON_TYPE(v) ORDER BY n) FROM JSON_TABLE({0}, '$**.*' COLUMNS (n FOR ORDINALITY, v JSON PATH '$')) a),
    (SELECT GROUP_CONCAT(JSON_TYPE(v) ORDER BY n) FROM JSON_TABLE({0}, '$**[*]' COLUMNS (n FOR ORDINALITY, v JSON PATH '$')) a))"""

#: columns that say when or where something was made
ROUTINE = """ROUTINE_TYPE, DTD_IDENTIFIER, ROUTINE_DEFINITION, IS_DETERMINISTIC, SQL_DATA_ACCESS, SECURITY_TYPE, SQL_MODE,
    ROUTINE_COMMENT, DEFINER, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, DATABASE_COLLATION"""
EVENT = """DEFINER, TIME_ZONE, EVENT_DEFINITION, EVENT_TYPE, EXECUTE_AT, INTERVAL_VALUE, INTERVAL_FIELD, SQL_MODE, STARTS,
    ENDS, ON_COMPLETION, EVENT_COMMENT, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, DATABASE_COLLATION"""
TRIGGER = """EVENT_MANIPULATION, EVENT_OBJECT_TABLE, ACTION_ORDER, ACTION_STATEMENT, ACTION_TIMING, SQL_MODE, DEFINER,
    CHARACTER_SET_CLIENT, COLLATION_CONNECTION, DATABASE_COLLATION"""
#: kind of object, its columns, and where they are
OBJECTS = (
    ("routine", "CONCAT(ROUTINE_TYPE, ' ', ROUTINE_NAME)", ROUTINE, "ROUTINES", "ROUTINE_SCHEMA"),
    ("event", "EVENT_NAME", EVENT, "EVENTS", "EVENT_SCHEMA"),
    ("event state", "EVENT_NAME", "STATUS", "EVENTS", "EVENT_SCHEMA"),
    ("trigger", "TRIGGER_NAME", TRIGGER, "TRIGGERS", "TRIGGER_SCHEMA"),
)

#: the next number to give is not data: a rollback moves it on the leader alone
NEXT_NUMBER = re.compile(r" AUTO_INCREMENT=(\d+)")


class Item(NamedTuple):
    """A piece of what a server holds: ("rows", "test.t"); each byte of the name is one character."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} of {self.name.encode('latin-1').decode('utf-8', 'backslashreplace')}"


#: pieces, each with what it is: texts, and for rows a sorted list
Contents = dict[Item, Any]


def contents(server: MySQLServer, *, without: Sequence[str] = ()) -> Contents:
    """Everything in the databases that are not the server's own; `without` names more of these."""
    found: Contents = {}
    with connect_raw(server) as connection:
        _all(connection, SESSION)
        for name in databases(connection):
            if name not in without:
                found[Item("database", name)] = _text(connection, f"SHOW CREATE DATABASE {quote_name(name)}")
                found.update(_objects(connection, name))
                for item, value in _tables(connection, name):
                    found[item] = value
    return found


def _objects(connection: Connection, database: str) -> Iterator[tuple[Item, Any]]:
    for kind, name, columns, table, schema in OBJECTS:
        query = f"SELECT {name}, {columns} FROM information_schema.{table} WHERE {schema} = %s ORDER BY 1"
        for row in _all(connection, query, [database]):
            yield Item(kind, f"{database}.{row[0]}"), repr(row[1:])


def _tables(connection: Connection, database: str) -> Iterator[tuple[Item, Any]]:
    query = "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = %s"
    for table, kind in _all(connection, query, [database]):
        name = f"{quote_name(database)}.{quote_name(table)}"
        if kind == "VIEW":
            yield Item("view", f"{database}.{table}"), _text(connection, f"SHOW CREATE VIEW {name}")
            continue
        definition = _text(connection, f"SHOW CREATE TABLE {name}")
        yield Item("table", f"{database}.{table}"), NEXT_NUMBER.sub("", definition)
        columns = _columns(connection, database, table)
        exact = [_exact(column, type) for column, type in columns]
        yield Item("rows", f"{database}.{table}"), _rows(connection, name, exact)
        forms = [JSON_FORM.format(quote_name(column)) for column, type in columns if type == "json"]
        if forms:
            yield Item("documents", f"{database}.{table}"), _rows(connection, name, [*exact, *forms])


def _columns(connection: Connection, database: str, table: str) -> list[tuple[str, str]]:
    query = """SELECT column_name, data_type FROM information_schema.columns
               WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"""
    return [(name, str(type)) for name, type in _all(connection, query, [database, table])]


def _exact(column: str, type: str) -> str:
    """An expression of a column's exact bytes."""
    name = quote_name(column)
    if type.startswith(SPATIAL):
        return name
    return EXACT.get(type, "CAST({0} AS BINARY)").format(name)


def _rows(connection: Connection, name: str, expressions: Sequence[str]) -> list[str]:
    """A digest of each row, sorted; a value is hashed by itself, for a long one fits no longer text."""
    if not expressions:
        return []
    hashed = ", ".join(f"IFNULL(SHA2({expression}, 256), '-')" for expression in expressions)
    try:
        return sorted(
            str(row) for (row,) in _all(connection, f"SELECT SHA2(CONCAT_WS(',', {hashed}), 256) FROM {name}")
        )
    except MySQLError as error:
        return [f"cannot be read: {error}"]


def _text(connection: Connection, query: str) -> str:
    try:
        return " ".join(str(part) for part in _all(connection, query)[0][1:])
    except MySQLError as error:
        return f"cannot be read: {error}"


def _all(connection: Connection, query: str, values: Sequence[str] | None = None) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())
