"""Reaches and checks the follower server, and locks it for the topic."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from cdc_consumer.binlog.columns import layout_of
from cdc_consumer.binlog.position_row import PositionRow
from cdc_consumer.binlog.statement import format_description
from cdc_consumer.copy.clone.status import refuse_half_cloned
from cdc_consumer.copy.unfinished import refuse_unfinished
from cdc_consumer.follower import preflight
from cdc_consumer.follower.changes_writer import ChangesWriter
from cdc_consumer.follower.gtids import Gtids
from cdc_consumer.follower.lock import refuse_shared_gtids, take_lock, take_lock_beside
from cdc_consumer.follower.own_tables import open_own_tables
from cdc_consumer.follower.patience import Patience
from cdc_consumer.follower.pipe import Pipe, ResultCheck, TablePlace
from cdc_consumer.follower.tables import FollowerTables
from cdc_consumer.follower.variables import SessionVariables
from cdc_consumer.follower.worker import Worker
from cdc_consumer.profile import ConsumerProfile
from cdc_consumer.sql import literals
from cdc_consumer.sql.positions import PositionTables
from cdc_consumer.sql.server_errors import translate
from cdc_consumer.sql.session import Session
from shared import mysql
from shared.errors import FollowerError, FollowerLinkError
from shared.filters import DatabaseFilter
from shared.recovery import Stopping

logger = logging.getLogger(__name__)

#: a packet, and a statement of many rows, is full at this many characters: larger ones gain nothing
PACKET_CHARACTERS = 1 << 20
#: seconds that a session beside the first waits for a lock: it may be one that another of them has
BESIDE_LOCK_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Server:
    """Holds one follower; after an error of anything that talks to it, `close` it and open it anew."""

    profile: ConsumerProfile
    connection: mysql.Connection
    #: connection id of the session that holds the lock
    id: int
    facts: preflight.Facts
    #: session variables that each of its sessions sets once, as SQL
    settings: Mapping[str, str]
    #: hears of waiting for it
    patience: Patience

    def worker(self, number: int, careful: int | None, refused: Set[TablePlace]) -> Worker:
        """The worker of this number, in the session that holds the lock; it continues at the position it has written.

        `careful` is the worker's; `refused` are tables whose rows go by SQL. Raises FollowerError.
        """
        pipe, gtids, session = self._begin(self.connection, self.settings)
        names = PositionTables(self.profile.database.system_database, self.profile.topic.identity, number)
        own = open_own_tables(pipe, gtids, names)
        tables = FollowerTables(pipe.ask, refused)
        changes = None
        position = self._position_row(pipe, gtids, number) if self.profile.apply.rows == "auto" else None
        if position is not None:
            changes = ChangesWriter(pipe, tables, position, refused, self.facts.max_packet, self.limit)
        return Worker(pipe, gtids, own, tables, SessionVariables(pipe, gtids, session), self.limit, careful, changes)

    @property
    def way(self) -> str:
        """Say under which GTIDs transactions run."""
        if self.facts.gtids:
            return "under the leader's GTIDs"
        if self.profile.apply.gtids:
            return "without GTIDs"
        return "without the leader's GTIDs: what other topics hold of a transaction is another transaction here"

    @property
    def limit(self) -> int:
        """Return how many characters a packet, and a statement of many rows, may grow to."""
        return min(PACKET_CHARACTERS, self.facts.max_packet // 8)

    def _begin(self, connection: mysql.Connection, settings: Mapping[str, str]) -> tuple[Pipe, Gtids, Session]:
        pipe = Pipe(connection, self.facts.max_packet, self.limit)
        session = Session({})
        for change in session.begin(settings):
            pipe.put(change, ResultCheck(about=change))
        return pipe, Gtids(pipe, self.facts), session

    def session_beside(self, number: int) -> tuple[mysql.Connection, Pipe, Gtids]:
        """Open another session, which takes binlog events as the first one does. Raises FollowerError."""
        with _prepared(self.profile, self.patience) as connection:
            take_lock_beside(connection, self.profile.lock_name, number)
            seconds = min(BESIDE_LOCK_SECONDS, self.profile.database.lock_wait_seconds)
            waits = {"lock_wait_timeout": str(seconds), "innodb_lock_wait_timeout": str(seconds)}
            pipe, gtids, _ = self._begin(connection, {**self.settings, **waits})
            pipe.run(literals.encode(format_description()), "trying binlog events")
            gtids.unknown()
            gtids.automatic()
            pipe.settle()
            return connection, pipe, gtids

    def _position_row(self, pipe: Pipe, gtids: Gtids, number: int) -> PositionRow | None:
        """Return what moves the position in binlog events, None where the follower takes none, or not this one's."""
        try:
            pipe.run(literals.encode(format_description()), "trying binlog events")
        except FollowerError as error:
            if pipe.broken:
                raise
            logger.info("rows go by SQL: %s", error)
            return None
        gtids.unknown()
        gtids.automatic()
        database, topic = self.profile.database.system_database, self.profile.topic.identity
        layout = layout_of(pipe.ask, database, "position")
        row = None if layout is None else PositionRow(database, topic, number, layout.collations)
        if row is None or row.layout != layout:
            logger.info("rows go by SQL: the table %s.position is not as this version makes it", database)
            return None
        return row

    def refuse_unfinished_copy(self) -> None:
        """Raise FollowerError when a copy into the follower has not ended, or cannot be asked."""
        system, topic = self.profile.database.system_database, self.profile.topic
        try:
            databases = DatabaseFilter(self.profile.filters, system)
            refuse_unfinished(self.connection, system, topic.name, databases)
            position = PositionTables(system, topic.identity).read()
            refuse_half_cloned(lambda sql: mysql.rows(self.connection, literals.encode(sql)), position)
        except (mysql.MySQLError, OSError) as error:
            raise translate(error, "asking whether a copy has ended") from None

    def refuse_leader(self, told: str) -> None:
        """Raise FollowerError when this server is the leader of the topic, whose server_uuid the topic has `told`."""
        if told == self.facts.uuid:
            raise FollowerError(
                f"the follower {self.profile.database} is the leader whose changes topic {self.profile.topic.name}"
                f" holds (server_uuid {told}), where all of them would run again: name another server in [database]; a"
                " copy of the leader's data directory needs its auto.cnf removed, and a start"
            )

    def close(self) -> None:
        """End the session: what was not committed is undone, the lock and the GTID are free."""
        with contextlib.suppress(Exception):
            self.connection.close()


