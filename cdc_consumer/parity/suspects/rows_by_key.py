"""Reads the rows of one table by what identifies them: their key, or their hash where the table has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from cdc_consumer.parity.model import Difference, Evidence, Kind, Shape
from cdc_consumer.parity.rows.ranges import Key, Reading
from cdc_consumer.parity.servers.connection import Ask
from cdc_consumer.parity.servers.pair import Pair
from cdc_consumer.parity.state import Suspect
from cdc_consumer.sql import literals

#: keys one SELECT asks for
BATCH = 1000

#: key -> what was seen: a row's hash; of a table without a key the number of copies, as text. "" when it has no hash
Seen: TypeAlias = Mapping[Key, str]


class Row(NamedTuple):
    """Holds a whole row."""

    hash: str
    #: column -> literal
    literals: Mapping[str, str]


class Images:
    """Reads the rows of one table by their keys."""

    def __init__(self, reading: Reading) -> None:
        self.shape: Shape = reading.shape
        self.reading = reading

    def look(self, ask: Ask, keys: Sequence[Key]) -> Seen:
        """Return what is there of these keys; a key that is not there is left out."""
        wanted = set(keys)
        seen: dict[Key, str] = {}
        if not self.shape.key:
            if ("",) in wanted:
                seen[("",)] = ""
            if hashes := quoted(keys):  # one SELECT for all, since each reads the whole table
                seen.update({(row_hash,): str(count) for row_hash, count in ask(self.reading.counted(hashes))})
            return seen
        for batch in batches(keys):
            for row in ask(self.reading.hashes_of(batch)):
                # a key that only compares equal to one asked for is another row
                if tuple(row[:-1]) in wanted:
                    seen[tuple(row[:-1])] = row[-1] or ""
        return seen

    def rows(self, suspects: Sequence[Suspect], theirs: Seen, ours: Seen, pair: Pair) -> Rows:
        """Return the whole rows of suspects whose sides differ."""
        if not suspects:
            return Rows(self.shape, {}, {}, theirs, ours)
        keys = [suspect.key for suspect in suspects]
        return Rows(self.shape, self.read(pair.leader.rows, keys), self.read(pair.follower.rows, keys), theirs, ours)

    def read(self, ask: Ask, keys: Sequence[Key]) -> dict[Key, Row]:
        """Return the whole rows with these keys that are there; of a table without a key with these hashes."""
        names = [column.name for column in self.shape.columns]
        found: dict[Key, Row] = {}
        if not self.shape.key:
            if hashes := quoted(keys):
                for row_hash, *values in ask(self.reading.rows_with(hashes)):
                    found[(row_hash,)] = Row(row_hash, dict(zip(names, values, strict=True)))
            return found
        width = len(self.shape.key)
        for batch in batches(keys):
            for row in ask(self.reading.rows_of(batch)):
                found[tuple(row[:width])] = Row(row[width] or "", dict(zip(names, row[width + 1 :], strict=True)))
        return found


@dataclass(frozen=True, slots=True)
class Rows:
    """Holds the whole rows of both sides, and what was seen of them when they were judged."""

    shape: Shape
    leader: Mapping[Key, Row]
    follower: Mapping[Key, Row]
    theirs: Seen
    ours: Seen

    def topic_key(self, key: Key) -> Key | None:
        """Return what the topic's history knows the row by; None when the row is gone."""
        if self.shape.key:
            return key
        row = self.leader.get(key) or self.follower.get(key)
        return None if row is None else tuple(row.literals.values())

    def difference(self, key: Key, evidence: Evidence) -> Difference | None:
        """Return the difference of one suspect; None when a side has moved since it was judged."""
        theirs, ours = self.leader.get(key), self.follower.get(key)
        if not self.shape.key:
            return self._copies(key, theirs, ours, evidence)
        if (theirs.hash if theirs else None, ours.hash if ours else None) != (self.theirs.get(key), self.ours.get(key)):
            return None
        kind: Kind = "missing" if ours is None else "extra" if theirs is None else "changed"
        return Difference(
            self.shape.name, kind, dict(zip(self.shape.key, key, strict=True)), theirs and theirs.literals,
            ours and ours.literals, theirs and theirs.hash, ours and ours.hash, evidence,
        )  # fmt: skip

    def _copies(self, key: Key, theirs: Row | None, ours: Row | None, evidence: Evidence) -> Difference | None:
        counts = int(self.theirs.get(key, "0")), int(self.ours.get(key, "0"))
        kind: Kind = "copies" if all(counts) else "missing" if counts[0] else "extra"
        one, other = (side if count else None for side, count in zip((theirs, ours), counts, strict=True))
        if (one is None and counts[0]) or (other is None and counts[1]):
            return None
        return Difference(
            self.shape.name, kind, {}, one and one.literals, other and other.literals, one and one.hash,
            other and other.hash, evidence, copies=counts,
        )  # fmt: skip


def quoted(keys: Sequence[Key]) -> list[str]:
    """Hashes as literals; rows without one are asked for by no SELECT."""
    return [literals.text(key[0]) for key in keys if key[0]]


def batches(keys: Sequence[Key]) -> Iterator[Sequence[Key]]:
    """Yield the keys in pieces of `BATCH` at most."""
    for start in range(0, len(keys), BATCH):
        yield keys[start : start + BATCH]
