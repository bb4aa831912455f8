"""What differing rows of a table have in common: blocks that are missing as a whole, and pairs of swapped rows."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from cdc_consumer.parity.literal import Number, parse
from cdc_consumer.parity.model import Difference, Kind, TableName

#: rows that follow each other from which on they are a block
BLOCK_ROWS = 10
#: blocks of one table and kind at most, and changed rows looked at for pairs: memory stays flat
MOST_BLOCKS = 500
MOST_CHANGED = 200_000

SWAPPED = "the row holds the values of another row, which holds this row's"


class _Place(NamedTuple):
    """Where rows that can follow each other are: all but the last column of their key is the same."""

    table: TableName
    kind: Kind
    before: tuple[str, ...]


class _Block(NamedTuple):
    first: int
    last: int


class Patterns:
    """Reads all differences once; then it tells what each is part of."""

    def __init__(self, differences: Iterable[Difference]) -> None:
        """The rows of one table come in the order of their keys."""
        self._blocks: dict[_Place, list[_Block]] = defaultdict(list)
        #: changed rows by table and by the hashes of the values the sides have besides the key
        self._changed: Counter[tuple[TableName, int, int]] = Counter()
        runs: dict[_Place, _Block] = {}
        for difference in differences:
            if difference.kind == "changed" and len(self._changed) < MOST_CHANGED:
                self._changed[_values(difference)] += 1
            elif (placed := _number(difference)) is not None:
                place, number = placed
                run = runs.get(place)
                if run is not None and number == run.last + 1:
                    runs[place] = _Block(run.first, number)
                    continue
                if run is not None:
                    self._keep(place, run)
                runs[place] = _Block(number, number)
        for place, run in runs.items():
            self._keep(place, run)

    def _keep(self, place: _Place, run: _Block) -> None:
        blocks = self._blocks[place]
        if run.last - run.first + 1 >= BLOCK_ROWS and len(blocks) < MOST_BLOCKS:
            blocks.append(run)

    def of(self, difference: Difference) -> str:
        """Tell it in a sentence like those of causes.py; "" for a row that stands alone."""
        if difference.kind == "changed":
            table, theirs, ours = _values(difference)
            # rows of which several have the same values, such as flags, hold nobody's in particular
            pair = theirs != ours and self._changed[table, theirs, ours] == self._changed[table, ours, theirs] == 1
            return SWAPPED if pair else ""
        placed = _number(difference)
        if placed is None:
            return ""
        place, number = placed
        blocks = self._blocks.get(place, [])
        index = bisect_right(blocks, number, key=lambda block: block.first) - 1
        if index < 0 or number > blocks[index].last:
            return ""
        told = "is missing" if difference.kind == "missing" else "was added"
        return f"a block of rows {told}, {list(difference.key)[-1]} {blocks[index].first} to {blocks[index].last}"


def _number(difference: Difference) -> tuple[_Place, int] | None:
    """The key's last column as a number; None when it is none."""
    *before, last = difference.key.values() or ("NULL",)
    value = parse(last)
    if not isinstance(value, Number) or value.whole is None:
        return None
    return _Place(difference.table, difference.kind, tuple(before)), value.whole


def _values(difference: Difference) -> tuple[TableName, int, int]:
    sides = (difference.leader or {}, difference.follower or {})
    theirs, ours = (hash(tuple(side[name] for name in side if name not in difference.key)) for side in sides)
    return difference.table, theirs, ours
