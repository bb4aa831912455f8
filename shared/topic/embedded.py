"""The embedded topic: one SQLite file, one writer, readers in any process of this machine."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from shared.errors import (
    OffsetGoneError,
    RecordTooLargeError,
    TopicError,
    TopicLinkError,
    TopicLockedError,
    TopicMissingError,
)
from shared.topic import Record

#: written into the file's header, so that another SQLite file is never taken for a topic
APPLICATION_ID = 0x4D434443
FORMAT = 1
#: bytes of SQLite's smallest page; it takes a file that is smaller for an empty one and writes over it
SMALLEST_FILE = 512
#: a waiting reader looks this often (seconds); one look costs two microseconds
POLL_SECONDS = 0.002
#: a read stops after about this many bytes, so that memory stays flat
READ_BYTES = 4 << 20
READ_RECORDS = 4096
#: removal of expired records is looked at this often (seconds), this many records at a time
RETENTION_INTERVAL = 30.0
RETENTION_BATCH = 10_000
#: records in one INSERT; SQLite allows 32,766 parameters
INSERT_RECORDS = 1000

SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE records (offset INTEGER PRIMARY KEY, appended INTEGER NOT NULL, value BLOB NOT NULL);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""


#: SQLite's words, and what they mean here
REASONS = {
    "full": "the disk is full or failing",
    "disk I/O": "the disk is full or failing",
    "readonly": "this user must be allowed to write to file and folder, for reading too: SQLite shares memory there",
    "unable to open": "it is no file, or this user may not read and write it",
    "not a database": "this is no topic; move the file away or name another topic",
}


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        meaning = next((text for word, text in REASONS.items() if word in str(error)), None)
        raise TopicError(f"topic {path}: {meaning} ({error})" if meaning else f"topic {path}: {error}") from None


def _identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another of the same name; None when there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _connect(path: Path, readonly: bool) -> sqlite3.Connection:
    if path.exists() and 0 < path.stat().st_size < SMALLEST_FILE:
        raise TopicError(f"topic {path}: {REASONS['not a database']}")
    mode = "ro" if readonly else "rwc"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    # Opened by one thread and used by another, never by two at once.
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, timeout=10.0, check_same_thread=False, cached_statements=8
    )
    try:
        # No mmap: reading is not faster with it, and every page that was read would count as memory of this process.
        connection.execute("PRAGMA mmap_size = 0")
        # first: the writer may be creating the topic right now, and sets all three at once
        empty = not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        found, version = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if not (empty and found == 0) and (found != APPLICATION_ID or version != FORMAT):
            raise TopicError(f"{path} is not a topic of format {FORMAT}; move the file away or name another topic")
    except BaseException:
        connection.close()
        raise
    return connection


class EmbeddedWriter:
    """The one writer of a topic file, guarded by a lock that dies with the process."""

    #: SQLite stores at most 1,000,000,000 bytes in a value
    max_record_bytes = 900_000_000

    def __init__(self, path: Path, retention_days: float | None = None) -> None:
        """Open or create the topic. Raises TopicLockedError while another producer writes to it."""
        self.path = path
        self._retention = retention_days
        self._next_cleaning = 0.0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise TopicError(f"topic {path} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with _named_errors(path):
                self._db = self._open()
        except BlockingIOError:
            os.close(self._lock)
            raise TopicLockedError(f"topic {path} is being written by another producer; stop it first") from None
        except BaseException:
            os.close(self._lock)
            raise

    def _open(self) -> sqlite3.Connection:
        db = _connect(self.path, readonly=False)
        try:
            # FULL: a record a reader can see survives a power cut, so the follower never knows more than the topic.
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            if db.execute("PRAGMA application_id").fetchone()[0] == 0:
                db.executescript(SCHEMA)
            self._end = _end(db)
        except BaseException:
            db.close()
            raise
        self._identity = _identity(self.path)
        return db

    def last(self) -> Record | None:
        with _named_errors(self.path):
            row = self._db.execute("SELECT offset, value FROM records ORDER BY offset DESC LIMIT 1").fetchone()
        return Record(*row) if row else None

    def append(self, values: Sequence[bytes]) -> None:
        if not values:
            return
        if max(map(len, values)) > self.max_record_bytes:
            raise RecordTooLargeError(
                f"topic {self.path}: a record of {max(map(len, values))} bytes exceeds {self.max_record_bytes}"
            )
        if _identity(self.path) != self._identity:
            raise TopicError(f"topic {self.path} was removed or replaced while it was being written; start again")
        now = time.time_ns() // 1_000_000
        with _named_errors(self.path):
            for start in range(0, len(values), INSERT_RECORDS):
                some = values[start : start + INSERT_RECORDS]
                # One statement is one call into SQLite without Python's lock: the producer goes on decoding meanwhile.
                self._db.execute(
                    f"INSERT INTO records VALUES {','.join([f'(?, {now}, ?)'] * len(some))}",
                    [field for row in enumerate(some, self._end) for field in row],
                )
                self._end += len(some)
            self._expire(now)

    def _expire(self, now: int) -> None:
        """Remove records older than the retention; the newest always stays, it is the producer's memory."""
        if self._retention is None or time.monotonic() < self._next_cleaning:
            return
        oldest = now - int(self._retention * 86_400_000)
        removed = self._db.execute(
            "DELETE FROM records WHERE offset IN (SELECT offset FROM records WHERE offset < ? ORDER BY offset LIMIT ?)"
            " AND appended < ?",
            (self._end - 1, RETENTION_BATCH, oldest),
        ).rowcount
        if removed < RETENTION_BATCH:
            self._next_cleaning = time.monotonic() + RETENTION_INTERVAL

    def close(self) -> None:
        self._db.close()
        os.close(self._lock)


