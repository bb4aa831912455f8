"""A topic that is damaged, in use, gone or full: each stops the program with its own words and changes nothing."""

from __future__ import annotations

import os
import re
import resource
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fix_replication import Replicate, Replication, assert_refused, read_topic, write_topic
from kit.helpers import wait_until
from kit.topic_audit import assert_whole

from docker.local.mysql_servers import Server

Records = list[bytes]


@pytest.fixture
def published(replication: Replication) -> Replication:
    """A topic of eight operations: three statements, a row, a transaction of three rows, a row."""
    replication.play("CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)", "INSERT INTO t VALUES (1)")
    replication.play("BEGIN", *(f"INSERT INTO {table} VALUES (2)" for table in "tut"), "COMMIT")
    replication.play("INSERT INTO t VALUES (3)")
    assert replication.produce().returncode == 0
    return replication


def content(replication: Replication) -> list[object]:
    """Everything a consumer changes on the follower."""
    tables = (f"{replication.database}.t", f"{replication.database}.u", f"{replication.system_database}.position")
    found = replication.follower.execute("SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables")
    return [replication.follower.execute(f"SELECT * FROM {name}") for name in tables if (name,) in found]


def rename(text: bytes, sequence: int) -> bytes:
    return re.sub(rb'"sequence":\d+', b'"sequence":%d' % sequence, text, count=1)


# records that are not what the producer wrote; the index is that of the record, which is its sequence

