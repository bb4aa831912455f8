"""The pace of a program's attempts, and what its log says of an outage."""

from __future__ import annotations

import logging
import time

import pytest

from shared import recovery
from shared.errors import LeaderLinkError
from shared.recovery import LONGEST_PAUSE, SPREAD, Recovery, sleep


class Clock:
    """Time that passes only when somebody sleeps or the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()

    def sleeps(seconds: float, stopping: recovery.Stopping) -> None:
        found.slept.append(seconds)
        found.now += seconds

    monkeypatch.setattr(recovery, "time", found)
    monkeypatch.setattr(recovery, "sleep", sleeps)
    return found


def reached() -> Recovery:
    found = Recovery(lambda: False)
    found.reached()
    return found


def test_a_first_connection_that_fails_is_told(clock: Clock) -> None:
    with pytest.raises(LeaderLinkError):
        Recovery(lambda: False).pause(LeaderLinkError("no"))
    assert clock.slept == []


def test_an_outage_is_told_once_and_each_minute(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    outage = reached()
    with caplog.at_level(logging.INFO):
        while clock.now < 1150:
            outage.pause(LeaderLinkError("no answer"))
        outage.reached()
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "WARNING", "INFO"]


def test_pauses_grow_to_a_limit_and_are_not_in_step(clock: Clock) -> None:
    outage = reached()
    for _ in range(50):
        outage.pause(LeaderLinkError("no answer"))
    first, last = clock.slept[0], clock.slept[-20:]
    assert 0.08 <= first <= 0.12
    assert all(LONGEST_PAUSE * (1 - SPREAD) <= pause <= LONGEST_PAUSE * (1 + SPREAD) for pause in last)
    assert len(set(last)) > 1


def test_only_an_attempt_that_held_makes_pauses_short_again(clock: Clock) -> None:
    flapping = reached()
    for _ in range(20):
        flapping.pause(LeaderLinkError("gone"))
        flapping.reached()
    assert clock.slept[-1] > 3
    clock.now += 2 * LONGEST_PAUSE
    flapping.pause(LeaderLinkError("gone"))
    assert clock.slept[-1] < 0.2


def test_a_sleep_ends_when_the_program_is_asked_to_stop() -> None:
    began = time.monotonic()
    sleep(60, lambda: time.monotonic() - began > 0.05)
    assert time.monotonic() - began < 5
