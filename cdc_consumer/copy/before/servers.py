"""Asks the two servers what they have, and refuses one that cannot be the follower of the other."""

from __future__ import annotations

from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.follower.server import Server
from cdc_consumer.parity.servers.pair import LeaderConnection
from cdc_consumer.sql import literals
from shared.errors import FollowerError
from shared.filters import DatabaseFilter
from shared.mysql import Connection, rows


def existing_databases(writer: Writer, databases: DatabaseFilter) -> list[str]:
    """Return the follower's databases that take part."""
    found = writer.rows("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
    return sorted(name for (name,) in found if name in databases)


def uses_gtids(server: Server, leader: LeaderConnection) -> bool:
    """Tell whether the consumer will run transactions under the leader's GTIDs."""
    return server.facts.gtids and leader.rows("SELECT @@GLOBAL.gtid_mode") == [("ON",)]


def refuse_other_history(console: Connection, leader: LeaderConnection) -> None:
    """Raise FollowerError when the follower knows as executed what the leader has never executed under its own name.

    The consumer would pass over the leader's next transactions of these GTIDs without a word.
    """
    ((executed, uuid),) = rows(console, "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.server_uuid")
    ((more, known, own),) = leader.rows(
        f"SELECT GTID_SUBTRACT({literals.text(executed)}, @@GLOBAL.gtid_executed), @@GLOBAL.gtid_executed,"
        " @@GLOBAL.server_uuid"
    )
    for part in filter(None, "".join(more.split()).split(",")):
        source = part.partition(":")[0]
        if source != uuid and (source == own or source in known):
            raise FollowerError(
                f"the follower has executed {part}, which the leader has not: it followed another history; run on it:"
                " RESET BINARY LOGS AND GTIDS"
            )
