"""Compares views, triggers, routines and events."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_consumer.parity.model import Grade
from cdc_consumer.parity.schema import alters, normal
from cdc_consumer.parity.schema.findings import Finding, definition
from cdc_consumer.parity.schema.records import Context, ObjectRecord, Schema

#: SchemaDifference.object of each kind
_OBJECTS = {
    "VIEW": "view", "TRIGGER": "trigger", "EVENT": "event", "PROCEDURE": "routine", "FUNCTION": "routine",
    "LIBRARY": "routine",
}  # fmt: skip


def compare_objects(leader: Schema, follower: Schema) -> Iterator[Finding]:
    """Compare views, triggers, routines and events by kind and name."""
    for key in sorted({*leader.objects, *follower.objects}):
        theirs, ours = leader.objects.get(key), follower.objects.get(key)
        if key[0] == "TRIGGER":
            yield _trigger(theirs, ours)
        elif ours is None and theirs is not None:
            create = alters.create_object(theirs, leader.databases[theirs.name.database], follower.runs_events)
            yield _finding("behaviour", "is missing on the follower", theirs, None, create)
        elif theirs is None and ours is not None:
            yield _finding("behaviour", "exists on the follower only", None, ours, alters.drop_object(ours))
        elif theirs is not None and ours is not None:
            yield from _both(leader, follower, theirs, ours)


def _finding(
    grade: Grade, text: str, leader: ObjectRecord | None, follower: ObjectRecord | None, *steps: alters.SchemaStep
) -> Finding:
    own = leader or follower
    assert own is not None
    parent = own.name._replace(table=own.table)
    return Finding(
        grade, _OBJECTS[own.kind], parent, own.name.table, text, definition(leader), definition(follower), steps
    )


def _trigger(leader: ObjectRecord | None, follower: ObjectRecord | None) -> Finding:
    """The consumer creates none: the leader's rows already contain what its triggers do."""
    if follower is None:
        return _finding("expected", "is not created on the follower", leader, None)
    text = "exists on the follower, where it repeats what the leader's rows already contain"
    return _finding("behaviour", text, leader, follower, alters.drop_object(follower))


def _both(leader: Schema, follower: Schema, theirs: ObjectRecord, ours: ObjectRecord) -> Iterator[Finding]:
    if _content(theirs) != _content(ours):
        text = "is defined differently on the follower"
    elif (what := _context_difference(theirs.context, ours.context)) is not None:
        text = f"was created with another {what} on the follower"
    elif (definer := normal.definer(ours.definition)) != normal.definer(theirs.definition):
        text = f"has the definer {definer} on the follower, {normal.definer(theirs.definition)} on the leader"
    else:
        if theirs.kind == "EVENT":
            yield from _event(follower, theirs, ours)
        return
    create = alters.create_object(theirs, leader.databases[theirs.name.database], follower.runs_events)
    yield _finding("behaviour", text, theirs, ours, alters.drop_object(ours), create)


def _content(record: ObjectRecord) -> str | normal.Words:
    """A view is printed by the server, the others as somebody wrote them."""
    text = normal.without_definer(record.definition)
    if record.kind == "VIEW":
        return normal.sql(text)
    return normal.with_status(text, "") if record.kind == "EVENT" else text


def _context_difference(leader: Context, follower: Context) -> str | None:
    """The character set of the client is none: the texts compared here are already decoded."""
    for name, theirs, ours in (
        ("sql_mode", leader.sql_mode, follower.sql_mode),
        ("collation_connection", *map(normal.charset, (leader.collation_connection, follower.collation_connection))),
        ("database collation", *map(normal.charset, (leader.database_collation, follower.database_collation))),
        ("time_zone", leader.time_zone, follower.time_zone),
    ):
        if theirs != ours:
            return name
    return None


def _event(follower: Schema, theirs: ObjectRecord, ours: ObjectRecord) -> Iterator[Finding]:
    """An event must not run on both servers; that it is disabled where it would is as it should be."""
    runs = ours.status == "ENABLED"
    if runs and follower.runs_events:
        text = "runs on the follower as well as on the leader"
        yield _finding("behaviour", text, theirs, ours, alters.set_event_status(theirs.name, False))
    elif runs != (theirs.status == "ENABLED"):
        text = f"is {ours.status} on the follower, {theirs.status} on the leader"
        if not runs and (follower.runs_events or ours.status != "DISABLED"):
            yield _finding("expected", text, theirs, ours)
        else:
            yield _finding("behaviour", text, theirs, ours, alters.set_event_status(theirs.name, not runs))
