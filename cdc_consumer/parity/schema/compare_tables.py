"""Compares a table that leader and follower both have."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from typing import TypeVar

from cdc_consumer.parity.model import Grade
from cdc_consumer.parity.schema import alters, normal
from cdc_consumer.parity.schema.compare_columns import GENERATED_KEY, compare_columns
from cdc_consumer.parity.schema.findings import Finding, definition
from cdc_consumer.parity.schema.records import ConstraintRecord, KeyRecord, TableRecord
from cdc_consumer.sql import literals

#: options that are compared by themselves, or are data
_APART = frozenset({"ENGINE", "AUTO_INCREMENT", "DEFAULT CHARSET", "COLLATE", "COMMENT"})
#: names that servers give
_CONSTRAINT_NAME = re.compile(r".*_(?:ibfk|chk)_\d+", re.DOTALL)
#: partitions that refuse rows they have no place for
_REFUSING = re.compile(r"PARTITION BY (?:RANGE|LIST)\b")

Named = TypeVar("Named", KeyRecord, ConstraintRecord)


def compare_tables(leader: TableRecord, follower: TableRecord, constraint_names: Container[str]) -> Iterator[Finding]:
    """`constraint_names`, in lower case, are those of the follower's database, all of whose tables share them."""
    yield from compare_columns(leader, follower)
    for one, other in _paired(leader.keys, follower.keys, _key_content, _is_made_key):
        yield from _key(leader, one, other)
    for kind in ("check", "foreign key"):
        theirs, ours = (
            [constraint for constraint in table.constraints if constraint.kind == kind] for table in (leader, follower)
        )
        for first, second in _paired(theirs, ours, _constraint_content, _is_made_constraint):
            yield from _constraint(leader, first, second, constraint_names)
    yield from _options(leader, follower)
    if normal.partitioning(leader.partitioning) != normal.partitioning(follower.partitioning):
        grade: Grade = "breaking" if _REFUSING.search(follower.partitioning) else "performance"
        text, step = "is partitioned in another way on the follower", alters.partition(leader)
        definitions = leader.partitioning or None, follower.partitioning or None
        yield Finding(grade, "partition", leader.name, "", text, *definitions, (step,))


def _paired(
    leader: Sequence[Named],
    follower: Sequence[Named],
    content: Callable[[Named], normal.Words],
    is_made: Callable[[Named], bool],
) -> list[tuple[Named | None, Named | None]]:
    """What is the same on both sides, however it is called, else what is called the same; None where one is alone.

    `is_made` is true of what has its name from the server.
    """
    shared = {each.name.lower() for each in leader} & {each.name.lower() for each in follower}

    def alike(one: Named, other: Named) -> bool:
        return one.name.lower() == other.name.lower()

    def renamed(one: Named, other: Named) -> bool:
        return (is_made(one) and is_made(other)) or not shared & {one.name.lower(), other.name.lower()}

    rules: tuple[Callable[[Named, Named], bool], ...] = (
        lambda one, other: alike(one, other) and content(one) == content(other),
        lambda one, other: renamed(one, other) and content(one) == content(other),
        alike,
    )
    theirs, ours = list(leader), list(follower)
    pairs: list[tuple[Named | None, Named | None]] = []
    for rule in rules:
        for one in list(theirs):
            other = next((each for each in ours if rule(one, each)), None)
            if other is not None:
                pairs.append((one, other))
                theirs.remove(one)
                ours.remove(other)
    pairs += [(one, None) for one in theirs]
    pairs += [(None, other) for other in ours]
    return pairs


# keys


def _key(table: TableRecord, leader: KeyRecord | None, follower: KeyRecord | None) -> Iterator[Finding]:
    own = leader or follower
    if own is None or (
        leader and follower and leader.name == follower.name and leader.definition == follower.definition
    ):
        return
    grade, text = _key_grade(leader, follower), "is defined differently on the follower"
    if follower is None:
        text, step = "is missing on the follower", alters.add_key(table.name, own)
    elif leader is None:
        text, step = "exists on the follower only", alters.drop_key(table.name, own.name)
    elif _key_content(leader) != _key_content(follower):
        step = alters.change_key(table.name, leader, follower)
    elif leader.name.lower() != follower.name.lower():
        grade = "cosmetic" if _is_made_key(leader) and _is_made_key(follower) else "behaviour"
        text, step = (
            f"is called {follower.name} on the follower",
            alters.rename_key(table.name, follower.name, leader.name),
        )
    elif normal.comment(leader.definition) != normal.comment(follower.definition):
        grade, text = "cosmetic", "has another comment on the follower"
        step = alters.change_key(table.name, leader, follower)
    else:
        return
    definitions = definition(leader), definition(follower)
    yield Finding(grade, "key", table.name, own.name, text, *definitions, (step,))


