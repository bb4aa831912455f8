"""Finds where to continue: the topic's last record, and what of its transaction is already published."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from cdc_producer.decode.gtids import GtidSet
from shared.decode import decode
from shared.errors import LeaderError
from shared.events import Heartbeat, Position, Transaction
from shared.topic import Record

#: what to do about a leader that is not the one the topic knows
START_ANEW = "load the follower anew and start an empty topic"


@dataclass(slots=True)
class Resume:
    """Names a place in the binlog, and the transaction there that must be skipped in whole or in part."""

    #: read the binlog from here: a transaction's start, or an edge between transactions
    position: Position
    #: sequence of the last event in the topic; -1 for none
    sequence: int = -1
    #: the transaction at `position`, when the last record is an operation of it or a heartbeat that names it
    transaction: Transaction | None = None
    #: index of its last published operation, and whether that was its last of all
    index: int = 0
    complete: bool = False
    #: server_uuid of the leader, and when it began the file of `position` (seconds since 1970), when the last record
    #: tells it
    leader: str | None = None
    created: int | None = None
    #: whether the topic holds the place, so that it is not forgotten when the program ends now
    told: bool = True
    #: transactions to leave out: those the follower was loaded with
    gtids: GtidSet | None = None
    #: everything before it is published, or not to be; None for `position`
    edge: Position | None = None

    def has_left(self, gtid: str) -> bool:
        """Tell whether a transaction is known to be done with, by its GTID: not every one that is."""
        last = self.transaction
        return (self.complete and last is not None and last.gtid == gtid) or (
            self.gtids is not None and gtid in self.gtids
        )

    def check(self, leader: str, end: Position, name: object) -> None:
        """Raise LeaderError when a leader of this server_uuid, whose binlog ends at `end`, cannot have this place."""
        if self.leader not in (None, leader):
            raise LeaderError(f"the topic was written from leader {self.leader}, but {name} is {leader}; {START_ANEW}")
        if end < self.position or (self.transaction is not None and end == self.position):
            place = "continues at" if self.transaction is None else "holds a transaction that begins at"
            raise LeaderError(
                f"the topic {place} {self.position}, but the binlog of leader {name} ends at {end}: it was reset, or"
                f" lost its end; {START_ANEW}"
            )

    def check_file(self, created: int) -> None:
        """Return called with the moment at which each file that is read was begun, in order.

        Raises LeaderError when the first is not the one the topic ends in.
        """
        expected, self.created = self.created, None
        if expected not in (None, created):
            raise LeaderError(
                f"the topic ends in a {self.position.file} that was begun at {_moment(expected)}, and the leader's was"
                f" begun at {_moment(created)}: the leader went back to an earlier state, or its binlog was reset;"
                f" {START_ANEW}"
            )

    def skips(self, transaction: Transaction) -> bool:
        """Tell whether operations of this transaction are to be skipped: all of them if `complete`, else up to `index`.

        Called with each transaction in order. Raises LeaderError when the first is not the one the topic ends with.
        """
        if self.gtids is not None:
            self.complete = transaction.gtid is not None and transaction.gtid in self.gtids
            return self.complete
        expected, self.transaction = self.transaction, None
        if expected is None:
            return False
        if (transaction.gtid, transaction.time) != (expected.gtid, expected.time):
            raise LeaderError(
                f"the topic ends with transaction {expected.gtid or 'without GTID'} of time {expected.time} at"
                f" {self.position}, but the leader has {transaction.gtid or 'one without GTID'} of time"
                f" {transaction.time} there: it is not the leader this topic was written from, or its binlog was reset;"
                f" {START_ANEW}"
            )
        return True


def from_record(record: Record) -> Resume:
    """Continue after the topic's last record. Raises EventError when it is none."""
    event = decode(record.value, f"the topic's last record (offset {record.offset})")
    heartbeat = event.operation if isinstance(event.operation, Heartbeat) else None
    leader, created = (heartbeat.leader, heartbeat.created) if heartbeat is not None else (None, None)
    if event.transaction is None:
        return Resume(event.position, event.sequence, leader=leader, created=created)
    begin = Position(event.position.file, event.transaction.begin)
    edge = event.position if event.end is None else Position(begin.file, event.end)
    # a heartbeat names the last transaction that was read, and leaves nothing of it to publish
    complete = heartbeat is not None or event.end is not None
    return Resume(
        begin,
        event.sequence,
        event.transaction,
        event.index,
        complete,
        leader,
        created,
        edge=edge if complete else None,
    )


def _moment(seconds: int | None) -> str:
    return f"{datetime.fromtimestamp(seconds or 0, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
