"""A row that is written all the time: it never rests between two looks, but the topic holds every one of its images.

In one snapshot of the follower both the row and the position are read; the last image of the row up to that very
position is what a follower that is right shows.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdc_consumer.parity.history import UNKNOWN, History, Image
from cdc_consumer.parity.images import Images
from cdc_consumer.parity.model import Difference, Evidence, Kind
from cdc_consumer.parity.ranges import Key
from cdc_consumer.parity.servers import Ask, Reader
from cdc_consumer.parity.state import Suspect
from cdc_consumer.positions import mark_from
from cdc_consumer.predicates import exactly
from shared.errors import HistoryError
from shared.events import Position
from shared.mysql import quote_name


def judge_hot(
    suspects: Sequence[Suspect], images: Images, history: History, leader: Reader, follower: Reader, position_sql: str
) -> list[tuple[Suspect, Difference]]:
    """Decide those of a table with a key that the topic can tell; the others stay open."""
    found = []
    for suspect in suspects:
        difference: Difference | None = None
        try:
            with follower.frozen() as ask:
                difference = _judge(suspect, images, history, leader, ask, position_sql)
        except HistoryError as error:
            suspect.reason = str(error)
        if difference is not None:
            suspect.state = "proven"
            found.append((suspect, difference))
    return found


def _judge(
    suspect: Suspect, images: Images, history: History, leader: Reader, ask: Ask, position_sql: str
) -> Difference | None:
    mark = mark_from(ask(position_sql)[0])
    at = Position(mark.file, mark.leader_offset)
    row = images.row(ask, suspect.key)
    image = history.image_at(images.shape.name, suspect.key, at)
    if image is UNKNOWN:
        return None
    if (row is None and image is None) or (row and image and _holds(images, suspect.key, image, ask)):
        suspect.state = "equal"
        return None
    theirs = images.row(leader.rows, suspect.key)
    if (theirs and theirs.hash) == (row and row.hash):
        return None  # wrong for a moment only, or the topic is: another round tells
    kind: Kind = "missing" if row is None else "extra" if theirs is None else "changed"
    edge = str(at)
    return Difference(
        images.shape.name, kind, dict(zip(images.shape.key, suspect.key, strict=True)), theirs and theirs.literals,
        row and row.literals, theirs and theirs.hash, row and row.hash,
        Evidence("after-image", edge, edge, edge, edge, suspect.rounds),
    )  # fmt: skip


def _holds(images: Images, key: Key, image: Image, ask: Ask) -> bool:
    """True when the snapshot's row has the image's very values, as the consumer itself tells values apart."""
    columns = [column.name for column in images.shape.columns if column.name in image]
    values = " AND ".join(f"({exactly(quote_name(name), image[name])})" for name in columns)
    found = ask(images.reading.these([key], f"{values or 'TRUE'}"))
    return any(tuple(each) == key for each in found)
