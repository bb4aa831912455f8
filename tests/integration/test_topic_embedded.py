"""The embedded topic when programs are killed, disks fill up and files are not what they should be."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from kit.programs import ENVIRONMENT, ROOT
from kit.topic import numbered, read, sealed

from shared.errors import OffsetGoneError, TopicError, TopicLinkError, TopicLockedError, TopicMissingError
from shared.topic import Record, embedded
from shared.topic.embedded import EmbeddedReader, EmbeddedWriter

#: of processes that write as the tests do
WITH_KIT = {**ENVIRONMENT, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "t.topic"


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Run Python text in a process of its own, with the names of the embedded topic at hand."""
    text = "import sys\nfrom pathlib import Path\nfrom shared.errors import *\nfrom shared.topic.embedded import *\n"
    text += "from kit.topic import sealed\n"
    return subprocess.Popen(
        [sys.executable, "-c", text + textwrap.dedent(program), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=WITH_KIT,
    )


def run(program: str, *arguments: object) -> str:
    with start(program, *arguments) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output


# --- one writer


HOLD = """
writer = EmbeddedWriter(Path(sys.argv[1]))
writer.append(sealed([b"theirs"]))
print("writing", flush=True)
sys.stdin.read()
import time; time.sleep(60)
"""


def test_a_second_writer_in_another_process(path: Path) -> None:
    with start(HOLD, path) as other:
        assert other.stdout is not None and other.stdout.readline() == "writing\n"
        with pytest.raises(TopicLockedError, match=rf"{path} is being written by another producer; stop it first"):
            EmbeddedWriter(path)
        other.kill()
    with closing(EmbeddedWriter(path)) as writer:  # the lock died with its process
        assert writer.last() == Record(0, b"theirs")


def test_a_second_writer_in_the_same_process(path: Path) -> None:
    with closing(EmbeddedWriter(path)) as writer:
        for _ in range(2):
            with pytest.raises(TopicLockedError):
                EmbeddedWriter(path)
        writer.append(sealed([b"still"]))
    EmbeddedWriter(path).close()


# --- kill -9


APPEND = """
import random
from record import record
writer = EmbeddedWriter(Path(sys.argv[1]))
last = writer.last()
count = 0 if last is None else last.offset + 1
assert last is None or last.value == record(last.offset)
choose = random.Random(count)
while True:
    batch = choose.choice([1, 7, 50, 300])
    writer.append(sealed([record(number) for number in range(count, count + batch)]))
    count += batch
    print(count, flush=True)
"""
RECORD = """
import random

def record(number):
    source = random.Random(number)
    return b"%d:" % number + source.randbytes(source.choice([0, 10, 200, 3000]))
"""


def test_kill_9_at_any_instant_loses_nothing_acknowledged(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "record.py").write_text(RECORD)
    monkeypatch.setitem(WITH_KIT, "PYTHONPATH", f"{WITH_KIT['PYTHONPATH']}:{tmp_path}")
    names: dict[str, Any] = {}
    exec(RECORD, names)
    EmbeddedWriter(path).close()
    choose = random.Random(5)
    acknowledged = 0
    kills = 0
    with closing(EmbeddedReader(path)) as reader:  # a follower that reads all the time
        seen: list[Record] = []
        stop = threading.Event()

        def follow() -> None:
            while not stop.is_set() or len(seen) < reader.next_offset():
                seen.extend(reader.read(0.05))

        (follower := threading.Thread(target=follow)).start()
        try:
            while kills < 12:
                with start(APPEND, path) as writer:
                    assert writer.stdout is not None
                    lines = [writer.stdout.readline()]
                    time.sleep(choose.uniform(0, 0.15))
                    writer.kill()
                    lines += writer.stdout.readlines()
                kills += 1
                acknowledged = max(acknowledged, *(int(line) for line in lines if line.endswith("\n")))
                with closing(EmbeddedWriter(path)) as again:
                    last = again.last()
                assert last is not None and last.offset + 1 >= acknowledged
        finally:
            stop.set()
            follower.join()
    with closing(EmbeddedReader(path)) as reader:
        found = read(reader, reader.next_offset())
    assert len(found) >= acknowledged > 100
    assert found == numbered([names["record"](number) for number in range(len(found))])
    # A commit whose writer died just before telling the others is found only when the file is opened afresh.
    assert acknowledged <= len(seen) and seen == found[: len(seen)]


# --- files that are no topic


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


# --- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "t.topic"
    values = [bytes([number]) * 1000 for number in range(20)]
    with closing(EmbeddedWriter(path)) as writer, closing(EmbeddedReader(path)) as reader:
        writer.append(sealed(values[:10]))
        for _ in range(3):
            (small_disk / "ballast").write_bytes(bytes(2 << 20))
            with pytest.raises(TopicError, match=f"topic {path}: the disk is full"):
                writer.append(sealed([os.urandom(2 << 20)]))
            assert writer.last() == Record(9, values[9])
            (small_disk / "ballast").unlink()
        writer.append(sealed(values[10:]))
        assert read(reader, 20) == numbered(values)
    with closing(EmbeddedWriter(path)) as writer:
        assert writer.last() == Record(19, values[19])


LIMITED = """
import resource
path = Path(sys.argv[1])
writer = EmbeddedWriter(path)
writer.append(sealed([b"a", b"b"]))
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
try:
    import os; writer.append(sealed([b"c", os.urandom(2 << 20)]))
except TopicError as error:
    print(error)
print(writer.last())
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
writer.append(sealed([b"c"]))
writer.close()
print([record.value for record in EmbeddedReader(path).read(0)])
"""


def test_a_file_that_may_not_grow(path: Path) -> None:
    error, last, values = run(LIMITED, path).splitlines()
    assert error.startswith(f"topic {path}: the disk is full or failing")
    assert last == "Record(offset=1, value=b'b', binlog=b'', checksums=False)"
    assert values == "[b'a', b'b', b'c']"


# --- retention


def test_retention_removes_old_records_and_keeps_the_newest(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "RETENTION_INTERVAL", 0.0)
    second = 1 / 86_400
    with closing(EmbeddedWriter(path)) as writer:
        writer.append(sealed([b"0", b"1", b"2"]))
    with closing(EmbeddedReader(path)) as reader:
        assert reader.first_offset() == 0
        time.sleep(0.3)
        with closing(EmbeddedWriter(path, retention_days=0.2 * second)) as writer:
            writer.append(sealed([b"3"]))
            assert (reader.first_offset(), reader.next_offset()) == (3, 4)
            reader.seek(1)
            with pytest.raises(
                OffsetGoneError, match=r"no longer holds offset 1: retention removed it \(the next is 3\)"
            ):
                reader.read(1)
            reader.seek(3)
            assert read(reader, 1) == [Record(3, b"3")]
            time.sleep(0.3)
            writer.append(sealed([b"4"]))
        with closing(EmbeddedWriter(path, retention_days=0.2 * second)) as writer:
            assert writer.last() == Record(4, b"4")
        assert (reader.first_offset(), reader.next_offset()) == (4, 5)


def test_a_reader_that_comes_while_the_topic_is_made(tmp_path: Path) -> None:
    """It finds no topic, or a whole one."""
    for number in range(150):
        path = tmp_path / f"{number}.topic"
        maker = threading.Thread(target=lambda path=path: EmbeddedWriter(path).close())  # type: ignore[misc]
        maker.start()
        found = False
        while not found:
            with suppress(TopicMissingError):
                EmbeddedReader(path).close()
                found = True
        maker.join()
