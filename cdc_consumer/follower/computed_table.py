"""Writes rows of a table in which the follower computes as the leader had them, and finds them so afterwards.

A stored generated column is computed anew from the others, in the session variables that the leader's rows tell; a
FLOAT(M,D) is rounded anew. What a strict session would refuse there the leader has taken, so the session is not strict
and IGNOREs; nothing is altered in silence by that, because every column is compared with the leader's image within the
transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdc_consumer.follower.tables import FollowerTable
from cdc_consumer.sql import literals
from cdc_consumer.sql.predicates import exactly
from shared.events import Value
from shared.mysql import quote_name


class ComputedTable:
    """Makes the statements on one such table; `columns` are those of its row images, `key` those that find a row."""

    def __init__(self, table: FollowerTable, columns: Sequence[str], key: Sequence[str]) -> None:
        names = [quote_name(name) for name in columns]
        kept = [table.columns[name] for name in columns]
        self._count = len(columns)
        self._written = [(index, names[index]) for index, column in enumerate(kept) if not column.generated]
        self._stored = [(index, names[index]) for index, column in enumerate(kept) if column.stored]
        self._key = [(columns.index(name), quote_name(name)) for name in key]
        self._table = table.sql
        self._insert = f"INSERT IGNORE INTO {table.sql} ({', '.join(name for _, name in self._written)}) VALUES "

    def _values(self, row: Sequence[Value]) -> list[str]:
        if len(row) != self._count:
            raise ValueError(f"{len(row)} values for {self._count} columns")
        return literals.zoned([row[index] for index, _ in self._written])

    def insert(self, row: Sequence[Value]) -> str:
        return f"{self._insert}({','.join(self._values(row))})"

    def update(self, before: Sequence[Value], after: Sequence[Value]) -> str:
        """Finds the row by its key, or without one by every column that is written."""
        new = zip(self._written, self._values(after), strict=True)
        settings = ", ".join([f"{name} = {sql}" for (_, name), sql in new])
        if self._key:
            old = literals.zoned([before[index] for index, _ in self._key])
            where = " AND ".join([f"{name} = {sql}" for (_, name), sql in zip(self._key, old, strict=True)])
        else:
            where = " AND ".join([exactly(name, before[index], zoned=True) for index, name in self._written])
        return f"UPDATE IGNORE {self._table} SET {settings} WHERE {where} LIMIT 1"

    def find(self, row: Sequence[Value]) -> str:
        """Finds one row where each column holds its very value, in the usual session of rows."""
        parts = [f"{name} = {literals.literal(row[index])}" for index, name in self._key]
        parts += [exactly(name, row[index]) for index, name in [*self._written, *self._stored]]
        return f"SELECT 1 FROM {self._table} WHERE {' AND '.join(parts)} LIMIT 1"
