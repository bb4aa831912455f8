"""Ranges as predicates: each key is in exactly one of those that follow each other."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from kit.rows_in_memory import Table, shape_of

from cdc_consumer.parity.rows.ranges import EVERYTHING, Range, TableQueries, among, inside

SMALL = st.integers(-3, 3)


def literals(key: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(map(str, key))


@given(st.sets(st.tuples(SMALL, SMALL, SMALL), min_size=1), st.sets(st.tuples(SMALL, SMALL, SMALL)))
def test_ranges_that_follow_each_other_hold_each_key_once(
    keys: set[tuple[int, ...]], bounds: set[tuple[int, ...]]
) -> None:
    table = Table(shape_of("a", "b", "c"), keys)
    ends = [None, *map(literals, sorted(bounds)), None]
    for low, high in pairwise(ends):
        inner = [
            key
            for key in keys
            if (low is None or key > tuple(map(int, low))) and (high is None or key <= tuple(map(int, high)))
        ]
        assert table.count(Range(low, high)) == len(inner)


@given(st.sets(st.tuples(SMALL, SMALL)), st.lists(st.tuples(SMALL, SMALL), min_size=1))
def test_among_finds_the_keys_that_are_there(keys: set[tuple[int, ...]], asked: list[tuple[int, ...]]) -> None:
    table = Table(shape_of("a", "b"), keys)
    found = table.rows(table.queries.these([literals(key) for key in asked], "TRUE"))
    assert {tuple(map(int, row)) for row in found} == keys & set(asked)


def test_names_are_quoted_and_a_condition_keeps_to_itself() -> None:
    shape = shape_of("a`b")
    assert inside(shape.key, Range(("1",), ("5",))) == ["`a``b` > 1", "`a``b` <= 5"]
    assert inside(shape.key, EVERYTHING) == []
    assert among(shape.key, [("1",), ("2",)]) == "`a``b` IN (1, 2)"
    assert TableQueries(shape, "x OR y").hashes(Range(("1",), None)).endswith("WHERE (x OR y) AND `a``b` > 1")
