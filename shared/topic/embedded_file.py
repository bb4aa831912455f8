"""Opens and recognises the file of an embedded topic, and puts its failures in words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shared.errors import TopicError
from shared.topic.record import ALTERED_ADVICE

#: written into the file's header, so that another SQLite file is never taken for a topic
APPLICATION_ID = 0x4D434443
FORMAT = 2
#: bytes of SQLite's smallest page; it takes a file that is smaller for an empty one and writes over it
SMALLEST_FILE = 512
#: what a file of SQLite begins with
MAGIC = b"SQLite format 3\0"
#: rows and values belong to whoever runs the producer, and to nobody else
FILE_MODE, FOLDER_MODE = 0o600, 0o700

#: A batch is a row, and a very large one goes on in `parts`. `first` is the offset of its first record, `count` how
#: many it has, `appended` when (milliseconds since 1970), `size` its bytes unpacked, `records` what `batch.pack` made.
TABLES = [
    """CREATE TABLE batches (
    first INTEGER PRIMARY KEY, count INTEGER NOT NULL, appended INTEGER NOT NULL, size INTEGER NOT NULL,
    records BLOB NOT NULL)""",
    "CREATE TABLE parts (first INTEGER, part INTEGER, records BLOB NOT NULL, PRIMARY KEY (first, part)) WITHOUT ROWID",
]
SCHEMA = f"""
BEGIN IMMEDIATE;
{";".join(TABLES)};
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""

NO_TOPIC = "this is no topic; move the file away or name another topic"
ALTERED = f"the file was altered; {ALTERED_ADVICE}"
#: SQLite's words, and what they mean here
REASONS = {
    "full": "the disk is full or failing",
    "disk I/O": "the disk is full or failing, or the file was cut",
    "malformed": ALTERED,
    "readonly": "this user must be allowed to write to file and folder, for reading too: SQLite shares memory there",
    "unable to open": "it is no file, or this user may not read and write it",
    "not a database": NO_TOPIC,
}
OVERWRITTEN = (
    "the file was overwritten while it was in use; put the topic back, or load the follower anew from an empty one"
)
#: words of SQLite for a file that was well when it was opened
SURPRISES = ("disk I/O", "malformed", "locked")


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about this file into TopicErrors."""
    try:
        yield
    except sqlite3.Error as error:
        meaning = next((text for word, text in REASONS.items() if word in str(error)), None)
        if any(word in str(error) for word in SURPRISES) and not _begins_as_sqlite(path):
            meaning = OVERWRITTEN
        raise TopicError(f"topic {path}: {meaning} ({error})" if meaning else f"topic {path}: {error}") from None
    except UnicodeDecodeError:  # SQLite quotes what it does not understand in its message, and Python cannot read that
        raise altered(path, "it is not what SQLite expects") from None


def altered(path: Path, what: str) -> TopicError:
    """The error for a file that is not what its writer made; `what` says how that is known."""
    return TopicError(f"topic {path}: {ALTERED} ({what})")


def _begins_as_sqlite(path: Path) -> bool:
    with suppress(OSError), open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC
    return True  # what cannot be looked at is not judged


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another of the same name; None when there is none.

    Raises TopicError when this user may not look.
    """
    try:
        found = os.stat(path)
    except PermissionError:
        raise TopicError(
            f"topic {path} is in a folder of another user; run this as the user who runs the producer"
        ) from None
    except OSError:
        return None
    return found.st_dev, found.st_ino


def make(path: Path) -> int:
    """Make folder and file of a topic where they are missing, for this user alone, and open the lock beside it."""
    for folder in reversed(path.parents):
        if not folder.exists():
            folder.mkdir(FOLDER_MODE, exist_ok=True)
    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    with suppress(IsADirectoryError):  # SQLite says it better
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE))
    return lock


def connect(path: Path, readonly: bool) -> sqlite3.Connection:
    """Open a topic, or a file that may become one. Raises TopicError and sqlite3.Error."""
    _require_access(path)
    # opening a pipe would wait for somebody at its other end, and of a folder SQLite has only words for a failing disk
    if not path.is_file() or 0 < path.stat().st_size < SMALLEST_FILE:
        raise TopicError(f"topic {path}: {NO_TOPIC}")
    mode = "ro" if readonly else "rwc"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    # Opened by one thread and used by another, never by two at once.
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, timeout=10.0, check_same_thread=False, cached_statements=8
    )
    # what is text there was bytes when it was written: whether they are the same, their checksums tell
    connection.text_factory = bytes
    try:
        # No mmap: reading is not faster with it, and every page that was read would count as memory of this process.
        connection.execute("PRAGMA mmap_size = 0")
        _recognize(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _recognize(connection: sqlite3.Connection, path: Path) -> None:
    """Raise TopicError unless the file is a topic, or empty."""
    # first: the writer may be creating the topic right now, and sets all three at once
    tables = _tables(connection)
    found, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
    if found == APPLICATION_ID and version != FORMAT:
        raise TopicError(
            f"{path} is a topic of format {version}, and this version knows format {FORMAT} only; start an empty topic"
            " (another name, or move the file away) and load the follower anew"
        )
    if found != APPLICATION_ID and (tables or found):
        raise TopicError(f"topic {path}: {NO_TOPIC}")
    # they may have been made since they were looked at
    if tables not in ([], TABLES) or (found == APPLICATION_ID and _tables(connection) != TABLES):
        raise altered(path, "its tables are not as they were made")


def _tables(connection: sqlite3.Connection) -> list[str]:
    """How each table was made."""
    found = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
    return [bytes(sql).decode(errors="replace") for (sql,) in found]


def _require_access(path: Path) -> None:
    """SQLite's own words for a file that belongs to somebody else do not say whose it is."""
    if path.is_file() and not os.access(path, os.R_OK | os.W_OK):
        raise TopicError(f"topic {path} belongs to user {_owner(path)}; run this as that user")


def _owner(path: Path) -> str:
    with suppress(KeyError):  # a user without a name
        return path.owner()
    return str(path.stat().st_uid)
