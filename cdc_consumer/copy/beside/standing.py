"""Reads where a follower stands, and refuses one whose rows are not those of that position."""

from __future__ import annotations

from cdc_consumer.copy.profile import CopyProfile
from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.sql.positions import Mark, PositionTables, mark_from
from shared.errors import FollowerError, OffsetGoneError, TopicError
from shared.events import Position
from shared.mysql import ER, MySQLError, error_number
from shared.topic.walk import TopicWalk, place


def standing(writer: Writer, profile: CopyProfile, walk: TopicWalk) -> Mark:
    """Return the follower's position, which the consumer must have left for good. Raises CdcError."""
    if walk.by_sequence:
        raise TopicError(f"{walk.name} has routes, and --tables and --add read one ordered topic: --replace copies all")
    tables = PositionTables(profile.follower.system_database, profile.topic.identity)
    try:
        found = writer.rows(tables.read())
    except MySQLError as error:
        if error_number(error) not in (ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR):
            raise
        found = []
    mark = mark_from(found[0]) if found else None
    if mark is None or mark.position is None:
        raise FollowerError(
            f"the follower has applied nothing of topic {profile.topic.name}, so there is no position to copy to;"
            " cdc-copy with neither --tables nor --add fills it"
        )
    go_on = "start cdc-consumer until it has caught up, stop it, and run this again"
    if writer.rows(tables.read_ahead()):
        raise FollowerError(f"the follower has applied transactions ahead of its position, in no order; {go_on}")
    if any(sequence > mark.sequence for sequence, _ in writer.rows(tables.read_intent())):
        raise FollowerError(f"a statement was interrupted on the follower, and may have run there or not; {go_on}")
    _refuse_other_topic(mark, mark.position, walk)
    return mark


def _refuse_other_topic(mark: Mark, position: Position, walk: TopicWalk) -> None:
    """Raise OffsetGoneError unless the topic holds the record that the follower has applied last."""
    if walk.first_offset() <= mark.offset < walk.next_offset():
        last = walk.at(mark.offset)
        if last.sequence == mark.sequence and last.edge == place(position):
            return
    raise OffsetGoneError(
        f"{walk.name} does not hold what the follower has applied last (offset {mark.offset}, sequence {mark.sequence},"
        f" {position} of the leader): another topic, or its retention removed that; --replace copies everything anew"
    )
