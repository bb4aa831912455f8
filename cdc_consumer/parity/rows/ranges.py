"""Writes ranges of a key as SQL predicates. The servers order keys; nothing here compares two of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cdc_consumer.parity import canonical
from cdc_consumer.parity.model import Key, Shape
from cdc_consumer.sql.column_types import INTEGERS
from shared.mysql import quote_name


class Range(NamedTuple):
    """The rows whose key is greater than `low` and not greater than `high`; None is an open end."""

    low: Key | None = None
    high: Key | None = None


EVERYTHING = Range()

_INTEGERS = INTEGERS | {"bit"}


def is_integer(shape: Shape) -> bool:
    """Tell whether the key is one whole number, so that any other may be a bound.

    YEAR is none: MySQL takes its 50 for 2050.
    """
    return len(shape.key) == 1 and shape.column(shape.key[0]).data_type in _INTEGERS


def inside(key: Sequence[str], part: Range) -> list[str]:
    """Return predicates, all of which are true for the rows of the range; `key` are the names of the key's columns."""
    found = []
    if part.low is not None:
        found.append(_beyond(key, part.low, ">", ">"))
    if part.high is not None:
        found.append(_beyond(key, part.high, "<", "<="))
    return found


def _beyond(key: Sequence[str], bound: Key, strictly: str, last: str) -> str:
    """Written out column by column: MySQL does not seek by (a, b) > (x, y)."""
    names = [quote_name(name) for name in key]
    cases = []
    for index in range(len(names)):
        comparison = last if index == len(names) - 1 else strictly
        equal = [f"{name} = {value}" for name, value in zip(names[:index], bound, strict=False)]
        cases.append(" AND ".join([*equal, f"{names[index]} {comparison} {bound[index]}"]))
    return f"({' OR '.join(f'({case})' for case in cases)})" if len(cases) > 1 else cases[0]


def among(key: Sequence[str], keys: Sequence[Key]) -> str:
    """Return a predicate that is true for the rows whose key is one of these, or compares equal to one."""
    names = [quote_name(name) for name in key]
    if len(names) == 1:
        return f"{names[0]} IN ({', '.join(literals[0] for literals in keys)})"
    rows = ", ".join(f"({', '.join(literals)})" for literals in keys)
    return f"({', '.join(names)}) IN ({rows})"


def key_literals(shape: Shape) -> str:
    """Return the SQL of a row's key, as literals: what `among` and the bounds of a range are made of."""
    return ", ".join(canonical.literal(shape.column(name)) for name in shape.key)


class TableQueries:
    """The SELECTs on one table's rows; `where` narrows all of them."""

    def __init__(self, shape: Shape, where: str = "") -> None:
        self.shape = shape
        self._where = [f"({where})"] if where else []
        #: literals of what identifies a row
        self._key = key_literals(shape)
        self._order = ", ".join(quote_name(name) for name in shape.key)

    def _select(self, what: str, predicates: Sequence[str], tail: str = "") -> str:
        rows = " AND ".join([*self._where, *predicates])
        return f"SELECT {what} FROM {self.shape.name.sql}{f' WHERE {rows}' if rows else ''}{tail}"

    def digest(self, part: Range) -> str:
        """Return one row: number of rows, 32 bytes."""
        return self._select(canonical.digest(self.shape), inside(self.shape.key, part))

    def step(self, part: Range, count: int) -> str:
        """Return the key of the range's row number `count`, or nothing when it holds fewer."""
        tail = f" ORDER BY {self._order} LIMIT 1 OFFSET {count - 1}"
        return self._select(self._key, inside(self.shape.key, part), tail)

    def hashes(self, part: Range) -> str:
        """Return every row's key and hash."""
        return self._select(f"{self._key}, {canonical.row_hash(self.shape)}", inside(self.shape.key, part))

    def hashes_of(self, keys: Sequence[Key]) -> str:
        """Return key and hash of the rows with these keys."""
        return self._select(f"{self._key}, {canonical.row_hash(self.shape)}", [among(self.shape.key, keys)])

    def rows_of(self, keys: Sequence[Key]) -> str:
        """Return key, hash and all literals of the rows with these keys."""
        what = [self._key, canonical.row_hash(self.shape), *map(canonical.literal, self.shape.columns)]
        return self._select(", ".join(what), [among(self.shape.key, keys)])

    def these(self, keys: Sequence[Key], condition: str) -> str:
        """Return the keys among these whose rows fulfil a condition."""
        return self._select(self._key, [among(self.shape.key, keys), condition])

    def bound(self, which: str, part: Range = EVERYTHING) -> str:
        """The first or last key: `which` is ASC or DESC."""
        order = ", ".join(f"{quote_name(name)} {which}" for name in self.shape.key)
        return self._select(self._key, inside(self.shape.key, part), f" ORDER BY {order} LIMIT 1")

    def following(self, start: Key, part: Range) -> str:
        """Return the first key of the range not before `start`, which may be only the first of its columns."""
        names = self.shape.key[: len(start)]
        predicates = [*inside(self.shape.key, part), _beyond(names, start, ">", ">=")]
        return self._select(self._key, predicates, f" ORDER BY {self._order} LIMIT 1")

    def nothing(self) -> str:
        """Ask for no row, to get an error where the SELECT is none."""
        return self._select("1", [], " LIMIT 0")

    def estimate(self, part: Range) -> str:
        """EXPLAIN of a scan of the range; its column `rows` is the optimizer's guess."""
        return f"EXPLAIN FORMAT=TRADITIONAL {self._select('1', inside(self.shape.key, part))}"

    # of tables without a key

    def multiset(self) -> str:
        """Return one row: number of rows, two sums."""
        return self._select(canonical.multiset(self.shape), [])

    def counted(self, hashes: Sequence[str] = ()) -> str:
        """Return every hash (NULL for rows too long for one) and how many rows have it, in the order of the hashes."""
        what = canonical.row_hash(self.shape)
        chosen = [f"{what} IN ({', '.join(hashes)})"] if hashes else []
        return self._select(f"{what} AS row_hash, COUNT(*)", chosen, " GROUP BY row_hash ORDER BY row_hash")

    def rows_with(self, hashes: Sequence[str]) -> str:
        """Hash and all literals of the rows with these hashes, every copy."""
        what = canonical.row_hash(self.shape)
        literals = ", ".join(map(canonical.literal, self.shape.columns))
        return self._select(f"{what}, {literals}", [f"{what} IN ({', '.join(hashes)})"])
