"""Marks of a journal, which whoever can write to it may forge: what is not one is refused in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import TopicError
from shared.topic import Record
from shared.topic.marks import Head, JournalMark, closing_of, has_tables, mark_of, mark_record

HEAD = Head(b"flv://r/d/t", 7, b"binlog.000001", 4, False, 90)
MARK = JournalMark(7, 3, 5, 0, {"a": 7}, ("a",), "a", ("a", "b"))


def record(value: bytes) -> Record:
    return Record(0, value)


def test_a_mark_comes_back() -> None:
    for mark in (MARK, MARK._replace(roster=None, topics={}, open=())):
        found = mark_record(HEAD, "main", mark)
        assert mark_of(record(found.value), "here") == mark
        assert closing_of(record(found.value), "here") is None
        assert json.loads(found.value)["bn_file"]["offset"] == 90


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from([*JournalMark._fields, "x"]), anything), st.sampled_from(JournalMark._fields))
def test_a_forged_mark_is_a_mark_or_an_error(told: dict[str, Any], missing: str) -> None:
    known = {**MARK._asdict(), **told}
    known.pop(missing if missing not in told else "", None)
    head = '{"uri":"flv://r","sequence":7,"bn_file":{"fileName":"b.1","offset":4},"operation":"Heartbeat","mark":'
    try:
        found = mark_of(record((head + json.dumps(known) + ',"of":"main"}').encode()), "here")
    except TopicError as error:
        assert "here is no mark" in str(error)
    else:
        assert found is not None and all(type(last) is int for last in found.topics.values())


@pytest.mark.parametrize("rest", [b"}", b"[" * 100_000, b'{"after":1'])
def test_what_is_no_json_is_refused(rest: bytes) -> None:
    head = b'{"uri":"flv://r","sequence":7,"bn_file":{"fileName":"b.1","offset":4},"operation":"Heartbeat",'
    with pytest.raises(TopicError, match="here is not an event"):
        mark_of(record(head + b'"mark":' + rest), "here")
    with pytest.raises(TopicError, match="here is not an event"):
        closing_of(record(head + b'"closes":' + rest), "here")
    query = b'{"uri":"flv://r","sequence":7,"bn_file":{"fileName":"b.1","offset":4},"operation":{"Query":' + rest
    assert not has_tables(record(query))
