"""The event JSON: what the writer encodes the reader decodes, and the demo's keys come first, unchanged."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.decode import decode
from shared.errors import EventError
from shared.events import (
    Draft,
    Event,
    Heartbeat,
    Position,
    Query,
    Rows,
    Transaction,
    heartbeat_json,
    query_json,
    resource_uri,
)
from shared.values import LATEST_TIME

NAMES = st.text(min_size=1, max_size=20)
NUMBERS = st.integers(0, (1 << 63) - 1)
FILES = st.builds("{}.{:06d}".format, NAMES, st.integers(1, 9_999_999))
POSITIONS = st.builds(Position, FILES, NUMBERS)
TRANSACTIONS = st.builds(
    Transaction,
    st.none() | st.just("6b377eb2-e57a-11f1-9bfd-02fc00000001:tag:5"),
    NUMBERS,
    st.integers(0, LATEST_TIME),
    st.tuples(NUMBERS, NUMBERS),
)
QUERIES = st.builds(
    Query, st.binary(max_size=100) | NAMES.map(str.encode), NAMES, st.lists(NAMES).map(tuple),
    st.dictionaries(NAMES, st.integers(0, 1 << 60) | NAMES),
)  # fmt: skip


@given(QUERIES, POSITIONS, TRANSACTIONS, NUMBERS, NUMBERS, st.none() | NUMBERS)
def test_queries(
    query: Query, position: Position, transaction: Transaction, index: int, sequence: int, end: int | None
) -> None:
    uri = json.dumps(resource_uri("srv", "db"))
    value = Draft(uri, position, transaction, index).encode(query_json(query), sequence, end)
    assert decode(value, "here") == Event(sequence, position, query, transaction, index, end)
    assert list(json.loads(value))[:4] == ["uri", "sequence", "bn_file", "operation"]


@given(NAMES, NAMES, POSITIONS, TRANSACTIONS)
def test_rows_keep_their_names(database: str, table: str, position: Position, transaction: Transaction) -> None:
    operation = b',"columns":["a"],"operation":{"Update":{"rows":[{"before_cols":["Null"],"after_cols":[{"Double":-0.0}]}]}},"types":["double"]'
    uri = json.dumps(resource_uri("srv", database, table), ensure_ascii=False)
    event = decode(Draft(uri, position, transaction, 3).encode(operation, 7, None), "here")
    assert event.operation == Rows(
        "Update", database, table, ("a",), [(["Null"], [{"Double": 0.0}])], ("double",), (), True
    )
    assert str(event.operation.rows[0][1][0]["Double"]) == "-0.0"


def test_heartbeats() -> None:
    heartbeat = Heartbeat("uuid", 1_700_000_000, 1_700_000_001_000_000)
    value = Draft('"flv://srv"', Position("binlog.000001", 4), None, 0).encode(heartbeat_json(heartbeat), -1, None)
    assert value == (
        b'{"uri":"flv://srv","sequence":-1,"bn_file":{"fileName":"binlog.000001","offset":4},"operation":"Heartbeat","leader":"uuid","created":1700000000,"time":1700000001000000}'
    )
    assert decode(value, "here") == Event(-1, Position("binlog.000001", 4), heartbeat, None, 0, None)
    transaction = Transaction(None, 4, 1_700_000_000_000_000, (0, 1))
    value = Draft('"flv://srv"', Position("binlog.000001", 9), transaction, 0).encode(
        heartbeat_json(heartbeat), -1, None
    )
    assert decode(value, "here") == Event(-1, Position("binlog.000001", 9), heartbeat, transaction, 0, None)


def test_a_heartbeat_tells_what_is_published() -> None:
    filters = {"include_dbs": ["a", 'ä"b'], "exclude_tables": ["a.*"]}
    value = Draft('"flv://srv"', Position("binlog.000001", 4), None, 0).encode(
        heartbeat_json(Heartbeat("uuid", filters=filters)), -1, None
    )
    assert decode(value, "here").operation == Heartbeat("uuid", filters=filters)
    for wrong in (b"5", b'{"include_dbs":"a"}', b'{"include_dbs":[1]}'):
        begin, _, _ = value.partition(b',"filters":')
        with pytest.raises(EventError):
            decode(begin + b',"filters":' + wrong + b"}", "here")


def test_names_are_encoded_where_a_uri_needs_it() -> None:
    assert resource_uri("mysql-srv1", "flvDb", "pet") == "flv://mysql-srv1/flvDb/pet"
    assert resource_uri("s", "a/b c", "名%") == "flv://s/a%2Fb%20c/%E5%90%8D%25"


@pytest.mark.parametrize(
    "value",
    [
        b"", b"{", b"null", b"[]", b"{}", b"\xff\xfe", b'{"uri":1}',
        b'{"uri":"flv://s/d","sequence":0,"bn_file":{"fileName":"b.1","offset":4},"operation":{"Query":"x"}}',
        b'{"uri":"flv://s/d","sequence":0,"bn_file":{"fileName":"b.1","offset":4},"operation":{"Upsert":{}},"transaction":{}}',
        b'{"uri":"flv://s/d/t","sequence":0,"bn_file":{"fileName":"b.1","offset":4},"columns":[],"operation":{"Add":{"rows":[{}]}}}',
        b'{"uri":"flv://s/d","sequence":0,"bn_file":{"fileName":"binlog.000001","offset":4},"operation":{"Query":"CREATE TAB',
    ],
)  # fmt: skip
def test_what_is_no_event_says_where(value: bytes) -> None:
    with pytest.raises(EventError, match="topic t offset 7 is not an event"):
        decode(value, "topic t offset 7")


def test_positions_are_ordered_by_the_number_of_the_file() -> None:
    assert Position("binlog.999999", 500) < Position("binlog.1000000", 4) < Position("binlog.1000000", 5)
    assert Position("binlog.000001", 4) <= Position("binlog.000001", 4)
    assert str(Position("binlog.000003", 832)) == "binlog.000003:832"


@given(st.builds(Position, st.from_regex(r"[^\n]+\.[0-9]{6,10}", fullmatch=True), st.integers(0, (1 << 64) - 1)))
def test_a_position_is_read_as_it_is_written(position: Position) -> None:
    assert Position.parse(str(position)) == position


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":4",
        "binlog.000001",
        "binlog:4",
        "binlog.000001:²",
        "binlog.000001:٤",
        "binlog.٤:4",
        "b.1:-4",
        "b.1: 4",
        "b.1:4\n",
        "6b377eb2-e57a-11f1-9bfd-02fc00000001:5",
    ],
)
def test_what_is_no_position(text: str) -> None:
    with pytest.raises(ValueError, match="is not a position"):
        Position.parse(text)


def test_a_position_of_any_base_name() -> None:
    assert Position.parse("mysql-bin.000003:157") == Position("mysql-bin.000003", 157)
    assert Position.parse("mysql-bin.000003:157").number == 3
