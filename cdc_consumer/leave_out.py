"""Leaves out one transaction by an operator's decision, which the log and a table of the follower keep."""

from __future__ import annotations

import hashlib
import logging

from cdc_consumer.decision import Decision
from cdc_consumer.follower.fingerprint import fingerprint
from cdc_consumer.follower.worker import Worker
from cdc_consumer.sql.positions import FINGERPRINT_LENGTH, INSTEAD, Intent, LeftOut, mark_of
from cdc_consumer.sql.session import ROWS
from cdc_consumer.transactions import Step
from shared.errors import FollowerError, UnsupportedError
from shared.statements.heads import read_statement

logger = logging.getLogger(__name__)


class LeaveOut:
    """Takes the events of the transaction that follows the follower's position, and commits the decision for them."""

    def __init__(self, decision: Decision, worker: Worker) -> None:
        self._decision = decision
        self._worker = worker
        #: sequence of its first event, None before it came
        self._first: int | None = None
        logger.info("--skip waits for the end of the transaction that follows, which must be that of %s", self._name)

    @property
    def _name(self) -> str:
        return f"sequence {self._decision.sequence}"

    def not_met(self) -> None:
        """End a run that is to stop where the topic ends. Raises FollowerError."""
        raise FollowerError(
            f"--skip names {self._name}, and the topic ends before it, or before its transaction does: nothing was left"
            " out; the producer may have more to write"
        )

    def take(self, step: Step) -> bool:
        """Take one event; return True when the transaction has ended. Raises FollowerError when it is another one."""
        if step.first:
            self._first = step.event.sequence
        if not step.last or self._first is None:
            return False
        first, last, decision = self._first, step.event.sequence, self._decision
        if not first <= decision.sequence <= last:
            raise FollowerError(
                f"--skip names {self._name}, and the transaction that follows the follower's position"
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
        """Run the statement that commits by itself, once, whenever a session or the program ended in between."""
        worker, sql = self._worker, self._decision.instead[0]
        worker.settle()
        gtid = worker.gtids.usable(step.event.gtid)
        ran = self._ran_before(step.event.sequence, sql) if gtid is None else worker.gtids.executed(gtid)
        if not ran:
            try:
                worker.run(sql, "", ROWS, gtid, f"the statement of --instead for {left_out}")
            except FollowerError:
                if gtid is None and worker.usable:
                    worker.own.withdraw()
                raise
        worker.own.leave_out(left_out, mark_of(step.event, step.offset))

    def _ran_before(self, sequence: int, sql: bytes) -> bool:
        """True when the last session ran the statement and ended before it wrote the position."""
        own, intent = self._worker.own, self._worker.own.intent
        now = _intent_of(sql, sequence, self._worker)
        if intent is None or intent.sequence != sequence or not intent.instead:
            own.intend(now)
            return False
        if intent.fingerprint[: len(INSTEAD) + TEXT_DIGITS] != now.fingerprint[: len(INSTEAD) + TEXT_DIGITS]:
            raise FollowerError(
                f"another statement than this one was about to run in the place of sequence {sequence}: decide again"
                f" with the file it was in, or see whether it ran, and {own.forget_intent}"
            )
        if UNKNOWN in now.fingerprint:
            raise FollowerError(
                f"whether the statement of --instead for sequence {sequence} ran before the last session ended cannot"
                " be told of its kind: see whether it did; if so, --skip without --instead, else"
                f" {own.forget_intent}, and decide again"
            )
        return intent.fingerprint != now.fingerprint


#: digits of the statement's own digest in its intent; the rest are those of what it changes
TEXT_DIGITS = 16
#: stands for the digest of what a statement changes, where that is not known
UNKNOWN = "unknown"


def _intent_of(sql: bytes, sequence: int, worker: Worker) -> Intent:
    """Return the intent to run this statement in the place of an event: which it is, and what it finds."""
    text = hashlib.sha256(sql).hexdigest()[:TEXT_DIGITS]
    try:
        found = fingerprint(worker.ask, read_statement(sql, 0, ""), sql)
    except (UnsupportedError, KeyError):
        found = UNKNOWN
    return Intent(sequence, f"{INSTEAD}{text}{found}"[:FINGERPRINT_LENGTH])



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
