"""The outline of an event is what decoding all of it tells, whatever its names and values are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.outline import read_outline
from shared.decode import decode
from shared.events import Draft, Heartbeat, Position, Query, Rows, Transaction, heartbeat_json, query_json, resource_uri
from shared.values import LATEST_TIME

#: what could be taken for the keys of an event
TRAPS = ',"operation":{"Add":{"rows":[', '{"cols":[', ',"transaction":{"begin":1}}', '"', "\\", "}}", '{"before_cols":['
NAMES = st.text(min_size=1, max_size=12) | st.sampled_from(TRAPS)
NUMBERS = st.integers(0, 10**18 - 1)
POSITIONS = st.builds(Position, st.builds("{}.{:06d}".format, st.just("bin"), st.integers(1, 9_999_999)), NUMBERS)
GTIDS = st.none() | st.sampled_from(
    ["6b377eb2-e57a-11f1-9bfd-02fc00000001:5", "6b377eb2-e57a-11f1-9bfd-02fc00000001:a_1:7"]
)
TRANSACTIONS = st.builds(Transaction, GTIDS, NUMBERS, st.integers(0, LATEST_TIME), st.tuples(NUMBERS, NUMBERS))
VALUES = st.lists(NAMES.map(lambda text: {"String": text}), min_size=2, max_size=2)
ROWS = st.lists(VALUES, min_size=1, max_size=4)


@st.composite
def operations(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from(["Add", "Update", "Delete"]))
    images = draw(ROWS)
    rows = [{"before_cols": row, "after_cols": row} if kind == "Update" else {"cols": row} for row in images]
    parts = {
        "columns": draw(st.lists(NAMES, min_size=2, max_size=2)),
        "operation": {kind: {"rows": rows}},
        "types": ["a", "b"],
    }
    return b"," + json.dumps(parts, ensure_ascii=draw(st.booleans()), separators=(",", ":")).encode()[1:-1]


@given(NAMES, NAMES, operations(), POSITIONS, TRANSACTIONS, NUMBERS, NUMBERS, st.none() | NUMBERS)
def test_it_tells_what_decoding_tells(
    database: str, table: str, operation: bytes, position: Position, transaction: Transaction, index: int, sequence: int,
    end: int | None,
) -> None:  # fmt: skip
    uri = json.dumps(resource_uri("srv", database, table))
    value = Draft(uri, position, transaction, index).encode(operation, sequence, end)
    event, outline = decode(value, "here"), read_outline(value)
    assert outline is not None
    assert isinstance(event.operation, Rows) and isinstance(outline.event.operation, Rows)
    assert outline.rows == len(event.operation.rows)
    assert outline.event._replace(operation=event.operation) == event
    assert outline.event.operation[:3] == event.operation[:3]


@given(POSITIONS, TRANSACTIONS, st.sampled_from(TRAPS))
def test_other_events_have_none(position: Position, transaction: Transaction, text: str) -> None:
    uri = json.dumps(resource_uri("srv", "d", "t"))
    query = Query(text.encode(), "d", ("d",), {})
    assert read_outline(Draft(uri, position, transaction, 0).encode(query_json(query), 1, 2)) is None
    assert read_outline(Draft(uri, position, None, 0).encode(heartbeat_json(Heartbeat("u", 1, 2)), 1, None)) is None


@pytest.mark.parametrize("value", [b"", b"{}", b'{"uri":"flv://s/d/t","sequence":1', b"\xff" * 100])
def test_what_is_no_event_has_none(value: bytes) -> None:
    assert read_outline(value) is None
