"""Holds what is applied as one, a whole transaction or several, and makes the packets that it needs.

All of its rows go by the leader's own binlog events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cdc_consumer.binlog.changes import Changes
from cdc_consumer.binlog.statement import ChangesStatement
from cdc_consumer.follower.gtids import Gtids
from cdc_consumer.follower.pipe import ChangeGroup, ResultCheck
from cdc_consumer.follower.worker import MERGED
from cdc_consumer.parallel.schedule import Turn
from cdc_consumer.sql.positions import NOTHING, Mark

#: bytes of binlog events of a transaction that is still held whole
LARGEST = 4 << 20
#: bytes of binlog events up to which a transaction gains nothing by being sent before its turn
SMALL = 16 << 10

#: statements, each with what is to be made of its result
PacketStatements = list[tuple[str, ResultCheck]]


@dataclass(slots=True)
class Collected:
    """Grows by changes until its end is known, and then maybe by the transactions that follow."""

    turn: Turn
    #: the leader's, as far as the follower takes it
    gtid: str | None
    #: sequence of its first event
    first: int
    #: where it ends
    mark: Mark = NOTHING
    changes: list[tuple[Changes, int]] = field(default_factory=list)
    #: bytes of binlog events
    size: int = 0
    #: transactions of the leader in it
    count: int = 1

    def join(self, following: Collected, limit: int) -> bool:
        """Take in the next transaction, unless they are too large or too many together, or the clock forbids it."""
        turn = self.turn.joined(following.turn)
        if turn is None or self.count >= MERGED or self.size + following.size > limit:
            return False
        self.turn, self.mark = turn, following.mark
        self.changes += following.changes
        self.size += following.size
        self.count += 1
        return True

    def add(self, changes: Changes, rows: int) -> None:
        """Let it grow by changes of so many rows."""
        self.changes.append((changes, rows))
        self.size += changes.size

    @property
    def small(self) -> bool:
        """Tell whether it costs the server little beside its commit."""
        return self.size <= SMALL

    @property
    def group(self) -> ChangeGroup:
        """Name it for errors."""
        return ChangeGroup(self.mark.sequence, [changes for changes, _ in self.changes])

    def pack(self, limit: int) -> list[ChangesStatement]:
        """Put the changes into statements of about `limit` bytes; there is at least one, which may be empty."""
        packed = [ChangesStatement()]
        for changes, _ in self.changes:
            if packed[-1].size > limit or not packed[-1].takes(changes):
                packed.append(ChangesStatement())
            packed[-1].add(changes)
        return packed


def rows_only(transaction: Collected, statements: Sequence[ChangesStatement], gtids: Gtids) -> PacketStatements:
    """Return what applies the rows, and leaves the transaction open for `position_only`."""
    about = ResultCheck(about=transaction.group)
    begin = [*gtids.taking(transaction.gtid), ("BEGIN", ResultCheck(about="BEGIN"))]
    return begin + [(statement.sql(), about) for statement in statements if statement]


def position_only(transaction: Collected, moved: Changes) -> PacketStatements:
    """Return what moves the position and commits."""
    statement = ChangesStatement()
    statement.add(moved)
    about = ResultCheck(about=transaction.group)
    return [(statement.sql(), about), ("COMMIT", about)]


def whole(transaction: Collected, statements: Sequence[ChangesStatement], gtids: Gtids) -> PacketStatements:
    """Return all of it, when the last of the statements holds what moves the position too."""
    if len(statements) > 1:
        return [*rows_only(transaction, statements, gtids), ("COMMIT", ResultCheck(about=transaction.group))]
    # a statement is a transaction by itself
    about = ResultCheck(about=transaction.group)
    return [*gtids.taking(transaction.gtid), (statements[0].sql(), about)]
