"""Two streams of hashes and how often each occurs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.parity.rows.copies import _unequal

#: None is the hash of rows that are too long for one
ROWS = st.lists(st.sampled_from([None, "00", "0a", "1f", "a0", "ff"]), max_size=30)


def stream(rows: list[str | None]) -> list[tuple[str | None, int]]:
    """As MySQL orders them: NULL first."""
    return sorted(Counter(rows).items(), key=lambda row: row[0] or "")


@given(ROWS, ROWS)
def test_the_hashes_that_differ_in_number_are_found(leader: list[str | None], follower: list[str | None]) -> None:
    theirs, ours = Counter(leader), Counter(follower)
    expected = [row or "" for row, _ in stream(leader + follower) if theirs[row] != ours[row] or row is None]
    assert list(_unequal(iter(stream(leader)), iter(stream(follower)))) == expected
