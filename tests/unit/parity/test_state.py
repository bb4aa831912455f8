"""What a run has found, kept in its file: nothing is counted twice, and a run that goes on finds all of it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.rows_in_memory import shape_of

from cdc_consumer.parity.model import STRIP_CELLS, Difference, Evidence, TableResult
from cdc_consumer.parity.rows.leaves import Compared
from cdc_consumer.parity.rows.ranges import EVERYTHING, Range
from cdc_consumer.parity.rows.task import Outcome, Task
from cdc_consumer.parity.state import NAME, State
from shared.errors import AuditError

SHAPE = shape_of("a")
EVIDENCE = Evidence("idle", "b.1:4", "b.1:4", "b.1:4", "b.1:4", 1)


def task(number: int, part: Range, expected: int = 10, place: tuple[float, float] = (0.0, 1.0)) -> Task:
    return Task(number, SHAPE, part, expected, "", 3, place)


def difference(key: str) -> Difference:
    return Difference(SHAPE.name, "changed", {"a": key}, {"a": key}, {"a": key}, "00", "01", EVIDENCE)


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path, "plan", "began", resumed=False)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=5), st.data())
def test_a_table_read_in_many_pieces_adds_up(sizes: list[int], data: st.DataObject) -> None:
    """Ranges of so many rows; each wave reads some rows of a range and gives back the rest, or all of it."""
    with tempfile.TemporaryDirectory() as folder:
        state = State(Path(folder), "plan", "began", resumed=False)
        ends = [sum(sizes[:index]) for index in range(len(sizes) + 1)]
        places = [index / len(sizes) for index in range(len(sizes) + 1)]
        state.plan(
            0,
            [
                task(index, Range((str(ends[index]),), (str(ends[index + 1]),)), size, (places[index], places[index + 1]))
                for index, size in enumerate(sizes)
            ],
            "integer",
        )  # fmt: skip
        suspects: set[int] = set()
        while parts := state.open_parts():
            assert [part[3] for part in parts] == sorted((part[3] for part in parts), reverse=True)
            outcomes = []
            for number, _, part, expected, place in parts:
                assert part.low is not None and part.high is not None and place[0] < place[1]
                low, high = int(part.low[0]), int(part.high[0])
                put_off = data.draw(st.booleans())
                read = 0 if put_off else high - low - data.draw(st.integers(0, high - low - 1))
                compared = Compared(read, read, 1, 0)
                for key in range(low + 1, low + read + 1):
                    compared.digest ^= key
                    if key % 3 == 0:
                        suspects.add(key)
                        compared.suspects.append(((str(key),), (key - low) / (high - low)))
                rest = None if read == high - low else Range((str(low + read),), part.high)
                outcomes.append((0, Outcome(task(number, part, expected, place), compared, rest, seconds=1.0)))
            state.keep(outcomes)
            state = _again(state, Path(folder))
        result = state.summarize(0, TableResult(SHAPE.name))
        digest = 0
        for key in range(1, ends[-1] + 1):
            digest ^= key
        assert (result.leader_rows, result.follower_rows) == (ends[-1], ends[-1])
        assert result.digest == f"{digest:064x}"
        found = state.open_suspects(0, 1000)
        assert {int(each.key[0]) for each in found} == suspects and len(found) == len(suspects)
        assert all(0 <= each.place <= 1 for each in found)
        assert result.verdict == ("undecided" if suspects else "equal")
        assert not result.reason
        state.close()


def _again(state: State, folder: Path) -> State:
    state.close()
    return State(folder, "plan", "later", resumed=True)


def test_a_table_is_different_when_a_row_is(state: State) -> None:
    state.plan(0, [task(1, EVERYTHING)], "one range")
    state.keep(
        [
            (
                0,
                Outcome(
                    task(1, EVERYTHING), Compared(5, 5, 1, 1, suspects=[(("3",), 0.5), (("4",), 0.99), (("5",), 1.0)])
                ),
            )
        ]
    )
    one, two, three = state.open_suspects(0, 10)
    assert [each.id for each in state.open_suspects(one.id, 1)] == [two.id]
    one.state, two.state = "equal", "proven"
    three.state, three.reason = "undecided", "why"
    state.settle([one, two, three], [(two, difference("4"))])
    result = state.summarize(0, TableResult(SHAPE.name))
    assert (result.verdict, result.changed, result.suspects, result.undecided) == ("different", 1, 3, 1)
    assert result.strip[int(0.99 * STRIP_CELLS)] == 1 and sum(result.strip) == 1
    assert [each.reason for each in state.undecided(10)] == ["why"]
    assert list(state.differences()) == [difference("4")]
    state.reopen()
    assert state.count("open") == 1 and not list(state.differences())


def test_a_key_is_suspect_once(state: State) -> None:
    state.suspect(0, [(("1",), 0.1), (("1",), 0.2)])
    state.suspect(0, [(("1",), 0.3)])
    state.suspect(1, [(("1",), 0.3)])
    assert [(each.shape, each.place) for each in state.open_suspects(0, 10)] == [(0, 0.1), (1, 0.3)]


def test_a_table_that_was_not_read_whole_has_no_digest(state: State) -> None:
    assert not state.summarize(0, TableResult(SHAPE.name)).digest
    state.plan(0, [task(1, Range(None, ("5",))), task(2, Range(("5",), None))], "integer")
    state.keep([(0, Outcome(task(1, Range(None, ("5",))), Compared(5, 5, 1, 0, digest=7)))])
    assert not state.summarize(0, TableResult(SHAPE.name)).digest
    state.keep([(0, Outcome(task(2, Range(("5",), None)), Compared(5, 5, 1, 0, digest=8)))])
    assert state.summarize(0, TableResult(SHAPE.name)).digest == f"{15:064x}"


def test_what_could_not_be_read_is_undecided(state: State) -> None:
    state.plan(0, [task(1, EVERYTHING)], "one range")
    assert state.summarize(0, TableResult(SHAPE.name)).reason == "1 of 1 ranges were not read"
    state.keep([(0, Outcome(task(1, EVERYTHING), Compared(), error="it is locked"))])
    result = state.summarize(0, TableResult(SHAPE.name))
    assert (result.verdict, result.reason) == ("undecided", "it is locked")
    assert state.summarize(0, TableResult(SHAPE.name, "skipped", "alone")).verdict == "skipped"


def test_a_table_that_is_begun_anew_has_nothing_left(state: State) -> None:
    for shape in (0, 1):
        state.plan(shape, [task(1, EVERYTHING)], "one range")
        state.suspect(shape, [(("1",), 0.1)])
    state.settle(state.open_suspects(0, 10), [(each, difference("1")) for each in state.open_suspects(0, 10)])
    state.forget(0)
    assert not state.planned(0) and state.planned(1)
    assert len(list(state.differences())) == len(list(state.differences(1))) == 1
    state.give_up(0, "it moved")
    result = state.summarize(0, TableResult(SHAPE.name))
    assert (result.verdict, result.reason) == ("undecided", "it moved")


def test_only_the_same_run_is_resumed(tmp_path: Path, state: State) -> None:
    state.close()
    with pytest.raises(AuditError, match="start a new one without --resume"):
        State(tmp_path, "another plan", "later", resumed=True)
    (tmp_path / NAME).unlink()
    with pytest.raises(AuditError, match="holds no run"):
        State(tmp_path, "plan", "later", resumed=True)
