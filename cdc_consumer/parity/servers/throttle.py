"""Decides when the audit pauses: a busy leader, a follower that is behind, too many rows a second, the time of day."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from cdc_consumer.parity.profile import WINDOW, Limits
from cdc_consumer.parity.servers.pair import Pair

#: seconds between two looks at the servers
INTERVAL = 1.0
#: seconds a busy server may hold up one task before the task gives its work back
PATIENCE = 30.0


def window_closes(window: str | None, now: datetime) -> datetime | None:
    """Tell when the time of day in which rows are read ends; None when it is not now. Without a window: in a year."""
    if window is None:
        return now + timedelta(days=365)
    match = WINDOW.fullmatch(window)
    assert match is not None, window  # the profile was checked
    first, last = (int(match[part]) * 60 + int(match[part + 1]) for part in (1, 3))
    minute = now.hour * 60 + now.minute
    length = (last - first) % 1440 or 1440
    if (minute - first) % 1440 >= length:
        return None
    begun = now.replace(second=0, microsecond=0) - timedelta(minutes=(minute - first) % 1440)
    return begun + timedelta(minutes=length)


def window_opens(window: str, now: datetime) -> datetime:
    """Return the next moment at which rows may be read, when that is not now."""
    match = WINDOW.fullmatch(window)
    assert match is not None, window
    opens = now.replace(hour=int(match[1]), minute=int(match[2]), second=0, microsecond=0)
    return opens if opens > now else opens + timedelta(days=1)


class Throttle:
    """Slows one worker down; `share` is the part of the allowed rows that is its own."""

    def __init__(self, limits: Limits, pair: Pair, share: float) -> None:
        self._limits = limits
        self._pair = pair
        self._seconds_a_row = 0.0 if limits.rows_per_second is None else 1 / (limits.rows_per_second * share)
        self._next_look = time.monotonic() + INTERVAL
        self._paid_until = time.monotonic()

    def allows(self, rows: int) -> bool:
        """Wait as long as it must after every `rows` rows. False: give the work back, it is not the time."""
        if self._seconds_a_row:
            self._paid_until = max(self._paid_until, time.monotonic() - INTERVAL) + rows * self._seconds_a_row
            time.sleep(min(max(self._paid_until - time.monotonic(), 0), PATIENCE))
        if time.monotonic() < self._next_look:
            return True
        deadline = time.monotonic() + PATIENCE
        while self._busy():
            if time.monotonic() > deadline:
                return False
            time.sleep(INTERVAL / 4)
        self._next_look = time.monotonic() + INTERVAL
        return window_closes(self._limits.window, datetime.now()) is not None

    def _busy(self) -> bool:
        if self._pair.leader.threads_running() > self._limits.leader_threads:
            return True
        lag = self._pair.lag()
        return lag is not None and lag > self._limits.lag_seconds
