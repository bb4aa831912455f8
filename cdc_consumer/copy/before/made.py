"""Keeps the follower's databases and tables those of the leader, while a copy makes them.

What a copy makes it notes before, and until it is dropped: what is there without that is somebody else's, and stays.
"""

from __future__ import annotations

from cdc_consumer.copy.before.servers import existing_databases
from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.copy.state import CopyState
from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.schema import alters
from cdc_consumer.parity.schema.records import Schema
from shared.errors import FollowerError
from shared.filters import DatabaseFilter
from shared.mysql import quote_name


def refuse_others(writer: Writer, state: CopyState, databases: DatabaseFilter, schema: Schema) -> None:
    """Raise FollowerError where the follower has a database or a table that is in the way and not of this copy."""
    made = state.made()
    others = [
        f"table {name}"
        for name in _tables(writer, databases)
        if name not in made and (databases.takes(*name) or name.database not in schema.databases)
    ]
    others += [
        f"database {name}"
        for name in existing_databases(writer, databases)
        if name not in schema.databases and TableName(name, "") not in made
    ]
    if others:
        raise FollowerError(
            f"the follower has {', '.join(others)}, which this copy has not made; drop that there, or leave it out in"
            " [filters], and run this again, which goes on where it was"
        )


def _tables(writer: Writer, databases: DatabaseFilter) -> list[TableName]:
    found = writer.rows(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' ORDER BY 1, 2"
    )
    return [TableName(*name) for name in found if name[0] in databases]


def make_databases(writer: Writer, state: CopyState, databases: DatabaseFilter, schema: Schema) -> None:
    """Drop what this copy has made and the leader has no more, and make the databases that are missing."""
    existing = existing_databases(writer, databases)
    for name in sorted(state.made() - schema.tables.keys(), reverse=True):
        if not name.table and name.database in schema.databases:
            continue
        if not name.table:
            writer.run(f"DROP DATABASE IF EXISTS {quote_name(name.database)}")
        elif name.database in existing:
            writer.run(f"DROP TABLE IF EXISTS {name.sql}")
        state.forget(name, there=False)
    for own, database in schema.databases.items():
        if own in existing:
            writer.run(alters.alter_database(database).sql[0])
        else:
            state.forget(TableName(own, ""))
            writer.run(alters.create_database(database).sql[0])
