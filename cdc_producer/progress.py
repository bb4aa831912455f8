"""Tells the log how a running producer gets on."""

from __future__ import annotations

import logging
import time

from shared.events import Position

logger = logging.getLogger(__name__)

#: seconds between two lines
INTERVAL = 5.0


class Progress:
    """Says every few seconds what was published, as long as there is something to say."""

    def __init__(self, sequence: int) -> None:
        """`sequence` is that of the last event in the topic."""
        self._since = time.monotonic()
        self._sequence = sequence

    def report(self, sequence: int, position: Position) -> None:
        """Take note of the last event that was captured, and of how far the binlog was read."""
        now = time.monotonic()
        if now - self._since < INTERVAL:
            return
        if sequence > self._sequence:
            rate = (sequence - self._sequence) / (now - self._since)
            logger.info("sequence %d, %s, %.0f events/s", sequence, position, rate)
        self._since, self._sequence = now, sequence
