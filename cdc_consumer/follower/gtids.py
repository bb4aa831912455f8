"""Chooses the GTID of a session's next transaction: the leader's, one of the follower's own, or none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from cdc_consumer.follower.pipe import Pipe, ResultCheck
from cdc_consumer.follower.preflight import Facts
from cdc_consumer.sql import literals
from shared.errors import EventError

_GTID = re.compile(r"[0-9a-fA-F-]{36}(:[a-z_0-9]{1,32})?:\d+", re.ASCII)


class ExecutedBefore(Enum):
    """Tells whether the last session, a copy of the leader or native replication has executed a transaction.

    It is POSSIBLE at first where the follower has GTIDs. PASSING lasts from the `begin` to the `commit` of a
    transaction that was executed. From the first one that was not, it is OVER: the lock keeps other consumers away,
    and should native replication execute one all the same, the position's UPDATE matches no row.
    """

    POSSIBLE = 0
    PASSING = 1
    OVER = 2


class Gtids:
    """Knows the `gtid_next` and `sql_log_bin` of one session, and is the only one to change them.

    Nothing here may be called inside a transaction: MySQL refuses it.
    """

    def __init__(self, pipe: Pipe, facts: Facts) -> None:
        self._pipe = pipe
        self._facts = facts
        #: what gtid_next is, None for AUTOMATIC
        self._next: str | None = None

    @property
    def used(self) -> bool:
        """Tell whether transactions run under the leader's GTIDs."""
        return self._facts.gtids

    def usable(self, gtid: str | None) -> str | None:
        """Return the GTID to run under, None where the follower has none. Raises EventError when it is not one."""
        if gtid is None or not self._facts.gtids:
            return None
        if not _GTID.fullmatch(gtid):
            raise EventError(f"{gtid!r} is not a GTID")
        return gtid

    def executed(self, gtid: str) -> bool:
        """Tell whether the follower has executed the transaction of this GTID."""
        self.automatic()
        ((found,),) = self._pipe.ask(f"SELECT GTID_SUBSET({literals.text(gtid)}, @@GLOBAL.gtid_executed)")
        return bool(found)

    def taking(self, gtid: str | None) -> list[tuple[str, ResultCheck]]:
        """Return statements that let the next transaction run under this GTID, or under one of the follower's own.

        They must be sent. After a GTID of the leader MySQL wants to be told.
        """
        before, self._next = self._next, gtid
        if gtid is not None:
            return [(f"SET gtid_next = {literals.text(gtid)}", ResultCheck(about=f"taking the GTID {gtid}"))]
        return [] if before is None else [("SET gtid_next = 'AUTOMATIC'", ResultCheck())]

    def take(self, gtid: str | None) -> None:
        """Let the next transaction run under this GTID, or under one of the follower's own."""
        for sql, check in self.taking(gtid):
            self._pipe.put(sql, check, counted=True)

    def automatic(self) -> None:
        """Let what follows run under GTIDs of the follower's own."""
        self.take(None)

    def unknown(self) -> None:
        """Note that a statement has left `gtid_next` in a state of its own."""
        self._next = ""

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Keep what runs inside out of the binlog: it would be a GTID that the leader does not know."""
        self.automatic()
        if self._facts.hides_own_writes:
            self._pipe.put("SET SESSION sql_log_bin = 0", ResultCheck())
        yield
        if self._facts.hides_own_writes:
            self._pipe.put("SET SESSION sql_log_bin = 1", ResultCheck())
