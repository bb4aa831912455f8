"""When rows may be read: the time of day, the pace, and what busy servers say."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.parity.profile import Limits
from cdc_consumer.parity.servers import throttle
from cdc_consumer.parity.servers.pair import Pair
from cdc_consumer.parity.servers.throttle import PATIENCE, Throttle, window_closes, window_opens

MINUTES = st.integers(0, 1439)
MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1))
DAY = timedelta(days=1)


def of(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


@given(MINUTES, MINUTES, MOMENTS)
def test_a_window_is_open_or_will_be(first: int, last: int, now: datetime) -> None:
    window = f"{of(first)}-{of(last)}"
    closes = window_closes(window, now)
    minute = now.hour * 60 + now.minute
    # a window without a length is the whole day
    is_open = first == last or (first <= minute < last if first < last else minute >= first or minute < last)
    assert (closes is not None) == is_open
    if closes is None:
        opens = window_opens(window, now)
        assert now < opens <= now + DAY
        assert window_closes(window, opens) is not None
        assert window_closes(window, opens - timedelta(seconds=1)) is None
    else:
        assert now < closes <= now + DAY
        assert window_closes(window, closes - timedelta(seconds=1)) == closes
        assert first == last or window_closes(window, closes) is None


def test_without_a_window_it_is_always_time() -> None:
    now = datetime(2024, 2, 29)
    closes = window_closes(None, now)
    assert closes is not None and closes > now + DAY


class Clock:
    """time.monotonic and time.sleep without waiting."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds


class Servers:
    """Both servers in one: the leader's threads and how many seconds the follower is behind."""

    def __init__(self) -> None:
        self.threads = 1
        self.looks = 0
        self.seconds: float | None = 0.0

    @property
    def leader(self) -> Servers:
        return self

    def threads_running(self) -> int:
        self.looks += 1
        return self.threads

    def lag(self) -> float | None:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(throttle, "time", clock)
    return clock


@pytest.fixture
def servers() -> Servers:
    return Servers()


def of_limits(servers: Servers, share: float = 1.0, **limits: Any) -> Throttle:
    return Throttle(Limits(**limits), cast(Pair, servers), share)


@pytest.mark.parametrize("rows", [1, 100, 5000])
def test_rows_come_at_the_pace_that_was_set(rows: int, clock: Clock, servers: Servers) -> None:
    allowed = of_limits(servers, share=0.25, rows_per_second=4000)
    began = clock.now
    for _ in range(10_000 // rows):
        assert allowed.allows(rows)
    assert clock.now - began == pytest.approx(10, abs=1.1)


def test_a_pause_is_not_made_up_for(clock: Clock, servers: Servers) -> None:
    allowed = of_limits(servers, rows_per_second=1000)
    clock.now += 3600
    began = clock.now
    for _ in range(50):
        allowed.allows(100)
    assert clock.now - began >= 3.9


def test_a_busy_server_is_waited_for(clock: Clock, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = of_limits(servers, leader_threads=10, lag_seconds=5.0)
    servers.threads = 11
    began = clock.now
    assert allowed.allows(1) and clock.now == began  # it was looked at a moment ago
    clock.now += 2

    def rest(seconds: float) -> None:
        clock.now += seconds
        if clock.now > began + 10:
            servers.threads = 10

    monkeypatch.setattr(clock, "sleep", rest)
    assert allowed.allows(1) and began + 10 < clock.now < began + 12


@pytest.mark.parametrize(("threads", "lag"), [(11, 0.0), (1, 5.1)])
def test_the_work_is_given_back_when_a_server_stays_busy(
    threads: int, lag: float, clock: Clock, servers: Servers
) -> None:
    allowed = of_limits(servers, leader_threads=10, lag_seconds=5.0)
    servers.threads, servers.seconds = threads, lag
    clock.now += 2
    began = clock.now
    assert not allowed.allows(1)
    assert PATIENCE <= clock.now - began < PATIENCE + 1


@pytest.mark.parametrize("lag", [None, 5.0])
def test_a_lag_that_is_small_or_not_known_holds_nothing_up(lag: float | None, clock: Clock, servers: Servers) -> None:
    allowed = of_limits(servers, lag_seconds=5.0)
    servers.seconds = lag
    for _ in range(100):
        clock.now += 0.1
        began = clock.now
        assert allowed.allows(1000) and clock.now == began
    assert 8 <= servers.looks <= 11  # about one a second
