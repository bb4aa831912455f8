"""Gives each transaction to the one session that can do everything, or to the lanes, as long as these can do it.

A lane takes a whole transaction whose rows all go by the leader's own binlog events. A statement, a transaction that is
too large to be held, and rows that go by SQL wait until the lanes have nothing under way, and are applied as ever.
"""

from __future__ import annotations

import contextlib
import logging

from cdc_consumer.binlog.changes import Changes
from cdc_consumer.filled_table import FilledTable
from cdc_consumer.follower.server import Server
from cdc_consumer.follower.worker import Worker
from cdc_consumer.parallel.collected import LARGEST, Collected
from cdc_consumer.parallel.lane import Lane
from cdc_consumer.parallel.orders import IndependentOrder, Lanes, LeaderOrder, Order
from cdc_consumer.parallel.schedule import Turn
from cdc_consumer.parallel.watch import DefinitionWatch
from cdc_consumer.sql.positions import Mark
from shared.events import Event, Heartbeat, Rows

logger = logging.getLogger(__name__)


class Workers:
    """Applies transactions of rows: begin, write or write_changes ..., commit; then the same again.

    After an error of any method all sessions are dropped, and what is open is undone.
    """

    def __init__(self, server: Server, worker: Worker, alone_until: int) -> None:
        """Up to the sequence `alone_until` the first session applies everything."""
        self._server = server
        self._worker = worker
        if worker.own.ahead:
            logger.info("%d transactions behind it ended before their turn", len(worker.own.ahead))
        self._watch = DefinitionWatch(worker)
        self._alone_until = max([alone_until, *(end.sequence for end in worker.own.ahead.values())])
        #: bytes of binlog events of a statement
        self._limit = server.limit * 3 // 4
        self._largest = min(LARGEST, server.facts.max_packet // 4)
        #: None as long as nothing was given to a lane
        self._order: Order | None = None
        #: lanes may have something under way; then the first session has not
        self._beside = False
        #: something was given to lanes since the last look at what they applied
        self._unseen = False
        #: the transaction that is read and may go to a lane
        self._open: Collected | None = None
        #: what is whole and waits for more of its kind, where the leader's own GTIDs are of no use
        self._whole: Collected | None = None
        #: what takes the transaction in hand, where it makes the table of its rows
        self._filled: FilledTable | None = None
        #: sequence of the last that went to one, and of the last that is known to be committed
        self.sent, self.committed = -1, worker.own.start.sequence

    def begin(self, event: Event) -> None:
        """Open a transaction, of which this is the first event."""
        transaction, sequence = event.transaction, event.sequence
        assert transaction is not None  # decode refuses an operation without it
        self._watch.look()
        if self._server.profile.apply.workers > 1 and sequence > self._alone_until and self._worker.changes:
            gtid = self._worker.gtids.usable(transaction.gtid)
            self._open = Collected(Turn.of(event.position.file, transaction.clock), gtid, sequence)
        else:
            self.alone().begin(transaction.gtid)

    def before_statement(self) -> None:
        """Make ready for a statement, on the first session."""
        self.alone()
        if not self._inside:
            self._watch.look(end=True)

    def after_statement(self, table: FilledTable | None) -> None:
        """Let what follows up to the next `commit` be rows of a table that was made for them, unless it is None."""
        inside, self._filled = self._inside, table
        if table is None and not inside:
            self._watch.begin_anew()

    def write(self, rows: Rows, sequence: int, offset: int) -> None:
        """Apply row images."""
        self._keep()
        (self._filled or self._worker).write(rows, sequence, offset)

    def write_changes(self, changes: Changes, count: int, sequence: int) -> bool:
        """Apply the leader's own binlog events, or return False where only `write` is known to do that exactly."""
        collected, writer = self._open, self._worker.changes
        if collected is not None and writer is not None and writer.takes(changes):
            collected.add(changes, count)
            if self._beside and self._order is not None:
                self._order.go_on()
            if collected.size > self._largest:
                self._keep()
            return True
        self._keep()
        return (self._filled or self._worker).write_changes(changes, count, sequence)

    def commit(self, mark: Mark) -> None:
        """End the transaction; it is committed in its order."""
        collected, self._open = self._open, None
        if collected is None:
            (self._filled or self._worker).commit(mark)
            self._filled = None
            return
        collected.mark = mark
        if self._whole is not None and self._whole.join(collected, self._limit):
            return
        self._send_whole()
        self._whole = collected
        if self._worker.gtids.used:
            self._send_whole()

    def _send_whole(self) -> None:
        """Give what is whole to a lane."""
        collected, self._whole = self._whole, None
        if collected is None:
            return
        if not self._beside:
            self._worker.settle()
            self._beside = self._unseen = True
        self.sent = collected.mark.sequence
        self._lanes().apply(collected)

    def alone(self) -> Worker:
        """Return the first session, once nothing is under way on another, and with it the transaction that is open."""
        self._send_whole()
        if self._beside and self._order is not None:
            self._order.drain()
        self._beside = False
        self._keep()
        return self._worker

    def hear(self, heartbeat: Heartbeat, mark: Mark) -> None:
        """Move the position without rows, soon. Raises FollowerError when the follower is the leader that tells so."""
        self._server.refuse_leader(heartbeat.leader)
        self.alone().pass_to(mark)

    def pass_over(self, mark: Mark) -> None:
        """Move the position, at once, over what was applied before its turn."""
        worker = self.alone()
        worker.settle()
        worker.own.advance(mark)

    def settle(self, *, last: bool = True) -> None:
        """Commit all that was given to `commit`; the `last` time see that all rows were applied.

        To see it costs each session as much as a small transaction.
        """
        self._send_whole()
        inside = self._inside
        # nothing but its rows may be written in an open transaction
        if self._order is not None and self._unseen and not inside:
            if last:
                self._order.settle()
            else:
                self._order.drain()
        self._beside, self._unseen = False, self._unseen and (inside or not last)
        self._worker.settle(last=last)
        self.committed = self._worker.own.sequence
        if not inside:
            self._watch.look(end=last)

    @property
    def _inside(self) -> bool:
        """Tell whether a transaction is open on the first session, which takes nothing then but what belongs to it."""
        return self._filled is not None or self._worker.begun

    def close(self) -> None:
        """Commit on the first session what is whole, and end the others; they had an error, or have nothing to do."""
        try:
            self._worker.finish()
        finally:
            if self._order is not None:
                self._order.lanes.close()

    def _keep(self) -> None:
        """Let the first session apply the transaction that is read, from its first row on."""
        collected, self._open = self._open, None
        if collected is not None:
            worker = self.alone()
            worker.begin(collected.gtid)
            for changes, count in collected.changes:
                worker.write_changes(changes, count, collected.first)

    def _lanes(self) -> Order:
        if self._order is None:
            writer, settings = self._worker.changes, self._server.profile.apply
            assert writer is not None  # a transaction was collected for it
            with contextlib.ExitStack() as stack:
                lanes = []
                for number in range(1, settings.workers + 1):
                    lanes.append(Lane(*self._server.session_beside(number)))
                    stack.callback(lanes[-1].close)
                stack.pop_all()
            kind = LeaderOrder if settings.order == "leader" else IndependentOrder
            together = Lanes(lanes, self._server.patience)
            self._order = kind(together, self._worker.own, writer.position, self._limit)
            logger.info("transactions are applied by %d sessions, %s", settings.workers, _WORDS[settings.order])
        return self._order


_WORDS = {"leader": "and committed in the leader's order", "independent": "and committed as they are done"}
