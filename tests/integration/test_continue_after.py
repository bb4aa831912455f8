"""Where the replay continues, when the topic ends before what the follower has applied, or is not there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from kit.events import EventLog, integer
from kit.fluvio_double import FluvioDouble
from kit.fluvio_wire import Log
from kit.topic import sealed

from cdc_consumer.resume import continue_after, open_topic
from cdc_consumer.sql.positions import Mark, mark_of
from shared.decode import decode
from shared.errors import OffsetGoneError, TopicLinkError
from shared.profile import TopicSettings
from shared.topic import Sealed, open_reader
from shared.topic.fluvio_topic import FluvioReader, FluvioWriter

pytest_plugins = ["fix_fluvio"]

WORDS = "topic t ends at offset 2, and the follower has applied offset 3"


def going_on() -> bool:
    return False


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    """Four transactions in an embedded topic."""
    with closing(EventLog(tmp_path)) as made:
        for number in range(4):
            made.add("d.t", ["a"], [integer(number)])
        yield made


@pytest.fixture
def records(log: EventLog) -> list[Sealed]:
    return sealed(log.records())


@pytest.fixture
def mark(records: list[Sealed]) -> Mark:
    """A follower that has applied all four."""
    return mark_of(decode(records[3].value, "the last"), 3)


def wait_for_return(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(FluvioReader, "return_seconds", seconds)


def test_records_that_come_back(
    writer: FluvioWriter, reader: FluvioReader, records: list[Sealed], mark: Mark, caplog: pytest.LogCaptureFixture
) -> None:
    """A replica without the last of them has taken over, and the producer sends them again."""
    writer.append(records[:2])
    back = threading.Timer(1.5, writer.append, [records[2:]])
    back.start()
    continue_after(mark, reader, "t", going_on)
    back.join()
    assert caplog.messages == [f"{WORDS}: waiting up to 60 s for the rest to come back"]
    writer.append(records[:1])
    assert reader.read(10)[0].offset == 4


def test_records_that_do_not(
    writer: FluvioWriter, reader: FluvioReader, records: list[Sealed], mark: Mark, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_return(monkeypatch, 1.5)
    writer.append(records[:2])
    with pytest.raises(
        OffsetGoneError, match=rf"{WORDS}: a server that has them is away .*, or it is an earlier state of itself"
    ):
        continue_after(mark, reader, "t", going_on)


def test_other_records(writer: FluvioWriter, reader: FluvioReader, records: list[Sealed], mark: Mark) -> None:
    writer.append([*records[:2], records[0], records[1]])
    with pytest.raises(OffsetGoneError, match=r"offset 3 of topic t holds sequence 1 .* has applied sequence 3"):
        continue_after(mark, reader, "t", going_on)


@pytest.mark.parametrize("known", [True, False], ids=["executed", "not executed"])
def test_another_transaction_of_the_same_name_and_place(log: EventLog, mark: Mark, known: bool) -> None:
    """A leader may be put back together with its topic; only when it committed tells its transactions apart then."""
    assert mark.committed is not None
    with closing(open_reader(log.settings)) as reader:
        assert continue_after(mark, reader, "t", going_on) == mark
        other = replace(mark, committed=mark.committed + 1)
        with pytest.raises(OffsetGoneError, match=r"offset 3 of topic t holds sequence 3 .* another time"):
            continue_after(other, reader, "t", going_on, lambda gtid: known)


def test_a_request_to_stop_ends_the_wait(writer: FluvioWriter, reader: FluvioReader, mark: Mark) -> None:
    started = time.monotonic()
    continue_after(mark, reader, "t", lambda: time.monotonic() > started + 0.5)
    assert time.monotonic() - started < 10


def test_a_file_does_not_come_back(log: EventLog, records: list[Sealed], mark: Mark) -> None:
    started = time.monotonic()
    shorter = EventLog(Path(log.settings.path), name="shorter")
    with closing(shorter) as other, closing(open_reader(other.settings)) as reader:
        other.append(*(record.value for record in records[:2]))
        with pytest.raises(OffsetGoneError, match=f"{WORDS}: it is an earlier state of itself, .*: start its producer"):
            continue_after(mark, reader, "t", going_on)
    assert time.monotonic() - started < 10


def test_a_cluster_that_goes_away_while_the_topic_is_missing(double: FluvioDouble, topic: TopicSettings) -> None:
    """It was reached once, so it is an outage and no mistake in the profile."""
    threading.Timer(1.2, double.disconnect).start()
    threading.Timer(2.5, lambda: double.logs.update({"t-1": Log("t-1")})).start()
    reader = open_topic(topic, going_on, wait=True)
    assert reader is not None
    reader.close()


def test_a_cluster_that_was_never_reached(topic: TopicSettings, double: FluvioDouble) -> None:
    nowhere = TopicSettings("t-1", backend="fluvio", endpoint="127.0.0.1:1")
    with pytest.raises(TopicLinkError):
        open_topic(nowhere, going_on, wait=True)
