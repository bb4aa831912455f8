"""Keeps the consumer's memory: rows in the system's own database on the follower, one per topic and worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cdc_consumer.sql import literals
from shared.events import Event, Heartbeat, Position
from shared.mysql import quote_name


@dataclass(frozen=True, slots=True)
class Mark:
    """Says how far the follower has come."""

    #: topic offset of the last applied record, -1 for none
    offset: int
    #: sequence of the last applied event, -1 for none
    sequence: int
    #: the leader's position after it
    file: str
    leader_offset: int
    gtid: str | None
    #: when the leader committed it, microseconds since 1970
    committed: int | None

    @property
    def position(self) -> Position | None:
        """Return the leader's position after the last applied event; None when nothing was applied yet."""
        return Position(self.file, self.leader_offset) if self.file else None


#: `link` is in the key of the position, so that a transaction that was written to follow another one does not find the
#: row when that one was not committed. It is the sequence of the last transaction that the binlog tells of: writes that
#: are kept out of it do not change it, and a replica of the follower finds the row as well. It stands last, where a
#: replica whose table an earlier version made passes over it.
CHAINED_KEY = "(topic, worker, link)"
LINK = "link BIGINT NOT NULL DEFAULT -1"

#: the columns of a Mark
_MARK = (
    "topic_offset, sequence, leader_file, leader_offset, gtid, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', committed_at)"
)

#: nothing applied yet
NOTHING = Mark(-1, -1, "", 0, None, None)


def mark_of(event: Event, offset: int) -> Mark:
    """Return the mark after an event that ends its transaction, or after a Heartbeat."""
    after = event.position.offset if event.end is None or isinstance(event.operation, Heartbeat) else event.end
    gtid, committed = (event.transaction.gtid, event.transaction.time) if event.transaction else (None, None)
    return Mark(offset, event.sequence, event.position.file, after, gtid, committed)


#: characters of a fingerprint, and what those begin with of an operator's own statement, and of a table that is made
#: before its rows: no digit has such letters
FINGERPRINT_LENGTH, INSTEAD, MADE = 64, "instead:", "made:"


