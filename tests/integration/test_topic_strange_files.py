"""Files that are no topic, or no longer what the topic was, are named and left alone."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from fix_embedded import alter, run
from kit.topic import read, sealed

from shared.errors import (
    RecordDamagedError,
    TopicError,
    TopicLinkError,
)
from shared.topic import Record
from shared.topic.embedded import EmbeddedReader, EmbeddedWriter


def test_garbage_is_refused_and_left_alone(path: Path) -> None:
    path.parent.mkdir()
    for content in (b"garbage " * 1000, b"x"):
        path.write_bytes(content)
        for engine in (EmbeddedWriter, EmbeddedReader):
            with pytest.raises(TopicError, match="this is no topic; move the file away"):
                engine(path)
        assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("CREATE TABLE records (mine)", "this is no topic; move the file away"),
        ("PRAGMA application_id = 7", "this is no topic; move the file away"),
        ("PRAGMA user_version = 1", r"is a topic of format 1, and this version knows format 2 only; start an empty"),
        ("PRAGMA user_version = 9", r"is a topic of format 9, and this version knows format 2 only; start an empty"),
    ],
)
def test_another_sqlite_file_is_refused_and_left_alone(path: Path, change: str, words: str) -> None:
    if "user_version" in change:
        EmbeddedWriter(path).close()
    path.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute(change)
        database.commit()
    content = path.read_bytes()
    for engine in (EmbeddedWriter, EmbeddedReader):
        with pytest.raises(TopicError, match=f"{path}.*{words}"):
            engine(path)
    assert path.read_bytes() == content


def test_a_file_taken_away(path: Path) -> None:
    """What is appended to a file without a name is lost when the program ends."""
    with closing(EmbeddedWriter(path)) as writer:
        writer.append(sealed([b"a"]))
        with closing(EmbeddedReader(path)) as reader:
            assert read(reader, 1) == [Record(0, b"a")]
            path.unlink()
            with pytest.raises(TopicError, match="was removed or replaced while it was being written"):
                writer.append(sealed([b"b"]))
            with pytest.raises(TopicLinkError, match="was removed or replaced while it was being read"):
                reader.read(0)


READ_AS_NOBODY = """
import os
os.setgid(65534); os.setuid(65534)
try:
    print(EmbeddedReader(Path(sys.argv[1])).read(0))
except TopicError as error:
    print(error)
"""


def test_a_topic_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folders" / "t.topic"
    with closing(EmbeddedWriter(path)) as writer:
        writer.append(sealed([b"a"]))
        assert {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == dict.fromkeys(
            ("t.topic", "t.topic-wal", "t.topic-shm", "t.lock"), 0o600
        )
    assert [folder.stat().st_mode & 0o777 for folder in (path.parent, path.parent.parent)] == [0o700, 0o700]


def test_a_reader_that_is_another_user(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    with closing(EmbeddedWriter(path)) as writer:
        writer.append(sealed([b"a"]))
    for folder in list(path.parents)[1:]:
        if folder.owner() == "root" and folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(0o755)
    assert "is in a folder of another user; run this as the user who runs the producer" in run(READ_AS_NOBODY, path)
    path.parent.chmod(0o755)
    assert "belongs to user root; run this as that user" in run(READ_AS_NOBODY, path)
    path.chmod(0o666)
    assert "must be allowed to write to file and folder, for reading too" in run(READ_AS_NOBODY, path)


def test_a_pipe_is_no_topic(path: Path) -> None:
    """Nor does opening it wait for ever."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    for opened in (EmbeddedReader, EmbeddedWriter):
        with pytest.raises(TopicError, match="this is no topic"):
            opened(path)


@pytest.mark.parametrize("change", ["count = 0", "count = -5", "first = -1"])
def test_a_number_that_no_batch_has_is_named(path: Path, change: str) -> None:
    with closing(EmbeddedWriter(path)) as writer:
        writer.append(sealed([b"0", b"1"]))
    alter(path, f"UPDATE batches SET {change}")
    with closing(EmbeddedReader(path)) as reader:
        for ask in (reader.first_offset, reader.next_offset, lambda: reader.read(0)):
            with pytest.raises(TopicError, match="a number of a batch is none that it can have"):
                ask()
    with pytest.raises(TopicError, match="a number of a batch is none that it can have"):
        EmbeddedWriter(path)


def test_bytes_that_are_text_are_still_the_same(path: Path) -> None:
    """One flipped bit of a row's header makes them so; what SQLite would say names neither offset nor way past."""
    with closing(EmbeddedWriter(path)) as writer:
        writer.append(sealed([b"0", b"1"]))
        writer.append(sealed([b"2"]))
    alter(path, "UPDATE batches SET records = CAST(records AS TEXT) WHERE first = 0")
    with closing(EmbeddedReader(path)) as reader:
        assert [record.value for record in read(reader, 3)] == [b"0", b"1", b"2"]
    alter(path, "UPDATE batches SET records = CAST(x'ff00' AS TEXT) WHERE first = 2")
    with closing(EmbeddedReader(path)) as reader:
        assert len(read(reader, 2)) == 2
        with pytest.raises(RecordDamagedError, match="offset 2 is in a batch that cannot be unpacked"):
            reader.read(0)


def test_a_topic_without_its_tables_is_named(path: Path) -> None:
    EmbeddedWriter(path).close()
    alter(path, "DROP TABLE batches")
    alter(path, "DROP TABLE parts")
    for opened in (EmbeddedReader, EmbeddedWriter):
        with pytest.raises(TopicError, match="its tables are not as they were made"):
            opened(path)


def test_a_folder_is_no_topic(path: Path) -> None:
    path.mkdir(parents=True)
    for opened in (EmbeddedReader, EmbeddedWriter):
        with pytest.raises(TopicError, match="this is no topic"):
            opened(path)
