"""Causes of differences: what each row's damage looks like, and how many rows share it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cdc_consumer.parity.model import Difference, Kind, Shape, TableName
from cdc_consumer.parity.signatures import signature

#: groups at most with a cause of their own; what comes later joins the rows of no cause, so that memory stays flat
MOST_GROUPS = 500
EXAMPLES = 3
#: rows that follow each other from which on they are a block
BLOCK_ROWS = 10
#: changed rows remembered to find the one that holds the values of another
REMEMBERED_ROWS = 100_000

SWAPPED_ROWS = "holding the values of another row, which holds this one's"
#: a number of an unknown type behind a text that is the same
SAME_TEXT = "JSON with numbers of another type"

Row = Mapping[str, str]


def cause_of(leader: Row | None, follower: Row | None, shape: Shape) -> str:
    """What the damage of a row looks like, as in "created is 2 hours later; name is cut short".

    "" when a side has no row, or when the damage of one of its columns is not recognised.
    """
    if leader is None or follower is None:
        return ""
    columns = [column for column in shape.columns if leader[column.name] != follower[column.name]]
    if not columns:
        return f"it is {SAME_TEXT}"
    names = [column.name for column in columns]
    if len(names) == 2 and _are_swapped(names, leader, follower):
        return f"{_listed(names)} are swapped"
    told: dict[str, list[str]] = {}
    for column in columns:
        phrase = signature(leader[column.name], follower[column.name], column)
        told.setdefault(phrase, []).append(column.name)
    if "" in told:
        return ""
    return "; ".join(
        f"{_listed(names)} {'is' if len(names) == 1 else 'are'} {phrase}" for phrase, names in told.items()
    )


def _are_swapped(names: Sequence[str], leader: Row, follower: Row) -> bool:
    one, other = names
    return leader[one] == follower[other] and leader[other] == follower[one]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass(slots=True)
class CauseGroup:
    """Rows of one table that share a cause."""

    table: TableName
    kind: Kind
    #: "" for rows of no recognised cause
    cause: str
    rows: int = 0
    #: column -> rows in which it differs, of kind "changed" only
    differing: Counter[str] = field(default_factory=Counter)
    #: of the first rows: key columns -> literal; the whole row in a table without a key
    examples: list[Row] = field(default_factory=list)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, rows in self.differing.items() if rows)

    @property
    def sentence(self) -> str:
        """For example `31,204 rows: created is 2 hours later on the follower`."""
        rows = f"{self.rows:,} row{'s' * (self.rows != 1)}"
        if self.kind == "changed":
            what = self.cause or (f"other values of {_listed(self.columns)}" if self.columns else "other bytes")
            return f"{rows}: {what} on the follower"
        return f"{rows}: {self.cause}{', ' * bool(self.cause)}{_PLAIN[self.kind]}"

    def add(self, difference: Difference) -> None:
        self.rows += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(_example(difference))
        if self.kind == "changed":
            self.differing.update(difference.columns)

    def remove(self, difference: Difference) -> None:
        """Take back a row that belongs to another group."""
        self.rows -= 1
        self.differing.subtract(difference.columns)
        if _example(difference) in self.examples:
            self.examples.remove(_example(difference))


_PLAIN = {
    "missing": "missing on the follower",
    "extra": "on the follower only",
    "copies": "another number of copies on the follower",
}


def _example(difference: Difference) -> Row:
    return difference.key or difference.leader or difference.follower or {}


def group(differences: Iterable[Difference]) -> list[CauseGroup]:
    """Groups of rows, the largest first. The rows of one table are to come in key order for its blocks to be seen."""
    groups = _Groups()
    for difference in differences:
        groups.add(difference)
    return groups.all()


@dataclass(slots=True)
class _Run:
    """Rows of one kind whose keys follow each other."""

    #: the first ones, until it is known whether there are enough for a block
    rows: list[Difference]
    last: tuple[tuple[str, ...], int]
    block: CauseGroup | None = None


class _Groups:
    """Groups that grow row by row; memory does not."""

    def __init__(self) -> None:
        self._groups: dict[tuple[TableName, Kind, str], CauseGroup] = {}
        self._blocks: list[CauseGroup] = []
        self._runs: dict[tuple[TableName, Kind], _Run] = {}
        #: (the leader's values, the follower's) -> the row; None when several have them
        self._changed: OrderedDict[tuple[TableName, int, int], Difference | None] = OrderedDict()

    def all(self) -> list[CauseGroup]:
        for run in self._runs.values():
            self._end(run)
        self._runs.clear()
        found = [group for group in (*self._groups.values(), *self._blocks) if group.rows]
        return sorted(found, key=lambda group: -group.rows)

    def add(self, difference: Difference) -> None:
        if difference.kind in ("missing", "extra"):
            self._add_to_run(difference)
        elif difference.kind != "changed" or difference.cause or not self._swapped(difference):
            self._group(difference, difference.cause).add(difference)

    def _group(self, difference: Difference, cause: str) -> CauseGroup:
        place = (difference.table, difference.kind, cause)
        if place not in self._groups and len(self._groups) >= MOST_GROUPS:
            place = (difference.table, difference.kind, "")
        return self._groups.setdefault(place, CauseGroup(*place))

    # blocks

    def _add_to_run(self, difference: Difference) -> None:
        place = (difference.table, difference.kind)
        run, number = self._runs.get(place), _number(difference)
        if run is not None and (number is None or number != (run.last[0], run.last[1] + 1)):
            self._end(self._runs.pop(place))
            run = None
        if number is None:
            self._group(difference, "").add(difference)
        elif run is None:
            self._runs[place] = _Run([difference], number)
        else:
            self._grow(run, difference, number)

    def _grow(self, run: _Run, difference: Difference, number: tuple[tuple[str, ...], int]) -> None:
        run.last = number
        if run.block is None:
            run.rows.append(difference)
            if len(run.rows) >= BLOCK_ROWS and len(self._blocks) < MOST_GROUPS:
                run.block = CauseGroup(difference.table, difference.kind, "")
                self._blocks.append(run.block)
                for row in run.rows:
                    run.block.add(row)
                del run.rows[1:]
            elif len(run.rows) > BLOCK_ROWS:
                # no more blocks are kept
                self._group(difference, "").add(run.rows.pop())
        else:
            run.block.add(difference)
        if run.block is not None:
            name = list(difference.key)[-1]
            word = "lost block" if difference.kind == "missing" else "block"
            run.block.cause = f"{word}, {name} {_shown(run.rows[0])} to {_shown(difference)}"

    def _end(self, run: _Run) -> None:
        if run.block is None:
            for row in run.rows:
                self._group(row, "").add(row)

    # rows that hold each other's values

    def _swapped(self, difference: Difference) -> bool:
        theirs, ours = (_values(row, difference.key) for row in (difference.leader, difference.follower))
        other = self._changed.pop((difference.table, ours, theirs), None)
        if other is not None:
            self._group(other, other.cause).remove(other)
            for row in (other, difference):
                self._group(row, SWAPPED_ROWS).add(row)
            return True
        place = (difference.table, theirs, ours)
        # of several rows with these values none is the one
        self._changed[place] = None if place in self._changed else difference
        if len(self._changed) > REMEMBERED_ROWS:
            self._changed.popitem(last=False)
        return False


def _number(difference: Difference) -> tuple[tuple[str, ...], int] | None:
    """The key's last column as a number, and the columns before it; None when it is no number."""
    *before, last = difference.key.values() or ("",)
    return (tuple(before), int(last)) if last.lstrip("-").isdecimal() else None


def _shown(difference: Difference) -> str:
    return list(difference.key.values())[-1]


def _values(row: Row | None, key: Row) -> int:
    return hash(tuple(value for name, value in (row or {}).items() if name not in key))
