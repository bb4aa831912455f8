"""Runs a statement that is not a row change on the follower."""

from __future__ import annotations

import logging

from cdc_consumer.decision import WAY_PAST
from cdc_consumer.follower.fingerprint import fingerprint
from cdc_consumer.follower.preflight import Facts, events_would_run
from cdc_consumer.follower.worker import Worker
from cdc_consumer.read_query import QueryReading, read_query
from cdc_consumer.sql import literals
from cdc_consumer.sql.positions import Intent, mark_of
from cdc_consumer.sql.session import UTF8MB4
from cdc_consumer.transactions import Step
from shared.errors import DivergedError, EventError, FollowerError
from shared.events import Query
from shared.filters import DatabaseFilter
from shared.mysql import quote_name
from shared.statements.heads import shown_sql

#: what to do about a topic whose events no producer wrote
FOREIGN = f"find out who else writes to the topic, {WAY_PAST}"

logger = logging.getLogger(__name__)


class QueryReplay:
    """Runs Queries on one session of the follower."""

    def __init__(self, worker: Worker, facts: Facts, databases: DatabaseFilter, system_database: str) -> None:
        self._worker = worker
        self._own = worker.own
        self._facts = facts
        self._databases = databases
        self._system_database = system_database

    def apply(self, step: Step, query: Query) -> None:
        """Run the statement, or pass over it, and move the position. Raises FollowerError, EventError."""
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
            self._create_with_rows(step, reading, reading.statement.empty)
        elif not step.last:
            raise EventError(
                f"{reading.about} does not end its transaction, as every statement but CREATE TABLE ... SELECT does;"
                f" no producer writes that: {FOREIGN}"
            )
        else:
            self._run(step, reading)
        self._worker.forget_tables()

    def _takes_part(self, reading: QueryReading) -> bool:
        # where the leader folds names, the event has them as they are stored
        inside, outside = self._databases.split(reading.query.writes or reading.statement.databases)
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
        takes, refusal = self._databases.takes_statement(reading.statement, self._facts.lower_case_table_names != 0)
        if refusal:
            raise FollowerError(
                f"{reading.about} {refusal}; change the filters, {WAY_PAST} (with --instead FILE for a part of it)"
            )
        return takes

    def _refuse_references(self, reading: QueryReading) -> None:
        """Refuse a foreign key to a table outside the filter, a union with it, or its likeness: it is not ours."""
        folds = self._facts.lower_case_table_names != 0
        ((own, _), *_) = reading.statement.targets
        named = [(database or own, table) for database, table in reading.references]
        _, outside = self._databases.split_tables(
            (database.lower(), table.lower()) if folds else (database, table) for database, table in named
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

    def _create_with_rows(self, step: Step, reading: QueryReading, empty: bytes) -> None:
        """CREATE TABLE ... SELECT: the empty table first, then its rows as the transaction they are.

        A session that ends in between leaves the empty table, which the next one finds.
        """
        worker, statement = self._worker, reading.statement
        gtid = step.event.gtid
        known = worker.gtids.usable(gtid)
        worker.settle()
        if known is None or not worker.gtids.executed(known):
            # the leader wrote this text itself, in utf8mb4 whatever its client spoke
            settings = {**reading.settings, "character_set_client": UTF8MB4}
            database = self._default_database(reading)
            worker.run(empty, database, settings, None, reading.about, hidden=known is not None)
            table = f"{quote_name(statement.databases[0])}.{quote_name(statement.name)}"
            if worker.ask(f"SELECT 1 FROM {table} LIMIT 1"):
                raise DivergedError(
                    f"{reading.about}: the table exists on the follower and holds rows; drop it there, {WAY_PAST}"
                )
        worker.begin(gtid)
        if step.last:
            worker.commit(mark_of(step.event, step.offset))
