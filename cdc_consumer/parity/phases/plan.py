"""Makes the plan of a run: both servers, their schemas, and the tables whose rows are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cdc_consumer.parity.model import SchemaDifference, Shape, TableName
from cdc_consumer.parity.phases.definitions import Definitions, define
from cdc_consumer.parity.phases.tools import Tools
from cdc_consumer.parity.rows.plan import Skipped, check_where, chosen, refuse_unknown, shape_of, shapes
from cdc_consumer.parity.run_model import ServerFacts
from cdc_consumer.parity.schema.read import read_schema, taken
from cdc_consumer.parity.servers.connection import ServerConnection
from cdc_consumer.parity.servers.pair import Pair
from cdc_consumer.parity.witness.cascades import silent_cascades
from shared.filters import DatabaseFilter


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """Says what a run compares."""

    #: the leader and the follower, as they were when the run began
    servers: tuple[ServerFacts, ServerFacts]
    definitions: Definitions
    #: the tables whose rows are compared; all else names a table by its number here
    shapes: tuple[Shape, ...]
    skipped: tuple[Skipped, ...]

    def digest(self, tools: Tools) -> str:
        """Return a hash of what is compared and how: runs with the same one can be resumed and compared."""
        uuids, options = [server.uuid for server in self.servers], tools.options
        told = (uuids, list(self.shapes), options.where, options.since, tools.sizes)
        return hashlib.sha256(repr(told).encode()).hexdigest()

    def schema_differences(self, tools: Tools) -> list[SchemaDifference]:
        """List those that are no matter of doubt; with --tables only what belongs to one of these tables."""
        names = {*(shape.name for shape in self.shapes), *(skipped.table for skipped in self.skipped)}
        return [
            each
            for each in self.definitions.real
            if not tools.options.tables or TableName(each.database, each.parent) in names
        ]

    def shape_again(self, number: int) -> Shape | str:
        """Return the shape of a table after its definition changed, or why it has none any more."""
        name, found = self.shapes[number].name, self.definitions
        leader, follower = found.leader.tables.get(name), found.follower.tables.get(name)
        if name in found.unclear:
            return found.doubt
        if leader is None and follower is None:
            return "it was dropped during the audit"
        shape = shape_of(name, leader, follower)
        return shape.reason if isinstance(shape, Skipped) else shape

    def with_shape(self, number: int, shape: Shape) -> AuditPlan:
        """Return the same plan with another shape of one table."""
        return replace(self, shapes=(*self.shapes[:number], shape, *self.shapes[number + 1 :]))


def make_plan(tools: Tools) -> AuditPlan:
    """Read both schemas and choose what is compared. Raises CdcErrors, ProfileError for an option that cannot be."""
    servers = _servers(tools.pair)
    definitions = read_definitions(tools)
    leader, follower = definitions.leader, definitions.follower
    views = (name for schema in (leader, follower) for kind, name in schema.objects if kind == "VIEW")
    named = {*leader.tables, *follower.tables, *views}
    if not tools.options.unmet:
        refuse_unknown(_filter(tools), {*leader.databases, *follower.databases}, named)
    tables = chosen({*leader.tables, *follower.tables}, tools.options.tables)
    unclear = [name for name in definitions.unclear if name in tables or not tools.options.tables]
    compared, skipped = shapes(leader, follower, [name for name in tables if name not in unclear])
    skipped += [Skipped(name, definitions.doubt) for name in unclear]
    if tools.options.where:
        check_where(tools.options.where, compared, tools.pair.follower)
    _teach(compared, tools)
    return AuditPlan(servers, definitions, tuple(compared), tuple(skipped))


def read_definitions(tools: Tools) -> Definitions:
    """Read and compare both schemas. Raises CdcErrors."""
    profile = tools.profile
    databases = _filter(tools)
    named = profile.filters.include_dbs or ()
    return define(
        lambda server: server.use(lambda connection: taken(read_schema(connection, databases, named), databases)),
        tools.pair, tools.history, profile.limits.fence_seconds, tools.stopped,
    )  # fmt: skip


def _filter(tools: Tools) -> DatabaseFilter:
    return DatabaseFilter(tools.profile.filters, tools.profile.follower.system_database)


def positions(pair: Pair) -> tuple[str, str]:
    """Ask for the leader's position, and how far the follower has applied the leader's binlog; "" for not at all."""
    applied = pair.follower.applied().position
    return str(pair.leader.position()), str(applied or "")


def _servers(pair: Pair) -> tuple[ServerFacts, ServerFacts]:
    def ask(server: ServerConnection) -> ServerFacts:
        ((version, uuid),) = server.rows("SELECT @@version, @@server_uuid")
        return ServerFacts(str(server.address), version, uuid, "", "")

    leader, follower = pair.both(ask)
    leader_at, follower_at = positions(pair)
    return replace(leader, started=leader_at), replace(follower, started=follower_at)


def _teach(compared: Sequence[Shape], tools: Tools) -> None:
    """Let the topic's history know the tables it will be asked about."""
    if tools.history is not None:
        for shape in compared:
            tools.history.know(shape)
        tools.history.know_cascades(silent_cascades(tools.pair.leader))
