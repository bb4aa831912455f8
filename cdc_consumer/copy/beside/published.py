"""Asks the topic since when its producer publishes a database: what it left out before is in no record."""

from __future__ import annotations

from collections.abc import Collection

from cdc_consumer.parity.model import TableName
from shared.errors import ProfileError, TopicError
from shared.events import Heartbeat, Position
from shared.filters import DatabaseFilter
from shared.profile import Filters
from shared.topic.walk import TopicWalk, place


def refuse_unpublished(
    walk: TopicWalk, database: str, tables: Collection[TableName], position: Position, begin: Position
) -> None:
    """Raise TopicError unless the topic holds all of a database behind two positions of the leader.

    Those are the follower's `position`, and `begin`, up to where the leader's rows show all. Each heartbeat tells what
    the producer published when it was sent.
    """
    since: Position | None = None
    for entry in walk.back(walk.first_offset(), walk.next_offset()):
        if not entry.heartbeat:
            continue
        event = entry.decode()
        assert isinstance(event.operation, Heartbeat)
        if not _takes(event.operation, database, tables):
            break
        since = event.position
        if entry.place <= min(place(position), place(begin)):
            return
    if since is None:
        raise TopicError(
            f"{walk.name} does not tell that its producer publishes {database}: name it in include_dbs of"
            " cdc-producer's profile, start that anew, and cdc-consumer as it is; when it has run for some seconds stop"
            " the consumer, and run this again"
        )
    if place(position) < place(since):
        raise TopicError(
            f"{walk.name} has {database} from {since} of the leader on, and the follower stands at {position}: start"
            " cdc-consumer as it is until it has passed that, stop it, and run this again"
        )
    raise TopicError(
        f"{walk.name} has {database} from {since} of the leader on, and its rows surely show only what is before"
        f" {begin}: run on the leader: FLUSH BINARY LOGS; let cdc-consumer catch up, stop it, and run this again"
    )


def _takes(told: Heartbeat, database: str, tables: Collection[TableName]) -> bool:
    if told.filters is None:
        return False
    try:
        filters = DatabaseFilter(Filters(**{key: tuple(names) for key, names in told.filters.items()}))
    except (TypeError, ProfileError):
        return False
    return database in filters and all(filters.takes(*name) for name in tables)
