"""One session on the follower: holds the topic's lock, applies transactions, remembers the position in them."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Iterable

from cdc_consumer.follower import preflight
from cdc_consumer.follower.lock import take_lock
from cdc_consumer.follower.pipe import Check, Pipe
from cdc_consumer.follower.row_statements import Statement, StatementWriter
from cdc_consumer.follower.tables import Tables
from cdc_consumer.sql import literals
from cdc_consumer.sql.positions import Intent, Mark, PositionTables, mark_from
from cdc_consumer.sql.refusals import translate
from cdc_consumer.sql.session import ROWS, Session, row_settings
from shared import mysql
from shared.errors import EventError, FollowerError, FollowerLinkError
from shared.events import Rows
from shared.filters import DatabaseFilter
from shared.profile import ConsumerProfile

logger = logging.getLogger(__name__)

#: a packet, and a statement of many rows, is full at this many characters: larger ones gain nothing
PACKET_CHARACTERS = 1 << 20

#: seconds between two position writes while transactions are skipped that were executed before
SKIPPED_SECONDS = 1.0

_GTID = re.compile(r"[0-9a-fA-F-]{36}(:[a-z_0-9]{1,32})?:\d+", re.ASCII)
_AUTOMATIC = "SET gtid_next = 'AUTOMATIC'"
#: what row statements need, by (foreign_key_checks, writes the error value of an ENUM)
_SETTINGS = {(checks, relaxed): row_settings(checks, relaxed) for checks in (True, False) for relaxed in (True, False)}


class Follower:
    """After an error of any method only `close` may be called: the end of the session undoes what was not committed.

    The session is in the state row changes need, except while `queries.py` runs a Query.
    """

    def __init__(
        self, profile: ConsumerProfile, databases: DatabaseFilter, previous: int | None, careful: bool
    ) -> None:
        """Connect, check the server, take the lock, read the position.

        `previous` is the connection id of this process's last session, None for none. `careful` writes one row a
        statement until the first commit, so that an error names the row. Raises FollowerError.
        """
        try:
            self._connection = mysql.connect(profile.database, multi_statements=True)
        except (mysql.MySQLError, OSError, RuntimeError) as error:
            raise _not_connected(profile, error) from None
        try:
            self._open(profile, databases, previous, careful)
        except (mysql.MySQLError, OSError) as error:
            self.close()
            raise translate(error, f"preparing the follower {profile.database}") from None
        except BaseException:
            self.close()
            raise

    def _open(self, profile: ConsumerProfile, databases: DatabaseFilter, previous: int | None, careful: bool) -> None:
        connection = self._connection
        ((self.id,),) = mysql.rows(connection, "SELECT CONNECTION_ID()")
        self.facts = preflight.inspect(connection, databases)
        take_lock(connection, f"{profile.database.system_database}.{profile.topic.name}", previous)
        self._own = PositionTables(profile.database.system_database, profile.topic.name)
        preflight.create_tables(connection, self._own.create(), self.facts)
        limit = min(PACKET_CHARACTERS, self.facts.max_packet // 8)
        self._pipe = Pipe(connection, self.facts.max_packet, limit)
        self.tables = Tables(self._pipe.ask)
        self.session = Session({})
        self._limit = limit
        #: the first transaction is written one row a statement
        self.careful = careful
        self._writer = StatementWriter(0 if careful else limit)
        self._mode = (True, False)
        self._gtid_next: str | None = None
        #: a transaction whose statements are all sent waits for its COMMIT
        self._pending = False
        #: the transaction under way was executed before, under its GTID
        self._skipping = False
        #: the position after the last one of these, until it is written; when one was written
        self._skipped: Mark | None = None
        self._advanced = 0.0
        #: its GTIDs may be executed before: by the last session, by a copy of the leader, by native replication
        self._unsure = self.facts.gtids
        self.set_session(preflight.session_settings(connection, profile.database.lock_wait_seconds))
        self.restore_session()
        ((*mark,),) = self._pipe.ask(self._own.read())
        #: the position at the start of the session, and after the last transaction given to `commit`
        self.start = self.mark = mark_from(mark)
        intents = self._pipe.ask(self._own.read_intent())
        self.intent = Intent(*intents[0]) if intents else None

    # one transaction: begin, write ..., commit

    def begin(self, gtid: str | None) -> None:
        """Open a transaction, under its GTID where the follower has GTIDs."""
        gtid = self.usable(gtid)
        if gtid is not None and self._unsure:
            # From the first one that was not executed on, nobody else executes them: the lock keeps other consumers
            # away. Should native replication do it all the same, the position's UPDATE matches no row.
            self._skipping = self.executed(gtid)
            self._unsure = self._skipping
            if self._skipping:
                logger.debug("%s was executed before", gtid)
                return
        self._finish_pending()
        if gtid is not None:
            self._pipe.put(f"SET gtid_next = {literals.text(gtid)}", Check(about=f"taking the GTID {gtid}"))
        elif self._gtid_next is not None:
            self._pipe.put(_AUTOMATIC, Check())
        self._gtid_next = gtid
        self._pipe.put("BEGIN", Check(about="BEGIN"))

    def write(self, rows: Rows, sequence: int, offset: int) -> None:
        """Apply row images; their statements may wait for more of the same table."""
        if self._skipping:
            return
        table = self.tables.get(rows)
        self._put(self._writer.write(rows, table, sequence, offset))

    def commit(self, mark: Mark) -> None:
        """Send the rest of the transaction with the position after it; its COMMIT goes out in front of the next."""
        self.mark = mark
        if self._skipping:
            self._skipping = False
            self._skipped = mark
            if time.monotonic() - self._advanced >= SKIPPED_SECONDS:
                self.advance(mark)
            return
        self._skipped = None
        self._put(self._writer.finish())
        self._use_mode(True, False)
        about = f"the position of sequence {mark.sequence}"
        self._pipe.put(self._own.write(mark), Check(1, about=about))
        self._pipe.send()
        self._pending = True
        if self.careful:
            self.settle()
            self.careful, self._writer = False, StatementWriter(self._limit)

    def settle(self) -> None:
        """Send everything and commit what waits for it: what was given to `commit` is durable on return."""
        self._settle()
        if self._skipped is not None:
            self.advance(self._skipped)

    def _settle(self) -> None:
        if self._pending:
            self._finish_pending()
            if self._gtid_next is not None:
                self._pipe.put(_AUTOMATIC, Check())
                self._gtid_next = None
        self._pipe.settle()

    def advance(self, mark: Mark) -> None:
        """Move the position outside of any transaction of the leader."""
        self._settle()
        self.mark, self._skipped, self._advanced = mark, None, time.monotonic()
        self._own_write(self._own.write(mark), Check(1, about=f"the position of sequence {mark.sequence}"))

    def intend(self, intent: Intent) -> None:
        """Write down that a statement that commits by itself is about to run."""
        self.settle()
        self.intent = intent
        self._own_write(self._own.write_intent(intent), Check(about="the intent"))

    def withdraw_intent(self) -> None:
        """The statement that was about to run has failed: what changes from now on is not its doing."""
        self.intent = None
        self._own_write(self._own.delete_intent(), Check(about="the intent"))

    # what queries.py needs

    def usable(self, gtid: str | None) -> str | None:
        """The GTID to run under, None where the follower has none. Raises EventError when it is not one."""
        if gtid is None or not self.facts.gtids:
            return None
        if not _GTID.fullmatch(gtid):
            raise EventError(f"{gtid!r} is not a GTID")
        return gtid

    def executed(self, gtid: str) -> bool:
        """True when the follower has executed the transaction of this GTID."""
        self._settle()
        ((found,),) = self._pipe.ask(f"SELECT GTID_SUBSET({literals.text(gtid)}, @@GLOBAL.gtid_executed)")
        return bool(found)

    def ask(self, sql: str | bytes) -> list[tuple[object, ...]]:
        """The rows of a query, after everything before it."""
        return list(self._pipe.ask(sql))

    def use(self, database: str) -> None:
        self._pipe.put(f"USE {mysql.quote_name(database)}", Check(about=f"USE {database}"))
        self.session.used_database()

    def set_session(self, settings: dict[str, str]) -> None:
        change = self.session.change(settings)
        if change is not None:
            self._pipe.put(change, Check(about=change))

    @property
    def usable_session(self) -> bool:
        """False after an error that left it in a state nobody knows."""
        return not self._pipe.broken

    def restore_session(self) -> None:
        """Give the session the variables that row changes need."""
        self.set_session(dict(ROWS))
        self._mode = (True, False)

    def run(self, sql: bytes, gtid: str | None, about: str, *, hidden: bool = False) -> None:
        """Run a statement that commits by itself, in its original bytes, under its GTID unless that is None.

        `hidden` keeps a part of a transaction that has a GTID out of the binlog: it would be a GTID of our own.
        """
        hides = hidden and self.facts.hides_own_writes
        if hides:
            self._pipe.put("SET SESSION sql_log_bin = 0", Check())
        if gtid is not None:
            self._pipe.put(f"SET gtid_next = {literals.text(gtid)}", Check(about=f"taking the GTID {gtid}"))
        self._pipe.run(sql, about)
        if hides:
            self._pipe.put("SET SESSION sql_log_bin = 1", Check())
        if gtid is not None:
            # the server may find that there is nothing to log; the GTID is then still ours to commit
            self._pipe.put("COMMIT", Check(about="COMMIT"))
            self._pipe.put(_AUTOMATIC, Check())

    def finish(self) -> None:
        """Commit the transactions that are whole and give up the one that is not; then only `close` may follow."""
        if not self._pipe.broken:
            self._pipe.retract(keep="COMMIT")
            self._settle()

    def close(self) -> None:
        """End the session; what was not committed is undone, the lock and the GTID are free."""
        with contextlib.suppress(Exception):
            self._connection.close()

    def _finish_pending(self) -> None:
        if self._pending:
            self._pipe.put_first("COMMIT", Check(about=f"COMMIT of sequence {self.mark.sequence}"))
            self._pending = False

    def _put(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            self._use_mode(statement.foreign_key_checks, statement.zeros > 0)
            self._pipe.put(statement.sql, Check(statement.rows, statement.zeros or None, statement.source))

    def _use_mode(self, foreign_key_checks: bool, relaxed: bool) -> None:
        mode = (foreign_key_checks, relaxed)
        if mode != self._mode:
            self._mode = mode
            self.set_session(dict(_SETTINGS[mode]))

    def _own_write(self, sql: str, check: Check) -> None:
        """Write a row of our own, without a GTID that the leader does not know."""
        hides = self.facts.hides_own_writes
        if hides:
            self._pipe.put("SET SESSION sql_log_bin = 0", Check())
        self._pipe.put(sql, check)
        if hides:
            self._pipe.put("SET SESSION sql_log_bin = 1", Check())
        self._pipe.settle()


def _not_connected(profile: ConsumerProfile, error: Exception) -> FollowerError:
    words = f"cannot connect to the follower {profile.database} as {profile.database.user}: {mysql.error_text(error)}"
    return FollowerLinkError(words) if mysql.is_link_error(error) else FollowerError(words)
