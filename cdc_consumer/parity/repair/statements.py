"""Changes of rows as guarded SQL; pure.

Each statement carries the hash of the row it expects, so that a row somebody changed meanwhile is left alone, and the
number of rows tells. The same functions undo a change: `Change.reversed`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cdc_consumer.parity.canonical import SESSION
from cdc_consumer.parity.literal import Json, parse
from cdc_consumer.parity.model import Difference, TableName
from cdc_consumer.parity.repair.target import Target
from cdc_consumer.sql.session import RELAXED_MODE, STRICT_MODE
from shared.mysql import quote_name

#: the literal of the error value of an ENUM, which strict SQL mode refuses
ENUM_ERROR = "0"

STRICT = f"SET SESSION sql_mode = {STRICT_MODE}"
RELAXED = f"SET SESSION sql_mode = {RELAXED_MODE}"


def session(hides_own_writes: bool, lock_seconds: int) -> list[str]:
    """Return what a connection runs before the statements.

    `hides_own_writes` is as in preflight.Facts; a statement waits `lock_seconds` at most for a lock.

    Foreign keys are not checked: the statements name every row that differs, so the end is as consistent as the
    leader. With the checks, an ON DELETE or ON UPDATE action would change rows that nobody named, and no hash guards.
    """
    settings = [
        *SESSION,
        STRICT,
        "SET SESSION foreign_key_checks = 0, unique_checks = 1, sql_safe_updates = 0,"
        f" innodb_lock_wait_timeout = {lock_seconds}, lock_wait_timeout = {lock_seconds}",
    ]
    return [*settings, "SET SESSION sql_log_bin = 0"] if hides_own_writes else settings


class Image(NamedTuple):
    """Holds a row as it is on one side."""

    #: column -> literal
    row: Mapping[str, str]
    hash: str
    #: how often it is there; 1 in a table with a key
    copies: int


class Change(NamedTuple):
    """Tells what a row of the follower is and what it is to become; None for no row."""

    table: TableName
    before: Image | None
    after: Image | None
    #: the follower's position when it was proven, as file:offset
    proven: str = ""

    @property
    def reversed(self) -> Change:
        return Change(self.table, self.after, self.before, self.proven)

    @property
    def images(self) -> tuple[Image, ...]:
        return tuple(image for image in (self.before, self.after) if image is not None)

    @property
    def rows(self) -> int:
        """Tell how many rows it writes."""
        return max(1, abs(copies(self.after) - copies(self.before)))

    @property
    def characters(self) -> int:
        return sum(len(literal) for image in self.images for literal in image.row.values())

    def key(self, names: Sequence[str]) -> dict[str, str]:
        """Return the literals that name the row to people: its key, all of it in a table without one."""
        row = self.images[0].row
        return {name: row[name] for name in names or row}


class Guarded(NamedTuple):
    """Holds one statement and what it must do."""

    sql: str
    #: rows it must insert or match; None for one that only looks
    rows: int | None
    #: it writes the error value of an ENUM
    relaxed: bool = False


def copies(image: Image | None) -> int:
    """Tell how often a row is there; None is no row."""
    return 0 if image is None else image.copies


def change_of(difference: Difference) -> Change | None:
    """Return what repairs a difference; None when a row has no hash, so that nothing could guard it.

    Raises ValueError when a value is no literal.
    """
    for row in (difference.leader, difference.follower):
        for value in (row or {}).values():
            parse(value)  # nothing else becomes a part of a statement
    leaders, followers = difference.copies or (1, 1)
    sides: list[Image | None] = []
    for row, digest, number in (
        (difference.follower, difference.follower_hash, followers),
        (difference.leader, difference.leader_hash, leaders),
    ):
        if row is not None and number and digest is None:
            return None
        sides.append(Image(dict(row), digest, number) if row is not None and number and digest else None)
    before, after = sides
    return Change(difference.table, before, after, difference.evidence.follower) if any(sides) else None


def statements(target: Target, changes: Sequence[Change]) -> list[Guarded]:
    """Write the SQL of changes that belong together: one row of a table with a key, or several, all or none."""
    if not target.shape.key:
        return _copies(target, changes)
    if len(changes) == 1 and not _differs_by_documents_alone(target, changes[0]):
        return [_row(target, changes[0])]
    deleted = [_delete(target, change.before, "@whole AND ") for change in changes if change.before]
    inserted = [_insert(target, change.after, "@whole AND ") for change in changes if change.after]
    return [_guard(target, changes), *deleted, *inserted]


def where_any_key(target: Target, images: Iterable[Image]) -> str:
    """Selects the rows that have the keys of these images."""
    names = [quote_name(name) for name in target.shape.key]
    keys = dict.fromkeys(", ".join(image.row[name] for name in target.shape.key) for image in images)
    if len(names) == 1:
        return f"{names[0]} IN ({', '.join(keys)})"
    return f"({', '.join(names)}) IN ({', '.join(f'({key})' for key in keys)})"


def where_any_hash(target: Target, hashes: Iterable[str]) -> str:
    """Select the rows that have one of these hashes."""
    return f"{target.hash} IN ({', '.join(map(_text, dict.fromkeys(hashes)))})"


def _row(target: Target, change: Change) -> Guarded:
    if change.before is None:
        assert change.after is not None, "a change changes something"
        return _insert(target, change.after)
    if change.after is None:
        return _delete(target, change.before)
    return _update(target, change.before, change.after)


def _insert(target: Target, image: Image, condition: str = "") -> Guarded:
    # by the key's collation: what compares equal cannot be inserted
    absent = f"NOT EXISTS (SELECT 1 FROM {target.sql} WHERE {_key(target, image)})"
    return _inserting(target, image, "DUAL", condition + absent, 1)


def _inserting(target: Target, image: Image, source: str, condition: str, rows: int) -> Guarded:
    names = ", ".join(map(quote_name, target.written))
    values = ", ".join(image.row[name] for name in target.written)
    sql = f"INSERT INTO {target.sql} ({names}) SELECT {values} FROM {source} WHERE {condition}"
    return Guarded(sql, rows, _relaxed(target, image, target.written))


def _delete(target: Target, image: Image, condition: str = "") -> Guarded:
    return Guarded(f"DELETE FROM {target.sql} WHERE {condition}{_exactly(target, image)}", 1)


def _update(target: Target, before: Image, after: Image) -> Guarded:
    """Sets the columns that differ, and those that would move by themselves to what they are."""
    names = [name for name in target.written if before.row[name] != after.row[name]]
    # Where documents read alike, or nothing but generated columns differs, the hash will tell that this does not help.
    names = names or [name for name in target.documents if name in target.written] or list(target.written[:1])
    kept = [name for name in target.moving if name not in names]
    settings = [f"{quote_name(name)} = {after.row[name]}" for name in names]
    settings += [f"{quote_name(name)} = {quote_name(name)}" for name in kept]
    sql = f"UPDATE {target.sql} SET {', '.join(settings)} WHERE {_exactly(target, before)}"
    return Guarded(sql, 1, _relaxed(target, after, names))


def _differs_by_documents_alone(target: Target, change: Change) -> bool:
    """Tell whether an UPDATE may write nothing: MySQL compares documents by value, and 1 is 1.0.

    Such a row is deleted and inserted, where that loses nothing of it.
    """
    before, after = change.before, change.after
    if before is None or after is None or target.outside:
        return False
    names = [name for name in target.written if before.row[name] != after.row[name]] or target.documents
    return bool(names) and all(
        name in target.documents and _value(before.row[name]) == _value(after.row[name]) for name in names
    )


def _value(literal: str) -> object:
    """A document's value, in which all numbers are of one type; anything else as it is."""
    parsed = parse(literal)
    return json.loads(parsed.data, parse_int=float) if isinstance(parsed, Json) else literal


