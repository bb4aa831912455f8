"""Turns binlog events into operations, framed by the leader's transactions.

docs/architecture.md lists the binlog events of a transaction. One operation is always held back until it is known
whether another follows it in its transaction: the last one carries the transaction's end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring as json_string
from typing import Any

from cdc_producer import refused
from cdc_producer.decision import LeavingOut, Part, part_of
from cdc_producer.decode.binlog_event import UNREADABLE, BinlogEvent, unreadable
from cdc_producer.decode.gtids import read_transaction
from cdc_producer.decode.query_event import query_text, rows_session
from cdc_producer.decode.rows_event import Operation, RowsOperation
from cdc_producer.decode.short import ShortRun
from cdc_producer.decode.table_decoders import TableDecoder, TableDecoders
from cdc_producer.leader import LeaderFacts
from cdc_producer.outgoing import Outgoing
from cdc_producer.resume import Resume
from cdc_producer.statements import Statements
from shared.binlog_format import EventType
from shared.errors import UnsupportedError
from shared.events import NO_SESSION, Draft, Heartbeat, Position, Transaction, heartbeat_json, query_json
from shared.filters import DatabaseFilter

#: a table id that only ends a statement
DUMMY_TABLE = 0xFFFFFF


class Capture:
    """Holds the state between two binlog events."""

    def __init__(
        self, resource: str, databases: DatabaseFilter, facts: LeaderFacts, tables: TableDecoders, resume: Resume,
        outgoing: Outgoing, leaving: LeavingOut | None = None, routed: bool = False,
    ) -> None:  # fmt: skip
        """`resource` is the profile's mysql_resource_name; records go to `outgoing`.

        `leaving` knows of a transaction that is passed over, and a record that says so stands for it. `routed` says
        that statements go to the topics of their tables.
        """
        self._leaving = leaving or LeavingOut()
        self._resource = resource
        self._databases = databases
        self._facts = facts
        self._statements = Statements(resource, databases, facts, routed)
        self._tables = tables
        self._outgoing = outgoing
        self._resume = resume
        self._transaction: Transaction | None = None
        #: the one before, when it is in the same file: a restart proves by it that the leader is still the same
        self._last: Transaction | None = None
        #: index in the transaction of the binlog event in hand
        self._index = 0
        #: "" outside BEGIN .. COMMIT, else "BEGIN" or "XA"
        self._block = ""
        #: what the rows of the transaction in hand tell of the session that wrote them
        self._session: Mapping[str, Any] = NO_SESSION
        self._skip = False
        #: whether the last operation published still waits for its transaction's end
        self._open = False
        self._held: tuple[Draft, Operation] | None = None
        #: table maps of the statement in hand, and their tables
        self._maps: dict[int, tuple[TableDecoder | None, BinlogEvent]] = {}
        #: sequence of the last event that left
        self.sequence = resume.sequence
        #: how far the binlog was read, at a transaction's edge
        self.edge = resume.position
        #: position told by the last record
        self._told = resume.position if resume.told else None
        #: when the leader began the file in hand (seconds since 1970); None before it has said so
        self._created: int | None = None
        self._handlers = self._handled_types()

    def _handled_types(self) -> dict[int, Callable[[BinlogEvent], None]]:
        return {
            EventType.GTID: self._begin, EventType.ANONYMOUS_GTID: self._begin, EventType.GTID_TAGGED: self._begin,
            EventType.QUERY: self._query,
            EventType.TABLE_MAP: self._table_map,
            EventType.WRITE_ROWS: self._rows, EventType.UPDATE_ROWS: self._rows, EventType.DELETE_ROWS: self._rows,
            EventType.PARTIAL_UPDATE_ROWS: self._rows,
            EventType.XID: self._end, EventType.XA_PREPARE: self._end,
            EventType.ROTATE: self._rotate, EventType.PREVIOUS_GTIDS: self._rotate,
            EventType.FORMAT_DESCRIPTION: self._describe,
        }  # fmt: skip

    @property
    def plain(self) -> bool:
        """Tell whether nothing of the next transaction is to be skipped."""
        resume = self._resume
        at_rest = self._transaction is None and not self._leaving.waits
        return at_rest and resume.transaction is None and resume.gtids is None

    def pass_over(self, run: ShortRun) -> None:
        """Stand behind a run, as if its events had been fed; its records are made elsewhere."""
        self.sequence += run.total
        self.edge, self._last, self._told = run.end, run.last, run.told or self._told

    def again(self, run: ShortRun, outgoing: Outgoing) -> Capture:
        """Return one that stands where a run begins."""
        resume = Resume(run.start, run.sequence)
        return Capture(self._resource, self._databases, self._facts, self._tables, resume, outgoing)

    def feed(self, event: BinlogEvent) -> None:
        """Take the next binlog event.

        Raises LeaderError and its kinds, also for an earlier binlog event when that was still being decoded; what was
        before that event is in `outgoing`, and nothing of it.
        """
        if event.end > event.start:
            # not one that the leader made up for this connection, so that the count is the same the next time
            self._index += 1
        handler = self._leave if self.leaves(event) else self._handlers.get(event.type)
        if handler is not None:
            try:
                handler(event)
            except UNREADABLE as error:
                raise unreadable(event.type, event.where(), error, inside=not self.at_edge) from error

    @property
    def at_edge(self) -> bool:
        """Tell whether no transaction is half read."""
        return self._transaction is None

    def require_verified(self, error: UnsupportedError) -> None:
        """Raise LeaderError, from `error`, unless the leader was found to have the transaction the topic ends with."""
        if self._resume.transaction is not None:
            raise refused.not_there(self.edge) from error

    @property
    def began(self) -> bool:
        """Tell whether the leader has named the file it reads from, so that a heartbeat can."""
        return self._created is not None

    @property
    def moved(self) -> bool:
        """Tell whether the topic does not know how far the binlog was read."""
        return self.edge != self._told

    def heartbeat(self, heard: float) -> bool:
        """Add a heartbeat record; False inside a transaction, and before the leader has named its file.

        `heard` is when it gave its last sign of life (seconds of time.monotonic).
        """
        if not self.at_edge or not self.began:
            return False
        seen = int((heard + self._facts.clock) * 1e6)
        heartbeat = Heartbeat(self._facts.uuid, self._created, seen, filters=self._databases.told)
        draft = Draft(json_string(f"flv://{self._resource}"), self.edge, self._last, 0)
        self._outgoing.add(draft, Operation(heartbeat_json(heartbeat)), self.sequence, None)
        self._told = self.edge
        return True

    def leaves(self, event: BinlogEvent) -> bool:
        """Tell whether the event belongs to a transaction that is left out, from where that is named, or done with."""
        if self._transaction is None:
            return False
        if self._leaving.waits and not self._done_with and self._leaving.begins(event, self._transaction):
            # what was published of it before is undone by who reads the record that stands for it
            self._held = None
        return self._leaving.inside or self._done_with

    @property
    def _done_with(self) -> bool:
        """Tell whether the transaction in hand is published, left out or loaded: nobody judges it once more."""
        return self._skip and self._resume.complete

    def _leave(self, event: BinlogEvent) -> None:
        """Pass over the event; at the transaction's end publish what stands for it, unless the topic has that."""
        part = part_of(event, in_block=bool(self._block))
        if part is Part.BEGIN:
            self._block = "BEGIN"
        elif part is Part.END:
            self._left(event)
        elif part is Part.NEXT:
            # its own end was among what could not be read
            self._left(event._replace(end=event.start))
            self._handlers[event.type](event)

    def _left(self, event: BinlogEvent) -> None:
        """End a transaction that was passed over; its last event is this one."""
        if self._leaving.inside:
            self._skip = False
            query = self._leaving.take(event.where())
            self._hold(json_string(f"flv://{self._resource}"), Operation(query_json(query)), event)
        self._end(event)

    def _begin(self, event: BinlogEvent) -> None:
        if self._transaction is not None:
            raise refused.without_end(event)
        self._leaving.require_ahead(event)
        self._transaction = read_transaction(event.type, event.body, event.start)
        self._index = 0
        # A restart of the leader gives table ids to other tables.
        self._maps.clear()
        self._skip = self._resume.skips(self._transaction)
        self._open = self._skip and not self._resume.complete

    def _end(self, event: BinlogEvent) -> None:
        self._require_transaction(event)
        if self._held is not None:
            self._publish(*self._held, event.end)
        elif self._open:
            raise refused.half_published(event)
        self.edge = Position(event.file, event.end)
        if self._held is not None or self._skip:
            self._told = self.edge
        self._last = self._transaction
        self._transaction, self._held, self._block, self._open = None, None, "", False

    def _require_transaction(self, event: BinlogEvent) -> None:
        if self._transaction is None:
            raise refused.outside_transaction(event)

    def _rollback(self, event: BinlogEvent, text: bytes) -> None:
        """A leader logs this only for a transaction that also changed tables without transactions."""
        if self._held is not None or self._open:
            raise refused.rolled_back_in_part(event)
        if text == b"ROLLBACK":
            self._end(event)

    def _describe(self, event: BinlogEvent) -> None:
        self._resume.check_file(event.timestamp)
        self._created = event.timestamp
        if self._told is None:
            # the first record of an empty topic tells from where on it has everything
            self.heartbeat(time.monotonic())
        self._rotate(event)

    def _rotate(self, event: BinlogEvent) -> None:
        if self._transaction is None:
            self.edge = Position(event.file, event.end)
            self._last = None

    def _query(self, event: BinlogEvent) -> None:
        self._require_transaction(event)
        text = query_text(event)
        if text == b"BEGIN" or text.startswith(b"XA START"):
            self._block = "BEGIN" if text == b"BEGIN" else "XA"
            self._session = rows_session(event.body)
        elif text == b"COMMIT":
            self._end(event)
        elif text.startswith(b"ROLLBACK"):
            self._rollback(event, text)
        elif self._block and text.startswith((b"SAVEPOINT ", b"XA END")):
            pass
        else:
            self._statement(event)

    def _statement(self, event: BinlogEvent) -> None:
        """A statement that is more than a transaction's edge."""
        captured = self._statements.read(event, in_block=bool(self._block))
        if captured is not None:
            self._hold(*captured, event)
        if not self._block:
            self._end(event)

    def _table_map(self, event: BinlogEvent) -> None:
        self._maps[int.from_bytes(event.body[:6], "little")] = self._tables.table(event), event

    def _rows(self, event: BinlogEvent) -> None:
        self._require_transaction(event)
        table_id = int.from_bytes(event.body[:6], "little")
        if table_id not in self._maps and table_id != DUMMY_TABLE:
            raise refused.without_table_map(event)
        table, table_map = self._maps.get(table_id, (None, event))
        if table is None or self._skips(self._index):
            return
        if self._block == "XA":
            raise refused.rows_of_xa(event)
        if event.type == EventType.PARTIAL_UPDATE_ROWS:
            raise refused.partial_update(event, table.uri)
        self._hold(table.uri, RowsOperation(event, table), table_map, event)

    def _skips(self, index: int) -> bool:
        return self._skip and index <= self._resume.index

    def _hold(self, uri: str, operation: Operation, *source: BinlogEvent) -> None:
        """Take the next operation; `source` are its binlog events, of which the last one says where it is."""
        if self._skips(self._index):
            return
        operation.source, event = source, source[-1]
        if self._held is not None:
            self._publish(*self._held, None)
        # a Query tells its own session
        session = self._session if isinstance(operation, RowsOperation) else NO_SESSION
        draft = Draft(uri, Position(event.file, event.start), self._transaction, self._index, session)
        self._held = draft, operation

    def _publish(self, draft: Draft, operation: Operation, end: int | None) -> None:
        self.sequence += 1
        self._outgoing.add(draft, operation, self.sequence, end)
        self._open = end is None
