"""One session on the follower: applies transactions, each with the position after it inside."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping

from cdc_consumer.binlog.changes import Changes
from cdc_consumer.binlog.layout import RowLayout
from cdc_consumer.filled_table import FilledTable
from cdc_consumer.follower.changes_writer import ChangesWriter, passed_over
from cdc_consumer.follower.gtids import ExecutedBefore, Gtids
from cdc_consumer.follower.own_tables import OwnTables, position_of
from cdc_consumer.follower.pipe import ChangeGroup, Pipe, ResultCheck, TablePlace
from cdc_consumer.follower.row_statements import RowStatement, RowWriter
from cdc_consumer.follower.tables import FollowerTables
from cdc_consumer.follower.variables import USUAL, SessionVariables
from cdc_consumer.sql.positions import LeftOut, Mark
from shared.errors import RowUnnamedError
from shared.events import Rows

logger = logging.getLogger(__name__)

#: transactions at most that are committed as one where there are no GTIDs
MERGED = 100


class Worker:
    """A session for rows and statements; after an error of any method it is dropped, and what is open undone.

    Rows:        begin, write or write_changes ..., commit; then the same again. `settle` may stand anywhere.
    Statement:   settle, run; then the caller writes the position. Never between begin and commit.

    Between two calls the session is as row changes need it. What else is remembered has one home each: a COMMIT that
    waits is the pipe's, the GTID in use is of `Gtids`, a position that waits is of `OwnTables`.

    A transaction whose rows all went by `write_changes` and that is small is one statement with its position inside,
    and needs no BEGIN. Without GTIDs several of them that wait in the topic are one statement together.
    """

    def __init__(
        self, pipe: Pipe, gtids: Gtids, own: OwnTables, tables: FollowerTables, variables: SessionVariables,
        limit: int, careful: int | None, changes: ChangesWriter | None,
    ) -> None:  # fmt: skip
        """`limit` is how many characters a statement of many rows may grow to.

        Up to the transaction that holds the sequence `careful` one row is written a statement, so that an error names
        the row; None for none. Without `changes` all rows go by SQL.
        """
        self.gtids = gtids
        self.own = own
        self.tables = tables
        self._pipe = pipe
        self._variables = variables
        self._limit = limit
        self._careful = careful
        self._writer = RowWriter(limit if careful is None else 0)
        self._changes = changes
        #: GTID of the transaction under way, and whether it has a BEGIN, and so is open on the session
        self._gtid: str | None = None
        self.begun = False
        #: the end of the last of the transactions that are whole in the statement under way and wait for more of their
        #: kind, None for none; how many they are, and how much of the statement is theirs
        self._whole: Mark | None = None
        self._merged = self._edge = 0
        self._earlier = ExecutedBefore.POSSIBLE if gtids.used else ExecutedBefore.OVER
        #: the transaction before was passed over, and the log has said so of one of them
        self._passed = False

    @property
    def careful(self) -> bool:
        """Tell whether rows are written one a statement."""
        return self._careful is not None

    @property
    def takes_changes(self) -> bool:
        """Tell whether `write_changes` may be called now."""
        return self._changes is not None and not self.careful

    @property
    def changes(self) -> ChangesWriter | None:
        """Return what takes whole transactions that others may apply; None while this worker must look at each."""
        return self._changes if self.takes_changes and self._earlier is ExecutedBefore.OVER else None

    @property
    def usable(self) -> bool:
        """Is false after an error that left the session in a state nobody knows."""
        return not self._pipe.broken

    # rows

    def begin(self, gtid: str | None, *, executed: bool = False) -> None:
        """Open a transaction, under its GTID where the follower has GTIDs; `executed` when it may be executed there."""
        gtid = self.gtids.usable(gtid)
        # what is looked at closely may be missing because somebody else has executed it
        if gtid is not None and (executed or self.careful or self._earlier is ExecutedBefore.POSSIBLE):
            if self.gtids.executed(gtid):
                logger.log(logging.DEBUG if self._passed else logging.INFO, "%s was executed before: passed over", gtid)
                self._earlier, self._passed = ExecutedBefore.PASSING, True
                return
            self._earlier, self._passed = ExecutedBefore.OVER, False
        self._gtid, self.begun = gtid, False

    def write(self, rows: Rows, sequence: int, offset: int) -> None:
        """Apply row images; their statements may wait for more of the same table."""
        if self._earlier is ExecutedBefore.PASSING:
            return
        self._put_changes(sequence)
        self._begin()
        self._look_closer(end=True)
        if not self.tables.knows(rows.database, rows.table):
            # what is under way is judged first: its errors are not about this table
            self._pipe.settle()
        table = self.tables.get(rows, f"sequence {sequence} (topic offset {offset}): ")
        self._put(self._writer.write(rows, table, sequence, offset))

    def write_changes(self, changes: Changes, count: int, sequence: int) -> bool:
        """Apply the leader's own binlog events, or return False where only `write` is known to do that exactly.

        `count` is the number of rows that they change.
        """
        writer = self._changes
        if writer is None or not writer.takes(changes):
            return False
        if self._earlier is ExecutedBefore.PASSING:
            return True
        self._put(self._writer.finish())
        if not writer.statement.takes(changes):
            self._send_whole()
        if not writer.statement.takes(changes):
            self._put_changes(sequence)
        writer.add(changes, count)
        if writer.full:
            self._send_whole()
        if writer.full:
            self._put_changes(sequence)
        return True

    def commit(self, mark: Mark) -> None:
        """Send the rest of the transaction with the position after it; its COMMIT goes out in front of the next."""
        if self._earlier is ExecutedBefore.PASSING:
            self._earlier = ExecutedBefore.POSSIBLE
            self.own.pass_to(mark)
        elif self.begun or self._changes is None or self.careful:
            self._commit_begun(mark)
        else:
            self._commit_changes(self._changes, mark)
        if self._careful is not None and mark.sequence >= self._careful:
            self.settle()
            self._careful, self._writer = None, RowWriter(self._limit)

    def _begin(self) -> None:
        """Open the transaction for more than one statement."""
        if not self.begun:
            self._send_whole()
            self.begun = True
            self.own.forget_due()
            self.gtids.take(self._gtid)
            self._pipe.put("BEGIN", ResultCheck(about="BEGIN"), counted=True)

    def _commit_begun(self, mark: Mark) -> None:
        self._begin()
        self._put_changes(mark.sequence)
        self._put(self._writer.finish())
        self._variables.use_mode(USUAL)
        self._look_closer(end=True)
        self._pipe.put(self.own.moved(mark), ResultCheck(1, about=position_of(mark)))
        self._pipe.commit(f"COMMIT of sequence {mark.sequence}")
        self.begun = False

    def put(self, sql: str, about: str) -> None:
        """Let a statement of the operator change rows inside of the open transaction."""
        if self._earlier is not ExecutedBefore.PASSING:
            self._begin()
            self._look_closer(end=True)
            self._pipe.put(sql, ResultCheck(about=about))

    def leave_out(self, left_out: LeftOut) -> None:
        """Write down inside of the open transaction that it stands for one that was left out."""
        if self._earlier is not ExecutedBefore.PASSING:
            self._begin()
            self._look_closer(end=True)
            self._pipe.put(self.own.leaves_out(left_out), ResultCheck(1, about=f"the decision on {left_out}"))

    def abandon(self) -> None:
        """Undo the open transaction; it may begin anew."""
        if self._earlier is ExecutedBefore.PASSING:
            self._earlier = ExecutedBefore.POSSIBLE
            return
        self._writer = RowWriter(self._writer.limit)
        self._send_whole()
        if self._changes is not None:
            self._changes.abandon()
        if self.begun:
            self._look_closer(end=True)
            self._pipe.put("ROLLBACK", ResultCheck(about="ROLLBACK"))

    def pass_to(self, mark: Mark) -> None:
        """Move the position without rows, soon, and outside of any transaction."""
        self._send_whole()
        self.own.pass_to(mark)

    def _commit_changes(self, writer: ChangesWriter, mark: Mark) -> None:
        """Let the transaction wait for more of its kind where the leader's own GTIDs are of no use, else send it."""
        self._whole, self._edge = mark, writer.added
        self._merged += 1
        if self.gtids.used or self._merged >= MERGED or writer.full:
            self._send_whole()

    def _send_whole(self) -> None:
        """Send the transactions that wait as one statement, and keep what was added after them.

        It finds the position only where the one before it has left it.
        """
        mark, writer = self._whole, self._changes
        if mark is None or writer is None:
            return
        rest = writer.cut(self._edge) if writer.added > self._edge else []
        checks = writer.statement.foreign_key_checks
        now = time.time_ns() // 1000
        moved = writer.position.moved(self.own.link, mark, now, foreign_key_checks=checks)
        self.own.moves(mark)
        writer.add(moved, 1)
        writer.applied.begin()
        self._pipe.chain([*self.gtids.taking(self._gtid), writer.finish(mark.sequence)])
        self._whole, self._merged = None, 0
        for changes, count in rest:
            writer.add(changes, count)
        self._look_closer()

    def _put_changes(self, sequence: int) -> None:
        """Queue the changes that were collected, inside of a transaction; `sequence` is the last of them."""
        writer = self._changes
        self._send_whole()
        if writer is not None and writer.statement:
            self._begin()
            writer.applied.begin()
            self._pipe.put(*writer.finish(sequence), counted=True)

    def _look_closer(self, *, end: bool = False) -> None:
        """See that all changes were applied, before SQL changes what the session has counted, or once a second."""
        if self._changes is None or self._changes.applied.check(end=end):
            return
        group = ChangeGroup(self.own.sequence)
        if self.begun or not self.own.stands():
            raise RowUnnamedError(f"the follower passed over {group}", group.sequence, group.tables)
        raise passed_over(self.own.sequence)

    def settle(self, *, last: bool = False) -> None:
        """Send everything and commit what waits for it: what was given to `commit` is durable on return.

        The `last` time see in any case that all was applied.
        """
        self._send_whole()
        self._pipe.settle()
        self._look_closer(end=last)
        self.own.catch_up()

    def finish(self) -> None:
        """Commit the transactions that are whole and give up the one that is not; nothing may follow."""
        if self.usable:
            self._send_whole()
            self._pipe.retract()
            self._pipe.settle()
            self.own.catch_up()

    def _put(self, statements: Iterable[RowStatement]) -> None:
        for statement in statements:
            self._variables.use_mode(statement.mode)
            self._pipe.put(statement.sql, ResultCheck(statement.rows, statement.warnings or None, statement.source))

    # statements

    def filled_table(self, place: TablePlace, layout: RowLayout | None) -> FilledTable:
        """Return what makes a table and fills it, in one transaction; all is settled, and the worker takes changes."""
        assert self._changes is not None
        self._earlier = ExecutedBefore.OVER
        return FilledTable(self._pipe, self.own, self._variables, self._changes, place, layout)

    def forget_tables(self) -> None:
        """Note that a statement may have changed any table."""
        self.tables.forget()
        if self._changes is not None:
            self._changes.forget()

    def ask(self, sql: str | bytes, *, counted: bool = False) -> list[tuple[object, ...]]:
        """Return the rows of a query, after everything before it; `counted` is the pipe's."""
        return list(self._pipe.ask(sql, counted=counted))

    def run(
        self, sql: bytes, database: str, settings: Mapping[str, str], gtid: str | None, about: str, *,
        hidden: bool = False,
    ) -> None:  # fmt: skip
        """Run a statement that commits by itself, in its original bytes and session, under its GTID unless it is None.

        `database` is its default database, "" for any. `hidden` keeps a part of a transaction that has a GTID out of
        the binlog. The server refusing it leaves the worker usable.
        """
        self._variables.run(sql, database, settings, gtid, about, hidden=hidden)
