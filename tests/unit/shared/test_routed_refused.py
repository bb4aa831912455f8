"""Topics that are not those of one producer and its routes: each is refused with what it is."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from kit.routed_history import ROUTES, history, iter_all, open_merged, open_writer, read_all
from kit.topics_in_memory import KilledError, MemoryTopics

from shared.errors import TopicError
from shared.profile import TopicSettings
from shared.topic import open_reader
from shared.topic import open_writer as open_topic
from shared.topic.marks import Routes, head_of
from shared.topic.record import seal
from shared.topic.routed import RoutedWriter


def test_a_profile_that_changed_within_a_batch_is_refused() -> None:
    made, topics = history([[("a",), ("a",)]]), MemoryTopics()
    writer = open_writer(topics)
    topics.appends_left = 1  # the journal is the second one
    with pytest.raises(KilledError):
        writer.append([one.record for one in made])
    topics.appends_left = None
    other = history([[("a",), ("b",), ("a",)]])
    writer = open_writer(topics)
    writer.append([one.record for one in other[:2]])
    with pytest.raises(TopicError, match="start once with those of before"):
        writer.append([other[2].record])


def test_a_topic_of_another_producer_is_refused() -> None:
    made, topics = history([[("a",)]]), MemoryTopics()
    topics.records["d-a"] = [made[0].record]
    with pytest.raises(TopicError, match="no producer with routes"):
        open_writer(topics).append([made[0].record])
    writer = RoutedWriter(Routes("second", {"d.a": "theirs"}), None, topics.writer, topics.reader, 3)
    writer.append([made[0].record])
    routes = Routes("main", {"d.a": "theirs"})
    with pytest.raises(TopicError, match="the producer of topic second"):
        RoutedWriter(routes, None, topics.writer, topics.reader, 3).append([made[0].record])


def test_a_topic_of_a_producer_is_no_journal(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    made = history([[("a",), ("other",)]])
    settings = TopicSettings("main", path=str(tmp_path), control="told", routes={"d.a": "part"})
    with closing(open_topic(settings)) as writer:
        writer.append([one.record for one in made])
    part = replace(settings, name="part", control=None)
    for routes in (None, {}, {"d.a": "own"}):
        with pytest.raises(TopicError, match=r'topic part is one of several .* name = "main" and names = \["part"\]'):
            open_topic(replace(part, routes=routes))
    with pytest.raises(TopicError, match="topic part is one of several"):
        open_reader(replace(part, routes=None))
    reading = replace(settings, control=None, routes=None)
    open_reader(replace(reading, names=("part", "main"))).close()
    assert not caplog.messages
    open_reader(replace(reading, names=("part", "nope"))).close()
    assert caplog.messages == ["topic nope, which names has, does not exist so far: nothing is read of it"]
    with closing(open_topic(replace(reading, name="single"))) as writer:
        writer.append([made[0].record])
    with pytest.raises(TopicError, match="topic single, which names has, is none of the topics of main"):
        open_reader(replace(reading, names=("single",)))


def test_control_is_no_topic_of_tables() -> None:
    made, topics = history([[("a",)]]), MemoryTopics()
    writer = RoutedWriter(ROUTES, "d-a", topics.writer, topics.reader, 3)
    with pytest.raises(TopicError, match="topic d-a is control, and"):
        writer.append([made[0].record])
    assert not topics.held("d-a")
    topics.writer("told").append([made[0].record])
    told = seal(made[0].record.value.replace(b'"operation":{"Add"', b'"operation":{"Control":{"x":1},"Add"'))
    with pytest.raises(TopicError, match="topic told, which is to be control, holds events"):
        RoutedWriter(ROUTES, "told", topics.writer, topics.reader, 3).append([told])


def test_a_mark_that_goes_back_is_refused() -> None:
    """It would tell of nothing, and what it was to tell of would never be read."""
    made, topics = history([[("a",), ("other",)]] * 2), MemoryTopics()
    writer = open_writer(topics)
    for transaction in (made[:2], made[2:]):
        writer.append([one.record for one in transaction])
    last = topics.records["main"][-1].value
    topics.records["main"][-1] = seal(last.replace(b'"sequence":3', b'"sequence":0'))
    with pytest.raises(TopicError, match=r"is no mark of a producer .it goes back from sequence 1 to 0"):
        read_all(open_merged(topics))


@pytest.mark.parametrize("names", [None, ["d-a"]])
@pytest.mark.parametrize("begin", [0, 3])
@pytest.mark.parametrize("route", [b"", b',"route":{"of":"another","follows":-1}'])
def test_an_operation_of_no_route_in_the_journal_is_refused(names: list[str] | None, begin: int, route: bytes) -> None:
    """It would stand for all that the marks tell of up to it."""
    made, topics = history([[("a",), ("other",)]] * 3), MemoryTopics()
    writer = open_writer(topics)
    for one in made:
        writer.append([one.record])
    journal = topics.records["main"]
    at = next(at for at, record in enumerate(journal) if head_of(record.value, "").sequence == 3)
    value = re.sub(rb',"route":\{.*?\}', route, journal[at].value)
    journal[at] = seal(value, [b"raw"])
    reader = open_merged(topics, names)
    reader.seek(begin)
    with pytest.raises(TopicError, match=r"topic main offset \d+ was not written by the producer"):
        list(iter_all(reader))
