"""Keeps a consumer away from a follower that a copy has not made whole."""

from __future__ import annotations

from collections.abc import Container

from cdc_consumer.copy.copy_tables import CopyTables
from cdc_consumer.copy.state import CopyState
from shared.errors import FollowerError
from shared.mysql import Connection


def refuse_unfinished(connection: Connection, database: str, topic: str, databases: Container[str]) -> None:
    """Raise FollowerError when a copy into this follower was begun for this topic and has not ended.

    And when one has added a database that is not among the consumer's `databases`: it would stay behind all else.
    """
    tables = CopyTables(database, topic)
    state = CopyState(connection, tables)
    phase, only = state.phase(), state.only()
    if phase not in (None, "done"):
        what, why, other = "the follower", ", so its rows are of different moments", ""
        if only:
            what, why = ", ".join(str(name) if name.table else name.database for name in only), ""
            if phase != "ending":
                other = "; to give it up: cdc-copy with --give-up"
        raise FollowerError(
            f"the copy that fills {what} for topic {topic} has not ended{why}; run cdc-copy again, which goes on"
            f" where it was{other}"
        )
    for name in state.added():
        if name not in databases:
            raise FollowerError(
                f"database {name} was added to the follower, and include_dbs leaves it out, so that it would stay"
                f" behind; name it there, or, to leave it so, run on the follower: DELETE FROM {tables.only} WHERE"
                f" {state.whose}"
            )
