"""A topic of which any byte was altered, or whose writer was killed at any point: never another record, never a gap."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from kit.fluvio_double import FluvioDouble
from kit.programs import ENVIRONMENT, ROOT
from kit.topic import read, sealed

from shared.errors import TopicError
from shared.topic import Record, batch, embedded
from shared.topic.embedded import EmbeddedReader, EmbeddedWriter
from shared.topic.fluvio_topic import FluvioReader, FluvioWriter
from shared.topic.record import Sealed, seal

pytest_plugins = ["fix_fluvio"]

#: how many bytes are altered where not all of them are
SAMPLE = 400


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "BATCH_BYTES", 3000)
    monkeypatch.setattr(batch, "PART_BYTES", 4000)


def contents(seed: int = 4) -> list[Sealed]:
    """Records as events are, small ones, one of many parts, and some without compressible bytes."""
    source = random.Random(seed)
    values = [b'{"uri":"flv://s/d/t","sequence":%d,"operation":{"Add":{}}}' % number for number in range(60)]
    values[30] = source.randbytes(15_000)
    events = [bytes(9) + (19 + 20).to_bytes(4, "little") + bytes(6) + source.randbytes(20) for _ in values]
    return [seal(value, [event], True) for value, event in zip(values, events, strict=True)]


def expected(records: Sequence[Sealed]) -> list[Record]:
    return [Record(offset, value, key[5:], True) for offset, (value, key) in enumerate(records)]


def positions(size: int, every: bool, seed: int) -> Iterator[int]:
    """All bytes, or the first hundred and a sample of the others."""
    chosen = range(size)
    yield from chosen if every else sorted({*chosen[:100], *random.Random(seed).sample(chosen, min(SAMPLE, size))})


@pytest.fixture
def topic_file(tmp_path: Path, small_batches: None) -> Path:
    """A topic file with nothing beside it."""
    path = tmp_path / "t.topic"
    with closing(EmbeddedWriter(path)) as writer:
        for start in range(0, 60, 12):
            writer.append(contents()[start : start + 12])
    assert not path.with_name("t.topic-wal").exists()
    return path


def found(path: Path) -> tuple[list[Record], TopicError | None]:
    """What a reader gets, and the error that ends it."""
    records: list[Record] = []
    try:
        with closing(EmbeddedReader(path)) as reader:
            while some := reader.read(0.0):
                records += some
    except TopicError as error:
        return records, error
    return records, None


def test_every_byte_of_a_topic_file(topic_file: Path, tmp_path: Path, every_byte: bool, seed: int) -> None:
    """What is read is what was appended, up to an error with a name, or up to where the file seems to end."""
    whole, right = topic_file.read_bytes(), expected(contents())
    altered = tmp_path / "altered.topic"
    choose = random.Random(seed)
    named = 0
    for position in positions(len(whole), every_byte, seed):
        data = bytearray(whole)
        data[position] ^= 1 << choose.randrange(8)
        altered.write_bytes(data)
        records, error = found(altered)
        assert records == right[: len(records)], f"byte {position}"
        named += error is not None
        if error is not None:
            assert "altered.topic" in str(error), f"byte {position}: {error}"
        _assert_writer_continues_or_refuses(altered, right, position)
        for file in tmp_path.glob("altered.*"):
            file.unlink()
    assert named > 100


def _assert_writer_continues_or_refuses(path: Path, right: Sequence[Record], position: int) -> None:
    """A producer is given the last record as it was, an earlier one, or an error; it repeats what is not there."""
    try:
        with closing(EmbeddedWriter(path)) as writer:
            last = writer.last()
            assert last is None or last in right, f"byte {position}"
    except TopicError:
        pass


def test_a_write_ahead_log_that_ends_anywhere(tmp_path: Path, small_batches: None, every_byte: bool, seed: int) -> None:
    """What a killed machine leaves of the last append: all of it, or nothing."""
    path = tmp_path / "t.topic"
    right = expected(contents())
    with closing(EmbeddedWriter(path)) as writer:
        writer.append(contents()[:20])
        before = path.with_name("t.topic-wal").stat().st_size
        writer.append(contents()[20:])
        log = path.with_name("t.topic-wal").read_bytes()
        copy = tmp_path / "copy.topic"
        for end in (before + place for place in positions(len(log) - before, every_byte, seed)):
            shutil.copy(path, copy)
            copy.with_name("copy.topic-wal").write_bytes(log[:end])
            with closing(EmbeddedWriter(copy)) as again:
                last = again.last()
                assert last == right[19], f"cut at {end}"
                again.append(contents()[20:22])
            assert found(copy) == (right[:22], None)
            for file in tmp_path.glob("copy.*"):
                file.unlink()


def test_every_byte_of_a_write_ahead_log(tmp_path: Path, small_batches: None, every_byte: bool, seed: int) -> None:
    """SQLite ends the log where a checksum does not match: what was behind it is repeated by the producer."""
    path, copy = tmp_path / "t.topic", tmp_path / "copy.topic"
    right = expected(contents())
    choose = random.Random(seed)
    with closing(EmbeddedWriter(path)) as writer:
        for start in range(0, 60, 12):
            writer.append(contents()[start : start + 12])
        log = path.with_name("t.topic-wal").read_bytes()
        for position in positions(len(log), every_byte, seed):
            data = bytearray(log)
            data[position] ^= 1 << choose.randrange(8)
            shutil.copy(path, copy)
            copy.with_name("copy.topic-wal").write_bytes(data)
            records, _ = found(copy)
            assert records == right[: len(records)], f"byte {position}"
            for file in tmp_path.glob("copy.*"):
                file.unlink()


KILLED = """
import os, signal, sys
from pathlib import Path
from contextlib import closing
from shared.topic import batch, embedded
from shared.topic.embedded import EmbeddedReader, EmbeddedWriter
from shared.topic.record import seal
embedded.BATCH_BYTES, batch.PART_BYTES = 3000, 4000
path, stride = Path(sys.argv[1]), int(sys.argv[2])
before = [seal(b"%d" % number) for number in range(5)]
during = [seal(b"%d" % number + os.urandom(300 if number != 9 else 9000)) for number in range(5, 30)]