class EmbeddedReader:
    """One reader of a topic file. SQLite's shared memory needs a writable folder; records are never written."""

    def __init__(self, path: Path) -> None:
        """Raises TopicMissingError when the topic does not exist."""
        self.path = path
        if not path.exists():
            raise TopicMissingError(
                f"topic {path} does not exist; start its producer first, or check [topic] name and path"
            )
        with _named_errors(path):
            self._db = _connect(path, readonly=True)
        self._identity = _identity(path)
        self._next = 0

    def next_offset(self) -> int:
        with _named_errors(self.path):
            return _end(self._db)

    def first_offset(self) -> int:
        """Offset of the oldest record still held; 0 for a topic that has never held one."""
        with _named_errors(self.path):
            if not _has_schema(self._db):
                return 0
            first: int | None = self._db.execute("SELECT min(offset) FROM records").fetchone()[0]
            return first or 0

    def seek(self, offset: int) -> None:
        self._next = offset

    def read(self, timeout: float) -> list[Record]:
        deadline = time.monotonic() + timeout
        with _named_errors(self.path):
            seen = None
            while True:
                # data_version changes when another process commits; asking is far cheaper than a query
                version = self._db.execute("PRAGMA data_version").fetchone()[0]
                if version != seen:
                    seen = version
                    if records := self._fetch():
                        return records
                if time.monotonic() >= deadline:
                    if _identity(self.path) != self._identity:
                        raise TopicLinkError(f"topic {self.path} was removed or replaced while it was being read")
                    return []
                time.sleep(POLL_SECONDS)

    def _fetch(self) -> list[Record]:
        end = _end(self._db)
        if self._next >= end:
            if self._next > end:
                raise OffsetGoneError(
                    f"topic {self.path} ends at offset {end}, before {self._next}: it was created anew or lost records;"
                    " load the follower anew"
                )
            return []
        records: list[Record] = []
        size = 0
        query = "SELECT offset, value FROM records WHERE offset >= ? ORDER BY offset LIMIT ?"
        for row in self._db.execute(query, (self._next, READ_RECORDS)):
            record = Record(*row)
            if record.offset != self._next + len(records):
                raise OffsetGoneError(
                    f"topic {self.path} no longer holds offset {self._next + len(records)}: retention removed it"
                    f" (the next is {record.offset}); load the follower anew"
                )
            records.append(record)
            size += len(record.value)
            if size >= READ_BYTES:
                break
        self._next += len(records)
        return records

    def close(self) -> None:
        self._db.close()


def _has_schema(db: sqlite3.Connection) -> bool:
    """False in the instant between the creation of the file and of its table."""
    return bool(db.execute("PRAGMA application_id").fetchone()[0])


def _end(db: sqlite3.Connection) -> int:
    if not _has_schema(db):
        return 0
    last: int | None = db.execute("SELECT max(offset) FROM records").fetchone()[0]
    return 0 if last is None else last + 1
