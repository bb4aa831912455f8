"""Runs a statement that is not a row change on the follower."""

from __future__ import annotations

import logging
from typing import NamedTuple

from cdc_consumer.binlog.layout import RowLayout
from cdc_consumer.decision import FOREIGN, WAY_PAST
from cdc_consumer.filled_table import FilledTable, Twin
from cdc_consumer.follower.fingerprint import fingerprint
from cdc_consumer.follower.preflight import Facts, events_would_run
from cdc_consumer.follower.tables import table_exists
from cdc_consumer.follower.worker import Worker
from cdc_consumer.leave_out import MadeTable
from cdc_consumer.read_query import QueryReading, read_query
from cdc_consumer.sql import literals
from cdc_consumer.sql.positions import Intent, mark_of
from cdc_consumer.sql.session import UTF8MB4
from cdc_consumer.transactions import Step
from shared.errors import DivergedError, EventError, FollowerError
from shared.events import Query
from shared.filters import DatabaseFilter
from shared.statements.create_table import renamed_table
from shared.statements.heads import shown_sql

logger = logging.getLogger(__name__)


class Begun(NamedTuple):
    """Tells of a transaction that has made a table, whose rows follow."""

    #: of its first event
    sequence: int
    #: what takes the rows, or the table that was made before them
    made: FilledTable | MadeTable


