"""Judges what an error of the replay means for the next attempt: whether there is one, and how it begins."""

from __future__ import annotations

import logging

from cdc_consumer.follower.pipe import TablePlace
from shared.errors import (
    CdcError,
    FollowerBusyError,
    FollowerError,
    FollowerLinkError,
    RowsMissedError,
    RowUnnamedError,
    TopicLinkError,
    causes,
)
from shared.recovery import Recovery, Stopping

logger = logging.getLogger(__name__)

#: how often a transaction that meets locks is tried
ATTEMPTS = 10

#: errors that a new attempt may not meet
PASSING = (FollowerLinkError, FollowerBusyError, TopicLinkError, RowsMissedError, RowUnnamedError)


class NextAttempt:
    """Judges each error that ended an attempt, and remembers what the attempt after it must know."""

    def __init__(self, stopping: Stopping) -> None:
        self._recovery = Recovery(stopping)
        #: where the last attempt that met a lock had begun
        self._began: int | None = None
        #: attempts from there that met a lock
        self._busy = 0
        #: sequence up to which the follower had committed, with its position, when it was looked at last
        self.committed = -1
        #: the next attempt writes one row a statement up to the transaction with this sequence: it names the row that
        #: is not there, and asks first whether the transaction was executed by somebody else; None for none
        self.careful: int | None = None
        #: tables of which the follower refused binlog events, or found not all rows: from then on their rows go by SQL,
        #: and one by one where no index finds them
        self.refused: set[TablePlace] = set()

    def reached(self, found: int, topic: str) -> None:
        """Note that the attempt in hand has reached topic and follower, and `found` the sequence of its position.

        Raises FollowerError when that is none, and an attempt before has seen one.
        """
        if found < 0 <= self.committed:
            raise FollowerError(
                f"the follower had applied topic {topic} up to sequence {self.committed}, and its table position tells"
                " of nothing any more: somebody has emptied or dropped it; load the follower anew, or put that row back"
                " from a backup of the same moment (a start without it begins at the topic's first record)"
            )
        self._recovery.reached()

    def after(self, error: CdcError, began: int | None, looked_closer: bool) -> None:
        """Wait before the next attempt. Raises the error, or what it means, when another one makes no sense.

        `began` is the topic offset of the position at which the attempt began, None when the follower was not reached;
        `looked_closer` says that the error is about a transaction that was written one row a statement.
        """
        self.careful = None
        if isinstance(error, (RowsMissedError, RowUnnamedError)):
            if looked_closer:
                raise error
            self.careful = 0
            if isinstance(error, RowUnnamedError):
                self.careful = error.sequence
                self.refused |= error.tables
            elif error.table is not None:
                self.refused.add(error.table)
            logger.info("looking closer, and nothing is to be done yet: %s", error)
        elif isinstance(error, FollowerBusyError):
            self._count_busy(error, began)
            logger.info("trying again: %s", causes(error))
            self._recovery.rest()
        else:
            self._recovery.pause(error)

    def _count_busy(self, error: FollowerBusyError, began: int | None) -> None:
        if began != self._began:
            self._began, self._busy = began, 0
        self._busy += 1
        if self._busy >= ATTEMPTS:
            raise FollowerError(
                "another session of the follower keeps a lock (SHOW PROCESSLIST shows it; end it and start again):"
                f" tried {ATTEMPTS} times in vain"
            ) from error
