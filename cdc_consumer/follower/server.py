"""Reaches and checks the follower server, and locks it for the topic."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Set
from dataclasses import dataclass

from cdc_consumer.binlog.columns import layout_of
from cdc_consumer.binlog.position_row import PositionRow
from cdc_consumer.binlog.statement import format_description
from cdc_consumer.follower import preflight
from cdc_consumer.follower.changes_writer import ChangesWriter
from cdc_consumer.follower.gtids import Gtids
from cdc_consumer.follower.lock import take_lock
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

    def worker(self, number: int, careful: int | None, refused: Set[TablePlace]) -> Worker:
        """The worker of this number, in the session that holds the lock; it continues at the position it has written.

        `careful` is the worker's; `refused` are tables whose rows go by SQL. Raises FollowerError.
        """
        limit = min(PACKET_CHARACTERS, self.facts.max_packet // 8)
        pipe = Pipe(self.connection, self.facts.max_packet, limit)
        session = Session({})
        for change in session.begin(self.settings):
            pipe.put(change, ResultCheck(about=change))
        gtids = Gtids(pipe, self.facts)
        names = PositionTables(self.profile.database.system_database, self.profile.topic.name, number)
        own = open_own_tables(pipe, gtids, names)
        tables = FollowerTables(pipe.ask, refused)
        changes = None
        position = self._position_row(pipe, gtids, number) if self.profile.apply.rows == "auto" else None
        if position is not None:
            changes = ChangesWriter(pipe, tables, position, refused, self.facts.max_packet, limit)
        return Worker(pipe, gtids, own, tables, SessionVariables(pipe, gtids, session), limit, careful, changes)

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
        database, topic = self.profile.database.system_database, self.profile.topic.name
        layout = layout_of(pipe.ask, database, "position")
        row = None if layout is None else PositionRow(database, topic, number, layout.collations)
        if row is None or row.layout != layout:
            logger.info("rows go by SQL: the table %s.position is not as this version makes it", database)
            return None
        return row

    def close(self) -> None:
        """End the session: what was not committed is undone, the lock and the GTID are free."""
        with contextlib.suppress(Exception):
            self.connection.close()


def open_server(
    profile: ConsumerProfile, databases: DatabaseFilter, previous: int | None, stopping: Stopping = lambda: False
) -> Server:
    """Connect, check the server and take the topic's lock.

    `previous` is the connection id of this process's last session, None for none. While the server does not answer,
    the log says so, and the wait ends when the program is asked to stop. Raises FollowerError.
    """
    connection = _connect(profile, Patience(profile.database, stopping))
    try:
        ((id,),) = mysql.rows(connection, "SELECT CONNECTION_ID()")
        facts = preflight.inspect(connection, databases)
        take_lock(connection, f"{profile.database.system_database}.{profile.topic.name}", () if previous is None else (previous,))
        settings = preflight.session_settings(connection, profile.database.lock_wait_seconds)
        return Server(profile, connection, id, facts, settings)
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
