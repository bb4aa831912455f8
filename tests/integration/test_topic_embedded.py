"""The embedded topic when programs are killed, disks fill up and time goes by."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from fix_embedded import WITH_KIT, alter, run, start
from kit.topic import numbered, read, sealed

from shared.errors import (
    OffsetGoneError,
    TopicError,
    TopicLockedError,
    TopicMissingError,
)
from shared.topic import Record, embedded
from shared.topic.embedded import EmbeddedReader, EmbeddedWriter

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


APPEND = """
import random
from record import record
writer = EmbeddedWriter(Path(sys.argv[1]))
last = writer.last()
count = 0 if last is None else last.offset + 1
assert last is None or last.value == record(last.offset)
choose = random.Random(count)
# a log that is copied into the file rarely, often, or with every append
writer._db.execute(f"PRAGMA wal_autocheckpoint = {choose.choice([16384, 100, 1])}")
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


def test_the_write_ahead_log_stays_small(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is begun anew when it is full, whatever reads meanwhile; what a slow reader made longer is cut afterwards."""
    monkeypatch.setattr(embedded, "CHECKPOINT_PAGES", 64)
    limit, log, values = 64 * 4096, path.with_name("t.topic-wal"), [os.urandom(9000) for _ in range(400)]
    EmbeddedWriter(path).close()
    with closing(EmbeddedReader(path)) as reader:
        with closing(EmbeddedWriter(path)) as writer:
            for number, value in enumerate(values[:200]):
                writer.append(sealed([value]))
                assert reader.read(5.0) == [Record(number, value)]
                assert log.stat().st_size < 2 * limit
            with closing(sqlite3.connect(path)) as slow:
                slow.execute("BEGIN")
                slow.execute("SELECT * FROM batches LIMIT 1").fetchall()
                for value in values[200:]:
                    writer.append(sealed([value]))
                assert log.stat().st_size > 4 * limit
            for value in values[:20]:
                writer.append(sealed([value]))
            assert log.stat().st_size <= limit
        assert read(reader, 220) == numbered([*values, *values[:20]])[200:]
        copy = path.with_name("copy.topic")
        copy.write_bytes(path.read_bytes())
        with closing(EmbeddedReader(copy)) as alone:
            assert alone.next_offset() == 420


def test_a_waiting_reader_looks_ever_more_seldom(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    pause = time.sleep

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        pause(seconds)

    with closing(EmbeddedWriter(path)) as writer, closing(EmbeddedReader(path)) as reader:
        writer.append(sealed([b"one"]))
        assert len(reader.read(0.0)) == 1
        monkeypatch.setattr(embedded.time, "sleep", sleep)
        before = time.process_time()
        assert reader.read(1.5) == []
        assert time.process_time() - before < 0.15
        assert pauses == sorted(pauses) and pauses[0] == embedded.SHORTEST_PAUSE
        assert pauses[-1] == embedded.LONGEST_PAUSE
        writer.append(sealed([b"two"]))
        assert len(reader.read(0.0)) == 1
        pauses.clear()
        assert reader.read(0.001) == []
        assert set(pauses) == {embedded.SHORTEST_PAUSE}


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


def test_retention_makes_no_hole_where_the_clock_was_ahead(path: Path) -> None:
    with closing(EmbeddedWriter(path)) as writer:
        for value in (b"0", b"1", b"2", b"3"):
            writer.append(sealed([value]))
    alter(path, "UPDATE batches SET appended = CASE first WHEN 1 THEN appended + 9000000000 ELSE 5 END")
    with closing(EmbeddedWriter(path, retention_days=7)) as writer:
        writer.append(sealed([b"4"]))
    with closing(EmbeddedReader(path)) as reader:
        assert reader.first_offset() == 1
        reader.seek(1)
        assert [record.value for record in read(reader, 4)] == [b"1", b"2", b"3", b"4"]


def test_a_reader_that_comes_while_the_topic_is_made(tmp_path: Path) -> None:
    """It finds no topic, or a whole one."""
    for number in range(150):
        path = tmp_path / f"{number}.topic"
        maker = threading.Thread(target=lambda path=path: EmbeddedWriter(path).close())
        maker.start()
        found = False
        while not found:
            with suppress(TopicMissingError):
                EmbeddedReader(path).close()
                found = True
        maker.join()
