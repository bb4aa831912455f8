"""Decides by the leader's logical clock which transactions may be applied side by side; pure.

A leader gives each transaction a number, and the number of the last one that had to be committed before it began
(sequence_number and last_committed). Both count anew in each binlog file.
"""

from __future__ import annotations

from typing import NamedTuple


class Turn(NamedTuple):
    """Places one transaction, or several that follow each other and are applied as one, among those of the leader."""

    #: the leader's binlog file
    file: str
    #: number of the last transaction that must have ended before
    after: int
    #: numbers of the first and the last transaction
    first: int
    last: int

    @classmethod
    def of(cls, file: str, clock: tuple[int, int]) -> Turn:
        """Place one transaction by its last_committed and sequence_number."""
        after, number = clock
        return cls(file, after, number, number)

    def joined(self, following: Turn) -> Turn | None:
        """Return the place of both together; None where the clock does not go on from this to the following one.

        Where the leader tells no clock, neither of both nor of them together, they are applied alone.
        """
        if following.file == self.file and following.last == self.last == 0:
            return self
        if following.file != self.file or following.first <= self.last:
            return None
        # what is in it needs no waiting for
        after = following.after if following.after < self.first else self.first - 1
        return Turn(self.file, max(self.after, after), self.first, following.last)


class Schedule:
    """Follows transactions that start in the leader's order and end in any."""

    def __init__(self) -> None:
        self._last: Turn | None = None
        #: those that have started and not ended, by the numbers that `start` gives
        self._running: dict[int, Turn] = {}
        self._started = 0

    def may_start(self, turn: Turn) -> bool:
        """Tell whether the next transaction of the leader may start now.

        It may when everything it must come after has ended; and alone, when the clock does not go on from the last one:
        in another file, after a restart, or where the leader has told none.
        """
        if not self._running or self._last is None:
            return True
        if turn.file != self._last.file or turn.first <= self._last.last:
            return False
        return all(other.file == turn.file and other.first > turn.after for other in self._running.values())

    def start(self, turn: Turn) -> int:
        """Note that the next transaction starts; return its number for `end`.

        One that may not is safe all the same behind the last one on the session that applies that one.
        """
        self._last = turn
        self._started += 1
        self._running[self._started] = turn
        return self._started

    def end(self, number: int) -> None:
        """Note that a transaction has ended: what it did is there for others to see."""
        del self._running[number]
