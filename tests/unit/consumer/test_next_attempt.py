"""When an attempt of the replay is worth repeating, and how the next one begins."""

from __future__ import annotations

import pytest

from cdc_consumer.next_attempt import ATTEMPTS, NextAttempt
from shared import recovery
from shared.errors import FollowerBusyError, FollowerError, FollowerLinkError, RowsMissedError


@pytest.fixture
def next_attempt(monkeypatch: pytest.MonkeyPatch) -> NextAttempt:
    """One that has reached follower and topic before, and does not really wait."""
    monkeypatch.setattr(recovery, "sleep", lambda seconds, stopping: None)
    found = NextAttempt(lambda: False)
    found.reached(-1, "events")
    return found


def test_the_first_connection_is_not_repeated() -> None:
    with pytest.raises(FollowerLinkError):
        NextAttempt(lambda: False).after(FollowerLinkError("no"), None, False)


def test_locks_are_tried_again_while_it_moves(next_attempt: NextAttempt) -> None:
    for offset in range(3 * ATTEMPTS):
        next_attempt.after(FollowerBusyError("deadlock"), offset, False)
    with pytest.raises(FollowerError, match=r"keeps a lock .* tried 10 times in vain"):
        for _ in range(ATTEMPTS):
            next_attempt.after(FollowerBusyError("deadlock"), 99, False)


def test_a_row_that_is_not_there_is_looked_at_closer(next_attempt: NextAttempt) -> None:
    mismatch = RowsMissedError("Delete: 1 of 2 rows", ("d", "t"))
    next_attempt.after(mismatch, 4, False)
    assert next_attempt.careful is not None and next_attempt.refused == {("d", "t")}
    next_attempt.after(FollowerLinkError("no"), None, False)
    assert next_attempt.careful is None
    next_attempt.after(mismatch, 4, False)
    with pytest.raises(RowsMissedError, match="Delete: 1 of 2 rows"):
        next_attempt.after(mismatch, 7, True)
