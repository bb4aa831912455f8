"""Tells what two schemas do not have in common, and the SQL that would remove each difference."""

from __future__ import annotations

from collections.abc import Container, Iterator

from cdc_consumer.parity.model import SchemaDifference, TableName
from cdc_consumer.parity.schema import alters
from cdc_consumer.parity.schema.compare_objects import compare_objects
from cdc_consumer.parity.schema.compare_tables import compare_tables
from cdc_consumer.parity.schema.findings import Finding
from cdc_consumer.parity.schema.normal import charset
from cdc_consumer.parity.schema.order import Mend, mends
from cdc_consumer.parity.schema.records import DatabaseRecord, Schema


def compare_schemas(leader: Schema, follower: Schema) -> list[SchemaDifference]:
    """Compare databases first, then tables, then the other objects; [] when a statement means the same on both servers.

    A `fix` alone may need another one to run before it; `schema_mends` has them all in an order that runs.
    """
    return [finding.difference for finding in _findings(leader, follower)]


def schema_mends(leader: Schema, follower: Schema, wanted: Container[SchemaDifference] | None = None) -> list[Mend]:
    """Return the SQL that leaves only differences of grade "expected", in an order that runs; [] without any.

    With `wanted` only these differences are mended.
    """
    found = _findings(leader, follower)
    return mends(
        [
            step._replace(mends=finding.difference.text)
            for finding in found
            if wanted is None or finding.difference in wanted
            for step in finding.steps
        ],
        leader,
        follower,
    )


def _findings(leader: Schema, follower: Schema) -> Iterator[Finding]:
    for name in sorted({*leader.databases, *follower.databases}):
        yield from _database(leader.databases.get(name), follower.databases.get(name))
    names: dict[str, set[str]] = {name: set() for name in follower.databases}
    for table in follower.tables.values():
        names[table.name.database] |= {constraint.name.lower() for constraint in table.constraints}
    for table_name in sorted({*leader.tables, *follower.tables}):
        yield from _table(leader, follower, table_name, names.get(table_name.database, set()))
    yield from compare_objects(leader, follower)


def _database(leader: DatabaseRecord | None, follower: DatabaseRecord | None) -> Iterator[Finding]:
    if leader is None:
        if follower is not None:
            yield _extra_database(follower)
        return
    parent, theirs = TableName(leader.name, ""), _defaults(leader)
    if follower is None:
        step = alters.create_database(leader)
        yield Finding("breaking", "database", parent, "", "is missing on the follower", theirs, None, (step,))
        return
    ours, step = _defaults(follower), alters.alter_database(leader)
    if charset(leader.collation) != charset(follower.collation):
        text = f"has the default collation {follower.collation} on the follower, not {leader.collation}"
        yield Finding("behaviour", "database", parent, "", text, theirs, ours, (step,))
    elif leader.encrypted != follower.encrypted:
        text = "has another default encryption on the follower"
        yield Finding("cosmetic", "database", parent, "", text, theirs, ours, (step,))
    if follower.read_only and not leader.read_only:
        text, step = "is read only on the follower, where nothing more can be applied", alters.let_write(leader.name)
        yield Finding("breaking", "database", parent, "", text, theirs, ours, (step,))
    elif leader.read_only and not follower.read_only:
        text = "is read only on the leader alone: no server writes that to its binlog"
        yield Finding("expected", "database", parent, "", text, theirs, ours)


def _extra_database(database: DatabaseRecord) -> Finding:
    text, step = "exists on the follower only", alters.drop_database(database.name)
    return Finding("breaking", "database", TableName(database.name, ""), "", text, None, _defaults(database), (step,))


def _defaults(database: DatabaseRecord) -> str:
    encryption = " ENCRYPTION 'Y'" if database.encrypted else ""
    closed = " READ ONLY = 1" if database.read_only else ""
    return f"DEFAULT CHARACTER SET {database.charset} COLLATE {database.collation}{encryption}{closed}"


def _table(leader: Schema, follower: Schema, name: TableName, constraint_names: set[str]) -> Iterator[Finding]:
    theirs, ours = leader.tables.get(name), follower.tables.get(name)
    if theirs and ours:
        yield from compare_tables(theirs, ours, constraint_names)
    elif theirs:
        step = alters.create_table(theirs)
        yield Finding("breaking", "table", name, "", "is missing on the follower", theirs.definition, None, (step,))
    elif ours:
        step = alters.drop_table(name)
        yield Finding("breaking", "table", name, "", "exists on the follower only", None, ours.definition, (step,))
