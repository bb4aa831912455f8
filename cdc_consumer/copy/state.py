"""Keeps on the follower how far a copy has come: what was killed goes on from there, and nothing is copied twice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from cdc_consumer.copy.copy_tables import CopyTables, altered, texts
from cdc_consumer.parity.model import Key, TableName
from cdc_consumer.parity.rows.ranges import Range
from cdc_consumer.sql import literals
from cdc_consumer.sql.positions import Mark
from shared.events import Position
from shared.mysql import ER, Connection, MySQLError, error_number, rows

#: "new": databases and tables are being made; "rows": ranges are read; "ending": the rows are those of a known moment,
#: and statements are left; "done"
CopyPhase = Literal["new", "rows", "ending", "done"]


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """Tells what is known of a table's rows on the follower."""

    name: TableName
    #: SHA-256 of its definition on the leader
    definition: str
    #: statements that end here or before show in its definition
    defined: Position
    #: every transaction that ends here or before shows in its rows; of those from `until` on none does
    begin: Position
    until: Position


@dataclass(frozen=True, slots=True)
class OpenRange:
    """Names a range that is still to be copied."""

    table: TableName
    number: int
    part: Range
    #: a guess
    rows: int


@dataclass(frozen=True, slots=True)
class CopyMoment:
    """Names the moment at which a copy ends, as the consumer's position will."""

    mark: Mark
    #: all that the leader had executed, "" without GTIDs
    gtids: str


class CopiedRows(NamedTuple):
    """Tells how many rows of a table are there, in how many ranges."""

    name: TableName
    rows: int
    ranges: int


