"""What happens after an error that may pass: how long to wait, how often, and when to give up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from cdc_consumer.follower.pipe import Mismatch
from shared.errors import CdcError, FollowerBusyError, FollowerError, FollowerLinkError, TopicLinkError, causes

logger = logging.getLogger(__name__)

#: seconds between attempts: first, and at most
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
#: how often a transaction that meets locks is tried
ATTEMPTS = 10
#: seconds between two log lines about one outage
REMINDER_SECONDS = 60.0

#: errors that a new attempt may not meet
PASSING = (FollowerLinkError, FollowerBusyError, TopicLinkError, Mismatch)


#: says whether SIGINT or SIGTERM asked to stop
StopRequest = Callable[[], bool]


def sleep(seconds: float, stop: StopRequest) -> None:
    """Sleep, but not long past a request to stop."""
    end = time.monotonic() + seconds
    while not stop() and (rest := end - time.monotonic()) > 0:
        time.sleep(min(rest, 0.1))


class Recovery:
    def __init__(self, stop: StopRequest) -> None:
        self._stop = stop
        #: where the last attempt that failed had begun
        self._began: int | None = None
        #: follower and topic were reached once
        self._reached = False
        self._attempts = 0
        self._outage_since: float | None = None
        self._reminded = 0.0
        #: the next attempt writes its first transaction one row a statement: it names the row that is not there, and
        #: asks first whether the transaction was executed by somebody else
        self.careful = False

    def connected(self) -> None:
        """Follower and topic are reached."""
        self._reached = True
        if self._outage_since is not None:
            logger.info("reached again after %.1f s", time.monotonic() - self._outage_since)
            self._outage_since = None

    def pause(self, error: CdcError, began: int | None, looked_closer: bool) -> None:
        """Wait before the next attempt. Raises the error, or what it means, when another one makes no sense.

        `began` is the topic offset of the position at which the attempt began, None when the follower was not reached;
        `looked_closer` that the error is about a transaction written one row a statement.
        """
        if not self._reached:
            raise error
        if began is not None and began != self._began:
            self._began, self._attempts = began, 0
        self._attempts += 1
        self.careful = isinstance(error, Mismatch)
        if isinstance(error, Mismatch):
            if looked_closer:
                raise error
            logger.info("looking closer: %s", error)
            return
        if isinstance(error, FollowerBusyError):
            if self._attempts >= ATTEMPTS:
                raise FollowerError(f"tried {ATTEMPTS} times in vain") from error
            logger.info("trying again: %s", causes(error))
        else:
            self._remind(error)
        sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._attempts - 1, 10)), self._stop)

    def _remind(self, error: CdcError) -> None:
        now = time.monotonic()
        if self._outage_since is None:
            self._outage_since = now
            logger.warning("%s; trying again until it is reached", causes(error))
        elif now - self._reminded < REMINDER_SECONDS:
            return
        else:
            logger.warning("still not reached after %.0f s: %s", now - self._outage_since, causes(error))
        self._reminded = now
