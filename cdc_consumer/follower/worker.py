"""One session on the follower: applies transactions, each with the position after it inside."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from enum import Enum

from cdc_consumer.follower.gtids import Gtids
from cdc_consumer.follower.own_tables import OwnTables, position_of
from cdc_consumer.follower.pipe import Check, Pipe
from cdc_consumer.follower.row_statements import RowStatement, RowWriter
from cdc_consumer.follower.tables import Tables
from cdc_consumer.sql.positions import Mark
from cdc_consumer.sql.session import ROWS, RowMode, Session, row_settings
from shared.errors import FollowerError
from shared.events import Rows
from shared.mysql import quote_name

logger = logging.getLogger(__name__)

_USUAL = RowMode()


class Earlier(Enum):
    """Tells whether the last session, a copy of the leader or native replication has executed a transaction.

    It is POSSIBLE at first where the follower has GTIDs. PASSING lasts from the `begin` to the `commit` of a
    transaction that was executed. From the first one that was not, it is OVER: the lock keeps other consumers away,
    and should native replication execute one all the same, the position's UPDATE matches no row.
    """

    POSSIBLE = 0
    PASSING = 1
    OVER = 2


class Worker:
    """A session for rows and statements; after an error of any method it is dropped, and what is open undone.

    Rows:        begin, write ..., commit; then the same again. `settle` may stand anywhere.
    Statement:   settle, run; then the caller writes the position. Never between begin and commit.

    Between two calls the session is as row changes need it. What else is remembered has one home each: a COMMIT that
    waits is the pipe's, the GTID in use is of `Gtids`, a position that waits is of `OwnTables`.
    """

    def __init__(self, pipe: Pipe, gtids: Gtids, own: OwnTables, session: Session, limit: int, careful: bool) -> None:
        """`limit` is how many characters a statement of many rows may grow to.

        `careful` writes one row a statement until the first commit, so that an error names the row.
        """
        self.gtids = gtids
        self.own = own
        self.tables = Tables(pipe.ask)
        self._pipe = pipe
        self._session = session
        #: what the session is set to
        self._mode = _USUAL
        self._limit = limit
        self._writer = RowWriter(0 if careful else limit)
        self._earlier = Earlier.POSSIBLE if gtids.used else Earlier.OVER

    @property
    def careful(self) -> bool:
        """Tell whether rows are written one a statement."""
        return self._writer.limit == 0

    @property
    def usable(self) -> bool:
        """Is false after an error that left the session in a state nobody knows."""
        return not self._pipe.broken

    # rows

    def begin(self, gtid: str | None) -> None:
        """Open a transaction, under its GTID where the follower has GTIDs."""
        gtid = self.gtids.usable(gtid)
        if gtid is not None and self._earlier is Earlier.POSSIBLE:
            if self.gtids.executed(gtid):
                logger.debug("%s was executed before", gtid)
                self._earlier = Earlier.PASSING
                return
            self._earlier = Earlier.OVER
        self.own.forget_due()
        self.gtids.take(gtid)
        self._pipe.put("BEGIN", Check(about="BEGIN"))

    def write(self, rows: Rows, sequence: int, offset: int) -> None:
        """Apply row images; their statements may wait for more of the same table."""
        if self._earlier is not Earlier.PASSING:
            self._put(self._writer.write(rows, self.tables.get(rows), sequence, offset))

    def commit(self, mark: Mark) -> None:
        """Send the rest of the transaction with the position after it; its COMMIT goes out in front of the next."""
        if self._earlier is Earlier.PASSING:
            self._earlier = Earlier.POSSIBLE
            self.own.pass_to(mark)
            return
        self._put(self._writer.finish())
        self._use_mode(_USUAL)
        self._pipe.put(self.own.moved(mark), Check(1, about=position_of(mark)))
        self._pipe.commit(f"COMMIT of sequence {mark.sequence}")
        if self.careful:
            self.settle()
            self._writer = RowWriter(self._limit)

    def settle(self) -> None:
        """Send everything and commit what waits for it: what was given to `commit` is durable on return."""
        self._pipe.settle()
        self.own.catch_up()

    def finish(self) -> None:
        """Commit the transactions that are whole and give up the one that is not; nothing may follow."""
        if self.usable:
            self._pipe.retract()
            self._pipe.settle()

    def _put(self, statements: Iterable[RowStatement]) -> None:
        for statement in statements:
            self._use_mode(statement.mode)
            self._pipe.put(statement.sql, Check(statement.rows, statement.zeros or None, statement.source))

    def _use_mode(self, mode: RowMode) -> None:
        # comparing two modes costs a statement less than comparing what they stand for
        if mode != self._mode:
            self._mode = mode
            self._set(row_settings(mode))

    # statements

    def ask(self, sql: str | bytes) -> list[tuple[object, ...]]:
        """Return the rows of a query, after everything before it."""
        return list(self._pipe.ask(sql))

    def run(
        self,
        sql: bytes,
        database: str,
        settings: Mapping[str, str],
        gtid: str | None,
        about: str,
        *,
        hidden: bool = False,
    ) -> None:
        """Run a statement that commits by itself, in its original bytes and session, under its GTID unless it is None.

        `database` is its default database, "" for any. `hidden` keeps a part of a transaction that has a GTID out of
        the binlog. The server refusing it leaves the worker usable.
        """
        if database:
            self._pipe.put(f"USE {quote_name(database)}", Check(about=f"USE {database}"))
            self._session.used_database()
        if hidden:
            with self.gtids.hidden():
                self._run(sql, settings, about)
            return
        self.gtids.take(gtid)
        self._run(sql, settings, about)
        if gtid is not None:
            # the server may find that there is nothing to log; the GTID is then still ours to commit
            self._pipe.put("COMMIT", Check(about="COMMIT"))
        self._pipe.settle()

    def _run(self, sql: bytes, settings: Mapping[str, str], about: str) -> None:
        self._set(settings)
        try:
            self._pipe.run(sql, about)
        except FollowerError:
            if self.usable:
                self._set(ROWS)
            raise
        self._set(ROWS)

    def _set(self, settings: Mapping[str, str]) -> None:
        for change in self._session.change(settings):
            self._pipe.put(change, Check(about=change))
