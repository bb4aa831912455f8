"""Puts things in an order in which each comes after what it needs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def by_need(nodes: Iterable[Node], needs: Callable[[Node], Iterable[Node]]) -> Iterator[tuple[Node, ...]]:
    """Yield the nodes and all they need, each after what it needs; those that need each other come together.

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
    """Remove the nodes of the path from `node` to its end, and return them in order."""
    together = []
    while node not in done:
        together.append(path.pop())
        done.add(together[-1])
    return tuple(together)
