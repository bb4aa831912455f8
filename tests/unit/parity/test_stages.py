"""Which part failed: every fault planted into a row's history is named."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cdc_consumer.parity.diagnosis.causes import cause_of
from cdc_consumer.parity.diagnosis.stages import stage_of
from cdc_consumer.parity.model import Column, Difference, Evidence, KeyEvent, Kind, Shape, TableName
from cdc_consumer.parity.witness.answers import Trace, Traces
from cdc_consumer.parity.witness.history import LAST_EVENTS
from cdc_consumer.parity.witness.row_keys import key_of

TABLE = TableName("db", "t")
SHAPE = Shape(
    TABLE,
    (
        Column("id", "int", "int", None, False, False), Column("n", "int", "int", None, True, False),
        Column("name", "varchar(40)", "varchar", "utf8mb4", True, False), Column("j", "json", "json", None, True, False),
    ),
    ("id",),
)  # fmt: skip
KEYLESS = Shape(TABLE, SHAPE.columns, ())
#: where the leader was once both rows were read
AFTER = "binlog.000002:1000"

State = tuple[str, ...] | None


def state(number: int, name: str = "value", document: str = "{}") -> tuple[str, ...]:
    text = f"_utf8mb4 x'{name.encode().hex()}'"
    return "1", str(number), text, f"CAST(CONVERT(x'{document.encode().hex()}' USING utf8mb4) AS JSON)"


def hidden(row: State) -> tuple[str | None, ...] | None:
    """As an event tells it: not the JSON."""
    return None if row is None else (*row[:-1], None)


def traces(states: Sequence[State], first: int = 0) -> list[Trace]:
    """One event from each state to the next."""
    found = []
    for number, (before, after) in enumerate(pairwise(states), first):
        kind = "Add" if before is None else "Delete" if after is None else "Update"
        event = KeyEvent(number, number, kind, f"binlog.000001:{number * 100}", None, 0)
        found.append(Trace(event, hidden(before), hidden(after)))
    return found


def difference(
    leader: State, follower: State, copies: tuple[int, int] | None = None, proof: Any = "no event"
) -> Difference:
    kind: Kind = "copies" if copies else "missing" if follower is None else "extra" if leader is None else "changed"
    names = [column.name for column in SHAPE.columns]
    one, other = (None if row is None else dict(zip(names, row, strict=True)) for row in (leader, follower))
    return Difference(
        TABLE, kind, {"id": "1"}, one, other, None, None, Evidence(proof, "", "", AFTER, "", 2), copies=copies
    )


def stage(
    found: Difference,
    told: Sequence[Trace],
    *,
    shape: Shape = SHAPE,
    statement: KeyEvent | None = None,
    complete: bool = True,
) -> str:
    statements = {} if statement is None else {TABLE.database: statement}
    rows = {TABLE: {key_of(found, shape): told}}
    cause = cause_of(found.leader, found.follower, shape)
    return stage_of(found, shape, Traces(rows, statements, complete), cause)


#: states of one row, beginning with none, no two neighbours alike
HISTORIES = (
    st.lists(st.none() | st.integers(1, 10**9), min_size=1, max_size=LAST_EVENTS)
    .map(lambda numbers: [None, *(None if number is None else state(number, f"value {number}") for number in numbers)])
    .filter(lambda states: all(one != other for one, other in pairwise(states)))
)
WRONGLY = "applied wrongly, or changed on the follower afterwards"
STRANGER = state(10**9 + 7, "of nobody's making")


@given(HISTORIES, st.integers(0, LAST_EVENTS))
def test_events_that_did_nothing(states: list[State], back: int) -> None:
    place = max(0, len(states) - 2 - back)
    leader, follower = states[-1], states[place]
    assume(leader != follower and (follower is not None or place == len(states) - 2))
    assert stage(difference(leader, follower), traces(states)) == "published but not applied"


@given(HISTORIES)
def test_a_change_the_topic_never_saw(states: list[State]) -> None:
    """The follower did all it was told."""
    assert stage(difference(STRANGER, states[-1]), traces(states)) == "never published"
    if states[-1] is not None:
        assert stage(difference(None, states[-1]), traces(states)) == "never published"


@given(HISTORIES)
def test_a_row_the_topic_never_held(states: list[State]) -> None:
    told = "follower written by a stranger" if states[-1] is None else WRONGLY
    assert stage(difference(states[-1], STRANGER), traces(states)) == told


@given(HISTORIES)
def test_a_row_that_was_altered_on_its_way(states: list[State]) -> None:
    assume(states[-1] is not None)
    assert states[-1] is not None
    altered = (*states[-1][:2], state(0, "v")[2], states[-1][3])
    assert stage(difference(states[-1], altered), traces(states)) == WRONGLY


def test_a_row_that_vanished() -> None:
    """An Update would have stopped the consumer had the row not been there."""
    states = [None, state(1), state(2)]
    assert stage(difference(states[-1], None), traces(states)) == "follower written by a stranger"


@pytest.mark.parametrize(
    ("leader", "follower", "told"),
    [
        (state(1), None, "never published"),
        (None, state(1), "follower written by a stranger"),
        (state(1), state(2), "unknown"),
    ],
)
def test_without_any_event(leader: State, follower: State, told: str) -> None:
    assert stage(difference(leader, follower), []) == told
    assert stage(difference(leader, follower), [], complete=False) == "unknown"


@given(HISTORIES, st.booleans())
def test_a_later_statement_may_have_done_it(states: list[State], complete: bool) -> None:
    statement = KeyEvent(len(states), len(states), "Query", "binlog.000001:9999", None, 0)
    found = difference(states[-1], STRANGER)
    assert stage(found, traces(states), statement=statement, complete=complete) == "unknown"
    assert stage(found, [], statement=statement) == "unknown"
    earlier = statement._replace(sequence=-1)
    assert stage(found, traces(states), statement=earlier) not in ("unknown", "published but not applied")


def test_what_came_after_the_rows_were_read_does_not_count() -> None:
    told = traces([None, state(1), state(2)])
    late = told[-1]._replace(event=told[-1].event._replace(position=AFTER))
    assert stage(difference(state(1), None), [told[0], late]) == "published but not applied"
    # older events may have been left out
    assert stage(difference(state(1), None), [late]) == "unknown"


def test_a_row_that_keeps_changing_is_judged_by_its_image() -> None:
    """The leader's row is one of a later moment."""
    states = [None, state(1), state(2)]
    found = difference(state(9), state(1), proof="after-image")
    assert stage(found, traces(states)) == "published but not applied"


def test_columns_the_topic_does_not_tell() -> None:
    states = [None, state(1, document='{"a": 1}')]
    # another document, which may be the last image or a stranger's
    assert stage(difference(states[-1], state(1, document='{"b": 1}')), traces(states)) == "unknown"
    assert stage(difference(states[-1], state(1, document='{"a": 1.0}')), traces(states)) == WRONGLY


ROW = state(1)


@pytest.mark.parametrize(
    ("steps", "copies", "told"),
    [
        ([None, ROW, None, ROW], (1, 0), "published but not applied"),
        ([None, ROW, None], (0, 1), "published but not applied"),
        ([None, ROW], (1, 2), "follower written by a stranger"),
        ([None, ROW], (2, 1), "never published"),
        ([None, ROW], (5, 3), "unknown"),
        ([], (1, 0), "never published"),
        ([], (1, 2), "follower written by a stranger"),
    ],
)
def test_copies(steps: list[State], copies: tuple[int, int], told: str) -> None:
    events = [trace._replace(before=trace.before and ROW, after=trace.after and ROW) for trace in traces(steps)]
    found = difference(ROW, ROW, copies)
    assert stage(found, events, shape=KEYLESS) == told
    assert stage(found, events, shape=KEYLESS, complete=False) == "unknown"
