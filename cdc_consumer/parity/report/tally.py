"""Counts what the differences have in common, in one pass over all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from cdc_consumer.parity.differences import FILE, read_differences
from cdc_consumer.parity.model import Difference, Kind, Stage, TableName
from cdc_consumer.parity.run_model import Run

#: rows that the report shows of one group, of one table, and of all
GROUP_CARDS = 40
TABLE_CARDS = 200
ALL_CARDS = 3_000


class Group(NamedTuple):
    """Names the rows of a table with one kind of damage."""

    table: TableName
    kind: Kind
    #: "" when none was recognised
    cause: str


@dataclass(slots=True)
class Cause:
    """Rows whose damage looks the same; `name` is "" for those of no known pattern."""

    name: str
    rows: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    tables: Counter[TableName] = field(default_factory=Counter)
    #: of changed rows only
    columns: Counter[str] = field(default_factory=Counter)
    stages: Counter[Stage] = field(default_factory=Counter)


@dataclass(slots=True)
class Tally:
    """Counts the differences of a run, and holds the rows the report shows."""

    #: rows it has seen; fewer than the run proved when the list of them was not to be had whole
    rows: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    #: largest first, those of no known pattern last
    causes: list[Cause] = field(default_factory=list)
    #: (table, differing column) -> cause -> changed rows
    columns: dict[tuple[TableName, str], Counter[str]] = field(default_factory=dict)
    #: number of rows
    groups: Counter[Group] = field(default_factory=Counter)
    #: the first rows of each group, in the order they were proven
    cards: dict[Group, list[Difference]] = field(default_factory=dict)

    def tables(self) -> dict[TableName, list[Group]]:
        """Groups of each table, largest first, those of no known pattern last."""
        found: dict[TableName, list[Group]] = {}
        for group in sorted(self.groups, key=lambda group: (not group.cause, -self.groups[group], group)):
            found.setdefault(group.table, []).append(group)
        return dict(sorted(found.items(), key=lambda item: (-sum(map(self.groups.__getitem__, item[1])), item[0])))


def tally(differences: Iterable[Difference]) -> Tally:
    """Count them; memory grows with tables, columns and causes only."""
    result = Tally()
    causes: dict[str, Cause] = {}
    shown: Counter[TableName] = Counter()
    for difference in differences:
        _count(difference, result, causes.setdefault(difference.cause, Cause(difference.cause)))
        cards = result.cards.setdefault(Group(difference.table, difference.kind, difference.cause), [])
        if len(cards) < GROUP_CARDS and shown[difference.table] < TABLE_CARDS and shown.total() < ALL_CARDS:
            cards.append(difference)
            shown[difference.table] += 1
    result.causes = sorted(causes.values(), key=lambda cause: (not cause.name, -cause.rows, cause.name))
    return result


def _count(difference: Difference, result: Tally, cause: Cause) -> None:
    table, kind = difference.table, difference.kind
    result.rows += 1
    result.kinds[kind] += 1
    result.groups[Group(table, kind, difference.cause)] += 1
    cause.rows += 1
    cause.kinds[kind] += 1
    cause.tables[table] += 1
    cause.stages[difference.stage] += 1
    if kind == "changed":
        cause.columns.update(difference.columns)
        for column in difference.columns:
            result.columns.setdefault((table, column), Counter())[difference.cause] += 1


def tally_of(run: Run, folder: Path) -> Tally:
    """Count all differences of `run`: those it holds, or those its folder has when there are more."""
    path = folder / FILE
    if len(run.differences) < run.total_differences and path.exists():
        return tally(read_differences(path))
    return tally(run.differences)
