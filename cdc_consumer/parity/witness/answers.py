"""Holds what the topic answers about rows: which may have been written, by which events, and what they were."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple

from cdc_consumer.parity.model import Key, KeyEvent, TableName
from cdc_consumer.parity.witness.row_keys import Literals
from shared.events import Query


def databases(query: Query) -> frozenset[str]:
    """Return those a statement writes, also as a server that keeps all names in lower case calls them."""
    return frozenset(query.writes) | {name.lower() for name in query.writes}


class Unknown(Enum):
    """Stands for a row of which the topic does not tell what it was."""

    UNKNOWN = "unknown"


UNKNOWN: Literal[Unknown.UNKNOWN] = Unknown.UNKNOWN


@dataclass(frozen=True, slots=True)
class Touched:
    """Names rows that may have been written."""

    keys: Mapping[TableName, set[Key]]
    #: databases that a statement wrote: any of their rows may have changed
    ddl: frozenset[str]
    #: of `keys_since` only: tables with a row written whose key cannot be told, or without a key
    untold: frozenset[TableName] = frozenset()


class Written(NamedTuple):
    """Tells what one record of the topic may have written."""

    offset: int
    #: where its binlog event starts
    place: tuple[int, int]
    #: of a statement: any of their rows may have changed
    databases: frozenset[str] = frozenset()
    #: the one whose rows it wrote, and their keys, before and after it
    table: TableName | None = None
    keys: Sequence[Literals] = ()
    #: tables of which any row may have changed with these
    below: Collection[TableName] = ()


class Trace(NamedTuple):
    """Tells what one event did to one row."""

    event: KeyEvent
    #: the row in the order of the shape's columns; None where it was not there under its key
    before: Literals | None
    after: Literals | None


@dataclass(frozen=True, slots=True)
class Traces:
    """Holds the last events of rows."""

    #: oldest first, `history.LAST_EVENTS` at most
    rows: Mapping[TableName, Mapping[Key, Sequence[Trace]]]
    #: database -> the last statement that may have changed rows of it (any but CREATE), its operation "Query"
    statements: Mapping[str, KeyEvent]
    #: the topic was read from its first event on
    complete: bool

    def of(self, table: TableName, key: Key) -> Sequence[Trace]:
        return self.rows.get(table, {}).get(key, ())
