"""Sends transactions to lanes, in one of two orders of their commits.

In the leader's order a position is written only when the one before it was: that of the transaction before is the
baton. Rows of a transaction that is not small are applied before it comes; a small one, and one that must come after
the last one, goes whole, behind that one on its session.

In the independent order a transaction is committed when it is done, and a slot tells of it; the position says up to
where all are done. Slots are reused once the position has passed them. One that must come after the only one under way
follows it on its session, and moves the position itself.
"""

from __future__ import annotations

import select
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence

from cdc_consumer.binlog.changes import Changes
from cdc_consumer.binlog.position_row import PositionRow
from cdc_consumer.follower.changes_writer import passed_over
from cdc_consumer.follower.own_tables import OwnTables, Slot
from cdc_consumer.follower.patience import Patience
from cdc_consumer.follower.pipe import CHAINED_PACKETS
from cdc_consumer.parallel.collected import Collected, position_only, rows_only, whole
from cdc_consumer.parallel.lane import Lane, Running
from cdc_consumer.parallel.schedule import Schedule
from cdc_consumer.sql.positions import Mark
from shared.errors import RowUnnamedError
from shared.patient_link import STEP_SECONDS

#: transactions that may be under way at once in the independent order
SLOTS = 64
#: transactions that may end before the position follows
BEHIND = SLOTS // 4


class Lanes:
    """Holds the sessions, and waits for whichever of them answers first."""

    def __init__(self, lanes: Sequence[Lane], patience: Patience) -> None:
        self._lanes = list(lanes)
        self._patience = patience
        self._poll = select.poll()
        self._by_file = {lane.answers.fileno(): lane for lane in lanes}
        for file in self._by_file:
            self._poll.register(file, select.POLLIN)

    def free(self) -> Lane | None:
        """Return one that has nothing to do."""
        return next((lane for lane in self._lanes if lane.free), None)

    def least_busy(self) -> Lane:
        """Return the one with the fewest packets under way."""
        return min(self._lanes, key=lambda lane: lane.busy)

    def answered(self) -> list[Running]:
        """Return the transactions of which answers that have come tell something new, without waiting."""
        return [running for lane in self._ready(0.0) for running in lane.read()]

    def _ready(self, seconds: float) -> list[Lane]:
        ready = [lane for lane in self._lanes if lane.answers.waiting]
        return ready or [self._by_file[file] for file, _ in self._poll.poll(seconds * 1000)]

    def wait(self) -> list[Running]:
        """Wait until one of them answers; return the transactions of which the answers tell something new."""
        ready = self._ready(STEP_SECONDS)
        began, waited = time.monotonic() - STEP_SECONDS, 0.0
        while not ready:
            waited = time.monotonic() - began
            self._patience.waits(waited)
            ready = self._ready(STEP_SECONDS)
        if waited:
            self._patience.moved(waited)
        return [running for lane in ready for running in lane.read()]

    def applied_all(self, *, end: bool) -> bool:
        """Tell whether the follower has applied all rows that it took, as far as it can be asked now."""
        return all(lane.applied_all(end=end) for lane in self._lanes)

    def close(self) -> None:
        """End all sessions."""
        for lane in self._lanes:
            lane.close()


