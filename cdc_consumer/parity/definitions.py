"""Both schemas at one moment of the leader's history: a definition on its way to the follower is no difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cdc_consumer.parity.model import COUNTED, SchemaDifference, TableName
from cdc_consumer.parity.schema.compare import compare_schemas
from cdc_consumer.parity.schema.read import Schema
from cdc_consumer.parity.servers.connection import ServerConnection
from cdc_consumer.parity.servers.pair import Pair

#: how often the leader may alter something meanwhile
ROUNDS = 5

CHANGING = f"its definition differs, but the leader altered its schema in each of {ROUNDS} rounds"


class Definitions(NamedTuple):
    leader: Schema
    follower: Schema
    differences: list[SchemaDifference]
    #: why those that count may be none, "" when they are
    doubt: str = ""

    @property
    def real(self) -> list[SchemaDifference]:
        return [each for each in self.differences if not self.doubt or each.grade not in COUNTED]

    @property
    def unclear(self) -> set[TableName]:
        """The tables and other objects of those that may be none."""
        return {TableName(each.database, each.parent) for each in self.differences if each not in self.real}


def define(
    read: Callable[[ServerConnection], Schema], pair: Pair, seconds: float, stopped: Callable[[], bool]
) -> Definitions:
    """What the leader has, and the follower within `seconds` once it has applied all that made it so."""
    found = _compared(*pair.both(read))
    for _ in range(ROUNDS):
        if all(each.grade not in COUNTED for each in found.differences):
            return found
        edge = pair.leader.position()
        if pair.wait_until_applied(edge, seconds, stopped) is None:
            late = f"the follower did not reach {edge} within {seconds:g} s: is the consumer running?"
            return found._replace(doubt=f"its definition differs, but {late}")
        follower, before = read(pair.follower), found
        found = _compared(read(pair.leader), follower)
        # an event that is enabled differs even from itself: it must not run on a follower
        rested = compare_schemas(before.leader, found.leader) == compare_schemas(found.leader, found.leader)
        if rested and found.differences == before.differences:
            return found
    return found._replace(doubt=CHANGING)


def _compared(leader: Schema, follower: Schema) -> Definitions:
    return Definitions(leader, follower, compare_schemas(leader, follower))
