"""A leader, a topic, a follower and both programs between them, for one test."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pymysql
import pytest
from kit.helpers import LONG, assert_same_database, wait_until
from kit.programs import Program, binlog_end, run_program, write_profiles
from kit.topic import CLUSTER, delete_topic, sealed

from docker.local.mysql_servers import Server
from shared.errors import TopicMissingError
from shared.events import Position
from shared.profile import TopicSettings, load_topic
from shared.topic import Record, open_one_reader, open_reader, open_writer
from shared.topic.walk import forwards

#: MySQL does not have this database, or this table
NOT_THERE = (1049, 1146)
#: what str() makes of an error of the MySQL driver
DRIVER_WORDS = re.compile(r"\(\d{4}, [\"']")


class Replication:
    """Both programs run as child processes; the topic is in `folder`."""

    def __init__(
        self, folder: Path, leader: Server, follower: Server, include_dbs: Sequence[str] | None = None, **profile: Any
    ) -> None:
        """The keywords are those of `write_profiles`."""
        self.folder = folder
        self.leader = leader
        self.follower = follower
        #: the first database, its name for short
        self.database = include_dbs[0] if include_dbs else ""
        self.system_database = profile.setdefault("system_database", f"{self.database or 'fluvio'}_cdc")
        self.profiles = write_profiles(folder, leader, follower, include_dbs=include_dbs, **profile)
        self.topic = load_topic(self.profiles.consumer)
        self.producer = Program("cdc_producer", self.profiles.producer)
        self.consumer = Program("cdc_consumer", self.profiles.consumer)

    # running

    def start(self) -> Replication:
        self.producer.start()
        self.consumer.start()
        return self

    def stop(self) -> None:
        """SIGTERM to both; each must end with status 0."""
        for program in (self.producer, self.consumer):
            assert program.stop() == 0, program.stderr

    def kill(self) -> None:
        self.producer.kill()
        self.consumer.kill()

    def produce(self, timeout: float = 180.0) -> subprocess.CompletedProcess[str]:
        """Run the producer to the leader's end."""
        return run_program("cdc_producer", self.profiles.producer, "--exit-at-end", timeout=timeout)

    def consume(self, timeout: float = 180.0) -> subprocess.CompletedProcess[str]:
        """Run the consumer to the topic's end."""
        return run_program("cdc_consumer", self.profiles.consumer, "--exit-at-end", timeout=timeout)

    def replicate(self, timeout: float = 180.0) -> None:
        """Run both to the end; each must end with status 0."""
        for result in (self.produce(timeout), self.consume(timeout)):
            assert result.returncode == 0, result.stderr

    def play(self, *statements: str) -> None:
        """Run statements on the leader, in one session, with the first database as its default if that exists."""
        exists = self.leader.execute(f"SHOW DATABASES LIKE '{self.database}'")
        self.leader.execute(*statements, database=self.database if exists else None)

    def catch_up(self, timeout: float = LONG) -> None:
        """Wait until the running programs have brought the leader's end to the follower."""
        file, _, offset = binlog_end(self.leader).partition(":")
        end = Position(file, int(offset))
        alive = (self.producer, self.consumer)
        wait_until(lambda: end <= self.applied(), f"the follower reaches {end}", timeout=timeout, alive=alive)

    # looking

    def applied(self) -> Position:
        """How far the follower is; before everything when it has no position."""
        found = self._position("leader_file, leader_offset")
        return Position(found[0][0], found[0][1]) if found and found[0][0] else Position("binlog.0", 0)

    def sequence(self) -> int:
        """Of the last event the follower has applied; -1 for none."""
        found = self._position("sequence")
        return int(found[0][0]) if found else -1

    def _position(self, columns: str) -> list[tuple[Any, ...]]:
        try:
            return self.follower.execute(f"SELECT {columns} FROM `{self.system_database}`.position")
        except pymysql.err.MySQLError as error:
            if error.args[0] not in NOT_THERE:
                raise
            return []

    def records(self) -> list[bytes]:
        """All records of the topic; [] when there is no topic."""
        return read_topic(self.topic)

    def last(self) -> tuple[int, dict[str, Any]]:
        """Offset and content of the topic's last record; (-1, {}) when there is none."""
        try:
            with closing(open_reader(self.topic)) as reader:
                end = reader.next_offset()
                reader.seek(max(0, end - 1))
                records = reader.read(5.0 if end else 0.0)
        except TopicMissingError:
            records = []
        return (records[-1].offset, json.loads(records[-1].value)) if records else (-1, {})

    def events(self) -> list[dict[str, Any]]:
        """All operations of the topic; without heartbeats."""
        events = map(json.loads, self.records())
        return [event for event in events if event["operation"] != "Heartbeat"]

    def same(self) -> None:
        """Fail unless both servers hold the same tables with the same content."""
        assert_same_database(self.leader, self.follower, self.database)


