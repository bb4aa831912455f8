"""Says that the follower lets the consumer wait, and ends the wait when the program is asked to stop."""

from __future__ import annotations

import logging
import time
from datetime import datetime

from shared.errors import FollowerLinkError
from shared.profile import Database
from shared.recovery import Stopping

logger = logging.getLogger(__name__)

#: seconds without an answer after which the log says so, and between two such lines
QUIET_SECONDS, REMINDER_SECONDS = 4.0, 60.0
#: seconds that a follower still has to answer when the program is asked to stop
STOP_SECONDS = 3.0


class Patience:
    """Waits for one follower as long as it takes, but not in silence."""

    def __init__(self, follower: Database, stopping: Stopping) -> None:
        self._follower = follower
        self._stopping = stopping
        self._told: float | None = None
        #: when it was first seen that the program is asked to stop (monotonic seconds)
        self._asked: float | None = None

    def waits(self, seconds: float) -> None:
        """Say so every minute. Raises FollowerLinkError when the program was asked to stop a while ago."""
        now = time.monotonic()
        if seconds >= QUIET_SECONDS and (self._told is None or now - self._told >= REMINDER_SECONDS):
            self._told = now
            since = datetime.fromtimestamp(time.time() - seconds)
            logger.warning(
                "waiting for the follower %s since %s: a lock, a full disk or a frozen server; see SHOW PROCESSLIST"
                " there", self._follower, f"{since:%H:%M:%S}",
            )  # fmt: skip
        if self._stopping():
            self._asked = self._asked or now
            if now - self._asked >= STOP_SECONDS:
                raise FollowerLinkError(
                    f"asked to stop, and the follower {self._follower} has not answered for {seconds:.0f} s: what it"
                    " was told last is undone, or done, and the position tells"
                )

    def moved(self, seconds: float) -> None:
        """Say so when the wait was told."""
        if self._told is not None:
            logger.info("the follower answers again after %.1f s", seconds)
            self._told = None
