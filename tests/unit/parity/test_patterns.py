"""Patterns: blocks of rows that are gone as a whole, and pairs of rows that hold each other's values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.parity.diagnosis import patterns
from cdc_consumer.parity.diagnosis.patterns import BLOCK_ROWS, SWAPPED, Patterns
from cdc_consumer.parity.model import Difference, Evidence, Kind, TableName

TABLE = TableName("db", "t")


def row(id_: int, a: int, b: int) -> dict[str, str]:
    return {"id": str(id_), "a": str(a), "b": str(b)}


def found(leader: dict[str, str] | None, follower: dict[str, str] | None) -> Difference:
    kind: Kind = "missing" if follower is None else "extra" if leader is None else "changed"
    key = {"id": (leader or follower or {})["id"]}
    return Difference(TABLE, kind, key, leader, follower, None, None, Evidence("idle", "", "", "", "", 2))


def told(differences: Sequence[Difference]) -> Counter[str]:
    seen = Patterns(differences)
    return Counter(seen.of(difference) for difference in differences)


@given(st.integers(-50, 50), st.integers(BLOCK_ROWS, 40), st.sets(st.integers(1000, 1200).map(lambda each: each * 2)))
def test_a_lost_block(first: int, size: int, scattered: set[int]) -> None:
    lost = [found(row(id_, 1, 1), None) for id_ in (*range(first, first + size), *sorted(scattered))]
    block = {f"a block of rows is missing, id {first} to {first + size - 1}": size}
    assert told(lost) == Counter({**block, "": len(scattered)} if scattered else block)


def test_a_block_needs_rows_of_one_kind_that_follow_each_other() -> None:
    short = [found(row(id_, 1, 1), None) for id_ in range(BLOCK_ROWS - 1)]
    extra = [found(None, row(id_, 1, 1)) for id_ in range(100, 100 + BLOCK_ROWS)]
    assert told([*short, *extra]) == {
        "": len(short),
        f"a block of rows was added, id 100 to {99 + BLOCK_ROWS}": BLOCK_ROWS,
    }


def test_rows_that_hold_each_others_values() -> None:
    pair = [found(row(1, 5, 70), row(1, 8, 90)), found(row(3, 8, 90), row(3, 5, 70))]
    other = found(row(2, 3, 4), row(2, 9, 4))
    assert told([pair[0], other, pair[1]]) == {SWAPPED: 2, "": 1}
    # flags that were turned both ways hold nobody's values
    flags = [found(row(id_, id_ % 2, 5), row(id_, 1 - id_ % 2, 5)) for id_ in (0, 2, 4, 1, 3, 5)]
    assert told(flags) == {"": 6}


def test_memory_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "MOST_BLOCKS", 3)
    monkeypatch.setattr(patterns, "MOST_CHANGED", 2)
    blocks = [found(row(id_, 1, 1), None) for first in range(0, 800, 100) for id_ in range(first, first + BLOCK_ROWS)]
    changed = [found(row(id_, id_, 1), row(id_, 1, id_)) for id_ in range(5)]
    assert len(told([*blocks, *changed])) == 3 + 1
