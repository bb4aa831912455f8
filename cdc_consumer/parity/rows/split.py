"""Cuts a table into ranges of about equal size by asking the follower alone: the leader pays nothing.

Bounds are real keys (or whole numbers between them); the first range is open below and the last above, so that rows
only the leader has are in one of them. The optimizer's guess tells which range is too large and is cut again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from cdc_consumer.parity.literal import CODECS, Bytes, Number, Text, parse
from cdc_consumer.parity.model import Key
from cdc_consumer.parity.rows.ranges import EVERYTHING, Range, TableQueries, is_integer
from cdc_consumer.parity.servers.connection import ServerConnection

#: a range is cut again when its guessed rows exceed the wanted ones by this factor
HEAVY = 2.0
#: the optimizer never guesses more than about half of a table
DEPTH = 6
#: bytes of a string between which bounds are looked for
LOOK_BYTES = 6

#: character sets of the texts that points are laid between
_CHARSETS = frozenset({"ascii", "latin1", "utf8mb3", "utf8mb4"})


def split(queries: TableQueries, follower: ServerConnection, rows: int, wanted: int) -> tuple[list[Range], str]:
    """Return ranges in key order that together hold every possible key, and the method: see TableResult.split.

    `rows` is a guess of the table's rows, `wanted` how many a range should have.
    """
    first = follower.rows(queries.bound("ASC"))
    if rows <= wanted * HEAVY or not first:
        return [EVERYTHING], "one range"
    low: Key = tuple(first[0])
    high: Key = tuple(follower.rows(queries.bound("DESC"))[0])
    bounds = _bounds(queries, follower, Range(low, high), rows, wanted, DEPTH)
    ends: list[Key | None] = [None, *bounds, None]
    method = "one range" if not bounds else "integer" if is_integer(queries.shape) else "probe"
    return [Range(*pair) for pair in pairwise(ends)], method


def _bounds(
    queries: TableQueries, follower: ServerConnection, part: Range, rows: int, wanted: int, depth: int
) -> list[Key]:
    """Keys inside the range, in order, that cut it into pieces of about `wanted` rows."""
    assert part.low is not None and part.high is not None
    found = list(_probes(queries, follower, part.low, part.high, max(2, -(-rows // wanted))))
    if not found:
        return list(_walk(queries, follower, part, wanted))
    if depth == 0:
        return found
    ends = [part.low, *found, part.high]
    result: list[Key] = []
    for low, high in pairwise(ends):
        guess = _guess(queries, follower, Range(low, high))
        if guess > wanted * HEAVY:
            result += _bounds(queries, follower, Range(low, high), guess, wanted, depth - 1)
        if high is not part.high:
            result.append(high)
    return result


def _guess(queries: TableQueries, follower: ServerConnection, part: Range) -> int:
    # columns of EXPLAIN: id, select_type, table, partitions, type, possible_keys, key, key_len, ref, rows, ...
    return int(follower.rows(queries.estimate(part))[0][9] or 0)


def _probes(queries: TableQueries, follower: ServerConnection, low: Key, high: Key, parts: int) -> Iterator[Key]:
    """The keys that follow points laid evenly between the two, found by the server in its own order."""
    # columns in which both are alike say nothing; points are laid in the first that differs
    place = next((index for index, pair in enumerate(zip(low, high, strict=True)) if pair[0] != pair[1]), None)
    if place is None:
        return
    last = low
    for point in points(low[place], high[place], parts):
        key = (*low[:place], point)
        if not is_integer(queries.shape):
            found = follower.rows(queries.following(key, Range(last, high)))
            if not found:
                return
            key = tuple(found[0])
        if key not in (last, high):
            yield key
            last = key


def points(low: str, high: str, parts: int) -> list[str]:
    """Return literals that lie evenly between two: of whole numbers, and of strings by their first differing bytes."""
    one, other = parse(low), parse(high)
    if isinstance(one, Number) and isinstance(other, Number):
        if one.whole is None or other.whole is None:
            return []
        return [str(value) for value in _between(one.whole, other.whole, parts)]
    if isinstance(one, Bytes) and isinstance(other, Bytes):
        return [Bytes(data).sql for data in _points(one.data, other.data, parts)]
    if isinstance(one, Text) and isinstance(other, Text) and one.charset in _CHARSETS:
        found = _points(one.data, other.data, parts)
        if one.charset != "latin1":  # any byte is latin1; elsewhere the server refuses what is no text
            codec = CODECS[one.charset]
            found = [data.decode(codec, "ignore").encode(codec) for data in found]
        return [replace(one, data=data).sql for data in found]
    return []


def _points(left: bytes, right: bytes, parts: int) -> list[bytes]:
    same = _common(left, right)
    ends = [int.from_bytes(side[same:].ljust(LOOK_BYTES, b"\0")[:LOOK_BYTES], "big") for side in (left, right)]
    return [left[:same] + value.to_bytes(LOOK_BYTES, "big") for value in _between(ends[0], ends[1], parts)]


def _common(left: bytes, right: bytes) -> int:
    """How many bytes both begin with."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(left), len(right)))


def _between(low: int, high: int, parts: int) -> list[int]:
    found = (low + (high - low) * part // parts for part in range(1, parts))
    return [value for value in dict.fromkeys(found) if low < value < high]


def _walk(queries: TableQueries, follower: ServerConnection, part: Range, wanted: int) -> Iterator[Key]:
    """Every `wanted`th key, found by reading the index: for keys no points can be laid between."""
    low = part.low
    while True:
        found = follower.rows(queries.step(Range(low, part.high), wanted))
        if not found or tuple(found[0]) == part.high:
            return
        low = tuple(found[0])
        yield low
