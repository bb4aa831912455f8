"""Mends what was written while the ranges were read: every key that the topic wrote gets its last image.

A row that no transaction of the window wrote was the same in every read; a row that one wrote is replaced. Images are
taken in the topic's order, some thousand at a time, so that memory stays flat. Of each such part all keys are deleted
before an image is inserted: two keys that are different bytes, 'a' and 'A', may be equal to the table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from cdc_consumer.copy.copy_tables import CopyTables
from cdc_consumer.copy.moment import TableNames
from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.copy.state import CopiedTable
from cdc_consumer.follower.row_statements import DELETE_ROWS, RowWriter
from cdc_consumer.follower.tables import FollowerTables
from cdc_consumer.parity.model import TableName
from cdc_consumer.sql import literals
from cdc_consumer.sql.predicates import exactly
from cdc_consumer.sql.session import RowMode, Session, row_settings
from shared.errors import DivergedError, EventError
from shared.events import Rows, Value
from shared.mysql import quote_name
from shared.topic.walk import Entry, place

#: rows of one part of the window, which is one transaction of the follower
PART_ROWS = 5000
#: characters of one statement
STATEMENT_CHARACTERS = 1 << 20


class CopiedKeys(NamedTuple):
    """Names a table of the window, and the columns by which its rows are found, () for a table without a key."""

    table: CopiedTable
    key: tuple[str, ...]
    #: where it is on the follower
    into: TableName


#: of each key, as SQL, the last image with how it looks; None of a row that is gone
LastImages: TypeAlias = "dict[str, tuple[_Images, list[Value]] | None]"


class _Images(NamedTuple):
    """Says how the images of some rows of one table look."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    #: of the leader's session, as JSON
    session: str


