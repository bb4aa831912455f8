"""Turns row images into SQL statements, in their order; it is pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import add
from typing import NamedTuple

from cdc_consumer.follower.bare_table import BareTable
from cdc_consumer.follower.computed_table import ALL, ComputedTable, steps_between
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
    #: rows it must insert or match; of a SELECT, find; of an INSERT that updates the rows it meets, two for each
    rows: int
    #: warnings that it gives as it writes error values of ENUM columns, which strict SQL mode refuses; 0 without any
    warnings: int
    mode: RowMode
    source: Source


class _Writer:
    """The parts of the statements on one table that do not depend on the values."""

    def __init__(self, table: FollowerTable, columns: Sequence[str], careful: bool) -> None:
        self.table = table
        #: a strict session computes virtual columns
        self.strict = table.may_refuse and not careful
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
        self._update = f"UPDATE {table.update(columns)}"
        self._assign = [f"{names[index]} = " for index in written]
        keys = ", ".join(name for _, name in self._key)
        self._delete = f"DELETE FROM {table.sql} WHERE "
        self.delete = f"{self._delete}{keys if len(self._key) == 1 else f'({keys})'} IN ("
        # beside another column an ENUM or a SET would be compared with its number as a text
        counted = [table.columns[name].type.startswith(("enum", "set")) for name in self.key_names]
        self.joins_deletes = bool(self._key) and not table.refers_to_itself and (len(counted) == 1 or not any(counted))
        computes = table.computes or (table.may_refuse and careful)
        self.computed = ComputedTable(table, columns, self.key_names) if computes else None
        complete = len(table.columns) == len(columns)
        #: what makes the INSERT an update of the rows it meets, "" where that is not certain
        self.met = ""
        # VALUES() gives a SET as a text, in which a member that is empty is not to be seen
        sets = any(column.type.startswith("set") for column in table.columns.values())
        if self._key and table.meets_own_row and complete and self._written is None and not sets:
            self.met = f" ON DUPLICATE KEY UPDATE {', '.join(f'{name} = VALUES({name})' for name in names)}"
        #: finds many rows at once, None where that is not certain
        self.bare = BareTable(table.sql, self._names, self.inserted) if table.bare and complete and written else None

    def zeros(self, row: Sequence[Value]) -> int:
        """How many error values of ENUM columns it writes."""
        if not self._enums:
            return 0
        return sum(row[index] == ENUM_ERROR for index in self._enums)

    def warnings(self, row: Sequence[Value], before: Sequence[Value] = ()) -> int:
        """One for each error value, and where there are any, those of the other literals; `before` finds the row."""
        zeros = self.zeros(row)
        found = [before[index] for index, _ in self._key or self._names] if before else []
        return zeros and zeros + literals.deprecated([*(row[index] for index, _ in self._names), *found])

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
        return (" AND ".join([exactly(name, row[index]) for index, name in self._names]) or ALL) + " LIMIT 1"

    def update(self, before: Sequence[Value], after: Sequence[Value]) -> str:
        settings = ", ".join(map(add, self._assign, self._values(after)))
        return f"{self._update}{settings} WHERE {self._where(before)}"

    def same_key(self, before: Sequence[Value], after: Sequence[Value]) -> bool:
        return all(before[index] == after[index] for index, _ in self._key)

    def delete_one(self, row: Sequence[Value]) -> str:
        return self._delete + self._where(row)


class _Joined:
    """One statement that still grows: an INSERT, one that updates the rows it meets, or a DELETE."""

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
        writer = self.writer
        # a row that is met counts twice when it was another before, and once when it is equal, as one that was missing
        head, tail, counted = {
            "Add": (writer.insert, "", 1),
            "Update": (writer.insert, writer.met, 2),
            "Delete": (writer.delete, ")", 1),
        }[self.source.rows.kind]
        sql = f"{head}{','.join(self.parts)}{tail}"
        mode = RowMode(self.source.rows.foreign_key_checks)
        return RowStatement(sql, counted * len(self.parts), 0, mode, self.source)


#: makes of each row a part of a statement that grows, or a statement of its own
_Written = Callable[[_Writer, Source], Iterator["str | RowStatement"]]


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
            source = Source(rows, 0, writer.key_names, sequence, offset, strict=writer.strict)
            if self._joined is not None and not self._joined.takes(writer, rows):
                yield from self.finish()
            if writer.computed is not None and (rows.kind != "Delete" or table.may_refuse):
                yield from self.finish()
                yield from _computed(writer.computed, source)
            elif writer.bare is not None and self._exchanges(writer, rows):
                yield from self.finish()
                yield from _exchanged(writer, writer.bare, source, self.limit)
            elif rows.kind != "Delete":
                yield from self._mixed(writer, source, _added if rows.kind == "Add" else self._updated)
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
            writer = self._writers[place] = _Writer(table, rows.columns, careful=self.limit == 0)
        return writer

    def _exchanges(self, writer: _Writer, rows: Rows) -> bool:
        """Tell whether these rows are found together; each row of its own then reads the whole table."""
        if self.limit == 0 or rows.kind == "Add" or len(rows.rows) == 1:
            return False
        return rows.kind == "Delete" or not any(writer.zeros(after) for _, after in rows.rows)

    def _mixed(self, writer: _Writer, source: Source, written: _Written) -> Iterator[RowStatement]:
        """Join the rows that may be, and keep the others apart, in their order."""
        parts: list[str] = []
        first = 0
        for index, one in enumerate(written(writer, source)):
            if isinstance(one, RowStatement):
                yield from self._join(writer, source._replace(first=first), parts, INSERT_ROWS)
                yield from self.finish()
                parts, first = [], index + 1
                yield one
            else:
                parts.append(one)
        yield from self._join(writer, source._replace(first=first), parts, INSERT_ROWS)

    def _updated(self, writer: _Writer, source: Source) -> Iterator[str | RowStatement]:
        """The rows as an INSERT writes them that meets each under its key, or as an UPDATE that finds it."""
        checks, joins = source.rows.foreign_key_checks, bool(writer.met) and self.limit > 0
        for index, (before, after) in enumerate(source.rows.rows):
            warnings = writer.warnings(after, before)
            steps = steps_between(before, after, writer.table, source.rows.columns)
            if joins and not warnings and before != after and len(steps) == 1 and writer.same_key(before, after):
                yield writer.inserted(after)
                continue
            about = source._replace(first=index)
            for old, new in steps:
                yield RowStatement(writer.update(old, new), 1, warnings, RowMode(checks, warnings > 0), about)

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
        about = source._replace(first=index)
        if rows.kind == "Delete":
            yield RowStatement(table.delete(row), 1, 0, mode, about)
            continue
        before, after = row if rows.kind == "Update" else (None, row)
        if before is None:
            yield RowStatement(table.insert(after), 1, 0, mode, about)
        else:
            for old, new in steps_between(before, after, table.table, rows.columns):
                yield RowStatement(table.update(old, new), 1, 0, mode, about)
        yield RowStatement(table.find(after), 1, 0, read, about._replace(note=READ_AGAIN))


def _added(writer: _Writer, source: Source) -> Iterator[str | RowStatement]:
    """The rows as an INSERT writes them, those with an error value of an ENUM as one of their own."""
    for index, row in enumerate(source.rows.rows):
        if warnings := writer.warnings(row):
            mode = RowMode(source.rows.foreign_key_checks, True)
            yield RowStatement(writer.insert + writer.inserted(row), 1, warnings, mode, source._replace(first=index))
        else:
            yield writer.inserted(row)


def _deletes(writer: _Writer, source: Source) -> Iterator[RowStatement]:
    mode = RowMode(source.rows.foreign_key_checks)
    for index, row in enumerate(source.rows.rows):
        yield RowStatement(writer.delete_one(row), 1, 0, mode, source._replace(first=index))


def _exchanged(writer: _Writer, bare: BareTable, source: Source, limit: int) -> Iterator[RowStatement]:
    rows = source.rows
    mode = RowMode(rows.foreign_key_checks)
    changes = rows.rows if rows.kind == "Update" else [(row, None) for row in rows.rows]
    for exchange in bare.exchanges(changes, limit):
        about = source._replace(first=exchange.first)
        if exchange.find:
            yield RowStatement(exchange.find, exchange.different, 0, mode, about)
        yield RowStatement(exchange.delete, exchange.deleted, 0, mode, about)
        for start in range(0, len(exchange.inserted), INSERT_ROWS):
            some = exchange.inserted[start : start + INSERT_ROWS]
            yield RowStatement(writer.insert + ",".join(some), len(some), 0, mode, about)
