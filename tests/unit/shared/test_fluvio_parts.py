"""Records in parts: put together as they were, whatever an append that failed left between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import RecordDamagedError
from shared.topic.fluvio_parts import Joiner, split, whole_end, whole_start
from shared.topic.record import Record, Sealed, enclose, seal


def joined(stored: list[Sealed], start: int = 0) -> list[Record]:
    joiner = Joiner("topic t")
    found = (joiner.add(offset, part) for offset, part in enumerate(stored[start:], start))
    return [record for record in found if record]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.topic.fluvio_parts.PART_BYTES", 100)


#: a record, and how many of its parts an append that failed has left behind, once for each time it was tried
tried = st.tuples(st.binary(max_size=600), st.lists(st.integers(0, 5), max_size=2))


@given(appends=st.lists(tried, max_size=5), left=st.integers(0, 3))
def test_what_is_split_is_joined(appends: list[tuple[bytes, list[int]]], left: int) -> None:
    stored: list[Sealed] = []
    expected: list[Record] = []
    for value, failures in appends:
        parts = split(seal(value))
        for failure in failures:
            stored += parts[: min(failure, len(parts) - 1)]
        stored += parts
        expected.append(Record(len(stored) - 1, value))
    end = len(stored)
    stored += split(seal(bytes(500)))[:left]
    assert joined(stored) == expected
    assert whole_end(len(stored), stored.__getitem__, "topic t") == (end if expected else 0)
    first = whole_start(0, len(stored), stored.__getitem__, "topic t")
    assert not expected or first <= expected[0].offset
    for start in range(end):
        found = joined(stored, start)
        assert found == expected[len(expected) - len(found) :]


@pytest.mark.parametrize("place", [b"", bytes(8), b"\1" + bytes(7), bytes(9), b"\5\0\0\0\2\0\0\0"])
def test_a_part_of_no_record(place: bytes) -> None:
    with pytest.raises(RecordDamagedError, match=r"topic t offset 4 is a part .* of no record"):
        joined([seal(b"")] * 4 + [enclose(b"piece", 2, place)])


def test_parts_of_different_records() -> None:
    """Nobody who appends as `split` does leaves them; a producer that writes at the same time may."""
    one, other = split(seal(bytes(250))), split(seal(b"x" * 350))
    with pytest.raises(RecordDamagedError, match="topic t offset 3"):
        joined([*one[:2], *other[2:]])
