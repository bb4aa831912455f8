"""Keeps a topic in one SQLite file: it has one writer, and readers in any process of this machine."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from shared.errors import (
    OffsetGoneError,
    TopicError,
    TopicLinkError,
    TopicLockedError,
    TopicMissingError,
)
from shared.topic.batch import pack, unpack
from shared.topic.embedded_file import SCHEMA, altered, connect, identity, make, named_errors
from shared.topic.record import Record, Sealed, cut, damaged, unseal

#: bytes of records in one batch; a larger record has one of its own. A larger batch would hardly be smaller, for
#: the compression looks back half as far; and this much a reader unpacks to find one record.
BATCH_BYTES = 1 << 20
#: pages of the write-ahead log (64 MB) at which they are copied into the file. That makes the disk busy, and the syncs
#: of a follower on it wait: so seldom, when most of the pages have been written anew and are copied once.
CHECKPOINT_PAGES = 16384
#: a waiting reader looks again after a hundredth of the silence so far, within these bounds (seconds): a record that
#: follows others is seen at once, and an idle reader costs next to nothing
SHORTEST_PAUSE, LONGEST_PAUSE = 0.0002, 0.01
#: a read stops behind the batch in which it reaches so many bytes or records, so that memory stays flat, and that who
#: reads for servers is not away from them for long
READ_BYTES = 1 << 20
READ_RECORDS = 4096
#: removal of expired records is looked at this often (seconds), this many batches at a time
RETENTION_INTERVAL = 30.0
RETENTION_BATCHES = 1000

#: a row of the table `batches`: first offset, number of records, size when unpacked, compressed
Row = tuple[int, int, int, bytes]
COLUMNS = "first, count, size, records"


class EmbeddedWriter:
    """Writes a topic file, alone: a lock that dies with the process guards it."""

    def __init__(self, path: Path, retention_days: float | None = None) -> None:
        """Open or create the topic. Raises TopicLockedError while another producer writes to it."""
        self.path = path
        self._retention = retention_days
        self._next_cleaning = 0.0
        try:
            self._lock = make(path)
        except OSError as error:
            raise TopicError(f"topic {path} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with named_errors(path):
                self._db = self._open()
        except BlockingIOError:
            os.close(self._lock)
            raise TopicLockedError(f"topic {path} is being written by another producer; stop it first") from None
        except BaseException:
            os.close(self._lock)
            raise

    def _open(self) -> sqlite3.Connection:
        db = connect(self.path, readonly=False)
        try:
            # FULL: a record a reader can see survives a power cut, so the follower never knows more than the topic.
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            # a log that a slow reader made longer is cut to this size when it is begun anew
            page = db.execute("PRAGMA page_size").fetchone()[0]
            db.execute(f"PRAGMA journal_size_limit = {CHECKPOINT_PAGES * page}")
            if db.execute("PRAGMA application_id").fetchone()[0] == 0:
                db.executescript(SCHEMA)
            self._end = _end(db, self.path)
        except BaseException:
            db.close()
            raise
        self._identity = identity(self.path)
        return db

    def last(self) -> Record | None:
        with named_errors(self.path):
            row = self._db.execute(f"SELECT {COLUMNS} FROM batches ORDER BY first DESC LIMIT 1").fetchone()
            return list(_records(self._db, self.path, _checked(row, self.path)))[-1] if row else None

    def append(self, records: Sequence[Sealed]) -> None:
        if not records:
            return
        if identity(self.path) != self._identity:
            raise TopicError(f"topic {self.path} was removed or replaced while it was being written; start again")
        now = time.time_ns() // 1_000_000
        with named_errors(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                end = self._end
                for batch in cut(records, BATCH_BYTES):
                    self._insert(end, batch, now)
                    end += len(batch)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk ends it by itself
                    self._db.execute("ROLLBACK")
                raise
            self._end = end
            self._expire(now)

    def _insert(self, first: int, batch: Sequence[Sealed], now: int) -> None:
        size, parts = pack(first, batch)
        # Compression and each statement run without Python's lock: the producer goes on decoding meanwhile.
        self._db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", (first, len(batch), now, size, next(parts)))
        for number, part in enumerate(parts, 1):
            self._db.execute("INSERT INTO parts VALUES (?, ?, ?)", (first, number, part))

    def _expire(self, now: int) -> None:
        """Remove batches older than the retention; the newest always stays, it is the producer's memory."""
        if self._retention is None or time.monotonic() < self._next_cleaning:
            return
        oldest = now - int(self._retention * 86_400_000)
        # up to the first that is young enough, whatever the clock said later: a topic has no holes
        removed = self._db.execute(
            "DELETE FROM batches WHERE first IN (SELECT first FROM batches WHERE first < (SELECT first FROM batches"
            " WHERE appended >= ? OR first = (SELECT max(first) FROM batches) ORDER BY first LIMIT 1)"
            " ORDER BY first LIMIT ?)",
            (oldest, RETENTION_BATCHES),
        ).rowcount
        self._db.execute("DELETE FROM parts WHERE first < (SELECT min(first) FROM batches)")
        if removed < RETENTION_BATCHES:
            self._next_cleaning = time.monotonic() + RETENTION_INTERVAL

    def close(self) -> None:
        # also where a reader stays, for whose sake SQLite would leave all in the log
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        self._db.close()
        os.close(self._lock)


