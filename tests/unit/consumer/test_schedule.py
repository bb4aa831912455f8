"""The schedule, beside an oracle that looks at all transactions each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.parallel.schedule import Schedule, Turn


@st.composite
def histories(draw: st.DrawFn) -> list[Turn]:
    """What a leader may write: numbers that rise within a file, with holes where other databases were written."""
    turns = []
    for file in range(draw(st.integers(1, 3))):
        number = 0
        for _ in range(draw(st.integers(0, 12))):
            number += draw(st.sampled_from([1, 1, 1, 2, 5]))
            turns.append(Turn.of(f"binlog.{file:06d}", (draw(st.integers(0, number - 1)), number)))
    # a leader that tells no clock, now and then
    return [Turn.of(turn.file, (0, 0)) if draw(st.integers(0, 15)) == 0 else turn for turn in turns]


def oracle(turns: list[Turn], index: int, ended: set[int]) -> bool:
    """May the transaction of this index start, when all before it have started and those of `ended` have ended?"""
    turn = turns[index]
    for earlier in range(index):
        if earlier in ended:
            continue
        other = turns[earlier]
        if other.file != turn.file or 0 in (turn.first, other.first) or other.first <= turn.after:
            return False
    return True


@given(histories(), st.randoms(use_true_random=False))
def test_it_allows_what_the_oracle_allows(turns: list[Turn], random: object) -> None:
    schedule = Schedule()
    running: dict[int, int] = {}
    ended: set[int] = set()
    index = 0
    while len(ended) < len(turns):
        if index < len(turns):
            allowed = schedule.may_start(turns[index])
            assert allowed == oracle(turns, index, ended)
            if allowed and random.random() < 0.7:
                running[index] = schedule.start(turns[index])
                index += 1
                continue
        if running:
            chosen = random.choice(list(running))
            schedule.end(running.pop(chosen))
            ended.add(chosen)


def test_a_clock_that_steps_back_waits() -> None:
    schedule = Schedule()
    schedule.start(Turn.of("b.1", (0, 7)))
    assert schedule.may_start(Turn.of("b.1", (0, 8)))
    assert not schedule.may_start(Turn.of("b.1", (0, 7)))
    assert not schedule.may_start(Turn.of("b.2", (7, 8)))
    assert not schedule.may_start(Turn.of("b.1", (7, 8)))


def test_what_runs_with_a_restarted_clock_is_known_by_it() -> None:
    """A file that begins again while nothing runs is followed from its start."""
    schedule = Schedule()
    schedule.end(schedule.start(Turn.of("b.1", (0, 100))))
    schedule.start(Turn.of("b.2", (0, 1)))
    assert schedule.may_start(Turn.of("b.2", (0, 2)))
    assert not schedule.may_start(Turn.of("b.2", (1, 2)))


def test_those_without_a_clock_are_together_too() -> None:
    silent = Turn.of("b.1", (0, 0))
    assert silent.joined(silent) == silent
    assert silent.joined(Turn.of("b.2", (0, 0))) is None


@given(histories(), st.data())
def test_together_they_wait_for_what_each_waits_for(turns: list[Turn], data: st.DataObject) -> None:
    """And whoever must come after one of them waits for all."""
    start = data.draw(st.integers(0, len(turns)))
    group: list[Turn] = []
    together = None
    for turn in turns[start:]:
        joined = turn if together is None else together.joined(turn)
        if joined is None:
            assert group[-1].file != turn.file or turn.first <= group[-1].first
            break
        group, together = [*group, turn], joined
    if together is None:
        return
    numbers = {each.first for each in group}
    if together.first == 0:
        # where no clock is told they may start with nothing else under way
        schedule = Schedule()
        assert schedule.may_start(together)
        schedule.start(turns[0])
        assert not schedule.may_start(together)
    for earlier in turns[:start]:
        if earlier.file != together.file or not 0 < earlier.first < together.first:
            continue
        must_wait = any(earlier.first <= each.after for each in group)
        schedule = Schedule()
        schedule.start(earlier)
        assert schedule.may_start(together) == (not must_wait)
    for later in turns[start + len(group) :]:
        if later.file == together.file and later.first > together.last > 0:
            schedule = Schedule()
            schedule.start(together)
            assert schedule.may_start(later) == (not any(number <= later.after for number in numbers))
