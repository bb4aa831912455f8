"""Leaves out one transaction by an operator's decision, which the log and a table of the follower keep."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable

from cdc_consumer.decision import Decision
from cdc_consumer.follower.fingerprint import fingerprint
from cdc_consumer.follower.tables import table_exists
from cdc_consumer.follower.worker import Worker
from cdc_consumer.sql.positions import FINGERPRINT_LENGTH, INSTEAD, MADE, Intent, LeftOut, mark_of
from cdc_consumer.sql.session import ROWS
from cdc_consumer.transactions import Step
from shared.errors import FollowerError, UnsupportedError
from shared.events import Event, Query
from shared.mysql import quote_name
from shared.statements.heads import read_statement

logger = logging.getLogger(__name__)


class MadeTable:
    """Tells of a table that is made by itself, before its rows: a mark on the follower says that the consumer did.

    A transaction that is left out takes it along, also when another run of the program has made it.
    """

    def __init__(self, worker: Worker, sequence: int, place: tuple[str, str], hidden: bool) -> None:
        """`place` is its database and name, `sequence` that of its CREATE TABLE; `hidden` says that no binlog tells."""
        self._worker = worker
        self._name = ".".join(map(quote_name, place))
        self._place = place
        self._hidden = hidden
        digest = hashlib.sha256("\0".join(place).encode()).hexdigest()
        self._mark = Intent(sequence, f"{MADE}{digest}"[:FINGERPRINT_LENGTH])

    def announce(self) -> None:
        """Write the mark, before the table is made; not when somebody else has made it. Raises FollowerError."""
        self._worker.own.refuse_instead(self._mark.sequence)
        if not table_exists(self._worker.ask, self._place):
            self._worker.own.intend(self._mark)

    def has_rows(self) -> bool:
        """Tell whether the table, which is there, holds any row."""
        return bool(self._worker.ask(f"SELECT 1 FROM {self._name} LIMIT 1"))

    def undo(self) -> None:
        """Drop the table if it is there, is the consumer's and holds nothing; else say that it stays."""
        worker, own = self._worker, self._worker.own
        exists, ours = table_exists(worker.ask, self._place), own.intent == self._mark
        if exists and ours and not self.has_rows():
            about = f"the empty table {self._name} of a transaction that is left out"
            worker.run(f"DROP TABLE {self._name}".encode(), "", ROWS, None, about, hidden=self._hidden)
            logger.info("dropped: %s", about)
        elif exists:
            logger.warning("the table %s stays: somebody else has made it, or put rows into it", self._name)
        if ours:
            own.withdraw()


def made_table(worker: Worker, event: Event) -> MadeTable | None:
    """Return the table that an event makes for the rows behind it; None of any other event."""
    query = event.operation
    if not isinstance(query, Query):
        return None
    try:
        # the leader wrote such a text itself, in utf8mb4 whatever its client spoke
        statement = read_statement(query.sql, query.session.get("sql_mode", 0), query.database)
    except UnsupportedError:
        return None
    if statement.empty is None:
        return None
    (place,) = statement.folded(query.session.get("lower_case_table_names", 0) != 0).targets
    return MadeTable(worker, event.sequence, place, hidden=worker.gtids.usable(event.gtid) is not None)


class LeaveOut:
    """Takes the events of the transaction that follows the follower's position, and commits the decision for them."""

    def __init__(self, decision: Decision, worker: Worker) -> None:
        self._decision = decision
        self._worker = worker
        #: sequence of its first event, None before it came, and the table that is made by that for its rows
        self._first: int | None = None
        self._made: MadeTable | None = None
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
            self._first, self._made = step.event.sequence, made_table(self._worker, step.event)
        if not step.last or self._first is None:
            return False
        first, last, decision = self._first, step.event.sequence, self._decision
        if not first <= decision.sequence <= last:
            raise FollowerError(
                f"--skip names {self._name}, and the transaction that follows the follower's position"
                f" has the sequences {first} to {last}: a decision is only about that one; nothing was changed"
            )
        if self._made is not None:
            self._worker.settle()
            self._made.undo()
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


def leave_out_at_leader(worker: Worker, step: Step, reason: str, first: int, undo: Callable[[int], None]) -> None:
    """Commit nothing for a transaction that was left out at the leader; what came of it before that is undone.

    `first` is the sequence of its first event; `undo` takes back the table that it has made.
    """
    event = step.event
    if not step.first:
        worker.abandon()
        undo(first)
    left_out = LeftOut(first, event.sequence, event.position, event.gtid, "leader", reason, None)
    worker.begin(event.gtid)
    worker.leave_out(left_out)
    worker.commit(mark_of(event, step.offset))
    logger.warning("left out by decision: %s", left_out)
