"""One session on the follower that takes whole transactions, and is asked only now and then what became of them."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from cdc_consumer.follower.changes_writer import AppliedRows
from cdc_consumer.follower.gtids import Gtids
from cdc_consumer.follower.pipe import SEPARATOR, Pipe, ResultCheck, refusal
from cdc_consumer.parallel.collected import Collected, PacketStatements
from cdc_consumer.sql import literals, packets
from shared import mysql
from shared.errors import FollowerError


@dataclass(slots=True, eq=False)
class Running:
    """Follows one transaction from its first packet to the answer to its commit."""

    transaction: Collected
    lane: Lane
    #: of the schedule
    number: int
    #: holds its position: its first packet is its last
    whole: bool
    #: all of its rows are applied
    applied: bool = False
    #: its position is written, so that the next one's may be
    placed: bool = False
    ended: bool = False


@dataclass(slots=True)
class _Packet:
    """Follows one packet of statements."""

    running: Running
    #: of its statements, whose text is the server's now
    checks: list[ResultCheck]
    #: its last statement is a COMMIT
    commits: bool
    #: holds the position and the commit; else the rows alone
    last: bool
    answered: int = 0


class Lane:
    """Sends packets without waiting, and reads answers once they have come; after an error the session is over."""

    def __init__(self, connection: mysql.Connection, pipe: Pipe, gtids: Gtids) -> None:
        """`pipe` has nothing under way."""
        self.gtids = gtids
        self.answers = packets.Answers(connection)
        self._connection = connection
        self._applied = AppliedRows(pipe)
        self._under_way: deque[_Packet] = deque()
        #: the transaction whose rows are sent and whose position is not
        self.holds: Running | None = None

    @property
    def busy(self) -> int:
        """Count the packets under way."""
        return len(self._under_way)

    @property
    def free(self) -> bool:
        """Tell whether the session has nothing to do and holds nothing."""
        return not self._under_way and self.holds is None

    def send(
        self, running: Running, statements: PacketStatements, changes: Iterable[tuple[str, int]], *, last: bool
    ) -> None:
        """Send a packet for a transaction; the `last` one commits it.

        `changes` are kind and number of the rows in it. Raises FollowerError.
        """
        if self.free:
            self._applied.begin()
        for kind, rows in changes:
            self._applied.expect(kind, rows)
        self.holds = None if last else running
        packet = literals.encode(SEPARATOR.join([sql for sql, _ in statements]))
        try:
            packets.send(self._connection, packet)
        except (mysql.MySQLError, OSError) as error:
            raise refusal(error, running.transaction.group) from None
        commits = statements[-1][0] == "COMMIT"
        self._under_way.append(_Packet(running, [check for _, check in statements], commits, last))

    def read(self) -> list[Running]:
        """Take the answers that have come; return each transaction of which they tell something new.

        Raises FollowerError, that of the first statement that was refused.
        """
        try:
            answered = self.answers.read()
        except (mysql.MySQLError, OSError) as error:
            raise self._refused(error) from None
        changed: dict[Running, None] = {}
        for _ in range(answered):
            packet = self._under_way[0]
            packet.answered += 1
            changed[packet.running] = None
            rest = len(packet.checks) - packet.answered
            if not rest:
                self._under_way.popleft()
            self._note(packet, rest)
        return list(changed)

    def _note(self, packet: _Packet, rest: int) -> None:
        """Note what an answer means, behind which `rest` statements of the packet follow."""
        running = packet.running
        if not packet.last:
            running.applied = not rest
            return
        running.placed = rest <= (1 if packet.commits else 0)
        running.ended = not rest

    def _refused(self, error: Exception) -> FollowerError:
        if not self._under_way:
            return refusal(error, "a session of the follower that waits")
        packet = self._under_way[0]
        return refusal(error, packet.checks[packet.answered].about)

    def applied_all(self, *, end: bool = False) -> bool:
        """Tell whether the session has applied every row, as far as it can be asked now; see AppliedRows."""
        return not self.free or self._applied.check(end=end)

    def close(self) -> None:
        """End the session: what was not committed is undone."""
        with contextlib.suppress(Exception):
            self._connection.close()