def open_server(
    profile: ConsumerProfile, databases: DatabaseFilter, previous: set[int], stopping: Stopping = lambda: False
) -> Server:
    """Connect, check the server and take the topic's lock.

    `previous` has the connection ids of this process's sessions that the server may still believe in; after an error
    too it has this one's. While the server does not answer, the log says so, and the wait ends when the program is
    asked to stop. Raises FollowerError.
    """
    patience = Patience(profile.database, stopping)
    with _prepared(profile, patience) as connection:
        ((id,),) = mysql.rows(connection, "SELECT CONNECTION_ID()")
        facts = preflight.inspect(connection, databases, profile.apply.gtids)
        earlier = previous.copy()
        # the answer to what takes the lock may never come
        previous.add(id)
        take_lock(connection, profile.lock_name, earlier)
        if facts.gtids:
            refuse_shared_gtids(connection, profile.database.system_database, profile.topic.identity)
        settings = preflight.session_settings(connection, profile.database.lock_wait_seconds)
        previous.intersection_update({id})
        return Server(profile, connection, id, facts, settings, patience)


@contextlib.contextmanager
def _prepared(profile: ConsumerProfile, patience: Patience) -> Iterator[mysql.Connection]:
    """Open a connection, which stays open when all went well with it; errors are the follower's."""
    connection = _connect(profile, patience)
    try:
        yield connection
    except BaseException as error:
        with contextlib.suppress(Exception):
            connection.close()
        if isinstance(error, (mysql.MySQLError, OSError)):
            raise translate(error, f"preparing the follower {profile.database}") from None
        raise


def _connect(profile: ConsumerProfile, patience: Patience) -> mysql.Connection:
    try:
        return mysql.connect(profile.database, multi_statements=True, waiter=patience)
    except (mysql.MySQLError, OSError, RuntimeError) as error:
        words = (
            f"cannot connect to the follower {profile.database} as {profile.database.user}: {mysql.error_text(error)}"
        )
        raise (FollowerLinkError if mysql.is_link_error(error) else FollowerError)(words) from None