class EmbeddedReader:
    """Reads a topic file. SQLite's shared memory needs a writable folder; records are never written."""

    by_sequence = gaps = False
    return_seconds = 0.0

    def __init__(self, path: Path) -> None:
        """Raises TopicMissingError when the topic does not exist."""
        self.path = path
        self._identity = identity(path)
        if self._identity is None:
            raise TopicMissingError(
                f"topic {path} does not exist; start its producer first, or check [topic] name and path"
            )
        with named_errors(path):
            self._db = connect(path, readonly=True)
        self._next = 0
        #: when the last record was read
        self._heard = time.monotonic()

    def next_offset(self) -> int:
        with named_errors(self.path):
            return _end(self._db, self.path)

    def first_offset(self) -> int:
        with named_errors(self.path):
            return _start(self._db, self.path)

    def seek(self, offset: int) -> None:
        self._next = offset

    def read(self, timeout: float) -> list[Record]:
        deadline = time.monotonic() + timeout
        with named_errors(self.path):
            seen = None
            while True:
                # data_version changes when another process commits; asking is far cheaper than a query
                version = self._db.execute("PRAGMA data_version").fetchone()[0]
                if version != seen:
                    seen = version
                    if records := self._fetch():
                        self._heard = time.monotonic()
                        return records
                now = time.monotonic()
                if now >= deadline:
                    if identity(self.path) != self._identity:
                        raise TopicLinkError(f"topic {self.path} was removed or replaced while it was being read")
                    return []
                time.sleep(min(max(SHORTEST_PAUSE, (now - self._heard) / 100), LONGEST_PAUSE))

    def _fetch(self) -> list[Record]:
        end = _end(self._db, self.path)
        if self._next >= end:
            if self._next > end:
                raise OffsetGoneError(
                    f"topic {self.path} ends at offset {end}, before {self._next}: it was created anew or lost records;"
                    " load the follower anew"
                )
            return []
        records: list[Record] = []
        size = 0
        try:
            for row in self._batches():
                for record in _records(self._db, self.path, row, self._next):
                    records.append(record)
                    self._next = record.offset + 1
                size += row[2]
                if size >= READ_BYTES or len(records) >= READ_RECORDS:
                    break
        except (TopicError, sqlite3.Error, UnicodeDecodeError):
            if not records:  # else they are what was asked for, and the next read meets the error again
                raise
        return records

    def _batches(self) -> Iterator[Row]:
        """The batches from the one that holds the next offset on, without a gap."""
        query = f"SELECT {COLUMNS} FROM batches WHERE first >="
        query += " coalesce((SELECT max(first) FROM batches WHERE first <= ?), 0) ORDER BY first"
        for row in self._db.execute(query, (self._next,)):
            first, count, _, _ = _checked(row, self.path)
            if not first <= self._next < first + count:
                start = _start(self._db, self.path)
                if self._next < start:
                    raise OffsetGoneError(
                        f"topic {self.path} no longer holds offset {self._next}: retention removed it (the next is"
                        f" {start}); load the follower anew"
                    )
                raise damaged(f"topic {self.path}", self._next, "is missing, though later ones are there")
            yield row

    def close(self) -> None:
        self._db.close()


def _records(db: sqlite3.Connection, path: Path, row: Row, start: int = 0) -> Iterator[Record]:
    """The records of a batch from the offset `start` on. Raises RecordDamagedError at the first that is damaged."""
    first, count, size, packed = row
    name = f"topic {path}"
    others = db.execute("SELECT records FROM parts WHERE first = ? ORDER BY part", (first,))
    try:
        found = unpack(first, size, chain((packed,), (part for (part,) in others)))
        if len(found) != count:
            raise ValueError(f"it holds {len(found)} records instead of {count}")
    except ValueError as error:
        raise damaged(name, max(first, start), f"is in a batch that cannot be unpacked ({error})") from None
    for offset, (value, key) in enumerate(found, first):
        if offset >= start:
            yield unseal(offset, value, key, name)


def _has_schema(db: sqlite3.Connection) -> bool:
    """False in the instant between the creation of the file and of its tables."""
    return bool(db.execute("PRAGMA application_id").fetchone()[0])


def _end(db: sqlite3.Connection, path: Path) -> int:
    """Offset of the next record."""
    first, count = _edge(db, path, "SELECT first, count FROM batches ORDER BY first DESC LIMIT 1")
    return first + count


def _start(db: sqlite3.Connection, path: Path) -> int:
    """Offset of the oldest record."""
    return _edge(db, path, "SELECT first, count FROM batches ORDER BY first LIMIT 1")[0]


def _edge(db: sqlite3.Connection, path: Path, query: str) -> tuple[int, int]:
    """The first offset and the number of records of one batch; 0 and 0 when there is none."""
    row = db.execute(query).fetchone() if _has_schema(db) else None
    return (int(row[0]), int(row[1])) if row and _checked(row, path) else (0, 0)


def _checked(row: Any, path: Path) -> Any:
    """A row whose numbers are some: any column of SQLite's may hold any value. Raises TopicError."""
    if not all(isinstance(value, int) for value in row[:3]) or row[0] < 0 or row[1] < 1:
        raise altered(path, "a number of a batch is none that it can have")
    return row
