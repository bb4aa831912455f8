"""The producer against a topic that fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fix_replication import read_topic
from kit.helpers import wait_until
from kit.programs import write_profiles

from cdc_producer import produce
from cdc_producer.produce import Producer
from cdc_producer.profile import load_producer
from docker.local.mysql_servers import Server
from shared.errors import RecordTooLargeError, TopicError, TopicLinkError
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


def published(settings: TopicSettings, text: bytes) -> Callable[[], bool]:
    return lambda: any(text in record for record in read_topic(settings))


def test_an_append_that_fails_is_tried_again_while_the_leader_is_silent(
    leader: Server, database: str, tmp_path: Path, failing: list[TopicError], caplog: pytest.LogCaptureFixture
) -> None:
    profile = load_producer(write_profiles(tmp_path, leader, leader, include_dbs=[database]).producer)
    ends: list[bool] = []
    with ThreadPoolExecutor() as pool:
        running = pool.submit(Producer(profile, lambda: bool(ends)).run)
        try:
            leader.execute(f"CREATE DATABASE {database}")
            wait_until(published(profile.topic, b"CREATE DATABASE"), "the producer is at work")
            with caplog.at_level(logging.WARNING):
                failing.append(TopicLinkError("the cluster does not answer"))
                leader.execute("CREATE TABLE t (a INT)", database=database)
                wait_until(published(profile.topic, b"CREATE TABLE"), "the statement is in the topic", timeout=10)
            assert not failing
            assert "the cluster does not answer" in caplog.text
        finally:
            ends.append(True)
            running.result(30)


def test_a_record_that_no_topic_takes_stops_the_producer_while_the_leader_is_silent(
    leader: Server, database: str, tmp_path: Path, failing: list[TopicError]
) -> None:
    profile = load_producer(write_profiles(tmp_path, leader, leader, include_dbs=[database]).producer)
    leader.execute(f"CREATE DATABASE {database}")
    failing.append(RecordTooLargeError("too large"))
    with ThreadPoolExecutor() as pool:
        ends: list[bool] = []
        running = pool.submit(Producer(profile, lambda: bool(ends)).run)
        try:
            with pytest.raises(RecordTooLargeError, match="too large"):
                running.result(10)
        finally:
            ends.append(True)
