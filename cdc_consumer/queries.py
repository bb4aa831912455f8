"""Queries: how a statement that is not a row change runs on the follower."""

from __future__ import annotations

import logging
import re

from cdc_consumer.follower.fingerprint import fingerprint
from cdc_consumer.follower.preflight import Facts, events_would_run
from cdc_consumer.follower.worker import Worker
from cdc_consumer.sql.positions import Intent, mark_of
from cdc_consumer.sql.session import UTF8MB4, of_query
from cdc_consumer.transactions import Step
from shared.errors import DivergedError, EventError, FollowerError, UnsupportedError
from shared.events import Query
from shared.filters import DatabaseFilter
from shared.mysql import charset_of, quote_name
from shared.statements.heads import Statement, read_statement

logger = logging.getLogger(__name__)

#: bytes of a statement that an error shows
SHOWN_BYTES = 200
#: CREATE TABLE ... SELECT as the leader logs it: the rows follow in the same transaction
_NAME = rb"""(?:`(?:[^`]|``)+`|"(?:[^"]|"")+")"""
_WITH_ROWS = re.compile(
    rb"CREATE TABLE (?:IF NOT EXISTS )?(?P<name>(?:" + _NAME + rb"\.)?" + _NAME + rb")(?P<rest> .*) START TRANSACTION",
    re.DOTALL,
)


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
        about = f"{_shown(query.sql)} in database {query.database or '(none)'}, sequence {step.event.sequence}"
        try:
            settings = of_query(query.session)
            charset = charset_of(query.session.get("character_set_client", int(UTF8MB4)))
            statement = read_statement(query.sql, query.session.get("sql_mode", 0), query.database, charset)
        except (ValueError, KeyError, TypeError) as error:
            raise EventError(f"{about} cannot be replayed: {error}") from error
        except UnsupportedError as error:
            raise FollowerError(f"{about} cannot be replayed") from error
        if not step.first:
            raise EventError(f"{about} stands inside a transaction, where no statement of its kind can")
        self._refuse_other_case(query)
        if not self._takes_part(query.writes or statement.databases, about) or not self._wanted(statement, about):
            self._pass_over(step)
        elif not step.last or _WITH_ROWS.fullmatch(query.sql.strip()):
            self._create_with_rows(step, query, statement, settings, about)
        else:
            self._run(step, query, statement, settings, about)
        self._worker.tables.forget()

    def _takes_part(self, writes: tuple[str, ...], about: str) -> bool:
        if not writes:
            raise FollowerError(f"{about} cannot be replayed: it names no database that it writes")
        inside, outside = self._databases.split(writes)
        if inside and outside:
            raise FollowerError(
                f"{about} writes databases of which some take part in replication ({', '.join(inside)}) and some do not"
                f" ({', '.join(outside)}); change the filters to include all or none"
            )
        return bool(inside)

    def _wanted(self, statement: Statement, about: str) -> bool:
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
        self._worker.begin(step.event.transaction.gtid if step.event.transaction else None)
        if step.last:
            self._worker.commit(mark_of(step.event, step.offset))

    def _run(self, step: Step, query: Query, statement: Statement, settings: dict[str, str], about: str) -> None:
        worker = self._worker
        worker.settle()
        transaction = step.event.transaction
        gtid = worker.gtids.usable(transaction.gtid if transaction else None)
        if gtid is not None:
            # a session that ended between the statement and the position; MySQL remembers the GTID
            done = worker.gtids.executed(gtid)
        else:
            done = self._ran_before(step, query.writes or statement.databases)
        if not done:
            try:
                worker.run(query.sql, self._default_database(query, statement), settings, gtid, about)
            except FollowerError:
                if gtid is None and worker.usable:
                    self._own.withdraw()
                raise
        self._own.advance(mark_of(step.event, step.offset))

    def _ran_before(self, step: Step, databases: tuple[str, ...]) -> bool:
        """True when the last session ran this statement and ended before it wrote the position."""
        sequence, intent = step.event.sequence, self._own.intent
        now = fingerprint(self._worker.ask, databases)
        if intent is not None and intent.sequence == sequence:
            return intent.fingerprint != now
        self._own.intend(Intent(sequence, now))
        return False

    def _default_database(self, query: Query, statement: Statement) -> str:
        """The statement's default database, or, where that does not take part, one in which its names mean nothing.

        It is "" for any where the statement names what it is about.

        What the statement writes takes part, so only tables it reads can be meant by a name without a database; they
        are not on the follower, and the statement fails with their name. It must not find our own tables instead.
        """
        if not query.database or statement.kind == "DATABASE":
            return ""
        if query.database in self._databases:
            return query.database
        words = query.sql.lower()
        if b"position" in words or b"intent" in words:
            raise FollowerError(
                f"{_shown(query.sql)} ran in database {query.database}, which does not take part in replication,"
                " and may name a table of it"
            )
        return self._system_database

    def _create_with_rows(
        self, step: Step, query: Query, statement: Statement, settings: dict[str, str], about: str
    ) -> None:
        """CREATE TABLE ... SELECT: the empty table first, then its rows as the transaction they are.

        A session that ends in between leaves the empty table, which the next one finds.
        """
        match = _WITH_ROWS.fullmatch(query.sql.strip())
        if match is None:
            raise EventError(
                f"{about} does not end its transaction, as every statement but CREATE TABLE ... SELECT does"
            )
        worker = self._worker
        gtid = step.event.transaction.gtid if step.event.transaction else None
        known = worker.gtids.usable(gtid)
        worker.settle()
        if known is None or not worker.gtids.executed(known):
            # the leader wrote this text itself, in utf8mb4 whatever its client spoke
            settings = {**settings, "character_set_client": UTF8MB4}
            create = b"CREATE TABLE IF NOT EXISTS " + match["name"] + match["rest"]
            database = self._default_database(query, statement)
            worker.run(create, database, settings, None, about, hidden=known is not None)
            table = f"{quote_name(statement.databases[0])}.{quote_name(statement.name)}"
            if worker.ask(f"SELECT 1 FROM {table} LIMIT 1"):
                raise DivergedError(f"{about}: the table exists on the follower and holds rows")
        worker.begin(gtid)
        if step.last:
            worker.commit(mark_of(step.event, step.offset))


def _shown(sql: bytes) -> str:
    text = " ".join(sql[:SHOWN_BYTES].decode(errors="replace").split())
    return f"{text}..." if len(sql) > SHOWN_BYTES else text
