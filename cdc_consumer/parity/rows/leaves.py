"""A range of one table, compared leaf by leaf: two digests a leaf, and row hashes only of the leaves that differ."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cdc_consumer.parity.model import Key
from cdc_consumer.parity.rows.leaf_ends import LeafEnds, leaf_ends
from cdc_consumer.parity.rows.ranges import Range, TableQueries
from cdc_consumer.parity.servers.connection import ServerConnection
from cdc_consumer.parity.servers.pair import Pair

#: a leaf of which a side holds more times the wanted rows is cut again before its hashes are fetched
OVERSIZED = 4
#: upper bounds in milliseconds of the histogram of leaves
BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 60_000)


@dataclass(slots=True)
class Compared:
    """What comparing one range has found; travels from the worker to the driver."""

    leader_rows: int = 0
    follower_rows: int = 0
    leaves: int = 0
    dirty_leaves: int = 0
    #: XOR of the leader's row hashes
    digest: int = 0
    #: keys that were not equal at the moment they were read, and where in the range: 0.0 to 1.0
    suspects: list[tuple[Key, float]] = field(default_factory=list)
    #: leaves by upper bound in milliseconds
    milliseconds: dict[int, int] = field(default_factory=dict)

    def time(self, seconds: float) -> None:
        bucket = next((bound for bound in BUCKETS if seconds * 1000 <= bound), BUCKETS[-1])
        self.milliseconds[bucket] = self.milliseconds.get(bucket, 0) + 1


class Leaves:
    """Reads both sides of one table at once from two threads."""

    def __init__(self, queries: TableQueries, pair: Pair, leaf_rows: int) -> None:
        self._queries = queries
        self._leader = pair.leader
        self._follower = pair.follower
        self._leaf_rows = leaf_rows
        self._beside = ThreadPoolExecutor(1)

    def __enter__(self) -> Leaves:
        return self

    def __exit__(self, *_: object) -> None:
        self._beside.shutdown()

    def compare(self, part: Range, expected_rows: int, found: Compared) -> Iterator[Range]:
        """Compare the range; yields what is left of it after every leaf, where the caller may stop.

        The follower finds the leaves' bounds, unless the leader has far more rows there.
        """
        low, done = part.low, 0
        ends = leaf_ends(self._queries, self._follower, part, self._leaf_rows, expected_rows)
        high = ends.after(low, 0)
        if high is None and self._oversized(expected_rows):
            ends, high = self._ends_of(self._leader, part, low)
        while True:
            began = time.monotonic()
            leaf = Range(low, high or part.high)
            asked = self._beside.submit(self._digest, self._leader, leaf)
            follower = self._digest(self._follower, leaf)
            # found while the leader may still be reading, unless it is the one to find it
            if ends.reader is self._leader:
                wait([asked])
            after = None if high is None else ends.after(high, follower.rows)
            digests = _Digests(asked.result(), follower)
            if not digests.same and self._oversized(digests.rows):
                # its hashes would fill the memory; the side with more rows finds the bounds from here on
                larger = self._leader if digests.leader.rows >= digests.follower.rows else self._follower
                ends, shorter = self._ends_of(larger, part, low)
                if shorter != high:
                    high = shorter
                    continue
            self._judge(leaf, digests, min(done / max(expected_rows, 1), 1.0), found)
            found.time(time.monotonic() - began)
            done += digests.rows
            if high is None:
                return
            yield Range(high, part.high)
            low, high = high, after

    def _oversized(self, count: int) -> bool:
        return count > OVERSIZED * self._leaf_rows

    def _ends_of(self, larger: ServerConnection, part: Range, low: Key | None) -> tuple[LeafEnds, Key | None]:
        ends = LeafEnds(self._queries, larger, part, self._leaf_rows)
        return ends, ends.after(low, 0)

    def _judge(self, leaf: Range, digests: _Digests, place: float, found: Compared) -> None:
        found.leaves += 1
        found.leader_rows += digests.leader.rows
        found.follower_rows += digests.follower.rows
        if digests.leader.rows:
            found.digest ^= int.from_bytes(digests.leader.xor, "big")
        if not digests.same:
            found.dirty_leaves += 1
            found.suspects += [(key, place) for key in self._unequal(leaf)]

    def _unequal(self, part: Range) -> Iterator[Key]:
        asked = self._beside.submit(self._hashes, self._leader, part)
        follower = self._hashes(self._follower, part)
        leader = asked.result()
        for key in leader.keys() | follower.keys():
            # a row too long for a hash has None
            if leader.get(key) is None or leader.get(key) != follower.get(key):
                yield key

    def _digest(self, server: ServerConnection, part: Range) -> _Digest:
        return _Digest(*server.rows(self._queries.digest(part))[0])

    def _hashes(self, server: ServerConnection, part: Range) -> dict[Key, str | None]:
        return split_keys(server.rows(self._queries.hashes(part)))


class _Digest(NamedTuple):
    """Of the rows of one leaf on one side: how many there are, and the XOR of their hashes."""

    rows: int
    xor: bytes


class _Digests(NamedTuple):
    leader: _Digest
    follower: _Digest

    @property
    def rows(self) -> int:
        """The rows of the side that has more."""
        return max(self.leader.rows, self.follower.rows)

    @property
    def same(self) -> bool:
        # of no rows at all MySQL's XOR has another length
        return self.leader.rows == self.follower.rows and (
            self.leader.xor == self.follower.xor or not self.follower.rows
        )


def split_keys(rows: Sequence[Sequence[Any]]) -> dict[Key, str | None]:
    """Return rows of TableQueries.hashes: key -> hash."""
    return {tuple(row[:-1]): row[-1] for row in rows}
