"""Survives outages: how long a program waits before it tries again, and what its log says meanwhile."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable

from shared.errors import CdcError, causes

logger = logging.getLogger(__name__)

#: seconds between two attempts: first, and at most; each is made up to a fifth longer or shorter
FIRST_PAUSE, LONGEST_PAUSE, SPREAD = 0.1, 5.0, 0.2
#: doublings after which a pause cannot grow any more
DOUBLINGS = 10
#: seconds between two log lines about one outage
REMINDER_SECONDS = 60.0
#: seconds within which a sleeping program notices that it was asked to stop
NOTICE_SECONDS = 0.1

#: tells whether the program was asked to stop
Stopping = Callable[[], bool]


def sleep(seconds: float, stopping: Stopping) -> None:
    """Sleep for so many seconds, or until the program is asked to stop."""
    end = time.monotonic() + seconds
    while not stopping() and (rest := end - time.monotonic()) > 0:
        time.sleep(min(rest, NOTICE_SECONDS))


class Recovery:
    """Paces the attempts of one program: `reached` when one has all it needs, `pause` when one has failed."""

    def __init__(self, stopping: Stopping) -> None:
        self._stopping = stopping
        self._reached = False
        #: since when the attempt in hand has all it needs (monotonic seconds), None before that
        self._holding_since: float | None = None
        #: attempts that failed one shortly after the other
        self._failed = 0
        self._outage_since: float | None = None
        self._reminded = 0.0

    def reached(self) -> None:
        """Note that an attempt has reached all it needs; an outage ends here."""
        self._reached = True
        self._holding_since = now = time.monotonic()
        if self._outage_since is not None:
            logger.info("reached again after %.1f s", now - self._outage_since)
            self._outage_since = None

    def pause(self, error: CdcError) -> None:
        """Warn of an outage, once and then every minute, and wait before the next attempt.

        Raises the error when no attempt has reached anything yet: at the first start an address that does not answer
        is a mistake to be told, not an outage to outlast. Returns at once when the program is asked to stop.
        """
        if self._stopping():
            logger.info("asked to stop: %s", causes(error))
            return
        if not self._reached:
            raise error
        now = time.monotonic()
        if self._outage_since is None:
            self._outage_since = self._reminded = now
            logger.warning("%s; trying again until it is reached", causes(error))
        elif now - self._reminded >= REMINDER_SECONDS:
            self._reminded = now
            logger.warning("still not reached after %.0f s: %s", now - self._outage_since, causes(error))
        self.rest()

    def rest(self) -> None:
        """Wait before the next attempt: twice as long each time, until one has held for longer than a pause."""
        if self._holding_since is not None and time.monotonic() - self._holding_since > LONGEST_PAUSE:
            self._failed = 0
        self._holding_since = None
        pause = min(FIRST_PAUSE * 2 ** min(self._failed, DOUBLINGS), LONGEST_PAUSE)
        self._failed += 1
        sleep(pause * random.uniform(1 - SPREAD, 1 + SPREAD), self._stopping)
