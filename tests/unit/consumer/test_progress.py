"""What the log says of a running replay."""

from __future__ import annotations

import logging
import time

import pytest

from cdc_consumer import progress
from cdc_consumer.progress import Progress
from cdc_consumer.transactions import Step
from shared.events import Event, Heartbeat, Position, Query, Transaction


def step(operation: Query | Heartbeat, committed: float) -> Step:
    """The only event of a transaction that the leader committed then (seconds since 1970)."""
    transaction = Transaction(None, 4, int(committed * 1e6), (0, 1))
    return Step(Event(7, Position("binlog.000001", 4), operation, transaction, 0, 9), 0, True, True)


def test_a_follower_that_has_applied_everything_says_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    caplog.set_level(logging.INFO)
    said = Progress()
    said.count(step(Heartbeat("leader"), time.time() - 100), 0)
    said.rest()
    assert not caplog.messages
    said.count(step(Query(b"CREATE DATABASE d", "d", ("d",), {}), time.time() - 100), 0)
    assert caplog.messages[0].endswith("sequence 7, lag 100.0 s")


def test_the_lag_is_the_one_at_which_an_event_was_applied(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    said = Progress()
    said.count(step(Query(b"CREATE DATABASE d", "d", ("d",), {}), time.time() - 100), 0)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 60)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    said.rest()
    assert caplog.messages[0].endswith("lag 100.0 s")
