"""Several topics of one producer: read as one they are the one ordered topic, whatever died while they were written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.routed_history import EVERYWHERE, ROUTES, TABLES, Made, history, open_writer, publish
from kit.topics_in_memory import KilledError, MemoryTopics

from cdc_consumer.transactions import Transactions
from shared.decode import decode
from shared.errors import OffsetGoneError, SequenceError, TopicError
from shared.events import Heartbeat
from shared.profile import TopicSettings
from shared.topic import lanes, open_reader
from shared.topic import open_writer as open_topic
from shared.topic.marks import head_of, mark_of, route_of, routed
from shared.topic.merged import MergedReader
from shared.topic.record import seal
from shared.topic.routed import RoutedWriter
from shared.topic.routes import Routes
from shared.topic.walk import TopicWalk


def open_merged(topics: MemoryTopics, names: Sequence[str] | None = None) -> MergedReader:
    return MergedReader("main", names, topics.reader, 2)


def read_all(reader: MergedReader) -> list[Any]:
    """Each operation with its offset, as the consumer accepts them; heartbeats are left out."""
    accepted, found = Transactions(-1, reader.gaps), []
    while records := reader.read(0.0):
        for record in records:
            step = accepted.accept(decode(record.value, "here"), record.offset)
            if step is not None and not isinstance(step.event.operation, Heartbeat):
                assert step.offset == step.event.sequence
                found.append(step)
    assert not accepted.inside
    return found


operation = st.one_of(
    st.sampled_from([(table,) for table in TABLES]),
    st.sampled_from([(EVERYWHERE,), ("a", "b"), ("c", "other", "b2"), ()]),
)
shapes = st.lists(st.lists(operation, min_size=1, max_size=5), min_size=1, max_size=12)


@given(
    shapes, st.randoms(use_true_random=False), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=5)
)
@settings(deadline=None, max_examples=150)
def test_whatever_dies_all_topics_are_the_ordered_topic(
    shape: list[list[tuple[str, ...]]], random: Random, deaths: list[tuple[int, int]]
) -> None:
    made, topics = history(shape), MemoryTopics()
    topics.read_most = random.randint(1, 5)
    for topics.appends_left, topics.arriving in deaths:
        with suppress(KilledError):
            publish(topics, made, random)
    topics.appends_left = None
    publish(topics, made, random)

    steps = read_all(open_merged(topics))
    assert [step.event.sequence for step in steps] == list(range(len(made)))
    assert [step.last for step in steps] == [one.last for one in made]
    reader = open_merged(topics)
    assert (reader.first_offset(), reader.next_offset()) == (0, len(made))
    begin = random.randrange(len(made) + 1)
    reader.seek(begin)
    found = iter_all(reader)
    # a heartbeat may say again up to where all was there before
    assert all(head_of(record.value, "").heartbeat for record in found if record.offset < begin)
    assert list(dict.fromkeys(record.offset for record in found if record.offset >= begin)) == list(
        range(begin, len(made))
    )

    walk = TopicWalk("main", reader)
    assert [entry.sequence for entry in walk.walk(0, len(made)) if not entry.heartbeat] == list(range(len(made)))
    assert walk.find(lambda entry: entry.sequence >= begin) == begin

    for name in ("main", *topics.records):
        assert_one_topic(topics, name, made)
    names = random.sample(sorted(TABLES.values()), random.randint(1, 3))
    assert_some_topics(topics, names, made)


def iter_all(reader: MergedReader) -> list[Any]:
    found: list[Any] = []
    while records := reader.read(0.0):
        found += records
    return found


def goes_to(one: Made, name: str) -> bool:
    if one.tables == (EVERYWHERE,):
        return True
    return name in ({TABLES[table] for table in one.tables} or {"main"})


def assert_one_topic(topics: MemoryTopics, name: str, made: Sequence[Made]) -> None:
    """What a reader of only this topic has: no operation twice, each linked to the one before, each part closed."""
    seen, follows, unclosed = [], -1, False
    for record in topics.held(name):
        head = head_of(record.value, name)
        route = route_of(record.value)
        if head.heartbeat:
            unclosed = unclosed and b'"closes"' not in record.value
            continue
        assert route is not None and route.follows == follows
        follows = head.sequence
        seen.append(head.sequence)
        unclosed = head.end is None and name != "main"
    assert not unclosed
    wanted = [one.sequence for one in made if goes_to(one, name)]
    # a statement for all topics is in those that there were
    assert [sequence for sequence in wanted if made[sequence].tables != (EVERYWHERE,)] == [
        sequence for sequence in seen if made[sequence].tables != (EVERYWHERE,)
    ]
    assert set(seen) <= set(wanted)


def assert_some_topics(topics: MemoryTopics, names: Sequence[str], made: Sequence[Made]) -> None:
    steps = read_all(open_merged(topics, names))
    wanted = [one for one in made if any(goes_to(one, name) for name in names)]
    assert [step.event.sequence for step in steps] == [one.sequence for one in wanted]
    lasts, number = {}, 0
    for one in made:  # transaction by transaction, the last one of those that are read ends it
        if any(goes_to(one, name) for name in names):
            lasts[number] = one.sequence
        number += one.last
    assert [step.event.sequence for step in steps if step.last] == sorted(lasts.values())
    ends = {head_of(one.record.value, "").end for one in made if one.last}
    assert {step.event.end for step in steps if step.last} <= ends


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


def test_what_a_topic_of_this_machine_lacks_is_lost_at_once() -> None:
    made, topics = history([[("a",), ("other",)]] * 3), MemoryTopics()
    publish(topics, made, Random(1), beats=False)
    topics.records["d-a"].clear()
    with pytest.raises(OffsetGoneError, match=r"topic d-a does not hold sequence \d.*or it was lost"):
        read_all(open_merged(topics))


@pytest.mark.parametrize("name", ["main", "d-a"])
@pytest.mark.parametrize("names", [None, ["d-a", "main"]])
def test_a_lost_record_is_noticed(name: str, names: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "RECORD_SECONDS", 0.0)
    made, topics = history([[("a",), ("other",)]] * 6), MemoryTopics()
    publish(topics, made, Random(1), beats=False)
    operations = [at for at, record in enumerate(topics.held(name)) if route_of(record.value) is not None]
    assert len(operations) == 6
    for at in operations:
        damaged = MemoryTopics()
        damaged.records = {each: list(records) for each, records in topics.records.items()}
        del damaged.records[name][at]
        with pytest.raises((SequenceError, TopicError)):
            read_all(open_merged(damaged, names))


@pytest.mark.parametrize("names", [None, ["d-a"], ["d-a", "main"]])
def test_a_lost_end_of_a_part_is_noticed(names: list[str] | None) -> None:
    """Nothing follows it but the record that closes the part."""
    made, topics = history([[("a",), ("other",)]] * 2), MemoryTopics()
    open_writer(topics).append([one.record for one in made])
    last, closing = topics.held("d-a")[-2:]
    assert route_of(last.value) is not None and b'"closes"' in closing.value
    del topics.records["d-a"][-2]
    with pytest.raises(SequenceError):
        read_all(open_merged(topics, names))


@pytest.mark.parametrize("whole_part", [False, True])
def test_an_operation_that_no_mark_tells_of_there_is_noticed(whole_part: bool) -> None:
    """Moved by hand into the only topic that is read, before what the reader must have of it."""
    made, topics = history([[("a",), ("other",)], [("b",), ("a",)]]), MemoryTopics()
    writer = open_writer(topics)
    for transaction in (made[:2], made[2:]):
        writer.append([one.record for one in transaction])
    moved = topics.records["d-a"][: 1 + whole_part]
    topics.records["b-x"][:0] = moved
    del topics.records["d-a"][: len(moved)]
    with pytest.raises(SequenceError, match=r"topic b-x offset \d follows sequence -1, and the topic holds sequence 0"):
        read_all(open_merged(topics, ["b-x"]))


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


def test_what_stands_beyond_a_mark_may_be_of_any_bytes() -> None:
    made, topics = history([[("a",), ("a",)]]), MemoryTopics()
    open_writer(topics)
    topics.records["d-a"] = [routed(seal(made[0].record.value.replace(b"binlog.0", b"\xff.0")), "main", -1)]
    with pytest.raises(TopicError, match=r"holds sequence 0 of .* where the leader has sequence 0 of binlog"):
        open_writer(topics).append([made[0].record])


def test_a_topic_that_had_no_routes_gets_them() -> None:
    made, topics = history([[("a",), ("other",)], [("b",)], [("a",), ("c",)]]), MemoryTopics()
    topics.writer("main").append([one.record for one in made[:3]])
    publish(topics, made, Random(2))
    assert [step.event.sequence for step in read_all(open_merged(topics))] == list(range(len(made)))
    assert [step.event.sequence for step in read_all(open_merged(topics, ["c"]))] == [0, 1, 2, 4]


def test_what_retention_removed_from_the_journal_is_said() -> None:
    made, topics = history([[("a",)]] * 8), MemoryTopics()
    publish(topics, made, Random(3), beats=False)
    marks = [at for at, record in enumerate(topics.held("main")) if mark_of(record, "") is not None]
    del topics.records["main"][: marks[2]]
    with pytest.raises(OffsetGoneError, match="no longer holds sequence 0"):
        read_all(open_merged(topics))
