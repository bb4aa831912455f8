"""Turns row images into SQL statements, in their order; it is pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import add
from typing import NamedTuple

from cdc_consumer.follower.computed_table import ComputedTable
from cdc_consumer.follower.pipe import Source
from cdc_consumer.follower.tables import FollowerTable
from cdc_consumer.sql import literals
from cdc_consumer.sql.predicates import exactly
from cdc_consumer.sql.session import RowMode, computing_mode
from shared.errors import EventError
from shared.events import Rows, Value
from shared.mysql import quote_name

#: rows of one statement at most; more gain nothing
INSERT_ROWS = 1000
DELETE_ROWS = 500
#: of a row that was written and is not found as it was on the leader
READ_AGAIN = ", read again with the columns that the follower computes"
#: the error value of an ENUM, index 0
ENUM_ERROR = {"Enum": 0}


class RowStatement(NamedTuple):
    """Holds one statement for rows, the session it needs and what its result must be."""

    sql: str
    #: rows it must insert or match; of a SELECT, find
    rows: int
    #: error values of ENUM columns it writes: strict SQL mode refuses them, otherwise each is one warning
    zeros: int
    mode: RowMode
    source: Source


class _Writer:
    """The parts of the statements on one table that do not depend on the values."""

    def __init__(self, table: FollowerTable, columns: Sequence[str]) -> None:
        self.table = table
        self._count = len(columns)
        names = [quote_name(name) for name in columns]
        written = [index for index, name in enumerate(columns) if not table.columns[name].generated]
        self._names = [(index, names[index]) for index in written]
        #: places of the columns that are written, None for all
        self._written = None if len(written) == len(columns) else written
        self._enums = [index for index in written if table.columns[columns[index]].type.startswith("enum")]
        self.key_names = table.key_in(columns)
        self._key = [(columns.index(name), quote_name(name)) for name in self.key_names]
        self.insert = f"INSERT INTO {table.sql} ({', '.join(names[index] for index in written)}) VALUES "
        self._update = f"UPDATE {table.sql} SET "
        self._assign = [f"{names[index]} = " for index in written]
        keys = ", ".join(name for _, name in self._key)
        self._delete = f"DELETE FROM {table.sql} WHERE "
        self.delete = f"{self._delete}{keys if len(self._key) == 1 else f'({keys})'} IN ("
        self.joins_deletes = bool(self._key) and not table.refers_to_itself
        self.computed = ComputedTable(table, columns, self.key_names) if table.computes else None

    def zeros(self, row: Sequence[Value]) -> int:
        """How many error values of ENUM columns it writes."""
        if not self._enums:
            return 0
        return sum(row[index] == ENUM_ERROR for index in self._enums)

    def _values(self, row: Sequence[Value]) -> list[str]:
        if len(row) != self._count:
            raise ValueError(f"{len(row)} values for {self._count} columns")
        return literals.all_of(row if self._written is None else [row[index] for index in self._written])

    def inserted(self, row: Sequence[Value]) -> str:
        return f"({','.join(self._values(row))})"

    def key(self, row: Sequence[Value]) -> str:
        if len(self._key) == 1:
            return literals.literal(row[self._key[0][0]])
        return literals.row([row[index] for index, _ in self._key])

    def _where(self, row: Sequence[Value]) -> str:
        """Finds one row. By its key where there is one: two keys that compare equal cannot both exist."""
        if self._key:
            return " AND ".join([f"{name} = {literals.literal(row[index])}" for index, name in self._key])
        return " AND ".join([exactly(name, row[index]) for index, name in self._names]) + " LIMIT 1"

    def update(self, before: Sequence[Value], after: Sequence[Value]) -> str:
        settings = ", ".join(map(add, self._assign, self._values(after)))
        return f"{self._update}{settings} WHERE {self._where(before)}"

    def delete_one(self, row: Sequence[Value]) -> str:
        return self._delete + self._where(row)


class _Joined:
    """One INSERT or DELETE that still grows."""

    def __init__(self, writer: _Writer, source: Source) -> None:
        self.writer = writer
        self.source = source
        self.parts: list[str] = []
        self.size = 0

    def takes(self, writer: _Writer, rows: Rows) -> bool:
        mine = self.source.rows
        same = mine.kind == rows.kind and mine.foreign_key_checks == rows.foreign_key_checks
        return same and self.writer is writer

    def statement(self) -> RowStatement:
        adding = self.source.rows.kind == "Add"
        head, tail = (self.writer.insert, "") if adding else (self.writer.delete, ")")
        sql = f"{head}{','.join(self.parts)}{tail}"
        mode = RowMode(self.source.rows.foreign_key_checks)
        return RowStatement(sql, len(self.parts), 0, mode, self.source)


class RowWriter:
    """Writes a transaction's rows as statements; consecutive ones of a table are joined where that means the same."""

    def __init__(self, limit: int) -> None:
        """`limit` is the size in characters at which a statement stops growing; 0 keeps every row apart."""
        self.limit = limit
        self._writers: dict[tuple[str, str, tuple[str, ...]], _Writer] = {}
        self._joined: _Joined | None = None

    def write(self, rows: Rows, table: FollowerTable, sequence: int, offset: int) -> Iterator[RowStatement]:
        """The statements that are complete; the rest waits for the next rows or `finish`. Raises EventError."""
        try:
            writer = self._writer(rows, table)
            source = Source(rows, 0, writer.key_names, sequence, offset)
            if self._joined is not None and not self._joined.takes(writer, rows):
                yield from self.finish()
            if writer.computed is not None and rows.kind != "Delete":
                yield from self.finish()
                yield from _computed(writer.computed, source)
            elif rows.kind == "Update":
                yield from _updates(writer, source)
            elif rows.kind == "Add":
                yield from self._adds(writer, source)
            elif writer.joins_deletes:
                yield from self._join(writer, source, [writer.key(row) for row in rows.rows], DELETE_ROWS)
            else:
                yield from _deletes(writer, source)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise EventError(
                f"topic offset {offset} (sequence {sequence}) holds a row of {rows.database}.{rows.table} that cannot"
                f" be written ({type(error).__name__}: {error})"
            ) from error

    def finish(self) -> Iterator[RowStatement]:
        """Yield the statement that still waited for more rows."""
        joined, self._joined = self._joined, None
        if joined is not None:
            yield joined.statement()

    def _writer(self, rows: Rows, table: FollowerTable) -> _Writer:
        place = (rows.database, rows.table, rows.columns)
        writer = self._writers.get(place)
        if writer is None or writer.table is not table:
            writer = self._writers[place] = _Writer(table, rows.columns)
        return writer

    def _adds(self, writer: _Writer, source: Source) -> Iterator[RowStatement]:
        parts: list[str] = []
        first = 0
        for index, row in enumerate(source.rows.rows):
            if zeros := writer.zeros(row):
                yield from self._join(writer, source._replace(first=first), parts, INSERT_ROWS)
                yield from self.finish()
                parts, first = [], index + 1
                sql = writer.insert + writer.inserted(row)
                mode = RowMode(source.rows.foreign_key_checks, True)
                yield RowStatement(sql, 1, zeros, mode, source._replace(first=index))
            else:
                parts.append(writer.inserted(row))
        yield from self._join(writer, source._replace(first=first), parts, INSERT_ROWS)

    def _join(self, writer: _Writer, source: Source, parts: list[str], most: int) -> Iterator[RowStatement]:
        """Let the statement under way grow by these parts, and a new one begin where it is full."""
        joined = self._joined
        for index, part in enumerate(parts):
            if joined is not None and (len(joined.parts) >= most or joined.size + len(part) > self.limit):
                yield joined.statement()
                joined = None
            if joined is None:
                joined = self._joined = _Joined(writer, source._replace(first=source.first + index))
            joined.parts.append(part)
            joined.size += len(part) + 1


