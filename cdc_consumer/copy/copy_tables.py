"""Writes the SQL of the tables on the follower that tell how far a copy has come.

copy         one row for a topic: the phase, and once it is known the moment at which the copy ends
copy_table   one for a table: its definition, and from where on the topic tells what its rows do not show; without a
             definition one for what else the copy has made on the follower
copy_range   one for a range of a table: its bounds, and how many rows it had once it is there
copy_step    one for a statement that is left to do behind the rows
copy_only    one for a table, or a database (a table without a name), of a copy that is not of everything; that of a
             database stays
copy_note    one for what a page tells of it afterwards: when a phase began, what was copied once more, what is left out
"""

from __future__ import annotations

import json
from contextlib import suppress

from cdc_consumer.parity.model import TableName
from cdc_consumer.sql import literals
from shared.errors import FollowerError
from shared.events import Position
from shared.mysql import quote_name

#: bytes of a topic's, database's or table's name: whatever they mean to a collation, they are the same or not
_NAME = "VARBINARY(256) NOT NULL"


class CopyTables:
    """Writes that SQL for one topic."""

    def __init__(self, database: str, topic: str) -> None:
        self.database = quote_name(database)
        names = ("copy", "copy_table", "copy_range", "copy_step", "copy_only", "copy_note")
        found = (f"{self.database}.`{name}`" for name in names)
        self.copy, self.table, self.range, self.step, self.only, self.note = found
        self.topic = literals.text(topic)

    def create(self) -> list[str]:
        """Return the statements that create what is missing."""
        topic, table = f"topic {_NAME}", f"db {_NAME}, name {_NAME}"
        return [
            f"CREATE DATABASE IF NOT EXISTS {self.database} CHARACTER SET utf8mb4",
            f"CREATE TABLE IF NOT EXISTS {self.copy} ({topic} PRIMARY KEY, phase VARCHAR(10) NOT NULL,"
            " window_offset BIGINT NULL, topic_offset BIGINT NULL, sequence BIGINT NULL, leader_file VARCHAR(512) NULL,"
            " leader_offset BIGINT UNSIGNED NULL, gtid VARCHAR(100) NULL, committed BIGINT NULL, gtids LONGTEXT NULL,"
            " started_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), ended_at TIMESTAMP(6) NULL) ENGINE=InnoDB",
            f"CREATE TABLE IF NOT EXISTS {self.table} ({topic}, {table}, definition CHAR(64) NOT NULL,"
            " defined_file VARCHAR(512) NOT NULL, defined_offset BIGINT UNSIGNED NOT NULL,"
            " begin_file VARCHAR(512) NOT NULL, begin_offset BIGINT UNSIGNED NOT NULL, until_file VARCHAR(512)"
            " NOT NULL, until_offset BIGINT UNSIGNED NOT NULL, PRIMARY KEY (topic, db, name)) ENGINE=InnoDB",
            f"CREATE TABLE IF NOT EXISTS {self.range} ({topic}, {table}, number INT NOT NULL, low LONGTEXT NULL,"
            " high LONGTEXT NULL, expected BIGINT NOT NULL, copied BIGINT NULL, PRIMARY KEY (topic, db, name, number))"
            " ENGINE=InnoDB",
            f"CREATE TABLE IF NOT EXISTS {self.step} ({topic}, number INT NOT NULL, statements LONGTEXT NOT NULL,"
            " done BOOL NOT NULL DEFAULT 0, PRIMARY KEY (topic, number)) ENGINE=InnoDB",
            f"CREATE TABLE IF NOT EXISTS {self.only} ({topic}, {table}, added BOOL NOT NULL DEFAULT 0,"
            " PRIMARY KEY (topic, db, name)) ENGINE=InnoDB",
            f"CREATE TABLE IF NOT EXISTS {self.note} (number BIGINT AUTO_INCREMENT PRIMARY KEY, {topic},"
            " noted_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), kind VARCHAR(10) NOT NULL,"
            " words LONGTEXT NOT NULL, KEY (topic)) CHARACTER SET utf8mb4 ENGINE=InnoDB",
        ]

    def of(self, name: TableName) -> str:
        """Return the predicate of a table's rows."""
        return f"topic = {self.topic} AND db = {literals.text(name.database)} AND name = {literals.text(name.table)}"

    def mark_range(self, name: TableName, number: int, copied: int) -> str:
        """Note in the transaction of its rows that a range is there; matches no row when it was there before."""
        return (
            f"UPDATE {self.range} SET copied = {literals.integer(copied)} WHERE {self.of(name)}"
            f" AND number = {literals.integer(number)} AND copied IS NULL"
        )

    def take_range(self, name: TableName, number: int) -> str:
        """Lock the mark of a range: whoever else copies the same range waits, and then finds it done."""
        return (
            f"SELECT copied IS NULL FROM {self.range} WHERE {self.of(name)} AND number = {literals.integer(number)}"
            " FOR UPDATE"
        )

    def place_table(self, name: TableName, begin: Position, until: Position) -> str:
        """Note which moment a table that is copied at once shows."""
        return (
            f"UPDATE {self.table} SET begin_file = {literals.text(begin.file)}, begin_offset = {begin.offset:d},"
            f" until_file = {literals.text(until.file)}, until_offset = {until.offset:d} WHERE {self.of(name)}"
        )

    def pass_window(self, offset: int) -> str:
        """Note that the topic is applied up to before this offset, in the transaction of its rows."""
        return f"UPDATE {self.copy} SET window_offset = {literals.integer(offset)} WHERE topic = {self.topic}"


def texts(text: str, table: str) -> list[str]:
    """Read a list of texts as it was written. Raises FollowerError."""
    with suppress(ValueError):
        found = json.loads(text)
        if found and isinstance(found, list) and all(type(each) is str for each in found):
            return found
    raise altered(table)


def altered(table: str) -> FollowerError:
    """Explain a state that cannot be gone on from."""
    return FollowerError(f"{table} on the follower is not as cdc-copy wrote it; --replace copies everything anew")