def _key_grade(leader: KeyRecord | None, follower: KeyRecord | None) -> Grade:
    own = [each for each in (leader, follower) if each is not None]
    if any(each.name == "PRIMARY" for each in own):
        return "cosmetic" if leader is None and own[0].columns == (GENERATED_KEY,) else "breaking"
    return "integrity" if any(each.unique for each in own) else "performance"


def _key_content(key: KeyRecord) -> normal.Words:
    return normal.key(key.definition)


def _is_made_key(key: KeyRecord) -> bool:
    """Called like its first column or "functional_index", the second of the name "..._2"."""
    first = key.columns[0].lower() if key.columns else "functional_index"
    return bool(re.fullmatch(rf"(?:{re.escape(first)}|functional_index)(?:_\d+)?", key.name.lower()))


# constraints


def _constraint(
    table: TableRecord, leader: ConstraintRecord | None, follower: ConstraintRecord | None, taken: Container[str]
) -> Iterator[Finding]:
    own = leader or follower
    if own is None or (leader and follower and _is_same_constraint(leader, follower)):
        return
    grade: Grade = "integrity"
    text = "is defined differently on the follower"
    if follower is None:
        text = "is missing on the follower"
    elif leader is None:
        text = "exists on the follower only"
    elif _constraint_content(leader) == _constraint_content(follower):
        grade, text = "behaviour", f"is called {follower.name} on the follower"
    steps = [alters.drop_constraint(table.name, follower)] if follower else []
    if leader:
        free = leader.name.lower() not in taken or (follower is not None and follower.name == leader.name)
        steps.append(alters.add_constraint(table, leader, named=free or not _is_made_constraint(leader)))
    definitions = definition(leader), definition(follower)
    yield Finding(grade, own.kind, table.name, own.name, text, *definitions, tuple(steps))


def _is_same_constraint(leader: ConstraintRecord, follower: ConstraintRecord) -> bool:
    """A name the server gave counts for nothing."""
    named = leader.name.lower() == follower.name.lower() or (
        _is_made_constraint(leader) and _is_made_constraint(follower)
    )
    return named and _constraint_content(leader) == _constraint_content(follower)


def _constraint_content(constraint: ConstraintRecord) -> normal.Words:
    return normal.constraint(constraint.definition)


def _is_made_constraint(constraint: ConstraintRecord) -> bool:
    return _CONSTRAINT_NAME.fullmatch(constraint.name) is not None


# the table itself


def _options(leader: TableRecord, follower: TableRecord) -> Iterator[Finding]:
    def finding(grade: Grade, what: str, theirs: str, ours: str, clause: str | None) -> Finding:
        steps = (alters.alter(leader.name, clause),) if clause else ()
        text = f"has {what} {ours or '(none)'} on the follower, {theirs or '(none)'} on the leader"
        return Finding(grade, "table", leader.name, "", text, theirs, ours, steps)

    if leader.engine != follower.engine:
        expected = follower.engine == "InnoDB"  # what the README asks for
        clause = None if expected else "ENGINE = InnoDB"
        yield finding("expected" if expected else "breaking", "the engine", leader.engine, follower.engine, clause)
    if normal.charset(leader.collation) != normal.charset(follower.collation):
        clause = f"DEFAULT CHARACTER SET {leader.collation.partition('_')[0]} COLLATE {leader.collation}"
        yield finding("behaviour", "the default collation", leader.collation, follower.collation, clause)
    if leader.comment != follower.comment:
        clause = f"COMMENT = {literals.text(leader.comment)}"
        yield finding("cosmetic", "the comment", leader.comment, follower.comment, clause)
    theirs, ours = normal.table_options(leader.options), normal.table_options(follower.options)
    for name in sorted({*theirs, *ours} - _APART):
        if theirs.get(name) != ours.get(name):
            clause = alters.table_option(name, theirs.get(name))
            yield finding("cosmetic", name, theirs.get(name, ""), ours.get(name, ""), clause)
