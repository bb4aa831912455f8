"""The leader before its binlog is read: whether it can be replicated exactly, and where an empty topic begins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cdc_producer.decode.gtids import GtidSet
from cdc_producer.decode.table_map import Charset, Charsets
from cdc_producer.profile import COPY, LATEST, Leader
from cdc_producer.resume import Resume
from shared.errors import BinlogPurgedError, CdcError, LeaderError, LeaderLinkError
from shared.events import Position
from shared.filters import DatabaseFilter
from shared.mysql import (
    ER,
    Connection,
    MySQLError,
    binlog_end,
    connect,
    error_number,
    error_text,
    is_link_error,
    quote_account,
    rows,
    server_version,
    variables,
)

#: variable, the value it must have, why
REQUIRED = (
    ("log_bin", "ON", "restart the leader with log_bin"),
    ("binlog_format", "ROW", "SET PERSIST binlog_format = ROW"),
    ("binlog_row_image", "FULL", "SET PERSIST binlog_row_image = FULL"),
    ("binlog_row_metadata", "FULL", "SET PERSIST binlog_row_metadata = FULL"),
    ("binlog_row_value_options", "", "SET PERSIST binlog_row_value_options = ''"),
)
#: a leader that keeps its binlog for less than this (seconds) loses changes whenever the producer rests
MIN_RETENTION = 3600
#: the first event of a file stands after its four magic bytes
FIRST_OFFSET = 4
#: binlog events that are asked of the leader at once
PAGE_EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class LeaderFacts:
    """Holds what the producer needs to know of a leader that passed the checks."""

    uuid: str
    version: str
    charsets: Charsets
    lower_case_table_names: int
    #: the end of the binlog when it was asked
    end: Position
    #: its clock (seconds since 1970) less time.monotonic() here
    clock: float


class LeaderConsole:
    """An ordinary connection to the leader, for questions before the binlog is read."""

    def __init__(self, leader: Leader) -> None:
        """Raises LeaderLinkError when trying again may help, LeaderError otherwise."""
        self.leader = leader
        try:
            self._connection: Connection = connect(leader, read_timeout=30)
        except (MySQLError, OSError, RuntimeError) as error:
            raise self._named(error) from error

    def _named(self, error: BaseException) -> CdcError:
        text = f"cannot use leader {self.leader} as {self.leader.user}: {error_text(error)}"
        return LeaderLinkError(text) if is_link_error(error) else LeaderError(text)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except (MySQLError, OSError) as error:
            if error_number(error) == ER.SPECIFIC_ACCESS_DENIED_ERROR:
                raise LeaderError(
                    f"user {self.leader.user} may not replicate from leader {self.leader}: GRANT REPLICATION SLAVE,"
                    f" REPLICATION CLIENT ON *.* TO {quote_account(self.leader.user)}"
                ) from None
            raise self._named(error) from error

    def _rows(self, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        with self._asking():
            return rows(self._connection, sql, parameters)

    def check(self, server_id: int, server_uuid: str) -> LeaderFacts:
        """Refuse a leader whose changes cannot be captured exactly, with the SQL that mends it."""
        names = [name for name, _, _ in REQUIRED]
        with self._asking():
            found = variables(
                self._connection, *names, "server_id", "server_uuid", "version", "binlog_expire_logs_seconds",
                "lower_case_table_names", "version_comment",
            )  # fmt: skip
        if "MariaDB" in found["version"] or int(found["version"].split(".")[0]) < 8:
            raise LeaderError(f"leader {self.leader} is {found['version']}; MySQL 8.0 or newer is needed")
        for name, wanted, remedy in REQUIRED:
            if name in found and found[name] != wanted:
                raise LeaderError(
                    f"{name} must be {wanted or 'empty'}, not {found[name]} (leader {self.leader}): {remedy}"
                )
        if 0 < int(found["binlog_expire_logs_seconds"]) < MIN_RETENTION:
            raise LeaderError(
                f"binlog_expire_logs_seconds must be at least {MIN_RETENTION} or 0, not"
                f" {found['binlog_expire_logs_seconds']} (leader {self.leader}): the leader would drop changes before"
                " they are read: SET PERSIST binlog_expire_logs_seconds = 2592000"
            )
        self._check_server_id(server_id, server_uuid, int(found["server_id"]))
        ((now,),) = self._rows("SELECT UNIX_TIMESTAMP(NOW(6))")
        return LeaderFacts(
            found["server_uuid"], found["version"], self._charsets(), int(found["lower_case_table_names"]), self.end(),
            float(now) - time.monotonic(),
        )  # fmt: skip

    def _check_server_id(self, server_id: int, server_uuid: str, own: int) -> None:
        if own == 0:
            raise LeaderError(f"server_id of leader {self.leader} is 0: SET PERSIST server_id = 1")
        statement = "SHOW REPLICAS" if server_version(self._connection) >= (8, 0, 22) else "SHOW SLAVE HOSTS"
        taken = {row[0]: row[-1] for row in self._rows(statement)}
        if own == server_id or taken.get(server_id, server_uuid) != server_uuid:
            raise LeaderError(
                f"server_id {server_id} is taken by {'the leader' if own == server_id else 'another replica'} (leader"
                f" {self.leader}); set another database.server_id in the profile"
            )

    def _charsets(self) -> Charsets:
        query = (
            "SELECT id, character_set_name, maxlen FROM information_schema.COLLATIONS"
            " JOIN information_schema.CHARACTER_SETS USING (character_set_name)"
        )
        return {int(number): Charset(name, int(length)) for number, name, length in self._rows(query)}

    def end(self) -> Position:
        """Tell where the next transaction will be written."""
        with self._asking():
            found = binlog_end(self._connection)
        if found is None:
            raise LeaderError(f"leader {self.leader} writes no binlog; start it with log_bin")
        return Position(*found)

    def unmet(self, databases: DatabaseFilter) -> dict[str, str]:
        """Return what the filter names and the leader does not have, as far as the account may see that."""
        found = [name for (name,) in self._rows("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")]
        tables: list[tuple[str, str]] = []
        if not databases.whole_databases:
            tables = [
                (str(a), str(b))
                for a, b in self._rows("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES")
            ]
        # who does not even see these has no right to see what others there are
        sees_tables, sees_databases = ("mysql", "user") in tables, "mysql" in found
        return {
            key: names
            for key, names in databases.unmet(found, tables, exclusions=True).items()
            if (sees_databases if key == "include_dbs" else sees_tables)
        }

    def files(self) -> list[str]:
        """The binlogs the leader still has, oldest first."""
        return [row[0] for row in self._rows("SHOW BINARY LOGS")]

    def start(self, end: Position) -> Resume:
        """Tell where an empty topic begins, as the profile says.

        Raises LeaderError when the leader cannot give that.
        """
        place = self.leader.place()
        if isinstance(place, Position):
            return self._at(place, end)
        if isinstance(place, GtidSet):
            return self._after(place, self.leader.start)
        # until a record tells where this was, an empty topic would forget it
        if place == COPY:
            # what is in an earlier file shows to whoever reads rows from now on; of this one it may not yet
            return Resume(Position(end.file, FIRST_OFFSET), told=False)
        return Resume(end, told=False) if place == LATEST else self._earliest()

    def _earliest(self) -> Resume:
        first = self.files()[0]
        purged = self._rows("SELECT @@GLOBAL.gtid_purged")[0][0]
        if purged or int(first.rpartition(".")[2]) > 1:
            raise BinlogPurgedError(
                f"the oldest binlog of leader {self.leader} is {first} and earlier changes are purged, so a follower"
                ' cannot be built from it alone: set database.start to "copy" and fill the follower with cdc-copy; or'
                " load a dump of the leader into the follower and set database.start to"
                f' the GTID set or position of the dump, or to "{first}:{FIRST_OFFSET}" if the follower has the rest'
            )
        return Resume(Position(first, FIRST_OFFSET))

    def _at(self, position: Position, end: Position) -> Resume:
        if position.file not in self.files():
            raise BinlogPurgedError(
                f"leader {self.leader} does not have {position.file}, which database.start names: it has"
                f" {self.files()[0]} to {end.file}"
            )
        if end < position:
            raise LeaderError(f"database.start {position} is after the end of the leader's binlog, {end}")
        return Resume(position)

    def _after(self, gtids: GtidSet, text: str) -> Resume:
        """Begin in the newest file before which everything is in the set; what else is in it is left out on the way."""
        missing = self._rows("SELECT GTID_SUBTRACT(@@GLOBAL.gtid_purged, %s)", (text,))[0][0]
        if missing:
            raise BinlogPurgedError(
                f"leader {self.leader} has purged {missing}, which database.start does not contain: load a newer dump"
            )
        unknown = self._rows("SELECT GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed)", (text,))[0][0]
        if unknown:
            raise LeaderError(
                f"database.start contains {unknown}, which leader {self.leader} never executed: correct database.start,"
                " or database.host if this is another leader"
            )
        for file in reversed(self.files()):
            if self._within(self._before(file), text):
                return Resume(Position(file, FIRST_OFFSET), gtids=gtids)
        raise LeaderError(
            f"no binlog of leader {self.leader} begins within database.start; load a newer dump"
            " and set database.start to its GTID set"
        )

    def _before(self, file: str) -> str:
        """The GTIDs of all earlier files."""
        previous = self._rows("SHOW BINLOG EVENTS IN %s LIMIT 1, 1", (file,))
        return previous[0][5] if previous and previous[0][2] == "Previous_gtids" else ""

    def executed(self, gtid: str) -> bool:
        """Tell whether the leader has executed this transaction."""
        return self._within(gtid, self._rows("SELECT @@GLOBAL.gtid_executed")[0][0])

    def is_behind(self, gtid: str, place: Position) -> bool:
        """Tell whether an executed transaction stands before this place in the binlog.

        False too where the leader itself cannot read its file as far as that.
        """
        following = [file for file in self.files() if Position(file, 0) > place]
        try:
            if self._within(gtid, self._before(place.file)):
                return True
            in_later_file = bool(following) and not self._within(gtid, self._before(following[0]))
            return not in_later_file and not self._stands_from(place, gtid)
        except LeaderLinkError:
            raise
        except LeaderError:
            return False

    def _within(self, gtids: str, others: str) -> bool:
        return bool(self._rows("SELECT GTID_SUBSET(%s, %s)", (gtids, others))[0][0])

    def _stands_from(self, place: Position, gtid: str) -> bool:
        """Whether the transaction begins at this place or later in its file."""
        offset, page = place.offset, "SHOW BINLOG EVENTS IN %s FROM %s LIMIT %s"
        while True:
            found = self._rows(page, (place.file, offset, PAGE_EVENTS))
            if any(f"'{gtid}'" in str(words).lower() for *_, words in found):
                return True
            if len(found) < PAGE_EVENTS:
                return False
            offset = int(found[-1][1])

    def close(self) -> None:
        self._connection.close()
