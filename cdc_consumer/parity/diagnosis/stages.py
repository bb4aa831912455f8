"""Tells which part of the replication failed for a row by its last events in the topic; it is pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from cdc_consumer.parity.model import Difference, Shape, Stage
from cdc_consumer.parity.witness.answers import Trace, Traces
from cdc_consumer.parity.witness.history import LAST_EVENTS
from cdc_consumer.parity.witness.row_keys import Literals, key_of
from shared.events import Position
from shared.topic.walk import Place, place

#: a row's literals in the shape's order; None where there is no row
RowLiterals: TypeAlias = "Literals | None"


def stage_of(difference: Difference, shape: Shape, traces: Traces, cause: str) -> Stage:
    """The stage that failed; `traces` tell of the row, and `cause` is what causes.py says of it."""
    told = traces.of(shape.name, key_of(difference, shape))
    # both rows were read before this position, and what the leader wrote later says nothing about them
    seen = [trace for trace in told if _place(trace.event.position) < _place(difference.evidence.after)]
    statement = traces.statements.get(shape.name.database)
    if (told and not seen) or (statement and (not seen or statement.sequence > seen[-1].event.sequence)):
        # older events were left out; or a statement may have changed the row, and left no image of it
        return "unknown"
    if not seen:
        return _without_events(difference) if traces.complete else "unknown"
    if difference.kind == "copies" or not shape.key:
        return _of_copies(difference, seen) if traces.complete and len(told) < LAST_EVENTS else "unknown"
    return _of_row(difference, shape, seen, cause)


def _of_row(difference: Difference, shape: Shape, traces: Sequence[Trace], cause: str) -> Stage:
    last = traces[-1].after
    leader, follower = _state(difference.leader, shape), _state(difference.follower, shape)
    # a row judged by its last image keeps changing: the leader's was read at another position
    if difference.evidence.proof != "after-image" and not _may_be(last, leader):
        # the topic leads to another row than the leader holds
        return "never published"
    if not _may_be(last, follower) and any(_may_be(state, follower) for state in _former(traces)):
        # the row as it was before its last events
        return "published but not applied"
    if _may_be(last, follower) and not cause:
        # the columns that differ may be those whose literals the topic does not tell
        return "unknown"
    if last is None or follower is None:
        # the consumer stops at an event whose row is not there: the row came, or went, after its last event
        return "follower written by a stranger"
    # the topic never held the follower's row; only the follower's own binlog could tell who wrote it
    return "applied wrongly, or changed on the follower afterwards"


def _without_events(difference: Difference) -> Stage:
    theirs, ours = _copies(difference)
    if theirs == ours:
        # one of the two rows was never published, or both come from before the topic
        return "unknown"
    return "never published" if theirs > ours else "follower written by a stranger"


def _of_copies(difference: Difference, traces: Sequence[Trace]) -> Stage:
    """Of a table without a key: the events say how many copies of the row there are."""
    if any(None in (*(trace.before or ()), *(trace.after or ())) for trace in traces):
        return "unknown"
    theirs, ours = _copies(difference)
    told = sum((trace.after is not None) - (trace.before is not None) for trace in traces)
    if told == theirs:
        # copies too many may be deletes that did nothing, copies too few inserts
        lacking = any((trace.after is None) == (ours > theirs) for trace in traces)
        return "published but not applied" if lacking else "follower written by a stranger"
    return "never published" if told == ours else "unknown"


def _copies(difference: Difference) -> tuple[int, int]:
    return difference.copies or (difference.leader is not None, difference.follower is not None)


def _former(traces: Sequence[Trace]) -> Iterator[RowLiterals]:
    """The row before each of its events."""
    for trace in traces:
        # a row that was absent before an Update would have stopped the consumer there
        if trace.before is not None or trace is traces[-1]:
            yield trace.before


def _state(row: Mapping[str, str] | None, shape: Shape) -> RowLiterals:
    return None if row is None else tuple(row[column.name] for column in shape.columns)


def _may_be(image: RowLiterals, state: RowLiterals) -> bool:
    if image is None or state is None:
        return image is state
    return all(part in (None, own) for part, own in zip(image, state, strict=True))


def _place(position: str) -> Place:
    return place(Position.parse(position))