def _copies(target: Target, changes: Sequence[Change]) -> list[Guarded]:
    """Rows of a table without a key. A scan for each would take for ever, so that many share one."""
    made = [_guard(target, changes)]
    gone = [change.before for change in changes if change.before and change.after is None]
    if gone:
        found = where_any_hash(target, (image.hash for image in gone))
        made.append(Guarded(f"DELETE FROM {target.sql} WHERE @whole AND {found}", sum(i.copies for i in gone)))
    for change in changes:
        more = copies(change.after) - copies(change.before)
        if more < 0 and change.after is not None:
            found = f"@whole AND {target.hash} = {_text(change.after.hash)}"
            made.append(Guarded(f"DELETE FROM {target.sql} WHERE {found} LIMIT {-more}", -more))
        elif more > 0 and change.after is not None:
            many = f"JSON_TABLE(CONCAT('[0', REPEAT(',0', {more - 1}), ']'), '$[*]' COLUMNS (n FOR ORDINALITY)) AS many"
            made.append(_inserting(target, change.after, "DUAL" if more == 1 else many, "@whole", more))
    return made


def _guard(target: Target, changes: Sequence[Change]) -> Guarded:
    """Sets @whole to 1 when all rows are as expected and keeps them so, else to 0."""
    images = [image for change in changes for image in change.images]
    where = where_any_hash(target, (image.hash for image in images))
    if target.shape.key:
        where = f"{where_any_key(target, images)} AND {where}"
    expected = [f"({_text(change.before.hash)}, {change.before.copies})" for change in changes if change.before]
    found = f"SELECT {target.hash} AS h, COUNT(*) AS n FROM {target.sql} WHERE {where} GROUP BY h FOR UPDATE"
    exact = f" AND SUM((h, n) IN ({', '.join(expected)})) = {len(expected)}" if expected else ""
    return Guarded(f"SELECT COUNT(*) = {len(expected)}{exact} INTO @whole FROM ({found}) AS found", None)


def _key(target: Target, image: Image) -> str:
    return " AND ".join(f"{quote_name(name)} = {image.row[name]}" for name in target.shape.key)


def _exactly(target: Target, image: Image) -> str:
    """Finds this very row: by its key, which an index answers, and then byte by byte."""
    return f"{_key(target, image)} AND {target.hash} = {_text(image.hash)}"


def _relaxed(target: Target, image: Image, names: Iterable[str]) -> bool:
    return any(name in target.enums and image.row[name] == ENUM_ERROR for name in names)


def _text(digest: str) -> str:
    if not (len(digest) == 64 and set(digest) <= set("0123456789abcdef")):
        raise ValueError(f"no hash: {digest!r}")
    return f"'{digest}'"
