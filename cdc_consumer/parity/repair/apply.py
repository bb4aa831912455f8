"""Makes a plan's changes on the follower, each transaction rehearsed first, beside the consumer.

A transaction is made, proven by the hashes of its rows, rolled back, and only then made and proven again for good. Rows
that would not become the leader's are taken out of it and named.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, NamedTuple

from cdc_consumer.parity.canonical import literal
from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.repair.plan import Chunk, Plan, Unit
from cdc_consumer.parity.repair.proof import Proof
from cdc_consumer.parity.repair.statements import (
    RELAXED,
    STRICT,
    Change,
    Guarded,
    session,
    statements,
    where_any_hash,
    where_any_key,
)
from cdc_consumer.parity.repair.target import Target
from cdc_consumer.sql.literals import encode
from cdc_consumer.sql.server_errors import BUSY, READ_ONLY, translate
from shared.mysql import Connection, MySQLError, error_number, error_text, is_link_error, rows

#: seconds a statement waits for a lock, while the consumer may wait for those its transaction holds
LOCK_SECONDS = 1
#: how often a transaction that meets a lock is tried, and seconds before the second try, doubled each time
TRIES = 6
FIRST_PAUSE = 0.05
#: rows that were not repaired and that a result names
NAMED = 100

#: the row changed between the audit and the repair; the follower cannot take the row as the leader has it
Fate = Literal["repaired", "moved", "failed"]


class RowFate(NamedTuple):
    """Tells what became of one difference."""

    table: TableName
    #: column -> literal; the whole row in a table without a key
    key: Mapping[str, str]
    fate: Fate
    reason: str = ""


@dataclass(slots=True)
class RepairResult:
    """Counts what became of all differences."""

    repaired: int = 0
    moved: int = 0
    failed: int = 0
    #: the first ones that were not repaired
    left: list[RowFate] = field(default_factory=list)
    #: differences that were not tried: table and why -> how many
    refused: Mapping[tuple[TableName, str], int] = field(default_factory=dict)

    def count(self, outcome: RowFate) -> None:
        setattr(self, outcome.fate, getattr(self, outcome.fate) + 1)
        if outcome.fate != "repaired" and len(self.left) < NAMED:
            self.left.append(outcome)


def repair(
    connection: Connection,
    plan: Plan,
    *,
    hides_own_writes: bool,
    tell: Callable[[RowFate], None] = lambda outcome: None,
    between: Callable[[], None] = lambda: None,
    proof: Proof | None = None,
) -> RepairResult:
    """Make the plan's changes; the rows that `tell` gets are those to audit again.

    `connection` leads to the follower and serves nothing else. `between` is called before each transaction: it may
    wait, or raise to stop. `proof` tells which rows the consumer has written since they were proven: they are left
    alone, whatever they are. What was repaired stays so, and the plan can be applied again. Raises FollowerError.
    """
    result = RepairResult(refused=plan.refused)

    def note(outcome: RowFate) -> None:
        result.count(outcome)
        tell(outcome)

    try:
        work = _Repair(connection, hides_own_writes, note, proof)
        for chunk in plan.chunks():
            between()
            work.make(chunk)
    except (MySQLError, OSError) as error:
        raise translate(error, "repairing the follower") from error
    return result


class _End(NamedTuple):
    """What becomes of a change."""

    change: Change
    fate: Fate
    reason: str
    #: another change of its unit may be the one that cannot be made
    shared: bool = False


class _BusyError(Exception):
    pass


class _Repair:
    def __init__(
        self, connection: Connection, hides_own_writes: bool, note: Callable[[RowFate], None], proof: Proof | None
    ) -> None:
        self._connection = connection
        self._proof = proof
        self._note = note
        for sql in session(hides_own_writes, LOCK_SECONDS):
            self._run(sql)
        ((self._max_packet,),) = rows(connection, "SELECT @@SESSION.max_allowed_packet")

    def make(self, chunk: Chunk) -> None:
        """Rehearse until every row of what is left becomes the leader's, then do it."""
        target, units = chunk.target, list(chunk.units)
        for commit in (False, True):
            while units:
                left = self._patiently(target, units, commit)
                if not left:
                    break
                units = self._without(target, units, left)
        for change in chain.from_iterable(units):
            self._tell(target, _End(change, "repaired", ""))

    def _tell(self, target: Target, one: _End) -> None:
        self._note(RowFate(one.change.table, one.change.key(target.shape.key), one.fate, one.reason))

    def _without(self, target: Target, units: Sequence[Unit], left: Sequence[_End]) -> list[Unit]:
        """The units that are left to try; what is taken out is told."""
        why = {id(one.change): one for one in left}
        kept: list[Unit] = []
        for unit in units:
            found = [why[id(change)] for change in unit if id(change) in why]
            if not found:
                kept.append(unit)
            elif target.shape.key or len(unit) == 1:
                for change in unit:
                    self._tell(target, why.get(id(change), found[0])._replace(change=change))
            elif found[0].shared:
                kept += [unit[: len(unit) // 2], unit[len(unit) // 2 :]]
            else:
                for one in found:
                    self._tell(target, one)
                rest = tuple(change for change in unit if id(change) not in why)
                kept += [rest] if rest else []
        return kept

    def _patiently(self, target: Target, units: Sequence[Unit], commit: bool) -> list[_End]:
        """Try; when others hold locks, again. An attempt that met one has changed nothing."""
        for number in range(TRIES):
            try:
                return self._attempt(target, units, commit)
            except _BusyError:
                time.sleep(FIRST_PAUSE * 2**number)
        reason = "other transactions keep it locked"
        return [_End(change, "failed", reason) for unit in units for change in unit]

    def _attempt(self, target: Target, units: Sequence[Unit], commit: bool) -> list[_End]:
        """Make the changes in one transaction, which is committed if told so and all of them are proven."""
        changes = list(chain.from_iterable(units))
        left: list[_End] = []
        done = False
        self._run("START TRANSACTION")
        try:
            left = self._moved(target, changes)
            if not left:
                left = [one for unit in units for one in self._change(target, unit)]
            if not left:
                left = self._unproven(target, changes)
            if commit and not left:
                left = self._written(target, changes)
            done = commit and not left
        finally:
            self._run("COMMIT" if done else "ROLLBACK")
        return left

    def _moved(self, target: Target, changes: Sequence[Change]) -> list[_End]:
        found = self._hashes(target, changes)
        reason = "it has changed since the audit"
        return [_End(change, "moved", reason) for change in changes if not _is(change.reversed, found)]

    def _written(self, target: Target, changes: Sequence[Change]) -> list[_End]:
        """The changes of rows that were written since they were proven.

        Asked last, when nobody can write them before the end of this transaction.
        """
        if self._proof is None:
            return []
        self._proof.look(self._ask)
        doubts = ((change, self._proof.doubt(change, target.shape)) for change in changes)
        return [_End(change, "moved", doubt) for change, doubt in doubts if doubt]

    def _change(self, target: Target, unit: Unit) -> list[_End]:
        for statement in statements(target, unit):
            size = len(encode(statement.sql))
            if size >= self._max_packet:
                reason = f"it needs a packet of {size} bytes and the follower takes {self._max_packet}"
                return [_End(change, "failed", reason, shared=True) for change in unit]
            try:
                matched = self._write(statement)
            except MySQLError as error:
                if is_link_error(error) or error_number(error) in READ_ONLY:
                    raise
                return [_End(change, "failed", error_text(error), shared=True) for change in unit]
            if statement.rows is not None and matched != statement.rows:
                return [_End(change, "moved", "it changed during the repair", shared=True) for change in unit]
        return []

    def _unproven(self, target: Target, changes: Sequence[Change]) -> list[_End]:
        found = self._hashes(target, changes)
        wrong = [change for change in changes if not _is(change, found)]
        return [_End(change, "failed", self._why(target, change)) for change in wrong]

    def _hashes(self, target: Target, changes: Sequence[Change]) -> Counter[str]:
        """How often each row is there, of all rows that have a key of these changes or, without a key, their hashes."""
        images = [image for change in changes for image in change.images]
        if target.shape.key:
            where = where_any_key(target, images)
        else:
            where = where_any_hash(target, (image.hash for image in images))
        found = self._ask(f"SELECT {target.hash} AS h, COUNT(*) FROM {target.sql} WHERE {where} GROUP BY h")
        return Counter({digest: int(number) for digest, number in found})

    def _why(self, target: Target, change: Change) -> str:
        """Why the row, as it was just written, is not the leader's."""
        if change.after is None or not target.shape.key:
            return "the follower does not store it as the leader does"
        columns = target.shape.columns
        values = ", ".join(map(literal, columns))
        found = self._ask(f"SELECT {values} FROM {target.sql} WHERE {where_any_key(target, [change.after])}")
        wanted = change.after.row
        differing = [
            column.name
            for row in found
            for column, value in zip(columns, row, strict=True)
            if value != wanted[column.name]
        ]
        if differing:
            return f"the follower does not store {', '.join(differing)} as the leader does"
        return f"the text of {', '.join(target.documents) or 'its values'} does not tell the types of the numbers in it"

    def _write(self, statement: Guarded) -> int:
        """Rows matched. Raises _BusyError, MySQLError."""
        if statement.relaxed:
            self._run(RELAXED)
        try:
            return self._run(statement.sql)
        finally:
            if statement.relaxed:
                self._run(STRICT)

    def _run(self, sql: str) -> int:
        with _busy(), self._connection.cursor() as cursor:
            return int(cursor.execute(encode(sql)))

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        with _busy():
            return rows(self._connection, encode(sql))


@contextmanager
def _busy() -> Iterator[None]:
    try:
        yield
    except MySQLError as error:
        if error_number(error) in BUSY:
            raise _BusyError from error
        raise


def _is(change: Change, found: Counter[str]) -> bool:
    """The row is what it is to become."""
    if change.after is not None:
        return found[change.after.hash] == change.after.copies
    return all(not found[image.hash] for image in change.images)
