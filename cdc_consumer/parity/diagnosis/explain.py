"""Explains proven differences by what the topic tells of them: which stage failed, and what the damage looks like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from cdc_consumer.parity.diagnosis.causes import cause_of
from cdc_consumer.parity.diagnosis.patterns import Patterns
from cdc_consumer.parity.diagnosis.stages import stage_of
from cdc_consumer.parity.model import Difference, Shape, TableName
from cdc_consumer.parity.witness.answers import Traces
from cdc_consumer.parity.witness.history import History
from cdc_consumer.parity.witness.row_keys import key_of
from shared.errors import EventError, TopicError
from shared.events import Position

#: rows whose events are looked for at the same time
BATCH = 20_000
#: batches for which the topic is asked at all: each reads it from its end
BATCHES = 10
#: newest records of the topic that are looked at
RECORDS = 500_000


def explained(
    differences: Iterable[Difference],
    patterns: Patterns,
    shapes: Mapping[TableName, Shape],
    history: History | None,
    applied: Position,
) -> Iterator[Difference]:
    """The same differences with their stage, cause and last events; `applied` is how far the follower is."""
    rest = iter(differences)
    number = 0
    while batch := list(islice(rest, BATCH)):
        traces = _by_edge(batch, shapes, history, applied) if history is not None and number < BATCHES else {}
        number += 1
        for difference in batch:
            found = traces.get(_edge(difference, applied))
            yield _explained(difference, shapes[difference.table], found, patterns)


def _edge(difference: Difference, applied: Position) -> Position:
    """Up to where its events say something of it: what writes a row that keeps changing later does not."""
    if difference.evidence.proof != "after-image":
        return applied
    return Position.parse(difference.evidence.follower)


def _by_edge(
    batch: Sequence[Difference], shapes: Mapping[TableName, Shape], history: History, applied: Position
) -> Mapping[Position, Traces | None]:
    groups: dict[Position, list[Difference]] = defaultdict(list)
    for difference in batch:
        groups[_edge(difference, applied)].append(difference)
    return {edge: _traces(group, shapes, history, edge) for edge, group in groups.items()}


def _traces(
    batch: Sequence[Difference], shapes: Mapping[TableName, Shape], history: History, applied: Position
) -> Traces | None:
    wanted: dict[TableName, set[tuple[str, ...]]] = defaultdict(set)
    for difference in batch:
        wanted[difference.table].add(key_of(difference, shapes[difference.table]))
    try:
        return history.last_events(wanted, applied, RECORDS)
    except (TopicError, EventError):
        return None  # the rows differ all the same


def _explained(difference: Difference, shape: Shape, traces: Traces | None, patterns: Patterns) -> Difference:
    # of copies too many or too few both sides show the same row
    damage = "" if difference.kind == "copies" else cause_of(difference.leader, difference.follower, shape)
    cause = damage or patterns.of(difference)
    if traces is None:
        return replace(difference, cause=cause)
    events = traces.of(shape.name, key_of(difference, shape))
    evidence = replace(difference.evidence, events=tuple(trace.event for trace in events))
    stage = stage_of(difference, shape, traces, cause)
    return replace(difference, cause=cause, evidence=evidence, stage=stage)
