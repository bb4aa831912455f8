"""Refuses servers that are not the leader and the follower that a profile takes them for."""

from __future__ import annotations

from itertools import islice

from cdc_consumer.parity.servers.connection import Select
from shared.errors import FollowerError, TopicError
from shared.topic.walk import TopicWalk, told_leader

#: records among which a heartbeat is looked for
MOST_RECORDS = 100_000


def refuse_one_server(leader: Select, follower: Select) -> None:
    """Raise FollowerError when both addresses are of one server.

    What a copy drops there, the leader would lose; and an audit would prove that the server equals itself.
    """
    uuid = _uuid(leader)
    if _uuid(follower) == uuid:
        raise FollowerError(
            f"leader and follower have the same server_uuid, {uuid}: they are one server, or one is a copy of the"
            " other; name another follower, or remove auto.cnf from the copy's data directory and start it again"
        )


def require_leaders_topic(walk: TopicWalk, leader: Select) -> None:
    """Raise TopicError when the last heartbeat of the topic is of another leader, as where addresses changed places."""
    uuid = _uuid(leader)
    told = told_leader(islice(walk.back(walk.first_offset(), walk.next_offset()), MOST_RECORDS))
    if told not in ("", uuid):
        raise TopicError(
            f"{walk.name} holds what the server {told} wrote, and [leader] is {uuid}: name there the leader of the"
            " topic's producer"
        )


def _uuid(ask: Select) -> str:
    ((uuid,),) = ask("SELECT @@GLOBAL.server_uuid")
    return str(uuid)