def _computed(table: ComputedTable, source: Source) -> Iterator[RowStatement]:
    """Each row as the leader had it, and behind it the statement that finds it so."""
    rows = source.rows
    mode, read = computing_mode(rows.foreign_key_checks, rows.session), RowMode(rows.foreign_key_checks)
    for index, row in enumerate(rows.rows):
        before, after = row if rows.kind == "Update" else (None, row)
        sql = table.insert(after) if before is None else table.update(before, after)
        about = source._replace(first=index)
        yield RowStatement(sql, 1, 0, mode, about)
        yield RowStatement(table.find(after), 1, 0, read, about._replace(note=READ_AGAIN))


def _updates(writer: _Writer, source: Source) -> Iterator[RowStatement]:
    checks = source.rows.foreign_key_checks
    for index, (before, after) in enumerate(source.rows.rows):
        zeros = writer.zeros(after)
        mode = RowMode(checks, zeros > 0)
        yield RowStatement(writer.update(before, after), 1, zeros, mode, source._replace(first=index))


def _deletes(writer: _Writer, source: Source) -> Iterator[RowStatement]:
    mode = RowMode(source.rows.foreign_key_checks)
    for index, row in enumerate(source.rows.rows):
        yield RowStatement(writer.delete_one(row), 1, 0, mode, source._replace(first=index))
