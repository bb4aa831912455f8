"""Compares a table without a key as a multiset: which rows there are, and how many copies of each."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_consumer.parity.rows.leaves import Compared
from cdc_consumer.parity.rows.ranges import TableQueries
from cdc_consumer.parity.servers.pair import Pair

#: hashes of rows that differ which one SELECT asks for: each costs a scan of the table
BATCH = 20_000


def compare(queries: TableQueries, pair: Pair, found: Compared) -> None:
    """Compare the whole table; its suspects are hashes."""
    (leader,), (follower,) = pair.both(lambda server: server.rows(queries.multiset()))
    found.leaves += 1
    found.leader_rows += leader[0]
    found.follower_rows += follower[0]
    found.digest = sum(int(lane or 0) << 96 * place for place, lane in enumerate(leader[1:])) % (1 << 256)
    if leader == follower:
        return
    found.dirty_leaves += 1
    rows = _unequal(pair.leader.stream(queries.counted()), pair.follower.stream(queries.counted()))
    found.suspects += [((row,), 0.0) for row in rows]


class _Stream:
    """One side's hashes and how many rows have each, in the order of the hashes."""

    def __init__(self, rows: Iterator[tuple[str | None, int]]) -> None:
        self._rows = rows
        self.hash: str | None = None
        self.count = 0
        self.advance()

    def advance(self) -> None:
        """Go to the next hash: "" comes first and stands for rows without one, None for the end."""
        found = next(self._rows, None)
        self.hash, self.count = (None, 0) if found is None else (found[0] or "", found[1])

    def is_before(self, other: _Stream) -> bool:
        return self.hash is not None and (other.hash is None or self.hash < other.hash)


def _unequal(
    leader_rows: Iterator[tuple[str | None, int]], follower_rows: Iterator[tuple[str | None, int]]
) -> Iterator[str]:
    """Yield the hashes with another number of rows on the two sides; "" for rows without one, which nothing tells."""
    leader, follower = _Stream(leader_rows), _Stream(follower_rows)
    while leader.hash is not None or follower.hash is not None:
        if leader.is_before(follower):
            yield leader.hash or ""
            leader.advance()
        elif follower.is_before(leader):
            yield follower.hash or ""
            follower.advance()
        else:
            if leader.count != follower.count or not leader.hash:
                yield leader.hash or ""
            leader.advance()
            follower.advance()
