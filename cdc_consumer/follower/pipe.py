"""Sends statements to the follower, many in one packet, and judges each result.

A packet leaves only when every result of the packet before it was what it must be, so a COMMIT in front of a packet
never commits anything unproven; and while the server executes one packet, the next is built. A packet of `chain` does
not wait: it fails by itself when the one before it failed. When a statement fails, the server does not execute the rest
of its packet. After any error the connection must be closed: that rolls back what is open and releases its GTID,
whatever state the session was in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from cdc_consumer.binlog.changes import Changes
from cdc_consumer.binlog.position_row import TABLE_ID
from cdc_consumer.decision import WAY_PAST
from cdc_consumer.sql import literals, packets
from cdc_consumer.sql.server_errors import CONTRADICTED, too_large, translate
from shared import mysql
from shared.errors import (
    DivergedError,
    FollowerBusyError,
    FollowerError,
    FollowerLinkError,
    RowsMissedError,
    RowUnnamedError,
)
from shared.events import Rows, Value
from shared.mysql import Connection

#: statements of one packet at most, so that their results never fill a socket that nobody reads
PACKET_STATEMENTS = 2000
SEPARATOR = ";\n"
#: packets of `chain` under way at most: the server executes one while the others are on their way, which must last as
#: long as this program may have to wait for a core
CHAINED_PACKETS = 4

#: characters of a value, and values, that an error shows of a row
SHOWN_CHARACTERS = 40
SHOWN_VALUES = 3

#: database and table
TablePlace = tuple[str, str]


class Source(NamedTuple):
    """Tells errors where a statement comes from."""

    rows: Rows
    #: place in rows.rows of the first row the statement is about
    first: int
    key: tuple[str, ...]
    sequence: int
    #: topic offset
    offset: int
    #: what is done with the rows beside
    note: str = ""
    #: what the follower refuses here it may take from a session that is not strict
    strict: bool = False

    def __str__(self) -> str:
        rows = self.rows
        row = rows.rows[self.first]
        image = row[0] if rows.kind == "Update" else row
        names = self.key or rows.columns[:SHOWN_VALUES]
        shown = ", ".join(f"{name}={_shown(image[rows.columns.index(name)])}" for name in names)
        place = f"sequence {self.sequence} (topic offset {self.offset})"
        return f"{rows.kind} of {rows.database}.{rows.table} ({shown}){self.note}, {place}"


def _shown(value: Value) -> str:
    text = literals.literal(value).encode("ascii", "backslashreplace").decode()
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."


class ChangeGroup(NamedTuple):
    """Names the transactions that go together in one statement, for errors."""

    #: of the last event
    sequence: int
    changes: Sequence[Changes] = ()

    @property
    def tables(self) -> frozenset[TablePlace]:
        """Name the tables of the leader that they change."""
        changed = [changes for changes in self.changes if changes.table_id != TABLE_ID]
        return frozenset((changes.database.decode(), changes.table.decode()) for changes in changed)

    def __str__(self) -> str:
        tables = ", ".join(sorted(f"{database}.{table}" for database, table in self.tables))
        return f"changes of {tables} up to sequence {self.sequence}"


class ResultCheck(NamedTuple):
    """Says what the result of one statement must be."""

    #: rows inserted or matched; None for any number
    rows: int | None = None
    #: warnings; None for any number
    warnings: int | None = None
    #: what the statement is about: rows of an event, transactions, or words
    about: Source | ChangeGroup | str = ""


class Pipe:
    """Queues statements and sends many of them in one packet."""

    def __init__(self, connection: Connection, max_packet: int, packet_characters: int) -> None:
        """`max_packet` is the session's max_allowed_packet; `packet_characters` when a packet is full."""
        self._connection = connection
        self._max_packet = max_packet
        self._packet_characters = packet_characters
        self._queue: list[str] = []
        self._queued: list[ResultCheck] = []
        self._size = 0
        #: packets sent whose results were not read: what they must be, and the number of the first piece of the answer,
        #: None where no result is to be counted
        self._under_way: deque[tuple[list[ResultCheck], int | None]] = deque()
        #: the last of them ends with a transaction of `chain`
        self._chained = False
        #: the COMMIT that waits for the results of what is sent
        self._commit: ResultCheck | None = None
        #: statements of which nobody can tell what they add to the session's counters of changed rows: SQL that changes
        #: rows, and queries, which may use temporary tables
        self.uncounted = 0
        #: an error left the session in a state nobody knows
        self.broken = False

    def put(self, sql: str, check: ResultCheck, *, counted: bool = False) -> None:
        """Queue a statement; it is sent with others, at the latest by `settle`.

        `counted` is True of one that changes no row, or only by binlog events, whose rows are counted.
        """
        self.uncounted += 0 if counted else 1
        if self._queue and (self._size + len(sql) > self._packet_characters or len(self._queue) >= PACKET_STATEMENTS):
            self.send()
        self._queue.append(sql)
        self._queued.append(check)
        self._size += len(sql)

    def commit(self, about: str) -> None:
        """Send what is queued; a COMMIT goes out in front of whatever follows, once every result was judged good."""
        self.send()
        self._commit = ResultCheck(about=about)

    def chain(self, statements: Sequence[tuple[str, ResultCheck]]) -> None:
        """Send a transaction, at once if nothing but others of `chain` is under way.

        It is committed by its last statement, and must fail by itself when the one before it was not committed.
        """
        begins = self._commit is not None or bool(self._queue)
        waits = begins or not self._chained
        for sql, check in statements:
            self._queue.append(sql)
            self._queued.append(check)
        self._send(under_way=0 if waits else CHAINED_PACKETS - 1, counted=begins)
        self._chained = True

    def send(self) -> None:
        """Judge the results of all that is under way, then send what is queued."""
        self._send(under_way=0)

    def _send(self, under_way: int, *, counted: bool = True) -> None:
        """Judge what is under way, down to `under_way` packets, then send what is queued.

        Unless `counted` nobody asks how many rows its statements match.
        """
        while len(self._under_way) > under_way:
            self._judge()
        if self._commit is not None:
            self._queue.insert(0, "COMMIT")
            self._queued.insert(0, self._commit)
            self._commit = None
        if not self._queue:
            return
        packet = literals.encode(SEPARATOR.join(self._queue))
        if len(packet) >= self._max_packet:
            raise too_large(len(packet), self._max_packet, self._queued[-1].about)
        sent, self._queue, self._queued, self._size = self._queued, [], [], 0
        self._chained = False
        with self._talking(lambda: sent[0].about):
            piece = packets.send(self._connection, packet)
            self._under_way.append((sent, piece if counted else None))

    def retract(self) -> None:
        """Drop what is queued and was not sent; a COMMIT that waits is not queued."""
        self._queue, self._queued, self._size = [], [], 0

    def settle(self) -> None:
        """Send what is queued and judge every result."""
        self.send()
        while self._under_way:
            self._judge()

    def ask(self, sql: str | bytes, *, counted: bool = False) -> Sequence[tuple[Any, ...]]:
        """Return the rows of one query, after everything queued; `counted` is True of one without temporary tables."""
        self.uncounted += 0 if counted else 1
        self.settle()
        with self._talking(str):
            return mysql.rows(self._connection, sql)

    def run(self, sql: bytes, about: str) -> None:
        """Execute one statement in its own bytes, after everything queued; a second one in them is refused."""
        self.uncounted += 1
        self.settle()
        if len(sql) >= self._max_packet:
            raise too_large(len(sql), self._max_packet, about)
        with self._talking(lambda: about):
            packets.allow_several(self._connection, False)
            piece = packets.send(self._connection, sql)
            try:
                list(packets.results(self._connection, 1, piece))
            except mysql.MySQLError as error:
                # a refusal of the only statement leaves the session as it was
                if not mysql.is_link_error(error):
                    packets.allow_several(self._connection, True)
                    self.broken = False
                raise
            packets.allow_several(self._connection, True)

    def _judge(self) -> None:
        """Read and judge the results of the oldest packet under way."""
        sent, piece = self._under_way.popleft()
        check = sent[0]
        with self._talking(lambda: check.about):
            results = (
                packets.accepted(self._connection)
                if piece is None
                else packets.results(self._connection, len(sent), piece)
            )
            for check in sent:
                rows, warnings = next(results)
                if check.rows is not None and rows != check.rows:
                    source = check.about
                    table = (source.rows.database, source.rows.table) if isinstance(source, Source) else None
                    raise RowsMissedError(
                        f"{check.about}: {rows} of {check.rows} rows were found on the follower as they were on the"
                        " leader; nothing of this transaction was committed; make them there what they were on the"
                        f" leader (cdc-topic shows them), {WAY_PAST}",
                        table,
                    )
                if check.warnings is not None and warnings != check.warnings:
                    raise DivergedError(
                        f"{check.about} would be altered on the follower: it gives {warnings} warnings where a value"
                        f" must be stored as it is; make the table what it is on the leader (SHOW CREATE TABLE),"
                        f" {WAY_PAST}"
                    )

    @contextmanager
    def _talking(self, about: Callable[[], Source | ChangeGroup | str]) -> Iterator[None]:
        """Whatever ends a talk before its end leaves a session that nobody can go on with, and nobody does."""
        if self.broken:
            raise FollowerLinkError("an earlier error left this session of the follower in a state that nobody knows")
        self.broken = True
        try:
            yield
        except (mysql.MySQLError, OSError) as error:
            raise refusal(error, about()) from None
        self.broken = False


def refusal(error: Exception, about: Source | ChangeGroup | str) -> FollowerError:
    """Return what the driver's error means: that a closer look is due, where it may come of how rows were written."""
    translated = translate(error, about, f"; take away there what stands in its way, {WAY_PAST}")
    if isinstance(translated, (FollowerLinkError, FollowerBusyError)):
        return translated
    if isinstance(about, ChangeGroup):
        return RowUnnamedError(str(translated), about.sequence, about.tables)
    if isinstance(about, Source) and about.strict and mysql.error_number(error) not in CONTRADICTED:
        return RowUnnamedError(str(translated), about.sequence, frozenset())
    return translated