class CopyState:
    """Reads and writes the state of one copy, over a connection whose writes stay out of the follower's binlog."""

    def __init__(self, connection: Connection, tables: CopyTables) -> None:
        self._connection = connection
        self._sql = tables

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        return rows(self._connection, literals.encode(sql))

    def _at_once(self, *statements: str) -> None:
        self._run("BEGIN")
        for sql in statements:
            self._run(sql)
        self._run("COMMIT")

    def phase(self) -> CopyPhase | None:
        """Ask how far the copy is; None when there is none."""
        with suppress(MissingTables):
            for (phase,) in _read(self._connection, f"SELECT phase FROM {self._sql.copy} WHERE {self.whose}"):
                return phase  # type: ignore[no-any-return]
        return None

    @property
    def whose(self) -> str:
        """Return the predicate of the copy's rows."""
        return f"topic = {self._sql.topic}"

    def make(self) -> None:
        """Make those of its tables that are missing."""
        for sql in self._sql.create():
            self._run(sql)

    def begin(self, only: Sequence[TableName] = ()) -> None:
        """Note that a copy has begun, of these alone where there are any; what is left of an earlier one is forgotten.

        Among them a database is a table without a name.
        """
        self.make()
        names = ", ".join(
            f"({self._sql.topic}, {literals.text(name.database)}, {literals.text(name.table)})" for name in only
        )
        self._at_once(
            *(
                f"DELETE FROM {table} WHERE {self.whose}"
                for table in (self._sql.table, self._sql.range, self._sql.step, self._sql.note)
            ),
            f"DELETE FROM {self._sql.only} WHERE {self.whose}" + (" AND NOT added" if only else ""),
            *([f"REPLACE INTO {self._sql.only} (topic, db, name) VALUES {names}"] if only else []),
            f"REPLACE INTO {self._sql.copy} (topic, phase) VALUES ({self._sql.topic}, 'new')",
        )

    def only(self) -> list[TableName]:
        """Return what `begin` was told: nothing for a copy of everything."""
        with suppress(MissingTables):
            where = f"{self.whose} AND NOT added ORDER BY 1, 2"
            found = _read(self._connection, f"SELECT db, name FROM {self._sql.only} WHERE {where}")
            return [_name(database, name) for database, name in found]
        return []

    def added(self) -> list[str]:
        """Return the databases that a copy has added to what the follower had."""
        with suppress(MissingTables):
            found = _read(self._connection, f"SELECT db FROM {self._sql.only} WHERE {self.whose} AND added")
            return [database.decode() for (database,) in found]
        return []

    def give_up(self) -> None:
        """Forget the copy, which has changed nothing that the consumer knows of."""
        self._at_once(
            *(
                f"DELETE FROM {table} WHERE {self.whose}"
                for table in (self._sql.table, self._sql.range, self._sql.step, self._sql.copy)
            ),
            f"DELETE FROM {self._sql.only} WHERE {self.whose} AND NOT added",
        )

    def planned(self) -> None:
        """Note that nothing of before the copy is left on the follower."""
        self._run(f"UPDATE {self._sql.copy} SET phase = 'rows' WHERE {self.whose}")

    def tables(self) -> dict[TableName, CopiedTable]:
        """Return the tables that are planned."""
        found = self._run(
            "SELECT db, name, definition, defined_file, defined_offset, begin_file, begin_offset, until_file,"
            f" until_offset FROM {self._sql.table} WHERE {self.whose} AND definition <> '' ORDER BY db, name"
        )
        tables = {}
        for database, table, definition, *places in found:
            name = _name(database, table)
            positions = (Position(*pair) for pair in zip(places[::2], places[1::2], strict=True))
            tables[name] = CopiedTable(name, definition, *positions)
        return tables

    def plan(self, table: CopiedTable, parts: Sequence[tuple[Range, int]]) -> None:
        """Note that a table is there, empty, and that these ranges (each with a guess of its rows) are to be copied."""
        name = table.name
        who = f"{self._sql.topic}, {literals.text(name.database)}, {literals.text(name.table)}"
        places = ", ".join(
            f"{literals.text(place.file)}, {place.offset:d}" for place in (table.defined, table.begin, table.until)
        )
        marks = ", ".join(
            f"({who}, {number}, {_bound(part.low)}, {_bound(part.high)}, {expected:d})"
            for number, (part, expected) in enumerate(parts)
        )
        self._at_once(
            *self._forgotten(name),
            f"INSERT INTO {self._sql.table} VALUES ({who}, {literals.text(table.definition)}, {places})",
            f"INSERT INTO {self._sql.range} (topic, db, name, number, low, high, expected) VALUES {marks}",
        )

    def made(self) -> set[TableName]:
        """Return what the follower may have of this copy, planned or not; a database is a table without a name."""
        found = self._run(f"SELECT db, name FROM {self._sql.table} WHERE {self.whose}")
        return {_name(database, name) for database, name in found}

    def forget(self, name: TableName, *, there: bool = True) -> None:
        """Let a table be planned again; while it is `there`, or will be in a moment, it is one of those `made`."""
        mark = f"{self._sql.topic}, {literals.text(name.database)}, {literals.text(name.table)}"
        noted = f"INSERT INTO {self._sql.table} VALUES ({mark}, '', '', 0, '', 0, '', 0)"
        self._at_once(*self._forgotten(name), *([noted] if there else []))

    def _forgotten(self, name: TableName) -> list[str]:
        return [f"DELETE FROM {table} WHERE {self._sql.of(name)}" for table in (self._sql.table, self._sql.range)]

    def open_ranges(self) -> list[OpenRange]:
        """Return the ranges that are still to be copied, the largest tables' first."""
        found = self._run(
            f"SELECT db, name, number, low, high, expected FROM {self._sql.range} WHERE {self.whose}"
            " AND copied IS NULL ORDER BY expected DESC, db, name, number"
        )
        return [
            OpenRange(_name(db, name), number, Range(_key(low, self._sql.range), _key(high, self._sql.range)), expected)
            for db, name, number, low, high, expected in found
        ]

    def counts(self) -> tuple[int, int]:
        """Return how many rows are copied, and a guess of how many there are in all."""
        ((copied, expected),) = self._run(
            "SELECT CAST(COALESCE(SUM(copied), 0) AS SIGNED),"
            " CAST(COALESCE(SUM(COALESCE(copied, expected)), 0) AS SIGNED)"
            f" FROM {self._sql.range} WHERE {self.whose}"
        )
        return copied, expected

    def copied(self) -> list[CopiedRows]:
        """Return how many rows are there of each table, in how many ranges."""
        found = self._run(
            f"SELECT db, name, CAST(COALESCE(SUM(copied), 0) AS SIGNED), COUNT(*) FROM {self._sql.range}"
            f" WHERE {self.whose} GROUP BY db, name ORDER BY db, name"
        )
        return [CopiedRows(_name(db, name), rows, ranges) for db, name, rows, ranges in found]

    def window_offset(self) -> int | None:
        """Return the topic offset up to before which the window is applied, None when nothing of it is."""
        ((offset,),) = self._run(f"SELECT window_offset FROM {self._sql.copy} WHERE {self.whose}")
        return offset  # type: ignore[no-any-return]

    def ending(self, moment: CopyMoment, steps: Sequence[Sequence[str]]) -> list[str]:
        """Return the statements that note, in the transaction of its last rows, that all rows are those of a moment.

        Of `steps` each is a session's statements, of which the last but those that begin with SET changes something.
        """
        mark = moment.mark
        gtid, committed = (
            "NULL" if mark.gtid is None else literals.text(mark.gtid),
            "NULL" if mark.committed is None else literals.integer(mark.committed),
        )
        statements = [
            f"INSERT INTO {self._sql.step} (topic, number, statements) VALUES"
            f" ({self._sql.topic}, {number}, {literals.text(json.dumps(list(step)))})"
            for number, step in enumerate(steps)
        ]
        return [
            *statements,
            f"UPDATE {self._sql.copy} SET phase = 'ending', topic_offset = {mark.offset:d},"
            f" sequence = {mark.sequence:d}, leader_file = {literals.text(mark.file)},"
            f" leader_offset = {mark.leader_offset:d}, gtid = {gtid},"
            f" committed = {committed}, gtids = {literals.text(moment.gtids)} WHERE {self.whose}",
        ]

    def moment(self) -> CopyMoment:
        """Return the moment that `ending` has noted."""
        ((*mark, gtids),) = self._run(
            "SELECT topic_offset, sequence, leader_file, leader_offset, gtid, committed, gtids"
            f" FROM {self._sql.copy} WHERE {self.whose}"
        )
        if None in (*mark[:4], gtids):
            raise altered(self._sql.copy)
        return CopyMoment(Mark(*mark), gtids)

    def open_steps(self) -> list[tuple[int, list[str]]]:
        """Return the steps that are left, each with its number."""
        found = self._run(f"SELECT number, statements FROM {self._sql.step} WHERE {self.whose} AND NOT done ORDER BY 1")
        return [(number, texts(statements, self._sql.step)) for number, statements in found]

    def step_done(self, number: int) -> None:
        """Note that a step is done."""
        self._run(f"UPDATE {self._sql.step} SET done = 1 WHERE {self.whose} AND number = {number:d}")

    def done(self) -> None:
        """Note that the copy is whole: the consumer may start."""
        self._at_once(
            f"DELETE FROM {self._sql.only} WHERE {self.whose} AND name <> ''",
            f"UPDATE {self._sql.only} SET added = 1 WHERE {self.whose}",
            f"UPDATE {self._sql.copy} SET phase = 'done', ended_at = CURRENT_TIMESTAMP(6) WHERE {self.whose}",
        )


class MissingTables(Exception):
    """Tells that no copy was ever made into this follower."""


def _read(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    try:
        return rows(connection, literals.encode(sql))
    except MySQLError as error:
        if error_number(error) in (ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR):
            raise MissingTables from None
        raise


def _bound(key: Key | None) -> str:
    return "NULL" if key is None else literals.text(json.dumps(key))


def _name(database: bytes, table: bytes) -> TableName:
    return TableName(*(part.decode("utf-8", "surrogateescape") for part in (database, table)))


def _key(text: str | None, table: str) -> Key | None:
    return None if text is None else tuple(texts(text, table))
