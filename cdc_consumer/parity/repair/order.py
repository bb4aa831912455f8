"""Orders the tables of a repair by their foreign keys."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.schema.needs import by_need
from shared.mysql import Connection, rows


def parents_first(connection: Connection, tables: Collection[TableName]) -> list[TableName]:
    """Return the tables in an order where the follower's foreign keys refer to earlier ones only.

    Tables that refer to each other in a circle come one after the other in any order. Since foreign keys are not
    checked (`statements.session`), the order is a courtesy to readers between two transactions: none of them sees
    a child whose parent is still to come, circles excepted.
    """
    parents: dict[TableName, set[TableName]] = defaultdict(set)
    for database in sorted({name.database for name in tables}):
        found = rows(
            connection,
            "SELECT DISTINCT TABLE_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME"
            " FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME IS NOT NULL",
            (database,),
        )
        for table, *parent in found:
            parents[TableName(database, table)].add(TableName(*parent))
    # through tables that are not repaired, too
    every = [name for together in by_need(sorted(tables), lambda name: sorted(parents[name])) for name in together]
    return [name for name in every if name in tables]