def append(steps):
    "In a process that dies after so many steps of SQLite's machine; how many there are, when there are fewer."
    if pid := os.fork():
        return os.waitpid(pid, 0)[1]
    writer = EmbeddedWriter(path)
    left = [steps]
    def step():
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    writer._db.set_progress_handler(step, 1)
    writer.append(during)
    os._exit(0)

with closing(EmbeddedWriter(path)) as writer:
    writer.append(before)
steps = kills = 0
while append(steps) != 0:
    kills += 1
    with closing(EmbeddedReader(path)) as reader:
        records = reader.read(0)
        assert [record.value for record in records] == [record.value for record in before], (steps, len(records))
    with closing(EmbeddedWriter(path)) as writer:
        assert writer.last() == records[-1]
    steps += stride
with closing(EmbeddedReader(path)) as reader:
    values = [record.value for record in reader.read(0)]
assert values == [record.value for record in before + during]
print(kills)
"""


def test_a_writer_killed_at_every_point_of_an_append(tmp_path: Path, every_byte: bool) -> None:
    """All of what is appended at once is there, or nothing of it, also when it takes several batches and parts."""
    stride = 1 if every_byte else 7
    command = [sys.executable, "-c", textwrap.dedent(KILLED), tmp_path / "t.topic", str(stride)]
    killed = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, cwd=ROOT)
    assert killed.returncode == 0, killed.stderr
    assert int(killed.stdout) * stride > 100


def test_every_byte_of_a_fluvio_record(
    double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader, every_byte: bool, seed: int
) -> None:
    """The client looks at no checksum: what reaches it altered is found here."""
    values = [b"first", b'{"value":"secret"}', b"last"]
    writer.append(sealed(values))
    log = double.logs["t-1"]
    (whole,) = log.batches
    # the batch's own header is the client's and the cluster's; it hides records or not
    start = whole[2].index(b"first") - 20
    places = range(start, len(whole[2]))
    choose = random.Random(seed)
    for position in places if every_byte else choose.sample(places, 25):
        data = bytearray(whole[2])
        data[position] ^= 1 << choose.randrange(8)
        log.batches = [(whole[0], whole[1], bytes(data))]
        reader.seek(0)
        records: list[Record] = []
        try:
            records = read(reader, 3, 0.7)
        except TopicError as error:
            assert "t-1" in str(error)
        assert records == [Record(*pair) for pair in enumerate(values)][: len(records)], f"byte {position}"
