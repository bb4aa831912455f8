"""What needs something comes after it; what needs each other comes together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.parity.schema.needs import by_need

GRAPHS = st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=4), max_size=10)


def reached(graph: dict[int, list[int]], start: int) -> set[int]:
    """All that a node needs, over any number of steps."""
    found: set[int] = set()
    open_ = [start]
    while open_:
        for other in graph.get(open_.pop(), []):
            if other not in found:
                found.add(other)
                open_.append(other)
    return found


@given(GRAPHS)
def test_every_node_once_and_after_what_it_needs(graph: dict[int, list[int]]) -> None:
    together = list(by_need(graph, lambda node: graph.get(node, ())))
    every = [node for nodes in together for node in nodes]
    assert len(every) == len(set(every)) and set(every) == set(graph) | {n for needs in graph.values() for n in needs}
    place = {node: number for number, nodes in enumerate(together) for node in nodes}
    for node in every:
        for other in reached(graph, node):
            assert place[other] <= place[node]
            assert (place[other] == place[node]) == (node == other or node in reached(graph, other))


def test_a_long_chain() -> None:
    length = 50_000
    found = list(by_need(range(length), lambda node: [node + 1] if node + 1 < length else []))
    assert found == [(node,) for node in reversed(range(length))]