SURVIVED: dict[str, Callable[[Records], Records]] = {
    "each record twice": lambda records: [record for record in records for _ in range(2)],
    "all again": lambda records: records + records,
    "the transaction again": lambda records: records[:7] + records[4:],
    "a part of it again": lambda records: records[:6] + records[5:],
    "an old one in its middle": lambda records: records[:6] + records[4:5] + records[6:],
}
REFUSED: dict[str, tuple[Callable[[Records], Records], int, str]] = {
    # and the sequence that is applied
    "the first is missing": (lambda records: records[1:], -1, "holds sequence 1 where 0 must follow"),
    "one is missing": (lambda records: records[:3] + records[4:], 2, "offset 3 holds sequence 4 where 3 must follow"),
    "one of a transaction is missing": (lambda records: records[:5] + records[6:], 3, "holds sequence 6 where 5 must"),
    "the end of one is missing": (
        lambda records: [*records[:6], rename(records[7], 6)], 3, "the topic has lost its end"
    ),
    "two changed places": (
        lambda records: [*records[:3], records[4], records[3], *records[5:]], 2, "holds sequence 4 where 3 must follow"
    ),
    "the last is torn": (lambda records: [*records[:7], records[7][:-20]], 6, "offset 7 is not an event"),
    "the last is empty": (lambda records: [*records[:7], b""], 6, "offset 7 is not an event"),
    "the last is garbled": (lambda records: [*records[:7], b"\xff\x00garbage"], 6, "offset 7 is not an event"),
    "the last lost a key": (
        lambda records: [*records[:7], records[7].replace(b'"columns"', b'"column"')], 6, "offset 7 is not an event"
    ),
    "a value is garbled": (
        lambda records: [*records[:7], records[7].replace(b'{"SignedInteger":3}', b'{"SignedInteger":"x"}')], 6,
        "that cannot be written",
    ),
    "a value is of no known kind": (
        lambda records: [*records[:7], records[7].replace(b"SignedInteger", b"Quaternion")], 6,
        "that cannot be written",
    ),
    "a statement is none": (
        lambda records: [*records[:2], records[2].replace(b"CREATE TABLE u", b"CONJURE TABLE u"), *records[3:]], 1,
        "cannot be replayed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SURVIVED)
def test_repeated_records_are_survived(published: Replication, case: str) -> None:
    write_topic(published.topic, SURVIVED[case](published.records()))
    assert published.consume().returncode == 0
    published.same()


@pytest.mark.parametrize("case", REFUSED)
def test_a_consumer_refuses_the_record(published: Replication, case: str) -> None:
    """What came before it is applied; nothing of its transaction is."""
    damage, applied, words = REFUSED[case]
    whole = published.records()
    write_topic(published.topic, damage(whole))
    assert_refused(published.consume(), words)
    assert published.sequence() == applied
    before = content(published)
    assert_refused(published.consume(), words)
    assert content(published) == before
    write_topic(published.topic, whole)
    assert published.consume().returncode == 0
    published.same()


@pytest.mark.parametrize("last", [b"", b"\xff\x00garbage", b'{"uri":"flv://mysql-srv1/d","sequence":7', b"{}", b"[]"])
def test_a_producer_refuses_the_last_record(published: Replication, last: bytes) -> None:
    damaged = [*published.records(), last]
    write_topic(published.topic, damaged)
    published.play("INSERT INTO t VALUES (4)")
    assert_refused(published.produce(), "the topic's last record (offset 8) is not an event")
    assert published.records() == damaged


@pytest.mark.usefixtures("topic_file")
def test_a_byte_that_was_altered(published: Replication) -> None:
    """In the middle of what is stored: nothing of the batch is used, by either program."""
    file = Path(published.topic.path, "events.topic")
    data = bytearray(file.read_bytes())
    data[data.rindex(b"\x28\xb5\x2f\xfd") + 100] ^= 1  # a zstd frame begins so
    file.write_bytes(data)
    for program in (published.consume, published.produce):
        assert_refused(program(), str(file), "start again, and if that does not help, load the follower anew")
    assert published.sequence() == -1


# the topic as a whole


def test_the_topic_was_created_anew(published: Replication) -> None:
    """The follower knows more than the topic, or another history."""
    whole = published.records()
    assert published.consume().returncode == 0
    before = content(published)
    for records in (whole[:5], [*whole[:7], rename(whole[3], 7)]):
        write_topic(published.topic, records)
        assert_refused(published.consume(120), f"topic {published.topic.name}", "load the follower anew")
        assert content(published) == before


@pytest.mark.usefixtures("topic_file")
@pytest.mark.parametrize("beats", [False, True], ids=["at the same offsets", "between other heartbeats"])
def test_an_older_copy_of_the_topic(published: Replication, tmp_path: Path, beats: bool) -> None:
    """The producer writes the rest again, and the follower goes on in it, wherever it stands now."""
    folder, copy = Path(published.topic.path), tmp_path / "copy"
    shutil.copytree(folder, copy)
    if beats:
        beat(published)
    published.play("INSERT INTO t VALUES (40)")
    published.replicate()
    if beats:
        beat(published)
        assert published.consume().returncode == 0
    before = published.sequence()
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    assert_refused(published.consume(), "it is an earlier state of itself", "start its producer, which writes the rest")
    published.play("INSERT INTO t VALUES (41)")
    assert published.produce().returncode == 0
    result = published.consume()
    assert result.returncode == 0, result.stderr
    assert ("it was set back and written again" in result.stderr) is beats
    assert published.sequence() == before + 1
    published.same()


def beat(replication: Replication) -> None:
    """Have the producer write that the leader moved without anything to publish."""
    replication.leader.execute(f"CREATE DATABASE {replication.database}_{time.monotonic_ns()}")
    assert replication.produce().returncode == 0
    assert replication.last()[1]["operation"] == "Heartbeat"


@pytest.mark.usefixtures("topic_file")
def test_two_producers(published: Replication) -> None:
    published.producer.start()
    wait_until(lambda: "after sequence 7" in published.producer.stderr, "the first one is at work")
    before = published.records()
    assert_refused(published.produce(), "is being written by another producer; stop it first")
    assert published.records() == before
    assert published.producer.stop() == 0


def test_two_consumers(published: Replication) -> None:
    """One follower, one topic."""
    published.consumer.start()
    wait_until(lambda: published.sequence() == 7, "the first one is at work")
    before = content(published)
    assert_refused(published.consume(), "another consumer is replaying this topic into the follower", "stop it first")
    assert content(published) == before
    assert published.consumer.stop() == 0


@pytest.mark.usefixtures("topic_file")
def test_no_folder(replicate: Replicate, leader: Server, follower: Server, database: str, tmp_path: Path) -> None:
    """The producer makes it where it can; the consumer never does."""
    (tmp_path / "file").touch()
    for folder, words in (("file/below", "cannot be written: Not a directory"), ("/proc/topics", "cannot be written")):
        change = {"topic": {"path": str(tmp_path / folder)}}
        replication = replicate(leader, follower, [database], producer=change, consumer=change)
        assert_refused(replication.produce(), words)
        assert_refused(replication.consume(), "does not exist; start its producer first")
    change = {"topic": {"path": str(tmp_path / "new" / "folders")}}
    replication = replicate(leader, follower, [database], producer=change, consumer=change)
    replication.play(f"CREATE DATABASE {database}")
    replication.replicate()
    replication.same()


@pytest.mark.usefixtures("topic_file")
@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(replication: Replication) -> None:
    folder = Path(replication.topic.path)
    folder.mkdir()
    folder.chmod(0o555)
    assert_refused(replication.produce(), "cannot be written: Permission denied")


@pytest.mark.usefixtures("topic_file")
@pytest.mark.parametrize("kind", ["text", "another SQLite file", "folder"])
def test_a_file_that_is_no_topic(published: Replication, kind: str) -> None:
    file = Path(published.topic.path, "events.topic")
    shutil.rmtree(file.parent)
    file.parent.mkdir()
    if kind == "text":
        file.write_text("a text that somebody keeps here\n" * 100)
    elif kind == "folder":
        file.mkdir()
    else:
        database = sqlite3.connect(file)
        database.execute("CREATE TABLE precious (a INT)")
        database.close()
    before = None if kind == "folder" else file.read_bytes()
    assert_refused(published.produce(), str(file))
    assert_refused(published.consume(), str(file))
    assert before is None or file.read_bytes() == before


@pytest.mark.usefixtures("topic_file")
def test_a_file_that_was_only_begun(published: Replication) -> None:
    """What a producer leaves that is killed while it makes the topic."""
    shutil.rmtree(published.topic.path)
    Path(published.topic.path).mkdir()
    Path(published.topic.path, "events.topic").touch()
    assert published.consume().returncode == 0
    published.replicate()
    published.same()


@pytest.mark.usefixtures("topic_file")
def test_the_disk_is_full(published: Replication) -> None:
    """No file of the producer may grow; when it may again, nothing is missing."""
    published.producer.start()
    wait_until(lambda: "after sequence 7" in published.producer.stderr, "it is at work")
    size = max(file.stat().st_size for file in Path(published.topic.path).iterdir())
    resource.prlimit(published.producer.pid, resource.RLIMIT_FSIZE, (size + 8192, size + 8192))
    published.play(*(f"INSERT INTO t VALUES ({number})" for number in range(1000)))
    assert published.producer.wait() == 1
    last = published.producer.stderr.splitlines()[-1]
    assert last.startswith("cdc-producer: topic ") and "the disk is full or failing" in last, published.producer.stderr
    assert "Traceback" not in published.producer.stderr
    assert_whole(read_topic(published.topic))
    published.replicate()
    assert_whole(published.records())
    published.same()


@pytest.mark.usefixtures("topic_file")
def test_a_full_file_system(published: Replication, tmp_path: Path) -> None:
    folder = Path(published.topic.path)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("may not mount a file system here")
    try:
        published.play(
            "SET cte_max_recursion_depth = 100000",
            "INSERT INTO t WITH RECURSIVE n (i) AS"
            " (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT FLOOR(RAND() * 2000000000) FROM n",
        )
        assert_refused(published.produce(), "the disk is full or failing")
        assert_refused(published.produce(), "the disk is full or failing")
        subprocess.run(["mount", "-o", "remount,size=100m", folder], check=True)
        published.replicate()
        assert_whole(published.records())
        published.same()
    finally:
        subprocess.run(["umount", folder], check=True)
