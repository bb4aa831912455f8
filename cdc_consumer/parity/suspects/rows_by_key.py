"""Reads the rows of one table by what identifies them: their key, or their hash where the table has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from cdc_consumer.parity.model import Difference, Evidence, Key, Kind, Shape, kind_of
from cdc_consumer.parity.rows.ranges import TableQueries
from cdc_consumer.parity.servers.connection import Select
from cdc_consumer.parity.servers.pair import Pair
from cdc_consumer.parity.state import Suspect
from cdc_consumer.sql import literals

#: keys one SELECT asks for
BATCH = 1000

#: key -> what was seen: a row's hash; of a table without a key the number of copies, as text. "" when it has no hash
Seen: TypeAlias = Mapping[Key, str]


class HashedRow(NamedTuple):
    """Holds a whole row."""

    hash: str
    #: column -> literal
    literals: Mapping[str, str]


class RowsByKey:
    """Reads the rows of one table by their keys."""

    def __init__(self, queries: TableQueries) -> None:
        self.shape: Shape = queries.shape
        self.queries = queries

    def look(self, select: Select, keys: Sequence[Key]) -> Seen:
        """Return what is there of these keys; a key that is not there is left out."""
        wanted = set(keys)
        if not self.shape.key:
            return self._count(select, wanted, keys)
        seen: dict[Key, str] = {}
        for batch in batches(keys):
            for row in select(self.queries.hashes_of(batch)):
                # a key that only compares equal to one asked for is another row
                if tuple(row[:-1]) in wanted:
                    seen[tuple(row[:-1])] = row[-1] or ""
        return seen

    def _count(self, select: Select, wanted: set[Key], keys: Sequence[Key]) -> Seen:
        """Count the copies of rows by their hashes, with one SELECT for all: each reads the whole table."""
        seen: dict[Key, str] = {("",): ""} if ("",) in wanted else {}
        if hashes := quoted(keys):
            seen.update({(row_hash,): str(count) for row_hash, count in select(self.queries.counted(hashes))})
        return seen

    def rows(self, suspects: Sequence[Suspect], leader_seen: Seen, follower_seen: Seen, pair: Pair) -> BothSides:
        """Read the whole rows of suspects whose sides differ."""
        if not suspects:
            return BothSides(self.shape, {}, {}, leader_seen, follower_seen)
        keys = [suspect.key for suspect in suspects]
        leader, follower = self.read(pair.leader.rows, keys), self.read(pair.follower.rows, keys)
        return BothSides(self.shape, leader, follower, leader_seen, follower_seen)

    def read(self, select: Select, keys: Sequence[Key]) -> dict[Key, HashedRow]:
        """Read the whole rows with these keys that are there; of a table without a key with these hashes."""
        names = [column.name for column in self.shape.columns]
        found: dict[Key, HashedRow] = {}
        if not self.shape.key:
            if hashes := quoted(keys):
                for row_hash, *values in select(self.queries.rows_with(hashes)):
                    found[(row_hash,)] = HashedRow(row_hash, dict(zip(names, values, strict=True)))
            return found
        width = len(self.shape.key)
        for batch in batches(keys):
            for row in select(self.queries.rows_of(batch)):
                told = dict(zip(names, row[width + 1 :], strict=True))
                found[tuple(row[:width])] = HashedRow(row[width] or "", told)
        return found


@dataclass(frozen=True, slots=True)
class BothSides:
    """Holds the whole rows of both sides, and what was seen of them when they were judged."""

    shape: Shape
    leader: Mapping[Key, HashedRow]
    follower: Mapping[Key, HashedRow]
    leader_seen: Seen
    follower_seen: Seen

    def topic_key(self, key: Key) -> Key | None:
        """Return what the topic's history knows the row by; None when the row is gone."""
        if self.shape.key:
            return key
        row = self.leader.get(key) or self.follower.get(key)
        return None if row is None else tuple(row.literals.values())

    def difference(self, key: Key, evidence: Evidence) -> Difference | None:
        """Return the difference of one suspect; None when a side has moved since it was judged."""
        leader, follower = self.leader.get(key), self.follower.get(key)
        if not self.shape.key:
            return self._copies(key, leader, follower, evidence)
        hashes = (leader and leader.hash, follower and follower.hash)
        if hashes != (self.leader_seen.get(key), self.follower_seen.get(key)):
            return None
        return row_difference(self.shape, key, leader, follower, evidence)

    def _copies(
        self, key: Key, leader: HashedRow | None, follower: HashedRow | None, evidence: Evidence
    ) -> Difference | None:
        counts = int(self.leader_seen.get(key, "0")), int(self.follower_seen.get(key, "0"))
        leader, follower = leader if counts[0] else None, follower if counts[1] else None
        if (leader is None and counts[0]) or (follower is None and counts[1]):
            return None
        return row_difference(self.shape, (), leader, follower, evidence, counts)


def row_difference(
    shape: Shape, key: Key, leader: HashedRow | None, follower: HashedRow | None, evidence: Evidence,
    copies: tuple[int, int] | None = None,
) -> Difference:  # fmt: skip
    """Make the difference of one row; `copies` are how many there are of it in a table without a key."""
    kind: Kind = "copies" if copies is not None and all(copies) else kind_of(leader, follower)
    return Difference(
        shape.name, kind, dict(zip(shape.key, key, strict=True)), leader and leader.literals,
        follower and follower.literals, leader and leader.hash, follower and follower.hash, evidence, copies=copies,
    )  # fmt: skip


def quoted(keys: Sequence[Key]) -> list[str]:
    """Write hashes as literals; rows without one are asked for by no SELECT."""
    return [literals.text(key[0]) for key in keys if key[0]]


def batches(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """Yield the keys in pieces of `BATCH` at most."""
    for start in range(0, len(keys), BATCH):
        yield keys[start : start + BATCH]
