"""Writes rows of a table in which the follower computes as the leader had them, and finds them so afterwards.

A stored generated column is computed anew from the others, in the session variables that the leader's rows tell; a
FLOAT(M,D) is rounded anew; a virtual column is computed in a session that is not strict once a strict one has refused
it. What a strict session would refuse there the leader has taken, so the session is not strict and IGNOREs; nothing is
altered in silence by that, because every column is compared with the leader's image within the transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from cdc_consumer.follower.tables import FollowerTable
from cdc_consumer.sql import literals
from cdc_consumer.sql.predicates import exactly
from shared.events import Value
from shared.mysql import quote_name
from shared.values import NULL

#: images of a row before and after a change
Steps = list[tuple[Sequence[Value], Sequence[Value]]]

#: finds any row: where all columns are virtual, all rows are equal
ALL = "TRUE"
#: a document that is equal to itself alone
OTHER_DOCUMENT = {"Json": "[]"}
DOCUMENTS = ({"Json"}, {"JsonTyped"})


def steps_between(
    before: Sequence[Value], after: Sequence[Value], table: FollowerTable, columns: Sequence[str]
) -> Steps:
    """Return the changes that make a row another: two where only documents differ, else the one.

    MySQL writes nothing where documents are equal by value, as 1 and 1.0 are, so there is another one in between.
    """
    changed = {
        index
        for index, (old, new) in enumerate(zip(before, after, strict=True))
        if old != new and not table.columns[columns[index]].generated
    }
    if not changed or not all(_may_be_equal(before[index], after[index]) for index in changed):
        return [(before, after)]
    between = [OTHER_DOCUMENT if index in changed else value for index, value in enumerate(before)]
    return [(before, between), (between, after)]


def _may_be_equal(old: Value, new: Value) -> bool:
    """Tell whether both are documents that may be equal by value; all numbers are compared as doubles."""
    if old == NULL or new == NULL or set(old) not in DOCUMENTS or set(new) not in DOCUMENTS:
        return False
    texts = [value["Json"] if "Json" in value else value["JsonTyped"]["text"] for value in (old, new)]
    try:
        first, second = (json.loads(text, parse_int=float) for text in texts)
        return bool(first == second)
    except (ValueError, RecursionError):
        return True  # the follower judges it


class ComputedTable:
    """Makes the statements on one such table; `columns` are those of its row images, `key` those that find a row."""

    def __init__(self, table: FollowerTable, columns: Sequence[str], key: Sequence[str]) -> None:
        self.table = table
        names = [quote_name(name) for name in columns]
        kept = [table.columns[name] for name in columns]
        self._count = len(columns)
        self._written = [(index, names[index]) for index, column in enumerate(kept) if not column.generated]
        self._stored = [(index, names[index]) for index, column in enumerate(kept) if column.stored]
        self._key = [(columns.index(name), quote_name(name)) for name in key]
        self._table, self._update = table.sql, table.update(columns)
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
        return f"UPDATE IGNORE {self._update}{settings} WHERE {self._where(before)} LIMIT 1"

    def delete(self, row: Sequence[Value]) -> str:
        return f"DELETE IGNORE FROM {self._table} WHERE {self._where(row)} LIMIT 1"

    def _where(self, row: Sequence[Value]) -> str:
        if self._key:
            old = literals.zoned([row[index] for index, _ in self._key])
            return " AND ".join([f"{name} = {sql}" for (_, name), sql in zip(self._key, old, strict=True)])
        return " AND ".join([exactly(name, row[index], zoned=True) for index, name in self._written]) or ALL

    def find(self, row: Sequence[Value]) -> str:
        """Finds one row where each column holds its very value, in the usual session of rows."""
        parts = [f"{name} = {literals.literal(row[index])}" for index, name in self._key]
        parts += [exactly(name, row[index]) for index, name in [*self._written, *self._stored]]
        return f"SELECT 1 FROM {self._table} WHERE {' AND '.join(parts) or ALL} LIMIT 1"
