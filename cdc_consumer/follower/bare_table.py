"""Finds many rows of a table without any index in one reading of it, where one row a statement reads it each time.

Some images leave the table and others come into it. That is the same as changing one row after the other, because where
no index is, no key and no foreign key is either: such a table is nothing but its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cdc_consumer.sql import literals
from cdc_consumer.sql.predicates import exactly
from shared.events import Value
from shared.values import NULL

#: rows of one exchange at most: a row that is found is compared with half of the images
EXCHANGED_ROWS = 200
#: variants of values by which a row may be looked up before it is compared byte by byte
_LOOKED_UP = ("SignedInteger", "UnsignedInteger", "Decimal", "String")

#: a row image, and the row image that takes its place; None for a row that goes
Replacement = tuple[Sequence[Value], "Sequence[Value] | None"]


class Exchange(NamedTuple):
    """Holds the statements that take images out of a table and put others in."""

    #: place of the first of its rows among all that were given
    first: int
    #: SELECT that finds a row for each of `different` images that is there exactly as often as it goes, "" for none
    find: str
    different: int
    delete: str
    deleted: int
    #: rows as an INSERT writes them
    inserted: list[str]


class BareTable:
    """Makes the exchanges of one such table; `columns` are those that are written, with their places in an image."""

    def __init__(
        self, table: str, columns: Sequence[tuple[int, str]], inserted: Callable[[Sequence[Value]], str]
    ) -> None:
        """`table` is its quoted name; `inserted` writes an image as an INSERT does."""
        self._table = table
        self._names = [(index, name) for index, name in columns]
        self._inserted = inserted

    def exchanges(self, changes: Sequence[Replacement], limit: int) -> Iterator[Exchange]:
        """Yield the exchanges that make these changes; the statements of one grow to about `limit` characters."""
        first = 0
        while first < len(changes):
            gone: dict[str, list[Sequence[Value]]] = {}
            come: dict[str, int] = {}
            size, last = 0, first
            while last < len(changes) and last - first < EXCHANGED_ROWS and size < limit:
                before, after = changes[last]
                left = self._inserted(before)
                if come.get(left):  # it came a moment ago
                    come[left] -= 1
                else:
                    gone.setdefault(left, []).append(before)
                if after is not None:
                    arrived = self._inserted(after)
                    come[arrived] = come.get(arrived, 0) + 1
                size, last = size + 2 * len(left), last + 1
            yield self._exchange(first, list(gone.values()), [row for row, count in come.items() for _ in range(count)])
            first = last

    def _exchange(self, first: int, gone: list[list[Sequence[Value]]], inserted: list[str]) -> Exchange:
        """`gone` are equal images together."""
        images = [same[0] for same in gone]
        exact = [" AND ".join([exactly(name, image[index]) for index, name in self._names]) for image in images]
        deleted = sum(map(len, gone))
        if len(gone) == 1:  # there may be more of them, and any will do
            delete = f"DELETE FROM {self._table} WHERE {exact[0]} LIMIT {deleted}"
            return Exchange(first, "", 0, delete, deleted, inserted)
        found = self._looked_up(images)
        cases = " ".join([f"WHEN {one} THEN {number}" for number, one in enumerate(exact)])
        often = " ".join([f"WHEN {number} THEN {len(same)}" for number, same in enumerate(gone)])
        find = (
            f"SELECT image FROM (SELECT CASE {cases} END AS image, COUNT(*) AS often FROM {self._table} WHERE {found}"
            f" GROUP BY 1 FOR UPDATE) AS images WHERE often = CASE image {often} END"
        )
        delete = f"DELETE FROM {self._table} WHERE {found} AND CASE {cases} END IS NOT NULL"
        return Exchange(first, find, len(gone), delete, deleted, inserted)

    def _looked_up(self, images: list[Sequence[Value]]) -> str:
        """SQL that is true of these images and of few others: what a row is compared with first, all at once.

        It needs not be exact: a row that it misses is missed by the counts.
        """
        most, found = 1, "TRUE"
        for index, name in self._names:
            values = [image[index] for image in images]
            given = [value for value in values if value != NULL]
            kinds = {next(iter(value)) for value in given}
            if len(kinds) == 1 and kinds.issubset(_LOOKED_UP):
                different = set(literals.all_of(given))
                if len(different) > most:
                    most, found = len(different), f"{name} IN ({','.join(sorted(different))})"
                    if len(given) < len(values):
                        found = f"({found} OR {name} IS NULL)"
        return found
