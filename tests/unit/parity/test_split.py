"""Points between two keys, and a table cut at them."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from kit.rows_in_memory import Table, shape_of

from cdc_consumer.parity.rows.ranges import EVERYTHING
from cdc_consumer.parity.rows.split import points, split

NUMBERS = st.integers(-(2**63), 2**64 - 1)


@given(NUMBERS, NUMBERS, st.integers(2, 50))
def test_points_between_numbers(one: int, other: int, parts: int) -> None:
    low, high = sorted((one, other))
    found = [int(point) for point in points(str(low), str(high), parts)]
    assert found == sorted(set(found)) and all(low < point < high for point in found)
    if high - low >= parts:
        assert len(found) == parts - 1
        steps = [after - before for before, after in zip([low, *found], [*found, high], strict=True)]
        assert max(steps) - min(steps) <= 1


@given(st.text(max_size=12), st.text(max_size=12), st.integers(2, 20), st.sampled_from(["_utf8mb4 ", ""]))
def test_points_between_strings_are_strings_in_the_order_of_their_bytes(
    one: str, other: str, parts: int, charset: str
) -> None:
    low, high = sorted((one.encode("utf-8", "ignore"), other.encode("utf-8", "ignore")))
    found = points(f"{charset}x'{low.hex()}'", f"{charset}x'{high.hex()}'", parts)
    for point in found:
        match = re.fullmatch(re.escape(charset) + "x'((?:[0-9a-f]{2})*)'", point)
        assert match is not None
        if charset:
            bytes.fromhex(match[1]).decode("utf-8")
    assert len(found) < parts


def test_no_points_between_other_values() -> None:
    for low, high in (
        ("1.50", "9.25"),
        ("'2024-01-01'", "'2025-01-01'"),
        ("1", "x'02'"),
        ("_utf16 x'0061'", "_utf16 x'0062'"),
    ):
        assert points(low, high, 4) == []


KEYS = st.sets(st.integers(-(2**62), 2**62) | st.integers(0, 40), max_size=60)
PAIRS = st.sets(st.tuples(st.integers(0, 3), st.integers(-(2**62), 2**62) | st.integers(0, 40)), max_size=60)


@given(KEYS.map(lambda keys: {(key,) for key in keys}) | PAIRS, st.integers(1, 8))
def test_a_table_is_cut_into_ranges_that_hold_each_key_once(keys: set[tuple[int, ...]], wanted: int) -> None:
    table = Table(shape_of(*"ab"[: len(next(iter(keys), (0,)))]), keys)
    ranges, method = split(table.queries, table.reader, len(keys), wanted)
    assert (ranges[0].low, ranges[-1].high) == (None, None)
    assert all(before.high == after.low for before, after in pairwise(ranges))
    assert sum(map(table.count, ranges)) == len(keys)
    assert (ranges == [EVERYTHING]) == (method == "one range")


def test_ranges_are_of_about_the_wanted_size() -> None:
    for keys in ([(number,) for number in range(1000)], [(number // 10, number) for number in range(1000)]):
        table = Table(shape_of(*"ab"[: len(keys[0])]), keys)
        ranges, _ = split(table.queries, table.reader, 1000, 50)
        assert 10 <= len(ranges) <= 40
        assert max(map(table.count, ranges)) <= 150


def test_an_uneven_table_is_cut_where_its_rows_are() -> None:
    """Nearly all rows are in one thousandth of the key space."""
    table = Table(shape_of("a"), [*((number,) for number in range(1000)), (1_000_000,)])
    ranges, _ = split(table.queries, table.reader, 1001, 50)
    assert max(map(table.count, ranges)) <= 150
