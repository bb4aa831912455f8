"""Compares a table without a key as a multiset: which rows there are, and how many copies of each."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_consumer.parity.rows.leaves import Compared
from cdc_consumer.parity.rows.ranges import Reading
from cdc_consumer.parity.servers.pair import Pair

#: hashes of rows that differ which one SELECT asks for: each costs a scan of the table
BATCH = 20_000


def compare(reading: Reading, pair: Pair, found: Compared) -> None:
    """Compare the whole table; its suspects are hashes."""
    (leader,), (follower,) = pair.both(lambda server: server.rows(reading.multiset()))
    found.leaves += 1
    found.leader_rows += leader[0]
    found.follower_rows += follower[0]
    found.digest = sum(int(lane or 0) << 96 * place for place, lane in enumerate(leader[1:])) % (1 << 256)
    if leader == follower:
        return
    found.dirty_leaves += 1
    rows = _unequal(pair.leader.stream(reading.counted()), pair.follower.stream(reading.counted()))
    found.suspects += [((row,), 0.0) for row in rows]


def _unequal(theirs: Iterator[tuple[str | None, int]], ours: Iterator[tuple[str | None, int]]) -> Iterator[str]:
    """Hashes with another number of rows, from two streams in the order of the hashes; "" for rows without one."""
    one, other = next(theirs, None), next(ours, None)
    while one is not None or other is not None:
        # NULL comes first in both
        left, right = (one[0] or "" if one else None), (other[0] or "" if other else None)
        if left == right:
            if one != other or not left:
                yield left or ""
            one, other = next(theirs, None), next(ours, None)
        elif right is None or (left is not None and left < right):
            yield left or ""
            one = next(theirs, None)
        else:
            yield right
            other = next(ours, None)
