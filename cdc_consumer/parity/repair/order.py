"""What must come before what: tables by their foreign keys, rows by the unique values they take from each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import TypeVar

from cdc_consumer.parity.model import TableName
from shared.mysql import Connection, rows

Node = TypeVar("Node", bound=Hashable)


def ordered(nodes: Iterable[Node], needs: Callable[[Node], Iterable[Node]]) -> Iterator[tuple[Node, ...]]:
    """The nodes and all they need, each after what it needs; those that need each other come together.

    Tarjan's strongly connected components, without recursion because a chain may be long.
    """
    #: when a node was met, and the earliest one of the open path that is reached from it
    met: dict[Node, int] = {}
    earliest: dict[Node, int] = {}
    path: list[Node] = []
    done: set[Node] = set()
    for root in nodes:
        work = [] if root in met else [root]
        waiting: list[Iterator[Node]] = []
        while work:
            node = work[-1]
            if node not in met:
                met[node] = earliest[node] = len(met)
                path.append(node)
                waiting.append(iter(needs(node)))
            for other in waiting[-1]:
                if other not in met:
                    work.append(other)
                    break
                if other not in done:
                    earliest[node] = min(earliest[node], met[other])
            else:
                work.pop()
                waiting.pop()
                if work:
                    earliest[work[-1]] = min(earliest[work[-1]], earliest[node])
                if earliest[node] == met[node]:
                    yield _cut(path, node, done)


def _cut(path: list[Node], node: Node, done: set[Node]) -> tuple[Node, ...]:
    """Take the end of the path off, from this node on."""
    together = []
    while node not in done:
        together.append(path.pop())
        done.add(together[-1])
    return tuple(together)


def parents_first(connection: Connection, tables: Collection[TableName]) -> list[TableName]:
    """The tables in an order where the follower's foreign keys refer to earlier ones only.

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
    every = [name for together in ordered(sorted(tables), lambda name: sorted(parents[name])) for name in together]
    return [name for name in every if name in tables]
