"""Rows that InnoDB itself changes with the row they refer to: before MySQL 9.6 no binlog event tells of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.servers.connection import ServerConnection
from shared.mysql import variables

#: of newer servers; OFF where the statement, and with it the binlog, tells of all rows
VARIABLE = "innodb_native_foreign_keys"

_CASCADES = """
SELECT DISTINCT k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME, k.TABLE_SCHEMA, k.TABLE_NAME
FROM information_schema.REFERENTIAL_CONSTRAINTS r JOIN information_schema.KEY_COLUMN_USAGE k
    ON k.CONSTRAINT_SCHEMA = r.CONSTRAINT_SCHEMA AND k.CONSTRAINT_NAME = r.CONSTRAINT_NAME
WHERE r.UPDATE_RULE IN ('CASCADE', 'SET NULL') OR r.DELETE_RULE IN ('CASCADE', 'SET NULL')
"""


def silent_cascades(leader: ServerConnection) -> Mapping[TableName, frozenset[TableName]]:
    """Map each table to the tables of which rows may change with its own, without an event."""
    told = leader.use(lambda connection: variables(connection, VARIABLE))
    if told.get(VARIABLE) == "OFF":
        return {}
    below: dict[TableName, set[TableName]] = defaultdict(set)
    for database, table, *child in leader.rows(_CASCADES):
        below[TableName(database, table)].add(TableName(*child))
    return {table: frozenset(_all(below, table)) for table in list(below)}


def _all(below: Mapping[TableName, set[TableName]], table: TableName) -> set[TableName]:
    """Children, their children and so on; the table itself where it refers to itself."""
    found: set[TableName] = set()
    new = set(below[table])
    while new:
        found |= new
        new = {child for each in new for child in below.get(each, ())} - found
    return found
