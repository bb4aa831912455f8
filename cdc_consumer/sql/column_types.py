"""Decides whether a follower's column stores the values of a leader's column unaltered.

Types are texts of information_schema.COLUMNS.COLUMN_TYPE. Strict SQL mode refuses a value that is out of range or too
long; compared here is what it would round, pad or strip without a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TYPE = re.compile(r"([a-z]+)(?: precision)?\s*(?:\((.*)\))?[a-z ]*", re.ASCII | re.DOTALL)
_MEMBER = re.compile(r"'((?:[^']|'')*)'", re.DOTALL)

INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_TEXTS = ("tinytext", "text", "mediumtext", "longtext")
_BLOBS = ("tinyblob", "blob", "mediumblob", "longblob")
SPATIAL = frozenset(
    {"point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection", "geometry"}
)
_TEMPORAL = frozenset({"datetime", "timestamp", "time"})
_ALONE = frozenset({"date", "year", "json", "vector"})


@dataclass(frozen=True, slots=True)
class ColumnType:
    """Holds a column type, cut into its name and its arguments."""

    name: str
    #: text between the parentheses, "" without
    arguments: str

    def numbers(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.arguments.split(",")) if self.arguments else ()

    def members(self) -> tuple[str, ...]:
        return tuple(_MEMBER.findall(self.arguments))


def parse(text: str) -> ColumnType | None:
    """Read a type, or None when it is not known here."""
    match = _TYPE.fullmatch(text)
    if match is None:
        return None
    name = {"geometrycollection": "geomcollection"}.get(match[1], match[1])
    known = (
        name in INTEGERS | SPATIAL | _TEMPORAL | _ALONE
        or name in (*_TEXTS, *_BLOBS)
        or name in ("float", "double", "decimal", "bit", "enum", "set", "char", "varchar", "binary", "varbinary")
    )
    return ColumnType(name, match[2] or "") if known else None


def stores(follower: str, leader: str) -> bool:
    """Is true when the follower's type keeps every value of the leader's unaltered or refuses it.

    A text that is not known here is believed to.
    """
    if follower == leader:
        return True
    theirs, ours = parse(leader), parse(follower)
    if theirs is None or ours is None:
        return True
    return _stores(ours, theirs)


def _stores(ours: ColumnType, theirs: ColumnType) -> bool:
    name = theirs.name
    if name in INTEGERS:
        return ours.name in INTEGERS
    if name in SPATIAL:
        return ours.name in (name, "geometry")
    if name in ("char", "varchar") or name in _TEXTS:
        return _stores_text(ours, theirs)
    if name in ("binary", "varbinary") or name in _BLOBS:
        return _stores_bytes(ours, theirs)
    if name == "float":
        # FLOAT(M,D) looks like FLOAT in the binlog, so the arguments tell nothing; the same goes for DOUBLE.
        return ours.name in ("float", "double")
    if ours.name != name:
        return False
    if name in ("enum", "set"):
        return _begins_with(ours.members(), theirs.members())
    if name == "decimal":
        return _scale(ours) >= _scale(theirs)
    if name in _TEMPORAL:
        return (ours.numbers() or (0,)) >= (theirs.numbers() or (0,))
    return True


def _begins_with(follower: tuple[str, ...], leader: tuple[str, ...]) -> bool:
    """Tell whether the follower's members begin with the leader's, which are not written by information_schema."""
    shown = follower[: len(leader)]
    return shown == leader or tuple(map(_as_shown, shown)) == tuple(_as_shown(_escaped(member)) for member in leader)


def _escaped(member: str) -> str:
    for letter, escape in (("\\", "\\\\"), ("\0", "\\0"), ("\n", "\\n"), ("\r", "\\r")):
        member = member.replace(letter, escape)
    return member


def _as_shown(member: str) -> str:
    # information_schema has no letters beyond the Basic Multilingual Plane
    return re.sub("[\U00010000-\U0010ffff]", "?", member)


def _scale(decimal: ColumnType) -> int:
    numbers = decimal.numbers()
    return numbers[1] if len(numbers) > 1 else 0


def _stores_text(ours: ColumnType, theirs: ColumnType) -> bool:
    """Trailing spaces are cut at the length of the column, and all of them by CHAR."""
    if ours.name in _TEXTS:
        return theirs.name not in _TEXTS or _TEXTS.index(ours.name) >= _TEXTS.index(theirs.name)
    if ours.name not in ("char", "varchar") or theirs.name in _TEXTS:
        return False
    return (ours.name == theirs.name or ours.name == "varchar") and ours.numbers() >= theirs.numbers()


def _stores_bytes(ours: ColumnType, theirs: ColumnType) -> bool:
    """BINARY pads with zero bytes."""
    if ours.name == "binary":
        return ours == theirs
    return ours.name == "varbinary" or ours.name in _BLOBS
