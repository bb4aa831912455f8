"""What is missing in one of several topics is noticed by who reads some or all of them."""

from __future__ import annotations

from random import Random

import pytest
from kit.routed_history import history, open_merged, open_writer, publish, read_all
from kit.topics_in_memory import MemoryTopics

from shared.errors import OffsetGoneError, SequenceError, TopicError
from shared.topic import lanes
from shared.topic.marks import mark_of, route_of


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


def test_what_retention_removed_from_the_journal_is_said() -> None:
    made, topics = history([[("a",)]] * 8), MemoryTopics()
    publish(topics, made, Random(3), beats=False)
    marks = [at for at, record in enumerate(topics.held("main")) if mark_of(record, "") is not None]
    del topics.records["main"][: marks[2]]
    with pytest.raises(OffsetGoneError, match="no longer holds sequence 0"):
        read_all(open_merged(topics))