class Order(ABC):
    """Takes whole transactions in the leader's order, and keeps those that are under way."""

    def __init__(self, lanes: Lanes, own: OwnTables, position: PositionRow, limit: int) -> None:
        """`limit` is how many bytes of binlog events a statement may grow to."""
        self.lanes = lanes
        self._own = own
        self._position = position
        self._limit = limit
        self._schedule = Schedule()
        #: in the leader's order
        self._running: deque[Running] = deque()

    @abstractmethod
    def apply(self, transaction: Collected) -> None:
        """Send a transaction as soon as it may start, and wait until then. Raises FollowerError."""

    @abstractmethod
    def _note(self, running: Running) -> None:
        """Take what an answer tells of a transaction."""

    def drain(self) -> None:
        """Wait until all that were sent have ended."""
        while self._running:
            self._wait()
        self._see(end=False)

    def settle(self) -> None:
        """Wait until all that were sent have ended, and the position tells so; see that all rows were applied."""
        self.drain()
        self._see(end=True)

    def _see(self, *, end: bool) -> None:
        """See that all rows were applied, and begin anew where somebody else has executed a transaction meanwhile.

        MySQL passes over one whose GTID it has, and what it tells of itself is missing then too.
        """
        if self.lanes.applied_all(end=end):
            return
        if self._told():
            raise passed_over(self._own.sequence)
        words = "the follower passed over a transaction that somebody else has executed there meanwhile"
        raise RowUnnamedError(words, self._own.sequence, frozenset())

    def _told(self) -> bool:
        """Tell whether each transaction has left word on the follower that it was committed."""
        return self._own.stands()

    def go_on(self) -> None:
        """Take the answers that have come, where a transaction's position waits for one."""
        if self._running and not self._running[-1].whole:
            self._take(self.lanes.answered())

    def _wait(self) -> None:
        self._take(self.lanes.wait())

    def _take(self, changed: Sequence[Running]) -> None:
        for running in changed:
            if running.ended:
                self._schedule.end(running.number)
            self._note(running)

    def _start(self, transaction: Collected, lane: Lane, *, whole: bool) -> Running:
        running = Running(transaction, lane, self._schedule.start(transaction.turn), whole)
        self._running.append(running)
        return running

    def _send_whole(self, running: Running, moves: Sequence[tuple[PositionRow, int | None, Mark, int]]) -> None:
        """Send a transaction with rows of the position: each with its link before, None for a new row, and after."""
        transaction = running.transaction
        statements = transaction.pack(self._limit)
        rows = []
        for row, link, mark, then in moves:
            checks, now = statements[-1].foreign_key_checks, time.time_ns() // 1000
            if link is None:
                moved = row.added(mark, now, foreign_key_checks=checks, then=then)
            else:
                moved = row.moved(link, mark, now, foreign_key_checks=checks, then=then)
            statements[-1].add(moved)
            rows.append(moved)
        counts = [(changes.kind, count) for changes, count in transaction.changes]
        counts += [(moved.kind, 1) for moved in rows]
        running.lane.send(running, whole(transaction, statements, running.lane.gtids), counts, last=True)


