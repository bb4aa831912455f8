"""Ends of leaves: a range is walked to its end in leaves of about the wanted size, also where keys are far apart."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kit.rows_in_memory import Table, shape_of

from cdc_consumer.parity.model import Key
from cdc_consumer.parity.rows.leaf_ends import NumberLeafEnds, leaf_ends
from cdc_consumer.parity.rows.ranges import EVERYTHING, Range


def walk(table: Table, part: Range, leaf_rows: int, expected_rows: int) -> list[int]:
    """The numbers of rows of the leaves of a range."""
    ends = leaf_ends(table.queries, table.reader, part, leaf_rows, expected_rows)
    low: Key | None = part.low
    high = ends.after(low, 0)
    counts = []
    while True:
        counts.append(table.count(Range(low, high or part.high)))
        if high is None:
            return counts
        assert len(counts) < 10_000, "the walk does not end"
        following = ends.after(high, counts[-1])
        low, high = high, following


NUMBERS = st.sets(st.integers(-(2**62), 2**62) | st.integers(-20, 60), max_size=60)
BOUND = st.none() | st.integers(-(2**62), 2**62) | st.integers(-20, 60)


@given(NUMBERS, BOUND, BOUND, st.integers(1, 8), st.integers(1, 1000))
def test_the_leaves_of_a_range_of_numbers_hold_each_row_once(
    numbers: set[int], one: int | None, other: int | None, leaf_rows: int, expected_rows: int
) -> None:
    low, high = sorted((one, other)) if one is not None and other is not None else (one, other)
    part = Range(None if low is None else (str(low),), None if high is None else (str(high),))
    table = Table(shape_of("a"), [(number,) for number in numbers])
    counts = walk(table, part, leaf_rows, expected_rows)
    assert sum(counts) == table.count(part)
    # each desert between two keys costs no more leaves than a number has bits
    assert len(counts) <= 65 * (len(numbers) + 1)


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=60), st.integers(1, 8))
def test_the_leaves_of_other_keys_have_the_wanted_size(keys: set[tuple[int, ...]], leaf_rows: int) -> None:
    counts = walk(Table(shape_of("a", "b"), keys), EVERYTHING, leaf_rows, 1)
    assert sum(counts) == len(keys)
    assert all(count == leaf_rows for count in counts[:-1]) and counts[-1] <= leaf_rows


def test_numbers_are_counted_without_asking() -> None:
    table = Table(shape_of("a"), [(number,) for number in range(2000)])
    counts = walk(table, EVERYTHING, 100, 2000)
    assert 10 <= len(counts) <= 40 and max(counts) <= 200
    assert table.asked == 2  # for the first and the last key


def test_a_wrong_guess_is_corrected() -> None:
    table = Table(shape_of("a"), [(number,) for number in range(2000)])
    for expected in (20, 200_000):
        ends = leaf_ends(table.queries, table.reader, EVERYTHING, 100, expected)
        assert isinstance(ends, NumberLeafEnds)
        counts = walk(table, EVERYTHING, 100, expected)
        assert len(counts) <= 60, expected
