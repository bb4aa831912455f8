"""A table whose key is whole numbers, in memory, that answers the audit's SELECTs: SQLite understands them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any, cast

from cdc_consumer.parity.model import Column, Shape, TableName
from cdc_consumer.parity.rows.ranges import Range, TableQueries, inside
from cdc_consumer.parity.servers.connection import ServerConnection


def shape_of(*key: str) -> Shape:
    return Shape(TableName("d", "t"), tuple(Column(name, "bigint", "bigint", None, False, False) for name in key), key)


class Table:
    """Rows that are nothing but a key."""

    def __init__(self, shape: Shape, keys: Iterable[tuple[int, ...]]) -> None:
        self.shape = shape
        self.queries = TableQueries(shape)
        #: SELECTs so far
        self.asked = 0
        self._db = sqlite3.connect(":memory:")
        self._db.execute("ATTACH ':memory:' AS d")
        names = ", ".join(f"`{name}`" for name in shape.key)
        self._db.execute(f"CREATE TABLE d.t ({names}, PRIMARY KEY ({names}))")
        marks = ", ".join("?" * len(shape.key))
        self._db.executemany(f"INSERT OR IGNORE INTO d.t VALUES ({marks})", keys)

    @property
    def reader(self) -> ServerConnection:
        """What the audit takes for a server."""
        return cast(ServerConnection, self)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        self.asked += 1
        if sql.startswith("EXPLAIN"):
            found = self._db.execute(sql.replace("EXPLAIN FORMAT=TRADITIONAL SELECT 1", "SELECT COUNT(*)"))
            return [(None,) * 9 + found.fetchone()]
        return self._db.execute(sql).fetchall()

    def count(self, part: Range) -> int:
        where = " AND ".join(inside(self.shape.key, part)) or "TRUE"
        return int(self._db.execute(f"SELECT COUNT(*) FROM d.t WHERE {where}").fetchone()[0])

    def keys(self) -> list[tuple[str, ...]]:
        """In their order."""
        names = ", ".join(f"`{name}`" for name in self.shape.key)
        return [tuple(map(str, row)) for row in self._db.execute(f"SELECT {names} FROM d.t ORDER BY {names}")]
