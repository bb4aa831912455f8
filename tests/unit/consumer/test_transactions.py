"""Grouping the topic's events into the leader's transactions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.transactions import Transactions
from shared.errors import SequenceError
from shared.events import Event, Heartbeat, Position, Query, Transaction

QUERY = Query(b"x", "", (), {})


def event(sequence: int, number: int, *, end: bool = False, file: str = "b.1") -> Event:
    transaction = Transaction(f"u:{number}", number * 100, 0, (0, 0))
    place = Position(file, number * 100 + sequence)
    return Event(sequence, place, QUERY, transaction, 0, number * 100 + 99 if end else None)


def heartbeat(sequence: int) -> Event:
    return Event(sequence, Position("b.1", 5), Heartbeat("u"), None, 0, None)


def test_first_and_last() -> None:
    transactions = Transactions(-1)
    steps = [
        transactions.accept(one, offset)
        for offset, one in enumerate([event(0, 1), event(1, 1), event(2, 1, end=True), event(3, 2, end=True)])
    ]
    assert [(step.first, step.last) for step in steps if step] == [
        (True, False), (False, False), (False, True), (True, True),
    ]  # fmt: skip
    assert not transactions.inside


def test_a_repeat_says_nothing_new() -> None:
    transactions = Transactions(4)
    assert transactions.accept(event(4, 1, end=True), 9) is None
    assert transactions.accept(event(0, 1), 9) is None
    assert transactions.accept(event(5, 1), 10) is not None
    assert transactions.accept(event(5, 1), 11) is None
    assert transactions.inside


@pytest.mark.parametrize("sequence", [6, 100])
def test_a_gap(sequence: int) -> None:
    with pytest.raises(SequenceError, match=f"topic offset 9 holds sequence {sequence} where 5 must follow"):
        Transactions(4).accept(event(sequence, 1), 9)


@pytest.mark.parametrize("other", [event(6, 2), event(6, 1)._replace(position=Position("b.2", 1))])
def test_another_transaction_before_the_end(other: Event) -> None:
    transactions = Transactions(4)
    transactions.accept(event(5, 1), 9)
    with pytest.raises(SequenceError, match="has lost its end"):
        transactions.accept(other, 10)


def test_heartbeats() -> None:
    transactions = Transactions(-1)
    assert transactions.accept(heartbeat(-1), 0) is not None
    transactions.accept(event(0, 1), 1)
    assert transactions.accept(heartbeat(0), 2) is None, "inside a transaction it is no place to continue from"
    transactions.accept(event(1, 1, end=True), 3)
    assert transactions.accept(heartbeat(0), 4) is None, "a repeat"
    step = transactions.accept(heartbeat(1), 5)
    assert step is not None
    assert not step.first
    assert not step.last
    with pytest.raises(SequenceError):
        transactions.accept(heartbeat(2), 6)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.data())
def test_any_delivery_with_repeats_gives_every_event_once(sizes: list[int], data: st.DataObject) -> None:
    """A transport may go back to any earlier event at any time, and deliver from there again."""
    log = []
    for number, size in enumerate(sizes):
        log += [event(len(log) + i, number, end=i == size - 1) for i in range(size)]
    delivered, position = [], 0
    while position < len(log):
        delivered.append(log[position])
        position += 1
        if len(delivered) < 200 and data.draw(st.booleans()):
            position = data.draw(st.integers(0, position))
    transactions = Transactions(-1)
    steps = [transactions.accept(one, offset) for offset, one in enumerate(delivered)]
    assert [step.event for step in steps if step] == log
    assert sum(step.first for step in steps if step) == sum(step.last for step in steps if step) == len(sizes)
