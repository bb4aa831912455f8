"""Queries: how a statement that is not a row change runs on the follower."""

from __future__ import annotations

import logging
import re

from cdc_consumer.follower.fingerprint import fingerprint
from cdc_consumer.follower.follower import Follower
from cdc_consumer.follower.preflight import events_would_run
from cdc_consumer.sql.positions import Intent, mark_of
from cdc_consumer.sql.session import UTF8MB4, of_query
from cdc_consumer.transactions import Step
from shared.errors import DivergedError, EventError, FollowerError, UnsupportedError
from shared.events import Query
from shared.filters import DatabaseFilter
from shared.mysql import charset_of
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

    def __init__(self, follower: Follower, databases: DatabaseFilter, system_database: str) -> None:
        self._follower = follower
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
        self._follower.tables.forget()

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
            ((scheduler,),) = self._follower.ask("SELECT @@GLOBAL.event_scheduler")
            if scheduler == "ON":
                raise events_would_run(about)
        return True

    def _refuse_other_case(self, query: Query) -> None:
        leader = query.session.get("lower_case_table_names", 0)
        follower = self._follower.facts.lower_case_table_names
        if leader != follower:
            raise FollowerError(
                f"lower_case_table_names is {follower} on the follower and {leader} on the leader: names would mean"
                " other tables; a follower must be initialised with the leader's setting"
            )

    def _pass_over(self, step: Step) -> None:
        """The transaction is empty here; under its GTID all the same, so that the follower's set has no hole."""
        self._follower.begin(step.event.transaction.gtid if step.event.transaction else None)
        if step.last:
            self._follower.commit(mark_of(step.event, step.offset))

    def _run(self, step: Step, query: Query, statement: Statement, settings: dict[str, str], about: str) -> None:
        follower = self._follower
        follower.settle()
        transaction = step.event.transaction
        gtid = follower.usable(transaction.gtid if transaction else None)
        if gtid is not None:
            # a session that ended between the statement and the position; MySQL remembers the GTID
            done = follower.executed(gtid)
        else:
            done = self._ran_before(step, query.writes or statement.databases)
        if not done:
            self._enter(query, statement, settings)
            try:
                follower.run(query.sql, gtid, about)
            except FollowerError:
                if gtid is None and follower.usable_session:
                    follower.restore_session()
                    follower.withdraw_intent()
                raise
            follower.restore_session()
        follower.advance(mark_of(step.event, step.offset))

    def _ran_before(self, step: Step, databases: tuple[str, ...]) -> bool:
        """True when the last session ran this statement and ended before it wrote the position."""
        follower, sequence = self._follower, step.event.sequence
        now = fingerprint(follower.ask, databases)
        if follower.intent is not None and follower.intent.sequence == sequence:
            return follower.intent.fingerprint != now
        follower.intend(Intent(sequence, now))
        return False

    def _enter(self, query: Query, statement: Statement, settings: dict[str, str]) -> None:
        """Give the session what the statement ran with on the leader."""
        if query.database and statement.kind != "DATABASE":
            self._follower.use(self._default_database(query))
        self._follower.set_session(settings)

    def _default_database(self, query: Query) -> str:
        """The statement's default database, or, where that does not take part, one in which its names mean nothing.

        What the statement writes takes part, so only tables it reads can be meant by a name without a database; they
        are not on the follower, and the statement fails with their name. It must not find our own tables instead.
        """
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
        follower = self._follower
        gtid = step.event.transaction.gtid if step.event.transaction else None
        known = follower.usable(gtid)
        follower.settle()
        if known is None or not follower.executed(known):
            # the leader wrote this text itself, in utf8mb4 whatever its client spoke
            self._enter(query, statement, {**settings, "character_set_client": UTF8MB4})
            create = b"CREATE TABLE IF NOT EXISTS " + match["name"] + match["rest"]
            follower.run(create, None, about, hidden=known is not None)
            found = follower.ask(b"SELECT 1 FROM " + match["name"] + b" LIMIT 1")
            follower.restore_session()
            if found:
                raise DivergedError(f"{about}: the table exists on the follower and holds rows")
        follower.begin(gtid)
        if step.last:
            follower.commit(mark_of(step.event, step.offset))


def _shown(sql: bytes) -> str:
    text = " ".join(sql[:SHOWN_BYTES].decode(errors="replace").split())
    return f"{text}..." if len(sql) > SHOWN_BYTES else text
