"""What a trial says of one script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trial.contents import Contents, Item

EQUAL, DIFFERS, STOPPED, AS_NATIVE = "equal", "differs", "stopped", "as native"

#: what may differ from one run to the next in the sentence of a stop
PARTICULARS = re.compile(r"'[^']*'|`[^`]*`|\"[^\"]*\"|\b\S*\d\S*\b|\(.*?\)")


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the follower compares with the leader, and MySQL's own replica with both.

    kind:       EQUAL; DIFFERS, in silence; STOPPED with a sentence; AS_NATIVE: what differs is the same on the replica
    items:      what differs in silence, or as native
    sentences:  what the programs stopped with
    native:     "" when the replica is equal, else what differs there or the error it stopped with
    """

    kind: str
    items: tuple[Item, ...] = ()
    sentences: tuple[str, ...] = ()
    native: str = ""

    @property
    def is_silent(self) -> bool:
        return self.kind == DIFFERS

    @property
    def sort(self) -> tuple[str, ...]:
        """What two findings of the same fault have in common."""
        if self.kind == STOPPED:
            # what stands before is the statement or the row
            reason = re.split(r"sequence \d+", self.sentences[0])[-1]
            return (self.kind, PARTICULARS.sub("..", reason)[:120])
        return (self.kind, *sorted({item.kind for item in self.items}))

    def __str__(self) -> str:
        said = [self.kind]
        said += [", ".join(map(str, self.items[:4])) + (" ..." if len(self.items) > 4 else "")] if self.items else []
        said += list(self.sentences)
        said += [f"native: {self.native}"] if self.native else ["native: equal"] if self.kind != EQUAL else []
        return " ".join("; ".join(said).split())


def judge(leader: Contents, follower: Contents, native: Contents, sentences: tuple[str, ...], error: str) -> Verdict:
    """Compare three servers. `error` is what native replication stopped with; then nothing is excused by it."""
    beside = tuple(_different(leader, native))
    word = f"stops: {error}" if error else f"differs: {', '.join(map(str, beside[:3]))}" if beside else ""
    if sentences:
        return Verdict(STOPPED, sentences=sentences, native=word)
    items = tuple(item for item in _different(leader, follower) if item.kind != "trigger")
    own = tuple(item for item in items if error or not _excused(item, leader, follower, native))
    if own:
        return Verdict(DIFFERS, own, native=word)
    return Verdict(AS_NATIVE if items else EQUAL, items, native=word)


def _excused(item: Item, leader: Contents, follower: Contents, native: Contents) -> bool:
    """Whether the replica has the same; of a table, line by line: one line may be the leader's, the next the replica's."""
    theirs, ours, beside = leader.get(item), follower.get(item), native.get(item)
    if item.kind != "table" or None in (theirs, ours, beside):
        return bool(ours == beside)
    lines = [str(text).splitlines() for text in (theirs, ours, beside)]
    return len({len(some) for some in lines}) == 1 and all(
        our in (their, other) for their, our, other in zip(*lines, strict=True)
    )


def _different(leader: Contents, other: Contents) -> Iterator[Item]:
    for item in {**leader, **other}:
        if leader.get(item) != other.get(item):
            yield item