class LeaderOrder(Order):
    """Commits in the leader's order."""

    def __init__(self, lanes: Lanes, own: OwnTables, position: PositionRow, limit: int) -> None:
        super().__init__(lanes, own, position, limit)
        #: those whose position is not written yet, with the link to the one before
        self._waiting: deque[tuple[Running, int]] = deque()

    def apply(self, transaction: Collected) -> None:
        while (found := self._place(transaction)) is None:
            self._wait()
        lane, complete = found
        running = self._start(transaction, lane, whole=complete)
        link = self._own.link
        self._own.moves(transaction.mark)
        self._waiting.append((running, link))
        if complete:
            self._send_whole(running, [(self._position, link, transaction.mark, transaction.mark.sequence)])
            return
        statements = rows_only(transaction, transaction.pack(self._limit), lane.gtids)
        lane.send(running, statements, [(changes.kind, count) for changes, count in transaction.changes], last=False)

    def _place(self, transaction: Collected) -> tuple[Lane, bool] | None:
        """Return the lane for a transaction, and whether all of it is sent at once; None when it must wait."""
        last = self._running[-1] if self._running else None
        starts = self._schedule.may_start(transaction.turn)
        if last is not None and last.lane.holds is not last and (transaction.small or not starts):
            # all of the one before is sent, and on its session no clock is needed: this one fails when that one does
            return (last.lane, True) if last.lane.busy < CHAINED_PACKETS else None
        lane = self.lanes.free()
        return None if lane is None or not starts else (lane, not self._waiting)

    def _note(self, running: Running) -> None:
        while self._running and self._running[0].ended:
            self._running.popleft()
        while self._waiting and self._waiting[0][0].placed:
            self._waiting.popleft()
        if self._waiting:
            first, link = self._waiting[0]
            if first.applied and first.lane.holds is first:
                moved = self._moved(first.transaction.mark, link)
                first.lane.send(first, position_only(first.transaction, moved), [(moved.kind, 1)], last=True)

    def _moved(self, mark: Mark, link: int) -> Changes:
        return self._position.moved(link, mark, time.time_ns() // 1000)


class IndependentOrder(Order):
    """Commits each transaction when it is done."""

    def __init__(self, lanes: Lanes, own: OwnTables, position: PositionRow, limit: int) -> None:
        super().__init__(lanes, own, position, limit)
        self._rows = [position.of(number + 1) for number in range(SLOTS)]
        #: what the slots tell of
        self._slots = dict(own.slots)
        #: the last transaction up to which all have ended
        self._low: Mark | None = None
        #: transactions that ended since the position moved
        self._behind = 0
        #: the last one under way that moves the position, and the sequence that the position has at least until then
        self._carrier: Running | None = None
        self._reached = own.sequence

    def apply(self, transaction: Collected) -> None:
        while (found := self._place(transaction)) is None:
            self._wait()
        lane, carries = found
        mark, link = transaction.mark, self._own.link
        if carries:
            running = self._start(transaction, lane, whole=True)
            self._carry(running, mark)
            self._send_whole(running, [(self._position, link, mark, mark.sequence)])
            return
        number = self._free_slot()
        assert number is not None  # `_place` waits for it
        before = self._slots.get(number)
        self._slots[number] = Slot(transaction.first, mark)
        running = self._start(transaction, lane, whole=True)
        row = self._rows[number - 1]
        moves: list[tuple[PositionRow, int | None, Mark, int]] = [
            (row, None if before is None else before.first, mark, transaction.first)
        ]
        low = self._low
        if self._carrier is None and self._behind >= BEHIND and low is not None and low.sequence > self._own.sequence:
            self._carry(running, low)
            moves.append((self._position, link, low, low.sequence))
        self._send_whole(running, moves)

    def _place(self, transaction: Collected) -> tuple[Lane, bool] | None:
        """Return the lane for a transaction, and whether it has no slot but moves the position; None when it waits."""
        if not self._schedule.may_start(transaction.turn):
            first = self._running[0]
            # behind the only one, which moves the position to where this one finds it, it fails when that one does
            return (first.lane, True) if len(self._running) == 1 and first is self._carrier else None
        if self._running and self._free_slot() is None:
            return None
        lane = self.lanes.least_busy()
        # a second packet must not wait in our hands for the server to take it
        takes = lane.free or (transaction.small and lane.busy < CHAINED_PACKETS)
        return (lane, not self._running) if takes else None

    def _free_slot(self) -> int | None:
        reached = self._own.sequence if self._carrier is None else self._reached
        for number in range(1, SLOTS + 1):
            if number not in self._slots or self._slots[number].end.sequence <= reached:
                return number
        return None

    def _carry(self, running: Running, mark: Mark) -> None:
        self._reached = self._own.sequence if self._carrier is None else self._reached
        self._carrier, self._behind = running, 0
        self._own.moves(mark)

    def _note(self, running: Running) -> None:
        if running.ended and running is self._carrier:
            self._carrier = None
        while self._running and self._running[0].ended:
            self._low = self._running.popleft().transaction.mark
            self._behind += 1

    def _told(self) -> bool:
        found = {number: slot.first for number, slot in self._own.read_slots().items()}
        return super()._told() and found == {number: slot.first for number, slot in self._slots.items()}

    def settle(self) -> None:
        super().settle()
        if self._low is not None and self._low.sequence > self._own.sequence:
            self._own.advance(self._low)
