"""Holds what an operator decides about a transaction that stops the capture: to leave it out, for a reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cdc_producer.decode.binlog_event import BinlogEvent
from shared.errors import ProfileError
from shared.events import Position, Query, Transaction

#: characters of a reason at most
REASON_CHARACTERS = 2000
_GTID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:[a-z_][a-z0-9_]{0,31})?:[1-9][0-9]{0,18}", re.ASCII)


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

    def query(self) -> Query:
        """Return the operation that stands in the transaction's place."""
        text = f"/* left out at the leader: {self.reason.replace('*/', '* /')} */"
        return Query(text.encode(), "", (), {}, self.reason)


def read_leader_decision(name: str, reason: str | None) -> LeaderDecision:
    """Read a decision from the command's options. Raises ProfileError."""
    if reason is None or not reason.strip() or len(reason) > REASON_CHARACTERS:
        raise ProfileError(f"--skip needs --reason, a text of at most {REASON_CHARACTERS} characters that is kept")
    if _GTID.fullmatch(name.lower()):
        return LeaderDecision(name.lower(), None, reason.strip())
    try:
        return LeaderDecision(None, Position.parse(name), reason.strip())
    except ValueError:
        raise ProfileError(
            f"--skip must be the GTID of one transaction or a position in it like binlog.000003:157, not {name!r:.80}"
        ) from None
