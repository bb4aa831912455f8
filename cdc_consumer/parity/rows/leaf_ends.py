"""Asks the follower where a leaf ends: at a key so far on that about the wanted number of rows lies before it."""

from __future__ import annotations

from cdc_consumer.parity.model import Key
from cdc_consumer.parity.rows.ranges import Range, TableQueries, is_integer
from cdc_consumer.parity.servers.connection import ServerConnection


class LeafEnds:
    """Finds the ends of the leaves of one range, in order."""

    def __init__(self, queries: TableQueries, reader: ServerConnection, part: Range, leaf_rows: int) -> None:
        self._queries = queries
        #: who is asked
        self.reader = reader
        self._part = part
        self._rows = leaf_rows

    def after(self, low: Key | None, count: int) -> Key | None:
        """The end of the leaf that begins after `low`, None of the last one; the one before had `count` rows."""
        found = self.reader.rows(self._queries.step(Range(low, self._part.high), self._rows))
        return tuple(found[0]) if found else None


class NumberLeafEnds(LeafEnds):
    """Takes a key that is one whole number: counts on without asking, and learns from each leaf how far to go."""

    def __init__(
        self, queries: TableQueries, reader: ServerConnection, part: Range, leaf_rows: int, expected_rows: int
    ) -> None:
        super().__init__(queries, reader, part, leaf_rows)
        first, last = (self._end("ASC", part.low), self._end("DESC", part.high))
        self._first, self._last = first or 0, last or 0
        self._width = max((self._last - self._first) * leaf_rows // max(expected_rows, 1), 1)

    def _end(self, which: str, bound: Key | None) -> int | None:
        if bound is not None:
            return int(bound[0])
        found = self.reader.rows(self._queries.bound(which, self._part))
        return int(found[0][0]) if found else None

    def after(self, low: Key | None, count: int) -> Key | None:
        if count > 2 * self._rows:
            self._width = max(self._width * self._rows // count, 1)
        elif low != self._part.low and 2 * count < self._rows:
            self._width *= 2
        end = (self._first if low is None else int(low[0])) + self._width
        return (str(end),) if end < self._last else None


def leaf_ends(
    queries: TableQueries, reader: ServerConnection, part: Range, leaf_rows: int, expected_rows: int
) -> LeafEnds:
    """Return the cheapest way for this table's key."""
    if is_integer(queries.shape):
        return NumberLeafEnds(queries, reader, part, leaf_rows, expected_rows)
    return LeafEnds(queries, reader, part, leaf_rows)