class Window:
    """Applies a part of the topic to the follower."""

    def __init__(self, writer: Writer, tables: Mapping[TableName, CopiedKeys], sql: CopyTables) -> None:
        """`writer` holds the session; nothing else may use it."""
        self._writer = writer
        self._tables = tables
        self._keys = {each.into: each.key for each in tables.values()}
        self._sql = sql
        self._follower = FollowerTables(writer.rows)
        self._session = Session({})
        self._names = TableNames()

    def apply(self, entries: Iterable[Entry], stop: int) -> int:
        """Apply the operations up to before the offset `stop`, part by part; return how many images that were.

        A part may end inside a transaction: only what there is at `stop` counts, and the next run goes on behind it.
        """
        return self._follow(entries, stop, back=False)

    def revert(self, entries: Iterable[Entry]) -> int:
        """Take operations back, which come the newest first: keys get the images they had before all of them."""
        return self._follow(entries, None, back=True)

    def _follow(self, entries: Iterable[Entry], stop: int | None, *, back: bool) -> int:
        count = applied = 0
        part: dict[TableName, LastImages] = {}
        for rows, offset in self._rows(entries, keyed=True, back=back):
            name = TableName(rows.database, rows.table)
            count += self._take(part.setdefault(name, {}), self._keys[name], rows, back)
            if count >= PART_ROWS:
                self._write(part, None if back else offset + 1)
                applied, count = applied + count, 0
                part.clear()
        self._write(part, stop)
        return applied + count

    def _rows(self, entries: Iterable[Entry], *, keyed: bool, back: bool) -> Iterator[tuple[Rows, int]]:
        """Yield the operations on tables with a key, or without one, that their copies do not show.

        Of those that are taken `back`, a copy made at once shows all up to its moment, and others may show any.
        """
        for entry in entries:
            found = self._tables.get(self._names.of(entry))
            if found is None or bool(found.key) != keyed:
                continue
            shown = entry.place < place(found.table.begin if keyed else found.table.until)
            if shown != back and not (keyed and back):
                continue
            event = entry.decode()
            if isinstance(event.operation, Rows):
                into = found.into
                rows = event.operation._replace(database=into.database, table=into.table)
                self._follower.get(rows)
                yield rows, entry.offset

    def _take(self, last: LastImages, names: Sequence[str], rows: Rows, back: bool) -> int:
        """Note the last image of each key, None of one that is gone; return how many images there were."""
        try:
            places = [rows.columns.index(name) for name in names]
            looks = _Images(rows.columns, rows.types, json.dumps(dict(rows.session), sort_keys=True))
            for row in reversed(rows.rows) if back else rows.rows:
                before, after = _both(rows.kind, row, back)
                if before is not None:
                    last[_key(before, places)] = None
                if after is not None:
                    last[_key(after, places)] = (looks, after)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise EventError(
                f"a row of {rows.database}.{rows.table} cannot be read ({type(error).__name__}: {error})"
            ) from error
        return len(rows.rows)

    def _write(self, part: Mapping[TableName, LastImages], passed: int | None) -> None:
        self._writer.run("BEGIN")
        for name, last in part.items():
            self._set(RowMode(False))
            for sql in _deletes(name, self._keys[name], list(last)):
                self._writer.run(sql)
            images: dict[_Images, list[list[Value]]] = {}
            for looks, image in filter(None, last.values()):
                images.setdefault(looks, []).append(image)
            for looks, found in images.items():
                self.insert(name, looks.columns, looks.types, json.loads(looks.session), found)
        if passed is not None:
            self._writer.expect(self._sql.pass_window(passed), 1)
        self._writer.run("COMMIT")

    def insert(
        self, name: TableName, columns: tuple[str, ...], types: tuple[str, ...], session: Mapping[str, Any],
        images: list[list[Value]],
    ) -> None:  # fmt: skip
        """Insert rows, inside the open transaction, and see that each is there as it was."""
        rows = Rows("Add", name.database, name.table, columns, images, types, (), False, session)
        writer = RowWriter(STATEMENT_CHARACTERS)
        for statement in (*writer.write(rows, self._follower.get(rows), 0, 0), *writer.finish()):
            self._set(statement.mode)
            count, warnings = self._writer.run(statement.sql)
            if count != statement.rows or (statement.warnings and warnings != statement.warnings):
                raise DivergedError(f"{count} of {statement.rows} rows of {name} were written as they are in the topic")

    def _set(self, mode: RowMode) -> None:
        for sql in self._session.change(row_settings(mode)):
            self._writer.run(sql)

    def settle_copies(self, entries: Iterable[Entry], *, back: bool = False) -> None:
        """Bring the tables without a key to the end of these operations, inside the open transaction, part by part.

        Only the net number of each row of a part counts: what comes and goes in it is not touched. `back`: to their
        begin, whatever the order they come in, all at once.
        """
        net: dict[TableName, Counter[str]] = {}
        looks: dict[TableName, Rows] = {}
        count = 0
        for rows, _ in self._rows(entries, keyed=False, back=back):
            name = TableName(rows.database, rows.table)
            looks[name] = rows
            counts = net.setdefault(name, Counter())
            for row in rows.rows:
                for image, change in zip(_both(rows.kind, row, back), (-1, 1), strict=True):
                    if image is not None:
                        counts[text := json.dumps(image)] += change
                        if not counts[text]:
                            del counts[text]
            count += len(rows.rows)
            if count >= PART_ROWS and not back:
                self._settle(net, looks)
                count = 0
                net.clear()
        self._settle(net, looks)

    def _settle(self, net: Mapping[TableName, Counter[str]], looks: Mapping[TableName, Rows]) -> None:
        for name, counts in net.items():
            self._set(RowMode(False))
            for text, change in counts.items():
                if change < 0:
                    self._delete_copies(name, looks[name], json.loads(text), -change)
            added = [json.loads(text) for text, change in counts.items() for _ in range(change)]
            if added:
                rows = looks[name]
                self.insert(name, rows.columns, rows.types, rows.session, added)

    def _delete_copies(self, name: TableName, rows: Rows, image: list[Value], count: int) -> None:
        kept = self._follower.get(rows).columns
        where = " AND ".join(
            exactly(quote_name(column), value)
            for column, value in zip(rows.columns, image, strict=True)
            if not kept[column].generated
        )
        found, _ = self._writer.run(f"DELETE FROM {name.sql} WHERE {where} LIMIT {count}")
        if found != count:
            raise DivergedError(f"{found} of {count} rows of {name} were found as the leader had them")


def _both(kind: str, row: Any, back: bool) -> tuple[list[Value] | None, list[Value] | None]:
    """Return a row before and after, the other way round where it is taken `back`; None where it was not there."""
    before, after = row if kind == "Update" else (None, row) if kind == "Add" else (row, None)
    return (after, before) if back else (before, after)


def _key(image: Sequence[Value], places: Sequence[int]) -> str:
    values = [image[index] for index in places]
    return literals.literal(values[0]) if len(values) == 1 else literals.row(values)


def _deletes(name: TableName, key: Sequence[str], keys: Sequence[str]) -> Iterator[str]:
    columns = ", ".join(map(quote_name, key))
    head = f"DELETE FROM {name.sql} WHERE {columns if len(key) == 1 else f'({columns})'} IN ("
    for start in range(0, len(keys), DELETE_ROWS):
        yield f"{head}{','.join(keys[start : start + DELETE_ROWS])})"
