"""When an attempt is worth repeating."""

from __future__ import annotations

import logging

import pytest

from cdc_consumer import recovery
from cdc_consumer.follower.pipe import Check, Mismatch
from cdc_consumer.recovery import ATTEMPTS, Recovery
from shared.errors import FollowerBusyError, FollowerError, FollowerLinkError


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    taken: list[float] = []
    monkeypatch.setattr(recovery, "sleep", lambda seconds, stop: taken.append(seconds))
    return taken


@pytest.fixture
def reached(pauses: list[float]) -> Recovery:
    """One that has reached follower and topic before."""
    found = Recovery(lambda: False)
    found.connected()
    return found


def test_the_first_connection_is_not_repeated(pauses: list[float]) -> None:
    with pytest.raises(FollowerLinkError):
        Recovery(lambda: False).pause(FollowerLinkError("no"), None, False)
    assert pauses == []


def test_an_outage_is_waited_for_and_told_once(
    reached: Recovery, pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for _ in range(50):
            reached.pause(FollowerLinkError("no answer"), None, False)
        reached.connected()
    assert pauses[0] == 0.1
    assert pauses[-1] == max(pauses) == 5.0
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_locks_are_tried_again_while_it_moves(reached: Recovery) -> None:
    for offset in range(3 * ATTEMPTS):
        reached.pause(FollowerBusyError("deadlock"), offset, False)
    with pytest.raises(FollowerError, match="tried 10 times in vain"):
        for _ in range(ATTEMPTS):
            reached.pause(FollowerBusyError("deadlock"), 99, False)


def test_a_row_that_is_not_there_is_looked_at_closer(reached: Recovery, pauses: list[float]) -> None:
    mismatch = Mismatch(Check(2, about="Delete"), 1)
    reached.pause(mismatch, 4, False)
    assert reached.careful
    reached.pause(FollowerLinkError("no"), None, False)
    assert not reached.careful
    reached.pause(mismatch, 4, False)
    with pytest.raises(Mismatch, match="Delete: 1 of 2 rows"):
        reached.pause(mismatch, 7, True)
