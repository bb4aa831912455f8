"""Tells the log how a running replay gets on."""

from __future__ import annotations

import logging
import time

from cdc_consumer.transactions import Step
from shared.events import Heartbeat, Rows

logger = logging.getLogger(__name__)

#: seconds between two lines
INTERVAL = 5.0


class Progress:
    """Counts what is applied and says so every few seconds, as long as there is something to say."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._events = 0
        self._rows = 0
        #: sequence applied last, and how long after its commit on the leader (seconds)
        self._last: tuple[int, float] | None = None

    def count(self, step: Step, unread: int) -> None:
        """Count an event; `unread` is its number of rows where only its outline was read. A heartbeat applies none."""
        operation, transaction = step.event.operation, step.event.transaction
        if not isinstance(operation, Heartbeat):
            self._events += 1
            self._rows += len(operation.rows) if isinstance(operation, Rows) and not unread else unread
            # taken here: what was applied does not grow older while nothing follows it
            lag = max(0.0, time.time() - transaction.time / 1e6) if transaction and transaction.time else 0.0
            self._last = step.event.sequence, lag
        self._tick()

    def rest(self) -> None:
        """There is nothing to apply at the moment."""
        self._tick()

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self._since >= INTERVAL:
            if self._last is not None:
                self._say(*self._last, now - self._since)
            self._since, self._events, self._rows, self._last = now, 0, 0, None

    def _say(self, sequence: int, lag: float, seconds: float) -> None:
        logger.info(
            "applied %.1f events/s, %.1f rows/s; sequence %d, lag %.1f s",
            self._events / seconds, self._rows / seconds, sequence, lag,
        )  # fmt: skip
