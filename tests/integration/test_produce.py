"""The producer against a topic that fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from fix_replication import read_topic
from kit.helpers import wait_until
from kit.programs import write_profiles

from cdc_producer import produce
from cdc_producer.produce import Producer
from cdc_producer.profile import ProducerProfile, load_producer
from docker.local.mysql_servers import Server
from shared.decode import decode
from shared.errors import RecordTooLargeError, TopicError, TopicLinkError
from shared.events import Event, Heartbeat
from shared.profile import TopicSettings
from shared.topic import Record, TopicWriter, open_writer
from shared.topic.record import Sealed


class FailingTopic:
    """A topic whose next append fails, once."""

    def __init__(self, topic: TopicWriter, errors: list[TopicError]) -> None:
        self._topic = topic
        self._errors = errors

    def last(self) -> Record | None:
        return self._topic.last()

    def append(self, records: Sequence[Sealed]) -> None:
        if records and self._errors:
            raise self._errors.pop()
        self._topic.append(records)

    def close(self) -> None:
        self._topic.close()


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[TopicError]:
    """Errors of the next appends."""
    errors: list[TopicError] = []

    def fail(settings: TopicSettings) -> TopicWriter:
        return FailingTopic(open_writer(settings), errors)

    monkeypatch.setattr(produce, "open_writer", fail)
    return errors


@contextmanager
def running(profile: ProducerProfile) -> Iterator[Future[None]]:
    """A producer in a thread; leaving asks it to stop, and raises what it raised."""
    ends: list[bool] = []
    with ThreadPoolExecutor() as pool:
        future = pool.submit(Producer(profile, lambda: bool(ends)).run)
        try:
            yield future
        finally:
            ends.append(True)
        future.result(30)


def published(settings: TopicSettings, text: bytes) -> Callable[[], bool]:
    return lambda: any(text in record for record in read_topic(settings))


def test_an_append_that_fails_is_tried_again_while_the_leader_is_silent(
    leader: Server, database: str, tmp_path: Path, failing: list[TopicError], caplog: pytest.LogCaptureFixture
) -> None:
    profile = load_producer(write_profiles(tmp_path, leader, leader, include_dbs=[database]).producer)
    with running(profile), caplog.at_level(logging.WARNING):
        leader.execute(f"CREATE DATABASE {database}")
        wait_until(published(profile.topic, b"CREATE DATABASE"), "the producer is at work")
        failing.append(TopicLinkError("the cluster does not answer"))
        leader.execute("CREATE TABLE t (a INT)", database=database)
        wait_until(published(profile.topic, b"CREATE TABLE"), "the statement is in the topic")
    assert not failing
    assert "the cluster does not answer" in caplog.text


def test_an_idle_leader_is_told_to_be_alive(
    leader: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its own clock, and at the same position; a producer that is frozen would tell nothing."""
    monkeypatch.setattr(produce, "ALIVE_SECONDS", 0.2)
    written = write_profiles(
        tmp_path, leader, leader, include_dbs=[database], producer={"database": {"heartbeat_seconds": 0.1}}
    )
    profile = load_producer(written.producer)
    began = leader.value("SELECT UNIX_TIMESTAMP(NOW(6))")

    def told() -> list[Event]:
        return [decode(record, "here") for record in read_topic(profile.topic)]

    with running(profile):
        wait_until(lambda: len(told()) > 3, "it says so again and again")
    ended = leader.value("SELECT UNIX_TIMESTAMP(NOW(6))")
    beats = [event.operation for event in told()]
    times = [beat.time for beat in beats if isinstance(beat, Heartbeat) and beat.time]
    assert len(times) == len(beats) and times == sorted(set(times))
    assert len({event.position for event in told()}) == 1
    assert float(began) - 1 < times[0] / 1e6 < times[-1] / 1e6 < float(ended) + 1


def test_a_busy_leader_is_told_of_too(
    leader: Server, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only heartbeats tell what is published: whoever adds a database to a leader in use waits for one."""
    monkeypatch.setattr(produce, "ALIVE_SECONDS", 0.2)
    monkeypatch.setattr(produce, "MOVED_SECONDS", 1e6)
    profile = load_producer(write_profiles(tmp_path, leader, leader, include_dbs=[database]).producer)
    leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (id INT AUTO_INCREMENT PRIMARY KEY)")

    def beats() -> int:
        leader.execute(f"INSERT INTO {database}.t VALUES ()")
        return sum(isinstance(decode(record, "here").operation, Heartbeat) for record in read_topic(profile.topic))

    with running(profile):
        wait_until(lambda: beats() > 3, "it tells of it again and again", pause=0.001)


def test_a_record_that_no_topic_takes_stops_the_producer_while_the_leader_is_silent(
    leader: Server, database: str, tmp_path: Path, failing: list[TopicError]
) -> None:
    profile = load_producer(write_profiles(tmp_path, leader, leader, include_dbs=[database]).producer)
    leader.execute(f"CREATE DATABASE {database}")
    failing.append(RecordTooLargeError("too large"))
    with pytest.raises(RecordTooLargeError, match="too large"), running(profile) as future:
        future.result(10)
