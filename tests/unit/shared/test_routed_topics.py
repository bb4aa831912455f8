"""Several topics of one producer: read as one they are the one ordered topic, whatever died while they were written."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.routed_history import EVERYWHERE, TABLES, Made, history, iter_all, open_merged, open_writer, publish, read_all
from kit.topics_in_memory import KilledError, MemoryReader, MemoryTopics

from shared.errors import TopicError
from shared.topic.marks import head_of, route_of, routed
from shared.topic.merged import MergedReader
from shared.topic.record import seal
from shared.topic.walk import TopicWalk

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


def test_a_topic_that_had_to_be_closed_goes_on_where_it_was() -> None:
    """With more topics in use than stay open, a search for the place at each opening would cost most of the time."""
    made, topics = history([[("a",), ("b",), ("b2",), ("c",)]] * 40), MemoryTopics()
    publish(topics, made, Random(1), beats=False)
    sought: list[str] = []

    class Noting(MemoryReader):
        def seek(self, offset: int) -> None:
            sought.append(self._name)
            super().seek(offset)

    opened: list[str] = []

    def reader(name: str) -> MemoryReader:
        opened.append(name)
        return Noting(topics, name)

    merged = MergedReader("main", None, reader, 2)
    assert [step.event.sequence for step in read_all(merged)] == list(range(len(made)))
    again = [name for name in opened if name != "main"]
    assert len(again) > 60
    searched = [name for name in sought if name != "main"]
    assert len(searched) < len(again) + 40, "each topic is searched in once"
