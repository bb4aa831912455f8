"""Tells from the topic which tables were changed so that what was copied of them is of no use."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping

from cdc_consumer.copy import moment
from cdc_consumer.copy.state import CopiedTable
from cdc_consumer.follower.preflight import Facts
from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.servers.pair import LeaderConnection
from cdc_consumer.sql.session import UTF8MB4
from shared.errors import AuditError, ServerGoneError, UnsupportedError
from shared.events import Position, Query
from shared.mysql import quote_name
from shared.recovery import Stopping
from shared.statements.heads import Statement, read_statement
from shared.topic.walk import TopicWalk, place

logger = logging.getLogger(__name__)

#: what a record of a statement has before its text, and within how many bytes
_QUERY, _HEAD_BYTES = b',"operation":{"Query":', 4096

#: first words of the statements that wait until all that was written to a table is committed and shows
_TAKES_ALONE = frozenset({"ALTER", "DROP", "RENAME", "TRUNCATE"})
#: kinds of object that have SHOW CREATE statements of their own; a view and an index are a table's
_LOCKED_BY_NAME = frozenset({"PROCEDURE", "FUNCTION", "EVENT", "TRIGGER"})


class Disturbed:
    """Looks through the part of the topic that tables were copied in."""

    def __init__(self, walk: TopicWalk, facts: Facts, tables: Mapping[TableName, CopiedTable]) -> None:
        self._walk = walk
        self._facts = facts
        self._tables = tables

    def redefined(self, defined: Position, stop: int) -> tuple[set[TableName], bool]:
        """Return the tables that statements name, of those that do not show in the table's definition.

        And whether any statement stands behind `defined`, up to where all definitions show: they are then not those of
        `stop`.
        """
        begin = min([defined, *(table.defined for table in self._tables.values())])
        named: set[TableName] = set()
        behind = False
        for position, query in self._statements(begin, stop):
            behind = behind or place(position) >= place(defined)
            named |= {name for name in self._names(query) if place(self._tables[name].defined) <= place(position)}
        return named, behind

    def rows_show(self, end: Position) -> dict[TableName, Position]:
        """Return up to where each table shows all that was written there: where its rows were known to, or later.

        A statement that is done and has had the table for itself shows, and with it all rows from before it. Statements
        up to `end` are done.
        """
        shows = {name: table.begin for name, table in self._tables.items()}
        begin = min(shows.values(), default=end)
        for position, query in self._statements(begin, self._walk.since(place(end))):
            if self._alone(query):
                behind = Position(position.file, position.offset + 1)
                shows.update(dict.fromkeys(self._names(query), behind))
        return shows

    def _alone(self, query: Query) -> bool:
        """Tell whether a statement had the tables that it names for itself until it was done.

        One that creates a table has no rows before it; where there is such a table, it may have waited for nobody.
        """
        try:
            statement = self._read(query)
        except UnsupportedError:
            return False
        return statement.drops_database or (statement.kind == "TABLE" and statement.verb in _TAKES_ALONE)

    def databases(self, start: Position, stop: int) -> set[str]:
        """Return the databases that statements between a position and an offset of the topic have written."""
        return {name for _, query in self._statements(start, stop) for name in query.writes}

    def _statements(self, start: Position, stop: int) -> Iterator[tuple[Position, Query]]:
        """Yield the statements between a position and an offset of the topic, with where they stand in the binlog."""
        for entry in moment.entries(self._walk, moment.since(self._walk, start), stop):
            if _QUERY in entry.value[:_HEAD_BYTES]:
                event = entry.decode()
                assert isinstance(event.operation, Query)
                yield event.position, event.operation

    def _names(self, query: Query) -> Iterator[TableName]:
        """Yield the tables that a statement may have changed; all of its databases where its text does not tell."""
        try:
            statement = self._read(query)
            named = {name for _, name in statement.targets} | {statement.name}
            whole = statement.kind not in ("TABLE", "INDEX", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT")
        except UnsupportedError:
            named, whole = set(), True
        folded = {name.lower() for name in named}
        for name in self._tables:
            if name.database in query.writes and (whole or name.table.lower() in folded):
                yield name

    def _read(self, query: Query) -> Statement:
        charset = self._facts.charsets.get(query.session.get("character_set_client", int(UTF8MB4)), "utf8mb4")
        return read_statement(query.sql, query.session.get("sql_mode", 0), query.database, charset)

    def wait_for_definitions(self, leader: LeaderConnection, start: Position, stop: int) -> None:
        """Let all that statements from `start` to `stop` name show to whoever reads definitions from now on.

        A statement may be in the binlog and not be done. It holds a lock on what it names until it is, and SHOW CREATE
        waits for that.
        """
        asked: set[tuple[str, str, str]] = set()
        for _, query in self._statements(start, stop):
            statement = self._read(query)
            kind = statement.kind if statement.kind in _LOCKED_BY_NAME else "TABLE"
            asked |= {(kind, *target) for target in statement.targets}
            asked |= {("DATABASE", name, "") for name in query.writes}
        for kind, database, name in sorted(asked):
            what = quote_name(database) + (f".{quote_name(name)}" if name else "")
            try:
                leader.rows(f"SHOW CREATE {kind} {what}")
            except ServerGoneError:
                raise
            except AuditError:
                logger.debug("%s is not there any more", what)

    def unsettled(self, keyless: Collection[TableName], stop: int) -> set[TableName]:
        """Return the tables without a key that were written between the positions that their copies lie between."""
        tables = {name: self._tables[name] for name in keyless if name in self._tables}
        if not tables:
            return set()
        found = set()
        names = moment.TableNames()
        for entry in moment.entries(
            self._walk, moment.since(self._walk, min(each.begin for each in tables.values())), stop
        ):
            table = tables.get(names.of(entry))
            if table is not None and place(table.begin) <= entry.place < place(table.until):
                found.add(table.name)
        return found


def table_begins(
    walk: TopicWalk, facts: Facts, names: Iterable[TableName], read: Position, defined: Position
) -> Mapping[TableName, Position]:
    """Return from where on the topic is to mend each table that is read from now on: `read`, or later.

    Up to there its rows show all. Statements up to `defined` are done.
    """
    if read == defined:
        return dict.fromkeys(names, read)
    tables = {name: CopiedTable(name, "", read, read, read) for name in names}
    return Disturbed(walk, facts, tables).rows_show(defined)


def altered_since(
    walk: TopicWalk, facts: Facts, leader: LeaderConnection, table: CopiedTable, stopping: Stopping
) -> bool:
    """Tell whether a statement changed a table after its definition was read; its rows may fit that no more.

    Waits until the topic tells. Raises Ended.
    """
    stop = moment.wait_for_topic(walk, leader.position(), stopping)
    named, _ = Disturbed(walk, facts, {table.name: table}).redefined(table.defined, stop)
    return bool(named)
