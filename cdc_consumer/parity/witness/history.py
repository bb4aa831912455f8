"""Asks the topic which rows the leader wrote between two of its positions, and what they were afterwards.

Positions asked for are edges between transactions, as the leader and the follower tell them. Transactions do not
overlap in a binlog, so an event belongs to one that ends in (after, until] exactly when it starts there. Rows are told
apart by the literals of their keys (`canonical.literal`); what cannot be told for certain may be any row.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from urllib.parse import unquote

from cdc_consumer.parity.model import Key, KeyEvent, Shape, TableName
from cdc_consumer.parity.servers.connection import Select
from cdc_consumer.parity.servers.identity import require_leaders_topic
from cdc_consumer.parity.witness.answers import UNKNOWN, Touched, Trace, Traces, Unknown, Written, databases
from cdc_consumer.parity.witness.row_keys import KeyIndex, Literals, RowReader, certain, changes
from shared.errors import EventError, HistoryError
from shared.events import Event, Heartbeat, Position, Query, Rows, Value
from shared.profile import TopicSettings
from shared.topic import open_reader
from shared.topic.walk import Entry, TopicWalk, place

Wanted = Mapping[TableName, Collection[Key]]
#: a row as the topic holds it: column -> wire value
WireRow = Mapping[str, Value]

#: events kept of one row
LAST_EVENTS = 5
#: `keys_since` gives up above this number
MOST_KEYS = 1_000_000
#: records searched for a last image: at first, and at most
FIRST_RECORDS, MOST_RECORDS = 10_000, 1_000_000


class History:
    """Reads one topic and never writes it; used with `with`, by one thread at a time. Memory grows with the keys asked.

    Its methods raise HistoryError when the topic cannot tell, and EventError and other TopicErrors.
    """

    def __init__(self, settings: TopicSettings, shapes: Mapping[TableName, Shape]) -> None:
        """`shapes` are of all tables that may be asked for."""
        self._topic = TopicWalk(f"topic {settings.name}", open_reader(replace(settings, names=None)))
        self._readers = {name: RowReader(shape) for name, shape in shapes.items()}
        self._below: Mapping[TableName, Collection[TableName]] = {}
        #: the key `uri` of a record -> its table, None for a statement's
        self._tables: dict[bytes, TableName | None] = {}

    def __enter__(self) -> History:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._topic.close()

    def require_leader(self, leader: Select) -> None:
        """Raise TopicError when the topic's last heartbeat is of another server than this.

        What cannot be read tells nothing here: where it is needed, it is an error.
        """
        with suppress(HistoryError, EventError):
            require_leaders_topic(self._topic, leader)

    def know(self, shape: Shape) -> None:
        """A table was altered since."""
        self._readers[shape.name] = RowReader(shape)

    def know_cascades(self, below: Mapping[TableName, Collection[TableName]]) -> None:
        """Take a map of each table to those of which any row may have changed, without an event, where an event wrote
        the table.
        """
        self._below = below

    def touched(self, wanted: Wanted, after: Position, until: Position, timeout: float) -> Touched:
        """Return the rows that may have been written in (after, until], as either image of an event tells.

        Waits until the topic has come to `until`, at most `timeout` seconds without a new record.
        """
        indexes = _indexes(wanted)
        found: dict[TableName, set[Key]] = {table: set() for table in wanted}
        ddl: set[str] = set()
        low, high, tables = place(after), place(until), wanted.keys() | self._below.keys()
        entries = self._topic.walk(self._before(after), None, timeout) if low < high else iter(())
        for entry in entries:
            operation = self._operation(entry, tables) if low <= entry.place < high else None
            if isinstance(operation, Query):
                ddl.update(databases(operation))
            elif operation is not None:
                table = _table(operation)
                for key, _ in self._written(operation) if table in indexes else ():
                    found[table].update(indexes[table].match(key))
                for below in indexes.keys() & self._below.get(table, ()):
                    found[below].update(indexes[below].keys)
            if entry.edge >= high:
                break
        for table, index in indexes.items():
            if table.database in ddl:
                found[table].update(index.keys)
        return Touched(found, frozenset(ddl))

    def last_events(self, wanted: Wanted, until: Position, records: int) -> Traces:
        """Return the last events of these rows up to `until`, as far as the `records` records before it tell."""
        indexes = _indexes(wanted)
        found: dict[TableName, dict[Key, deque[Trace]]] = {table: {} for table in wanted}
        statements: dict[str, KeyEvent] = {}
        stop = self._until(until)
        start = max(self._topic.first_offset(), stop - records)
        for entry in self._walk(start, stop, until):
            event = self._event(entry, wanted)
            if event is None:
                continue
            told = _key_event(event, entry.offset)
            if isinstance(event.operation, Query):
                if event.operation.sql[:6].upper() != b"CREATE":
                    statements.update(dict.fromkeys(databases(event.operation), told))
            elif isinstance(event.operation, Rows):
                table = _table(event.operation)
                for key, before, after in self._traced(event.operation, indexes[table]):
                    found[table].setdefault(key, deque(maxlen=LAST_EVENTS)).append(Trace(told, before, after))
        return Traces(found, statements, self._is_first(start))

    def _traced(self, rows: Rows, index: KeyIndex) -> Iterator[tuple[Key, Literals | None, Literals | None]]:
        """What an event did to the rows asked for: key, the row before and after."""
        reader = self._readers[_table(rows)]
        for images in changes(rows):
            keys = [() if image is None else index.match(reader.key(rows, image)) for image in images]
            for key in dict.fromkeys((*keys[0], *keys[1])):
                before, after = (
                    None if image is None or key not in of else reader.row(rows, image)
                    for image, of in zip(images, keys, strict=True)
                )
                yield key, before, after

    def images_at(self, wanted: Wanted, until: Position) -> Mapping[TableName, Mapping[Key, WireRow | Unknown | None]]:
        """Return what the last event up to `until` made of each row: None when it was gone.

        It is UNKNOWN where the topic does not tell for certain.
        """
        begin, stop = self._topic.first_offset(), self._until(until)
        records = FIRST_RECORDS
        while True:
            start = max(begin, stop - records)
            found = self._images(wanted, self._walk(start, stop, until))
            missing = {table: [key for key in keys if key not in found[table]] for table, keys in wanted.items()}
            if start == begin or records >= MOST_RECORDS or not any(missing.values()):
                return {table: {**found[table], **dict.fromkeys(missing[table], UNKNOWN)} for table in wanted}
            records *= 10

    def _images(self, wanted: Wanted, entries: Iterator[Entry]) -> dict[TableName, dict[Key, WireRow | Unknown | None]]:
        """What the last of these events made of each row that one wrote."""
        indexes = _indexes(wanted)
        found: dict[TableName, dict[Key, WireRow | Unknown | None]] = {table: {} for table in wanted}
        tables = wanted.keys() | self._below.keys()
        for entry in entries:
            operation = self._operation(entry, tables)
            if isinstance(operation, Query):
                for table, index in indexes.items():
                    if table.database in databases(operation):
                        found[table] = dict.fromkeys(index.keys, UNKNOWN)
            elif operation is not None:
                table = _table(operation)
                for known, row in self._written(operation) if table in indexes else ():
                    # without a key there may be more copies of the row
                    told = None not in known and bool(self._readers[table].shape.key)
                    image = None if row is None else dict(zip(operation.columns, row, strict=True))
                    found[table].update(dict.fromkeys(indexes[table].match(known), image if told else UNKNOWN))
                for below in indexes.keys() & self._below.get(table, ()):
                    found[below] = dict.fromkeys(indexes[below].keys, UNKNOWN)
        return found

    def begin(self, position: Position) -> int:
        """Return an offset from which `written` tells all that follows the position."""
        return self._before(position)

    def written(self, start: int) -> Iterator[Written]:
        """Yield what each record from this offset up to where the topic ends now tells that was written."""
        tables = self._readers.keys() | self._below.keys()
        for entry in self._topic.walk(start, self._topic.next_offset()):
            operation = self._operation(entry, tables)
            if operation is None:
                yield Written(entry.offset, entry.place)
            elif isinstance(operation, Query):
                yield Written(entry.offset, entry.place, databases(operation))
            else:
                table = _table(operation)
                keys = [key for key, _ in self._written(operation)] if table in self._readers else []
                yield Written(entry.offset, entry.place, frozenset(), table, keys, self._below.get(table, ()))

    def keys_since(self, sequence: int) -> Touched:
        """Return all rows written by the event of this sequence and later ones, to the topic's end."""
        found: dict[TableName, set[Key]] = {}
        ddl: set[str] = set()
        untold: set[TableName] = set()
        for entry in self._topic.walk(self._at_sequence(sequence), self._topic.next_offset()):
            operation = self._operation(entry, self._readers)
            if isinstance(operation, Query):
                ddl.update(databases(operation))
            elif operation is not None:
                table = _table(operation)
                for known, _ in self._written(operation):
                    key = certain(known)
                    if key is None or not self._readers[table].shape.key:
                        untold.add(table)
                    else:
                        found.setdefault(table, set()).add(key)
            if sum(map(len, found.values())) > MOST_KEYS:
                raise HistoryError(
                    f"{self._topic.name}: over {MOST_KEYS} rows were written since sequence {sequence}; audit all rows"
                )
        return Touched(found, frozenset(ddl), frozenset(untold))

    def _written(self, rows: Rows) -> Iterator[tuple[Literals, Sequence[Value] | None]]:
        """The key of every image, and the row that has it afterwards."""
        reader = self._readers[_table(rows)]
        for before, after in changes(rows):
            if before is not None:
                yield reader.key(rows, before), None
            if after is not None:
                yield reader.key(rows, after), after

    def _operation(self, entry: Entry, tables: Container[TableName]) -> Query | Rows | None:
        event = self._event(entry, tables)
        return None if event is None or isinstance(event.operation, Heartbeat) else event.operation

    def _event(self, entry: Entry, tables: Container[TableName]) -> Event | None:
        """The event, unless it is a Heartbeat or holds rows of another table."""
        if entry.heartbeat:
            return None
        if entry.uri not in self._tables:
            names = [unquote(part) for part in json.loads(b'"' + entry.uri + b'"').split("/")[3:]]
            self._tables[entry.uri] = TableName(*names) if len(names) == 2 else None
        table = self._tables[entry.uri]
        return entry.decode() if table is None or table in tables else None

    def _before(self, position: Position) -> int:
        """Offset of a record at or before the position: the topic holds all that follows it."""
        low = place(position)
        start = self._topic.find(lambda entry: entry.place >= low)
        if start > self._topic.first_offset():
            return start - 1
        if start < self._topic.next_offset() and self._topic.at(start).place == low:
            return start
        raise HistoryError(f"{self._topic.name} does not reach back to {position} of the leader")

    def _until(self, position: Position) -> int:
        """Offset behind all that the leader wrote before the position."""
        high = place(position)
        return self._topic.find(lambda entry: entry.place >= high)

    def _walk(self, start: int, stop: int, until: Position) -> Iterator[Entry]:
        """The records between two offsets, without what the leader wrote later: it may stand before a repeat."""
        high = place(until)
        return (entry for entry in self._topic.walk(start, stop) if entry.place < high)

    def _is_first(self, offset: int) -> bool:
        """Whether no event was ever before this offset."""
        if offset >= self._topic.next_offset():
            return False
        entry = self._topic.at(offset)
        # an empty topic may begin with a Heartbeat of sequence -1
        return entry.sequence < (0 if entry.heartbeat else 1)

    def _at_sequence(self, sequence: int) -> int:
        """Offset of the event, or of the topic's end when it is the next one."""
        start = self._topic.find(lambda entry: entry.sequence >= sequence)
        if start < self._topic.next_offset():
            found = self._topic.at(start)
            if found.sequence == sequence and not found.heartbeat:
                return start
        elif start > self._topic.first_offset() and self._topic.at(start - 1).sequence == sequence - 1:
            return start
        raise HistoryError(f"{self._topic.name} does not hold sequence {sequence}; audit all rows")


def _indexes(wanted: Wanted) -> dict[TableName, KeyIndex]:
    return {table: KeyIndex(keys) for table, keys in wanted.items()}


def _table(rows: Rows) -> TableName:
    return TableName(rows.database, rows.table)


def _key_event(event: Event, offset: int) -> KeyEvent:
    assert event.transaction is not None  # decode refuses an operation without it
    operation = event.operation.kind if isinstance(event.operation, Rows) else "Query"
    return KeyEvent(
        event.sequence, offset, operation, str(event.position), event.transaction.gtid, event.transaction.time
    )
