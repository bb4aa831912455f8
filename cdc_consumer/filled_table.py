"""Makes a table and fills it with rows in one transaction, as the leader's CREATE TABLE ... SELECT did.

From CREATE TABLE ... START TRANSACTION to its COMMIT MySQL takes nothing but binlog events. So the position moves by
one too, nothing can be asked, and what rows must look like has to be known before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cdc_consumer.binlog.changes import Changes
from cdc_consumer.binlog.columns import layout_of
from cdc_consumer.binlog.layout import RowLayout
from cdc_consumer.decision import WAY_PAST
from cdc_consumer.follower.changes_writer import ChangesWriter
from cdc_consumer.follower.own_tables import OwnTables
from cdc_consumer.follower.pipe import Pipe, ResultCheck, TablePlace
from cdc_consumer.follower.variables import SessionVariables
from cdc_consumer.sql import literals
from cdc_consumer.sql.positions import Mark
from cdc_consumer.sql.session import ROWS
from shared.errors import DivergedError, FollowerError, RowUnnamedError
from shared.events import Rows
from shared.mysql import quote_name

if TYPE_CHECKING:
    from cdc_consumer.follower.worker import Worker

logger = logging.getLogger(__name__)

#: a table of the system's own database that is looked at in the place of one that is yet to be made
TWIN = "twin"
#: seconds to wait for another consumer that looks at its own
TWIN_SECONDS = 30


class FilledTable:
    """Takes one transaction in the place of the worker whose session it uses: begin, write_changes ..., commit."""

    def __init__(
        self, pipe: Pipe, own: OwnTables, variables: SessionVariables, writer: ChangesWriter, place: TablePlace,
        layout: RowLayout | None,
    ) -> None:  # fmt: skip
        """Nothing is under way on the session; `place` names the table, `layout` is None when no rows will come."""
        self._pipe = pipe
        self._own = own
        self._variables = variables
        self._writer = writer
        self._place = place
        self._layout = layout
        self._rows = 0

    def begin(self, sql: bytes, database: str, settings: Mapping[str, str], gtid: str | None, about: str) -> None:
        """Run CREATE TABLE ... START TRANSACTION, as `Worker.run` runs a statement."""
        self._own.forget_due()
        self._writer.expect(self._place, self._layout)
        self._variables.open(sql, database, settings, gtid, about)

    def write(self, rows: Rows, sequence: int, offset: int) -> None:
        """Refuse rows that do not go by binlog events: the transaction begins anew, and takes another way."""
        raise RowUnnamedError(
            f"sequence {sequence} (topic offset {offset}): rows of the table that CREATE TABLE ... SELECT makes,"
            f" {rows.database}.{rows.table}, go by SQL",
            sequence,
            frozenset({self._place, (rows.database, rows.table)}),
        )

    def write_changes(self, changes: Changes, count: int, sequence: int) -> bool:
        """Put rows into the table; return False when they are not known to be as it stores them."""
        writer = self._writer
        if not writer.takes(changes):
            return False
        if writer.full or not writer.statement.takes(changes):
            self._put(sequence)
        writer.add(changes, count)
        self._rows += {"Add": count, "Update": 0, "Delete": -count}[changes.kind]
        return True

    def commit(self, mark: Mark) -> None:
        """Commit table, rows and position; see that all rows are there."""
        writer = self._writer
        now, checks = time.time_ns() // 1000, writer.statement.foreign_key_checks
        writer.add(writer.position.moved(self._own.link, mark, now, foreign_key_checks=checks), 1)
        self._own.moves(mark)
        self._put(mark.sequence)
        self._end("COMMIT")
        database, table = self._place
        ((found,),) = self._pipe.ask(f"SELECT COUNT(*) FROM {quote_name(database)}.{quote_name(table)}")
        if found != self._rows:
            raise DivergedError(
                f"sequence {mark.sequence}: CREATE TABLE ... SELECT gave {database}.{table} {self._rows} rows on the"
                f" leader and {found} on the follower, where the transaction is committed; drop the table and create it"
                f" again there as it is on the leader, {WAY_PAST}"
            )

    def undo(self) -> None:
        """Take everything back; the table is gone."""
        self._writer.abandon()
        self._end("ROLLBACK")

    def _put(self, sequence: int) -> None:
        self._pipe.put(*self._writer.finish(sequence))

    def _end(self, sql: str) -> None:
        self._pipe.put(sql, ResultCheck(about=sql))
        self._variables.close()
        self._writer.expect(None)
        self._pipe.settle()


class Twin:
    """Makes a table like one that is yet to be made, and asks how its rows look; no binlog tells of it."""

    def __init__(self, worker: Worker, system_database: str) -> None:
        self._worker = worker
        self._database = system_database
        #: of the table, for the statement that makes it
        self.name = f"{quote_name(system_database)}.{quote_name(TWIN)}".encode()

    def layout(
        self, sql: bytes, database: str, default: str, settings: Mapping[str, str], about: str
    ) -> RowLayout | None:
        """Return how its rows look, None when that cannot be told. Raises FollowerError.

        `sql` makes it, where its like is made in `database`; the others are those of `Worker.run`.
        """
        worker = self._worker
        lock = literals.text(f"{self._database}.{TWIN}")
        if worker.ask(f"SELECT GET_LOCK({lock}, {TWIN_SECONDS})") != [(1,)]:
            return None
        try:
            with self._defaults_of(database):
                self._run(b"DROP TABLE IF EXISTS " + self.name)
                worker.run(sql, default, settings, None, about, hidden=True)
                layout = layout_of(worker.ask, self._database, TWIN)
                self._run(b"DROP TABLE IF EXISTS " + self.name)
                return layout
        except FollowerError as error:
            if not worker.usable:
                raise
            logger.info("the rows that follow go by SQL: %s", error)
            return None
        finally:
            if worker.usable:
                worker.ask(f"SELECT RELEASE_LOCK({lock})")

    @contextmanager
    def _defaults_of(self, database: str) -> Iterator[None]:
        """Let what is made in the system database have another one's character set, where it names none itself."""
        collation = "SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {}"
        own, other = (self._worker.ask(collation.format(literals.text(name))) for name in (self._database, database))
        if own == other or not other:
            yield
            return
        self._collate(other)
        try:
            yield
        finally:
            if self._worker.usable:
                self._collate(own)

    def _collate(self, found: list[tuple[object, ...]]) -> None:
        ((collation,),) = found
        self._run(f"ALTER DATABASE {quote_name(self._database)} COLLATE {collation}".encode())

    def _run(self, sql: bytes) -> None:
        self._worker.run(sql, "", ROWS, None, "a table that is only looked at", hidden=True)