@dataclass(frozen=True, slots=True)
class Intent:
    """A statement that commits by itself and was about to run: without GTIDs only this tells whether it did."""

    sequence: int
    #: of what it names, before it; that of a statement in the place of the event's own begins with INSTEAD, and that of
    #: one that makes a table for the rows behind it is MADE and which table that is
    fingerprint: str

    @property
    def instead(self) -> bool:
        """Tell whether it is about a statement that an operator put in the place of the event's own."""
        return self.fingerprint.startswith(INSTEAD)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Tells of one transaction that an operator decided to leave out."""

    #: sequences of its first and its last event
    first: int
    last: int
    #: where its last binlog event starts
    position: Position
    gtid: str | None
    #: where it was decided: "follower" or "leader"
    side: str
    reason: str
    #: statements that ran in its place, None for none
    instead: str | None

    def __str__(self) -> str:
        name = self.gtid or str(self.position)
        return f"transaction {name} (sequences {self.first} to {self.last}, at the {self.side}): {self.reason}"


class PositionTables:
    """Writes the SQL of the tables `position` and `intent` for one topic and one worker."""

    def __init__(self, database: str, topic: str, worker: int = 0) -> None:
        self._place = f"TABLE_SCHEMA = {literals.text(database)} AND TABLE_NAME = 'position'"
        self.position = f"{quote_name(database)}.`position`"
        self.intent = f"{quote_name(database)}.`intent`"
        self.left_out = f"{quote_name(database)}.`left_out`"
        self._database = quote_name(database)
        self._topic = literals.text(topic)
        self._worker = literals.integer(worker)
        self._row = f"topic = {self._topic} AND worker = {self._worker}"

    def create(self) -> list[str]:
        """Return statements that create what is missing, the row of this topic included."""
        whose = "topic VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, worker INT UNSIGNED NOT NULL"
        changed = "updated_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)"
        return [
            f"CREATE DATABASE IF NOT EXISTS {self._database} CHARACTER SET utf8mb4",
            f"CREATE TABLE IF NOT EXISTS {self.position} ({whose},"
            " topic_offset BIGINT NOT NULL,"
            " sequence BIGINT NOT NULL, leader_file VARCHAR(512) NOT NULL,"
            " leader_offset BIGINT UNSIGNED NOT NULL, gtid VARCHAR(100) NULL,"
            f" committed_at DATETIME(6) NULL, {changed}, {LINK}, PRIMARY KEY {CHAINED_KEY}) ENGINE=InnoDB",
            f"CREATE TABLE IF NOT EXISTS {self.intent} ({whose}, PRIMARY KEY (topic, worker),"
            f" sequence BIGINT NOT NULL, fingerprint CHAR(64) CHARACTER SET ascii NOT NULL, {changed}) ENGINE=InnoDB",
            f"CREATE TABLE IF NOT EXISTS {self.left_out} ("
            "topic VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, first_sequence BIGINT NOT NULL,"
            " last_sequence BIGINT NOT NULL, leader_file VARCHAR(512) NOT NULL, leader_offset BIGINT UNSIGNED NOT NULL,"
            " gtid VARCHAR(100) NULL, side VARCHAR(8) NOT NULL, reason TEXT NOT NULL, instead LONGTEXT NULL,"
            " account VARCHAR(300) NOT NULL, decided_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),"
            " PRIMARY KEY (topic, first_sequence)) CHARACTER SET utf8mb4 ENGINE=InnoDB",
            f"INSERT INTO {self.position} (topic, worker, topic_offset, sequence, leader_file, leader_offset)"
            f" SELECT {self._topic}, {self._worker}, -1, -1, '', 0 FROM DUAL"
            f" WHERE NOT EXISTS (SELECT 1 FROM {self.position} WHERE {self._row})",
        ]

    def read_chained(self) -> str:
        """Return a query that finds a row when the position's key ends with `link`, as `create` makes it."""
        return (
            f"SELECT 1 FROM information_schema.STATISTICS WHERE {self._place} AND INDEX_NAME = 'PRIMARY'"
            " AND SEQ_IN_INDEX = 3 AND COLUMN_NAME = 'link'"
        )

    def chain(self) -> str:
        """Return the statement that gives a table of an earlier version the key it has now."""
        return f"ALTER TABLE {self.position} DROP PRIMARY KEY, ADD {LINK}, ADD PRIMARY KEY {CHAINED_KEY}"

    def read_link(self) -> str:
        """Return a query for the sequence of the last transaction that the binlog tells of."""
        return f"SELECT link FROM {self.position} WHERE {self._row}"

    def read_slots(self) -> str:
        """Return a query for the slots: number, link and a Mark of each.

        A slot tells of what was committed as one, maybe before its turn: the link is the sequence of its first event.
        What the position has reached needs no slot.
        """
        return f"SELECT worker, link, {_MARK} FROM {self.position} WHERE topic = {self._topic} AND worker > 0"

    def read_ahead(self) -> str:
        """Return a query for the leader's position after each transaction that ended before its turn."""
        return (
            f"SELECT leader_file, leader_offset FROM {self.position} WHERE topic = {self._topic} AND worker > 0"
            f" AND sequence > (SELECT sequence FROM {self.position} WHERE {self._row})"
        )

    def read(self) -> str:
        """Return the query for the row of the position, which `mark_from` makes a Mark."""
        return f"SELECT {_MARK} FROM {self.position} WHERE {self._row}"

    def read_intent(self) -> str:
        return f"SELECT sequence, fingerprint FROM {self.intent} WHERE {self._row}"

    def write(self, mark: Mark, *, link: bool = False) -> str:
        """Matches exactly one row, unless the session's GTID was executed before: then MySQL skips it.

        `link` says that it is written in a transaction that the binlog tells of.
        """
        moment = "NULL"
        if mark.committed is not None:
            seconds, fraction = divmod(mark.committed, 1_000_000)
            moment = literals.timestamp({"unix_time": seconds, "subsecond": fraction})
        gtid = "NULL" if mark.gtid is None else literals.text(mark.gtid)
        return (
            f"UPDATE {self.position} SET topic_offset = {literals.integer(mark.offset)},"
            f" sequence = {literals.integer(mark.sequence)}, leader_file = {literals.text(mark.file)},"
            f" leader_offset = {literals.integer(mark.leader_offset)}, gtid = {gtid}, committed_at = {moment},"
            " updated_at = CURRENT_TIMESTAMP(6)"
            f"{f', link = {literals.integer(mark.sequence)}' if link else ''}"
            f" WHERE {self._row}"
        )

    def write_left_out(self, left_out: LeftOut) -> str:
        gtid, instead = ("NULL" if part is None else literals.text(part) for part in (left_out.gtid, left_out.instead))
        return (
            f"INSERT INTO {self.left_out} (topic, first_sequence, last_sequence, leader_file, leader_offset, gtid,"
            f" side, reason, instead, account) VALUES ({self._topic}, {literals.integer(left_out.first)},"
            f" {literals.integer(left_out.last)}, {literals.text(left_out.position.file)},"
            f" {literals.integer(left_out.position.offset)}, {gtid}, {literals.text(left_out.side)},"
            f" {literals.text(left_out.reason)}, {instead}, CURRENT_USER())"
        )

    def read_left_out(self, sequence: int) -> str:
        """Select a row when the transaction of this sequence was left out."""
        number = literals.integer(sequence)
        return (
            f"SELECT 1 FROM {self.left_out} WHERE topic = {self._topic} AND first_sequence <= {number}"
            f" AND last_sequence >= {number}"
        )

    def read_all_left_out(self) -> str:
        """Select each transaction that was left out, in order: what `LeftOut` has of it, who decided it, and when.

        The time is in the session's time zone.
        """
        return (
            "SELECT first_sequence, last_sequence, leader_file, leader_offset, gtid, side, reason, instead, account,"
            f" CAST(decided_at AS CHAR) FROM {self.left_out} WHERE topic = {self._topic} ORDER BY first_sequence"
        )

    def delete_intent(self) -> str:
        return f"DELETE FROM {self.intent} WHERE {self._row}"

    def write_intent(self, intent: Intent) -> str:
        return (
            f"REPLACE INTO {self.intent} (topic, worker, sequence, fingerprint) VALUES"
            f" ({self._topic}, {self._worker}, {literals.integer(intent.sequence)},"
            f" {literals.text(intent.fingerprint)})"
        )


def mark_from(row: Sequence[Any]) -> Mark:
    """Return the Mark of a row of `PositionTables.read`."""
    return Mark(*row)
