"""Which rows of the follower hold the unique values that a change needs; the follower says, by its collations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from cdc_consumer.parity.repair.statements import Change
from cdc_consumer.parity.repair.target import Target
from shared.mysql import Connection, quote_name, rows

Item = TypeVar("Item")

#: questions of one statement
ASKED = 100


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of `size` at most."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def holders(
    connection: Connection, target: Target, keys: Sequence[Sequence[str]], changes: Iterable[tuple[int, Change]]
) -> Iterator[tuple[int, str]]:
    """Yield the places of changes whose new row has one of these keys of a row that is there, and that row's hash."""
    wanted = ((place, names, change) for place, change in changes for names in keys if _has(change, names))
    for batch in batches(wanted, ASKED):
        yield from _ask(connection, target, batch)


def takers(connection: Connection, target: Target, changes: Iterable[tuple[int, Change]]) -> Iterator[tuple[int, str]]:
    """The places of updates that take a unique value from another row, and that row's hash."""
    wanted = ((place, names, change) for place, change in changes for names in target.uniques if _takes(change, names))
    for batch in batches(wanted, ASKED):
        # a row has its own value, too, when only the spelling changes
        own = {place: change.before.hash for place, _, change in batch if change.before is not None}
        yield from (found for found in _ask(connection, target, batch) if own[found[0]] != found[1])


def _has(change: Change, names: Sequence[str]) -> bool:
    # NULL is not equal to NULL
    return change.after is not None and all(change.after.row[name] != "NULL" for name in names)


def _takes(change: Change, names: Sequence[str]) -> bool:
    before, after = change.before, change.after
    if before is None or after is None or not _has(change, names):
        return False
    return any(before.row[name] != after.row[name] for name in names)


def _ask(
    connection: Connection, target: Target, wanted: Sequence[tuple[int, Sequence[str], Change]]
) -> list[tuple[int, str]]:
    questions = []
    for place, names, change in wanted:
        assert change.after is not None, "a row that goes needs no value"
        row = change.after.row
        found = " AND ".join(f"{quote_name(name)} = {row[name]}" for name in names)
        questions.append(f"SELECT {place}, {target.hash} FROM {target.sql} WHERE {found}")
    return [(int(place), digest) for place, digest in rows(connection, " UNION ALL ".join(questions))]
