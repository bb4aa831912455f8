"""Leaves out one transaction by an operator's decision, which the log and a table of the follower keep."""

from __future__ import annotations

import logging

from cdc_consumer.decision import Decision
from cdc_consumer.follower.worker import Worker
from cdc_consumer.sql.positions import LeftOut, mark_of
from cdc_consumer.sql.session import ROWS
from cdc_consumer.transactions import Step
from shared.errors import FollowerError

logger = logging.getLogger(__name__)


class LeaveOut:
    """Takes the events of the transaction that follows the follower's position, and commits the decision for them."""

    def __init__(self, decision: Decision, worker: Worker) -> None:
        self._decision = decision
        self._worker = worker
        #: sequence of its first event, None before it came
        self._first: int | None = None

    def take(self, step: Step) -> bool:
        """Take one event; return True when the transaction has ended. Raises FollowerError when it is another one."""
        if step.first:
            self._first = step.event.sequence
        if not step.last or self._first is None:
            return False
        first, last, decision = self._first, step.event.sequence, self._decision
        if not first <= decision.sequence <= last:
            raise FollowerError(
                f"--skip names sequence {decision.sequence}, and the transaction that follows the follower's position"
                f" has the sequences {first} to {last}: a decision is only about that one; nothing was changed"
            )
        event = step.event
        left_out = LeftOut(first, last, event.position, event.gtid, "follower", decision.reason, decision.text)
        if decision.commits_by_itself:
            self._run(step, left_out)
        else:
            self._worker.begin(event.gtid)
            for sql in decision.instead:
                self._worker.put(sql.decode("utf-8", "surrogateescape"), f"a statement of --instead for {left_out}")
            self._worker.leave_out(left_out)
            self._worker.commit(mark_of(event, step.offset))
        self._worker.settle()
        logger.warning("left out by decision: %s", left_out)
        return True

    def _run(self, step: Step, left_out: LeftOut) -> None:
        worker = self._worker
        worker.settle()
        gtid = worker.gtids.usable(step.event.gtid)
        if gtid is None or not worker.gtids.executed(gtid):
            worker.run(self._decision.instead[0], "", ROWS, gtid, f"the statement of --instead for {left_out}")
        worker.own.leave_out(left_out)
        worker.own.advance(mark_of(step.event, step.offset))


def leave_out_at_leader(worker: Worker, step: Step, reason: str, first: int) -> None:
    """Commit nothing for a transaction that was left out at the leader; what came of it before that is undone."""
    event = step.event
    if not step.first:
        worker.abandon()
    left_out = LeftOut(first, event.sequence, event.position, event.gtid, "leader", reason, None)
    worker.begin(event.gtid)
    worker.leave_out(left_out)
    worker.commit(mark_of(event, step.offset))
    logger.warning("left out by decision: %s", left_out)
