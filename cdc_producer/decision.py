"""Holds what an operator decides about a transaction that stops the capture: to leave it out, for a reason."""

from __future__ import annotations

import contextlib
import logging
import re
from dataclasses import dataclass
from enum import Enum

from cdc_producer.decode.binlog import DAMAGED
from cdc_producer.decode.binlog_event import UNREADABLE, BinlogEvent
from cdc_producer.decode.query_event import query_text
from cdc_producer.leader import LeaderConsole
from cdc_producer.resume import Resume
from shared.binlog_format import EventType
from shared.errors import LeaderError, ProfileError
from shared.events import Position, Query, Transaction
from shared.program import kept_reason

logger = logging.getLogger(__name__)

_GTID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:[a-z_][a-z0-9_]{0,31})?:[1-9][0-9]{0,18}", re.ASCII)

#: why a decision comes too late
BEHIND = "the topic continues behind it: it is published, or left out already"

#: types that end a transaction, or hold all of it; and that stand behind one
_ENDS = (EventType.XID, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD)
_BEHIND = (EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.ROTATE)


class Part(Enum):
    """Says what a binlog event is to the transaction that is left out."""

    BEGIN, INSIDE, END, NEXT = range(4)


def part_of(event: BinlogEvent, *, in_block: bool) -> Part:
    """Tell which part this event is, also one that cannot be read; `in_block` says that a BEGIN came before it."""
    if event.type in _BEHIND and event.end > event.start:
        return Part.NEXT
    text = b""
    if event.type == EventType.QUERY:
        with contextlib.suppress(*UNREADABLE):
            text = query_text(event)
    if text == b"BEGIN" or text.startswith(b"XA START") or (not text and event.type in (DAMAGED, EventType.QUERY)):
        # what cannot be read may have been its BEGIN
        return Part.BEGIN
    if event.type in _ENDS or text in (b"COMMIT", b"ROLLBACK") or (text and not in_block):
        return Part.END
    return Part.INSIDE


@dataclass(frozen=True, slots=True)
class LeaderDecision:
    """Names a transaction by its GTID, or by the position of any binlog event of it."""

    gtid: str | None
    position: Position | None
    reason: str

    def names(self, event: BinlogEvent, transaction: Transaction | None) -> bool:
        """Tell whether a binlog event of this transaction is the one named, or belongs to the GTID that is."""
        if self.position is not None:
            return (event.file, event.start) == (self.position.file, self.position.offset)
        return transaction is not None and transaction.gtid == self.gtid

    def __str__(self) -> str:
        return f"--skip names {self.gtid or self.position}"

    def comes_late(self, console: LeaderConsole, resume: Resume, end: Position) -> str | None:
        """Say why the transaction cannot be among those read after `resume`; None where it can, or reading must tell.

        `end` is where the leader's binlog ended a moment ago.
        """
        if self.position is not None:
            files = console.files()
            if self.position.file not in files:
                return f"leader {console.leader} has {files[0]} to {files[-1]}"
            if end <= self.position:
                return f"the binlog of leader {console.leader} ends at {end}"
            return BEHIND if self.position < (resume.edge or resume.position) else None
        assert self.gtid is not None  # read_leader_decision gives one of the two
        if not console.executed(self.gtid):
            return f"leader {console.leader} has not executed that"
        return BEHIND if resume.has_left(self.gtid) or console.is_behind(self.gtid, resume.position) else None

    def query(self) -> Query:
        """Return the operation that stands in the transaction's place."""
        text = f"/* left out at the leader: {self.reason.replace('*/', '* /')} */"
        return Query(text.encode(), "", (), {}, self.reason)


class LeavingOut:
    """Carries a decision through the attempts of one run, from where it is armed to where it was taken."""

    def __init__(self, decision: LeaderDecision | None = None) -> None:
        self._decision = decision
        #: whether the transaction was not left out yet; whether the one in hand is it
        self.waits, self.inside = decision is not None, False
        self._taken = False
        #: where the leader's binlog ended when the attempt in hand began
        self._end: Position | None = None

    def arm(self, console: LeaderConsole, resume: Resume, end: Position) -> None:
        """Begin an attempt. Raises LeaderError when the decision can no longer be taken, and nothing is changed."""
        self.waits = self.inside = False
        if self._decision is None:
            return
        late = self._decision.comes_late(console, resume, end)
        if late is None:
            self.waits, self._end = True, end
            logger.info("%s: it is left out as soon as it is read", self._decision)
        elif not self._taken:
            raise LeaderError(f"{self._decision}, and {late}; nothing was changed")

    def begins(self, event: BinlogEvent, transaction: Transaction | None) -> bool:
        """Tell whether what is left out begins with this event of a transaction."""
        if self.inside or self._decision is None or not self._decision.names(event, transaction):
            return False
        self.inside = True
        return True

    def take(self, where: str) -> Query:
        """Return the operation that stands in the transaction's place; its last event is at `where`."""
        assert self._decision is not None
        logger.warning("left out by decision: the transaction that ends at %s: %s", where, self._decision.reason)
        self.waits, self.inside, self._taken = False, False, True
        return self._decision.query()

    def require_ahead(self, event: BinlogEvent) -> None:
        """Raise LeaderError when a transaction begins with this event, behind the position that was named."""
        named = self._decision.position if self.waits and self._decision is not None else None
        if named is not None and named < Position(event.file, event.start):
            raise LeaderError(
                f"{self._decision}, and no transaction has a binlog event there: the next one begins at"
                f" {event.where()}, and is not published; name the position that the error told"
            )

    def missed(self, edge: Position) -> bool:
        """Tell whether all was read that the leader had at the start, up to `edge`, and the transaction was not met."""
        return self.waits and not self.inside and self._end is not None and self._end <= edge

    def require_met(self, edge: Position) -> None:
        """End the run. Raises LeaderError when the transaction was `missed`."""
        if self.missed(edge):
            raise LeaderError(
                f"{self._decision}, and no such transaction was read up to {edge}: it is published, or left out"
                " already, or the name is wrong; nothing was left out"
            )
        if self.waits:
            logger.warning("%s, which was not read so far: decide again when you start again", self._decision)


def read_leader_decision(name: str, reason: str | None) -> LeaderDecision:
    """Read a decision from the command's options. Raises ProfileError."""
    kept = kept_reason(reason)
    if _GTID.fullmatch(name.lower()):
        return LeaderDecision(name.lower(), None, kept)
    try:
        return LeaderDecision(None, Position.parse(name), kept)
    except ValueError:
        raise ProfileError(
            f"--skip must be the GTID of one transaction or a position in it like binlog.000003:157, not {name!r:.80}"
        ) from None