class QueryReplay:
    """Runs Queries on one session of the follower."""

    def __init__(self, worker: Worker, facts: Facts, databases: DatabaseFilter, system_database: str) -> None:
        self._worker = worker
        self._own = worker.own
        self._facts = facts
        self._databases = databases
        self._system_database = system_database
        #: the last transaction that has made a table for its rows
        self._begun: Begun | None = None

    def undo(self, first: int) -> None:
        """Take back the table that the transaction whose first event is this sequence has made, if it has."""
        begun, self._begun = self._begun, None
        if begun is None or begun.sequence != first:
            return
        begun.made.undo()
        self._worker.forget_tables()

    def apply(self, step: Step, query: Query, raw: bool) -> FilledTable | None:
        """Run the statement, or pass over it, and move the position; or return what takes the rows that follow it.

        `raw` says that the event carries the leader's binlog event, as those of its rows then do. Raises FollowerError,
        EventError.
        """
        filled = None
        reading = read_query(query, step.event.sequence, self._facts)
        if not step.first:
            raise EventError(
                f"{reading.about} stands inside a transaction, where no statement of its kind can; no producer writes"
                f" that: {FOREIGN}"
            )
        self._refuse_other_case(query)
        if not self._takes_part(reading) or not self._wanted(reading):
            self._pass_over(step)
        elif reading.statement.empty is not None:
            filled = self._create_with_rows(step, reading, reading.statement.empty, raw)
        elif not step.last:
            raise EventError(
                f"{reading.about} does not end its transaction, as every statement but CREATE TABLE ... SELECT does;"
                f" no producer writes that: {FOREIGN}"
            )
        else:
            self._run(step, reading)
        if filled is None:
            self._worker.forget_tables()
        return filled

    def _takes_part(self, reading: QueryReading) -> bool:
        inside, outside = self._databases.split(reading.statement.databases)
        if inside and outside:
            raise FollowerError(
                f"{reading.about} writes databases of which some take part in replication ({', '.join(inside)}) and"
                f" some do not ({', '.join(outside)}); change the filters to include all or none"
            )
        if not inside or not self._takes_tables(reading):
            return False
        self._refuse_references(reading)
        return True

    def _takes_tables(self, reading: QueryReading) -> bool:
        """Tell whether the tables that a statement writes take part; true of one that writes none."""
        takes, refusal = self._databases.takes_statement(reading.statement)
        if refusal:
            raise FollowerError(
                f"{reading.about} {refusal}; change the filters, {WAY_PAST} (with --instead FILE for a part of it)"
            )
        return takes

    def _refuse_references(self, reading: QueryReading) -> None:
        """Refuse a foreign key to a table outside the filter, a union with it, or its likeness: it is not ours."""
        ((own, _), *_) = reading.statement.targets
        named = [(database or own, table) for database, table in reading.references]
        _, outside = self._databases.split_tables(
            (database.lower(), table.lower()) if self._facts.folds else (database, table) for database, table in named
        )
        if outside:
            raise FollowerError(
                f"{reading.about} names {', '.join(outside)} in a foreign key, in LIKE or in UNION, which takes no"
                f" part in replication; change the filters to include it, {WAY_PAST} (--instead FILE may make the table"
                " without that clause)"
            )

    def _wanted(self, reading: QueryReading) -> bool:
        statement, about = reading.statement, reading.about
        if statement.kind == "TRIGGER":
            logger.warning("not run on the follower: %s; the leader's rows already contain what its triggers do", about)
            return False
        if statement.kind == "EVENT" and statement.verb in ("CREATE", "ALTER"):
            ((scheduler,),) = self._worker.ask("SELECT @@GLOBAL.event_scheduler")
            if scheduler == "ON":
                raise events_would_run(about)
        return True

    def _refuse_other_case(self, query: Query) -> None:
        leader = query.session.get("lower_case_table_names", 0)
        follower = self._facts.lower_case_table_names
        if leader != follower:
            raise FollowerError(
                f"lower_case_table_names is {follower} on the follower and {leader} on the leader: names would mean"
                " other tables; a follower must be initialised with the leader's setting"
            )

    def _pass_over(self, step: Step) -> None:
        """The transaction is empty here; under its GTID all the same, so that the follower's set has no hole."""
        self._worker.begin(step.event.gtid)
        if step.last:
            self._worker.commit(mark_of(step.event, step.offset))

    def _run(self, step: Step, reading: QueryReading) -> None:
        worker = self._worker
        worker.settle()
        gtid = worker.gtids.usable(step.event.gtid)
        # the last session may have ended between the statement and the position; MySQL remembers the GTID
        ran = self._ran_before(step, reading) if gtid is None else worker.gtids.executed(gtid)
        if not ran:
            try:
                worker.run(reading.sql, self._default_database(reading), reading.settings, gtid, reading.about)
            except FollowerError:
                if gtid is None and worker.usable:
                    self._own.withdraw()
                raise
        self._own.advance(mark_of(step.event, step.offset))

    def _ran_before(self, step: Step, reading: QueryReading) -> bool:
        """True when the last session ran this statement and ended before it wrote the position."""
        sequence, intent = step.event.sequence, self._own.intent
        now = fingerprint(self._worker.ask, reading.statement, reading.sql)
        self._own.refuse_instead(sequence)
        if intent is not None and intent.sequence == sequence:
            return intent.fingerprint != now
        self._own.intend(Intent(sequence, now))
        return False

    def _default_database(self, reading: QueryReading) -> str:
        """The statement's default database, or, where that cannot be, one in which its names mean nothing.

        What the statement writes takes part, so only tables it reads can be meant by a name without a database; where
        their database is not on the follower or takes no part, they are not either, and the statement fails with their
        name. It must not find our own tables instead. It is "" for any where the statement has no such names.
        """
        database, statement = reading.query.database, reading.statement
        if not database or (statement.kind == "DATABASE" and statement.verb != "ALTER"):
            return ""
        if database in self._databases and (database in statement.databases or self._exists(database)):
            return database
        words = reading.query.sql.lower()
        if b"position" in words or b"intent" in words:
            raise FollowerError(
                f"{shown_sql(reading.query.sql)} ran in database {database}, which is not on the follower or does not"
                " take part in replication, and may name a table of it; include that database in the filters,"
                f" {WAY_PAST} and run it with whole names by --instead"
            )
        return self._system_database

    def _exists(self, database: str) -> bool:
        name = literals.text(database)
        return bool(self._worker.ask(f"SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = {name}"))

    def _create_with_rows(self, step: Step, reading: QueryReading, empty: bytes, raw: bool) -> FilledTable | None:
        """CREATE TABLE ... SELECT: under a GTID as the one transaction it is, where its rows go by binlog events."""
        worker = self._worker
        known = worker.gtids.usable(step.event.gtid)
        worker.settle()
        # the leader wrote this text itself, in utf8mb4 whatever its client spoke
        reading = reading._replace(settings={**reading.settings, "character_set_client": UTF8MB4})
        ran = known is not None and worker.gtids.executed(known)
        filled = None if known is None or ran else self._filled_table(step, reading, empty, raw)
        if filled is not None:
            filled.begin(reading.sql, self._default_database(reading), reading.settings, known, reading.about)
            if step.last:
                filled.commit(mark_of(step.event, step.offset))
                return None
            self._begun = Begun(step.event.sequence, filled)
            return filled
        if not ran:
            self._create_alone(step, reading, empty, hidden=known is not None)
        worker.begin(step.event.gtid, executed=ran)
        if step.last:
            worker.commit(mark_of(step.event, step.offset))
        return None

    def _filled_table(self, step: Step, reading: QueryReading, empty: bytes, raw: bool) -> FilledTable | None:
        """The table as it may be filled; None where it is there already, or its rows may go by SQL."""
        (place,) = reading.statement.targets
        if not self._worker.takes_changes or table_exists(self._worker.ask, place):
            return None
        if step.last:
            return self._worker.filled_table(place, None)
        layout = self._layout(reading, empty, place[0]) if raw else None
        return None if layout is None else self._worker.filled_table(place, layout)

    def _layout(self, reading: QueryReading, empty: bytes, database: str) -> RowLayout | None:
        """How the rows of this table look, which is yet to be made in `database`."""
        twin = Twin(self._worker, self._system_database)
        sql = renamed_table(empty, reading.query.session.get("sql_mode", 0), twin.name)
        return twin.layout(sql, database, self._default_database(reading), reading.settings, reading.about)

    def _create_alone(self, step: Step, reading: QueryReading, empty: bytes, *, hidden: bool) -> None:
        """The empty table, before its rows.

        A session that ends in between leaves it, and the next one finds it. Where it is hidden the rows alone are in
        the binlog: the log says so.
        """
        worker, statement = self._worker, reading.statement
        if hidden and self._facts.hides_own_writes:
            logger.warning(
                "made outside of the follower's binlog: the table of %s; a replica of the follower needs a copy",
                reading.about,
            )
        (place,) = statement.targets
        made = MadeTable(worker, step.event.sequence, place, hidden)
        made.announce()
        try:
            worker.run(empty, self._default_database(reading), reading.settings, None, reading.about, hidden=hidden)
        except FollowerError:
            if worker.usable:
                worker.own.withdraw()
            raise
        if made.has_rows():
            raise DivergedError(
                f"{reading.about}: the table exists on the follower and holds rows; drop it there, {WAY_PAST}"
            )
        self._begun = Begun(step.event.sequence, made)
