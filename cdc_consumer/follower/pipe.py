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

from cdc_consumer.decision import WAY_PAST
from cdc_consumer.follower.row_statements import Source
from cdc_consumer.sql import literals
from cdc_consumer.sql.server_errors import too_large, translate
from shared import mysql
from shared.errors import (
    DivergedError,
    FollowerBusyError,
    FollowerLinkError,
    RowsMissedError,
    RowUnnamedError,
)
from shared.mysql import Connection

#: statements of one packet at most, so that their results never fill a socket that nobody reads
PACKET_STATEMENTS = 2000
SEPARATOR = ";\n"
#: packets of `chain` under way at most: the server executes one while the other is on its way
CHAINED_PACKETS = 2

#: database and table
TablePlace = tuple[str, str]


class ChangeGroup(NamedTuple):
    """Names the transactions that go together in one statement, for errors."""

    #: of the last event
    sequence: int
    tables: frozenset[TablePlace]

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
        #: packets sent whose results were not read: what they must be, and the number of the first piece of the answer
        self._under_way: deque[tuple[list[ResultCheck], int]] = deque()
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
        waits = self._commit is not None or bool(self._queue) or not self._chained
        for sql, check in statements:
            self._queue.append(sql)
            self._queued.append(check)
        self._send(under_way=0 if waits else CHAINED_PACKETS - 1)
        self._chained = True

    def send(self) -> None:
        """Judge the results of all that is under way, then send what is queued."""
        self._send(under_way=0)

    def _send(self, under_way: int) -> None:
        """Judge what is under way, down to `under_way` packets, then send what is queued."""
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
            self._under_way.append((sent, mysql.send(self._connection, packet)))

    def retract(self) -> None:
        """Drop what is queued and was not sent; a COMMIT that waits is not queued."""
        self._queue, self._queued, self._size = [], [], 0

    def settle(self) -> None:
        """Send what is queued and judge every result."""
        self.send()
        while self._under_way:
            self._judge()

    def ask(self, sql: str | bytes) -> Sequence[tuple[Any, ...]]:
        """Return the rows of one query, after everything queued."""
        self.uncounted += 1
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
            mysql.allow_several(self._connection, False)
            piece = mysql.send(self._connection, sql)
            try:
                list(mysql.results(self._connection, 1, piece))
            except mysql.MySQLError as error:
                # a refusal of the only statement leaves the session as it was
                if not mysql.is_link_error(error):
                    mysql.allow_several(self._connection, True)
                    self.broken = False
                raise
            mysql.allow_several(self._connection, True)

    def _judge(self) -> None:
        """Read and judge the results of the oldest packet under way."""
        sent, piece = self._under_way.popleft()
        check = sent[0]
        with self._talking(lambda: check.about):
            results = mysql.results(self._connection, len(sent), piece)
            for check in sent:
                rows, warnings = next(results)
                if check.rows is not None and rows != check.rows:
                    raise RowsMissedError(
                        f"{check.about}: {rows} of {check.rows} rows were found on the follower as they were on the"
                        " leader; nothing of this transaction was committed; make them there what they were on the"
                        f" leader (cdc-topic shows them), {WAY_PAST}"
                    )
                if check.warnings is not None and warnings != check.warnings:
                    raise DivergedError(
                        f"{check.about} would be altered on the follower: it gives {warnings} warnings where a value"
                        f" must be stored as it is; make the table what it is on the leader (SHOW CREATE TABLE),"
                        f" {WAY_PAST}"
                    )

    @contextmanager
    def _talking(self, about: Callable[[], Source | ChangeGroup | str]) -> Iterator[None]:
        """Whatever ends a talk before its end leaves a session that nobody can go on with."""
        self.broken = True
        try:
            yield
        except (mysql.MySQLError, OSError) as error:
            refusal, subject = translate(error, about()), about()
            if isinstance(subject, ChangeGroup) and not isinstance(refusal, (FollowerLinkError, FollowerBusyError)):
                raise RowUnnamedError(str(refusal), subject.sequence, subject.tables) from None
            raise refusal from None
        self.broken = False
