"""Compares the columns of a table that leader and follower both have."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_consumer.parity.model import Grade
from cdc_consumer.parity.schema import alters, normal
from cdc_consumer.parity.schema.findings import Finding, worst
from cdc_consumer.parity.schema.records import ColumnRecord, TableRecord

#: what the server itself gives a table without a primary key
GENERATED_KEY = "my_row_id"

#: what differs in a column: grade and words
Differences = Iterator[tuple[Grade, str]]


def compare_columns(leader: TableRecord, follower: TableRecord) -> Iterator[Finding]:
    """Names that differ in case only are one name, as they are to MySQL."""
    theirs = {column.name.lower(): column for column in leader.columns}
    ours = {column.name.lower(): column for column in follower.columns}
    for name, column in theirs.items():
        if name not in ours:
            steps = alters.add_column(leader, column)
            text = "is missing on the follower"
            yield Finding("breaking", "column", leader.name, column.name, text, column.definition, None, steps)
        elif found := list(_differences(column, ours[name])):
            steps = alters.change_column(leader, column, ours[name])
            grade, text = worst(grade for grade, _ in found), "; ".join(words for _, words in found)
            other = ours[name].definition
            yield Finding(grade, "column", leader.name, column.name, text, column.definition, other, steps)
    for name, column in ours.items():
        if name not in theirs:
            step = alters.drop_column(leader, column)
            grade, text = "cosmetic" if _is_generated_key(column) else "breaking", "exists on the follower only"
            yield Finding(grade, "column", leader.name, column.name, text, None, column.definition, (step,))
    if [name for name in theirs if name in ours] != [name for name in ours if name in theirs]:
        text, steps = "has its columns in another order on the follower", tuple(alters.order_columns(leader))
        yield Finding("cosmetic", "table", leader.name, "", text, _order(leader), _order(follower), steps)


def _order(table: TableRecord) -> str:
    return ", ".join(column.name for column in table.columns)


def _is_generated_key(column: ColumnRecord) -> bool:
    """Nobody but the server defines this column, nor sees it."""
    return column.name == GENERATED_KEY and column.auto_increment and column.invisible


def _differences(leader: ColumnRecord, follower: ColumnRecord) -> Differences:
    if leader.name != follower.name:
        yield "breaking", f"is called {follower.name} on the follower"
    yield from _stored_differences(leader, follower)
    theirs, ours = normal.column_clauses(leader.definition), normal.column_clauses(follower.definition)
    if leader.generated == follower.generated != "" and normal.differ("GENERATED", theirs, ours):
        yield "behaviour", "is computed by another expression on the follower"
    if normal.differ("DEFAULT", theirs, ours):
        yield "behaviour", f"has {_default(ours)} on the follower, {_default(theirs)} on the leader"
    if normal.differ("ON", theirs, ours):
        side = "leader" if "ON" in theirs else "follower"
        yield "behaviour", f"changes with every update of its row on the {side} only"
    if leader.auto_increment != follower.auto_increment:
        yield "behaviour", f"has AUTO_INCREMENT on the {'leader' if leader.auto_increment else 'follower'} only"
    if leader.invisible != follower.invisible:
        yield "behaviour", f"is invisible on the {'leader' if leader.invisible else 'follower'} only"
    if leader.comment != follower.comment:
        yield "cosmetic", "has another comment on the follower"
    for head in ("COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE"):
        if normal.differ(head, theirs, ours):
            yield "cosmetic", f"has another {head} on the follower"


def _stored_differences(leader: ColumnRecord, follower: ColumnRecord) -> Differences:
    """What decides which values it can hold."""
    if normal.column_type(leader.type) != normal.column_type(follower.type):
        yield "breaking", f"is {follower.type} on the follower, not {leader.type}"
    elif leader.type.startswith("tinyint(1)") != follower.type.startswith("tinyint(1)"):
        yield "cosmetic", f"is {follower.type} on the follower, not {leader.type}"
    if normal.charset(leader.collation) != normal.charset(follower.collation):
        yield "breaking", f"has the collation {follower.collation} on the follower, not {leader.collation}"
    if leader.nullable != follower.nullable:
        yield "breaking", f"may be NULL on the {'leader' if leader.nullable else 'follower'} only"
    if leader.generated != follower.generated:
        yield "breaking", f"is {_kind(follower)} on the follower, {_kind(leader)} on the leader"
    if leader.srs_id != follower.srs_id:
        yield "breaking", f"is {_srid(follower)} on the follower, {_srid(leader)} on the leader"


def _kind(column: ColumnRecord) -> str:
    return f"{column.generated} generated" if column.generated else "not generated"


def _srid(column: ColumnRecord) -> str:
    return "free to have any SRID" if column.srs_id is None else f"limited to SRID {column.srs_id}"


def _default(clauses: normal.Clauses) -> str:
    return " ".join(token.text for token in clauses["DEFAULT"]) if "DEFAULT" in clauses else "no default"