def read_topic(settings: TopicSettings) -> list[bytes]:
    """All records of a topic; [] when it does not exist."""
    try:
        reader = open_reader(settings)
    except TopicMissingError:
        return []
    values: list[bytes] = []
    with closing(reader):
        end = reader.next_offset()
        reader.seek(reader.first_offset())
        offset = reader.first_offset()
        while offset < end:
            for record in reader.read(1.0):
                values.append(record.value)
                offset = record.offset + 1
    return values


def write_topic(settings: TopicSettings, values: Sequence[bytes]) -> None:
    """Make a topic hold exactly these records."""
    delete_topic(settings)
    with closing(open_writer(settings)) as writer:
        writer.append(sealed(values))


def assert_refused(result: subprocess.CompletedProcess[str], *words: str, status: int = 1) -> None:
    """Fail unless the program ended with `status` and one line that contains all `words`."""
    said = result.stderr
    assert result.returncode == status, f"status {result.returncode}, not {status}:\n{said}"
    assert "Traceback" not in said, said
    name = result.args[2].replace("_", "-")
    # log lines begin with the time
    lines = [line for line in said.splitlines() if line.startswith(f"{name}: ")]
    assert len(lines) == 1, f"one line must name the error:\n{said}"
    assert said.endswith(lines[0] + "\n"), said
    assert not DRIVER_WORDS.search(lines[0]), f"a driver's error is shown as it is: {lines[0]}"
    for word in words:
        assert word in lines[0], f"{word!r} is not in: {lines[0]}"


@pytest.fixture
def topic_file() -> None:
    """For tests of what only a topic that is a file can do, or suffer."""
    if CLUSTER is not None:
        pytest.skip("CDC_TEST_FLUVIO names a cluster, and this test is about a topic that is a file")


Replicate = Callable[..., Replication]


@pytest.fixture
def replicate(tmp_path: Path, database: str) -> Iterator[Replicate]:
    """Makes replications whose programs end before databases are dropped: replicate(leader, follower, [database])."""
    with ExitStack() as stack:

        def make(
            leader: Server, follower: Server, include_dbs: Sequence[str] | None = None, *,
            name: str = "replication", **profile: Mapping[str, Any] | str | None,
        ) -> Replication:  # fmt: skip
            replication = Replication(tmp_path / name, leader, follower, include_dbs, **profile)
            stack.callback(replication.kill)
            return replication

        yield make


@pytest.fixture
def replication(replicate: Replicate, leader: Server, follower: Server, database: str) -> Replication:
    """The shared servers, one database of this test's own, which exists on the leader."""
    replication = replicate(leader, follower, [database])
    replication.play(f"CREATE DATABASE {database}")
    return replication


@pytest.fixture
def plain_replication(replicate: Replicate, plain_leader: Server, plain_follower: Server, database: str) -> Replication:
    """Between servers without GTIDs."""
    replication = replicate(plain_leader, plain_follower, [database])
    replication.play(f"CREATE DATABASE {database}")
    return replication


def topic_records(replication: Replication, name: str) -> list[Record]:
    """What one topic holds by itself."""
    with closing(open_one_reader(replication.topic, name)) as reader:
        return list(forwards(reader, name))


def topic_name(replication: Replication, name: str) -> str:
    """A name of this test's own: topics of a cluster are everybody's."""
    return name if CLUSTER is None else f"{replication.topic.name}-{name}"
