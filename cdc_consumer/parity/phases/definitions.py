"""Both schemas at one moment of the leader's history: a definition on its way to the follower is no difference.

Nor is one that the follower has and the leader does not show yet, because its statement hangs between the leader's
binlog and its tables: see `LeaderConnection.visible`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from cdc_consumer.parity.model import SchemaDifference, TableName
from cdc_consumer.parity.run_model import COUNTED
from cdc_consumer.parity.schema.compare import compare_schemas
from cdc_consumer.parity.schema.read import Schema
from cdc_consumer.parity.servers.connection import ServerConnection
from cdc_consumer.parity.servers.pair import Pair, Visible
from cdc_consumer.parity.witness.history import History
from shared.errors import EventError, TopicError
from shared.events import Position

#: how often the leader may alter something meanwhile
ROUNDS = 5

NO_TOPIC = "without [topic] in the profile nothing tells whether the leader altered this there"
CHANGING = f"its definition differs, but the leader altered its schema in each of {ROUNDS} rounds"


class Definitions(NamedTuple):
    """Holds both schemas and what they do not have in common."""

    leader: Schema
    follower: Schema
    differences: list[SchemaDifference]
    #: why those that count may be none, "" when they are
    doubt: str = ""
    #: the databases the doubt is about, None for all
    doubted: Collection[str] | None = None

    @property
    def real(self) -> list[SchemaDifference]:
        return [each for each in self.differences if each.grade not in COUNTED or not self._doubts(each.database)]

    def _doubts(self, database: str) -> bool:
        return bool(self.doubt) and (self.doubted is None or database in self.doubted)

    @property
    def unclear(self) -> set[TableName]:
        """Return the tables and other objects of those that may be none."""
        return {TableName(each.database, each.parent) for each in self.differences if each not in self.real}


def define(
    read: Callable[[ServerConnection], Schema], pair: Pair, history: History | None, seconds: float,
    stopped: Callable[[], bool],
) -> Definitions:  # fmt: skip
    """Read what the leader has, and the follower within `seconds` once it has applied all that made it so."""
    found = _compared(*pair.both(read))
    for _ in range(ROUNDS):
        if all(each.grade not in COUNTED for each in found.differences):
            return found
        edge = pair.leader.position()
        if pair.wait_until_applied(edge, seconds, stopped) is None:
            late = f"the follower did not reach {edge} within {seconds:g} s: is the consumer running?"
            return found._replace(doubt=f"its definition differs, but {late}")
        follower, before = read(pair.follower), found
        until, visible = pair.follower.applied().position, pair.leader.visible()
        found = _compared(read(pair.leader), follower)
        # an event that is enabled differs even from itself: it must not run on a follower
        rested = compare_schemas(before.leader, found.leader) == compare_schemas(found.leader, found.leader)
        if rested and found.differences == before.differences:
            return _doubted(found, visible, until or edge, history, seconds)
    return found._replace(doubt=CHANGING)


def _doubted(
    found: Definitions, visible: Visible, until: Position, history: History | None, seconds: float
) -> Definitions:
    """The same, without trust in what a statement the leader does not show yet may have made so on the follower."""
    if until <= visible.position:
        return found
    doubt = f"its definition differs, but {visible.doubt}"
    if history is None:
        return found._replace(doubt=f"{doubt}, and {NO_TOPIC}")
    try:
        altered = history.touched({}, visible.position, until, seconds).ddl
    except (TopicError, EventError) as error:
        return found._replace(doubt=f"{doubt}, and {error}")
    return found._replace(doubt=f"{doubt}, and it altered this database there", doubted=altered)


def _compared(leader: Schema, follower: Schema) -> Definitions:
    return Definitions(leader, follower, compare_schemas(leader, follower))
