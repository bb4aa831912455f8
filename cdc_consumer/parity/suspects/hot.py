"""A row that is written all the time: it never rests between two looks, but the topic holds every one of its images.

In one snapshot of the follower both the row and the position are read; the last image of the row up to that very
position is what a follower that is right shows. The leader's row is only what the follower should be made like, so it
must be no older than that image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cdc_consumer.parity.model import Difference, Evidence, Kind
from cdc_consumer.parity.rows.ranges import Key, Reading
from cdc_consumer.parity.servers.connection import Ask
from cdc_consumer.parity.servers.pair import Pair
from cdc_consumer.parity.state import Suspect
from cdc_consumer.parity.suspects.rows_by_key import Images, Row
from cdc_consumer.parity.witness.history import UNKNOWN, History, Image, Unknown
from cdc_consumer.sql.predicates import exactly
from shared.events import Position
from shared.mysql import quote_name

CONVERTED = "it kept changing, and the follower's columns have other types than the images in the topic"


class _Look(NamedTuple):
    """What one snapshot of the follower shows, and what it should show."""

    at: Position
    rows: Mapping[Key, Row]
    images: Mapping[Key, Image | Unknown | None]
    right: frozenset[Key]

    @property
    def wrong(self) -> frozenset[Key]:
        """The keys of rows whose image is known and another one."""
        return frozenset(key for key, image in self.images.items() if image is not UNKNOWN) - self.right


class Hot:
    """Judges rows by their last images."""

    def __init__(self, pair: Pair, history: History, seconds: float) -> None:
        """`seconds` without a record that the topic may take to come to a position."""
        self._pair = pair
        self._history = history
        self._seconds = seconds

    def judge(self, suspects: Sequence[Suspect], images: Images) -> list[tuple[Suspect, Difference]]:
        """Decide those of a table with a key that the topic can tell; the others stay open.

        Raises HistoryError and other TopicErrors.
        """
        shape = images.shape
        if any(column.converted for column in shape.columns):
            for suspect in suspects:
                suspect.reason = CONVERTED
            return []
        # what narrows the audit must not hide a row whose image the topic holds
        images = Images(Reading(shape))
        keys = [suspect.key for suspect in suspects]
        look = self._pair.follower.frozen(lambda ask: self._look(images, keys, ask))
        for suspect in suspects:
            if suspect.key in look.right:
                suspect.state = "equal"
        wrong = [suspect for suspect in suspects if suspect.key in look.wrong]
        return self._differences(wrong, images, look) if wrong else []

    def _differences(self, wrong: Sequence[Suspect], images: Images, look: _Look) -> list[tuple[Suspect, Difference]]:
        """Prove those of the follower's wrong rows that the leader shows rightly; the others stay open."""
        leader = self._pair.leader
        shown = leader.shown()
        theirs = images.read(leader.rows, sorted(look.wrong))
        if self._altered(images, look):
            return []
        found = []
        for suspect in wrong:
            key = suspect.key
            one, mine = theirs.get(key), look.rows.get(key)
            if shown.position < look.at and not _shows(images, key, one, look.images[key], leader.rows):
                suspect.reason = f"{shown.doubt}, and the row it shows is not the last one in the topic"
            # alike: wrong for a moment only, or the topic is; another round tells
            elif (one and one.hash) != (mine and mine.hash):
                suspect.state = "proven"
                found.append((suspect, _difference(images, suspect, one, mine, look.at)))
        return found

    def _look(self, images: Images, keys: Sequence[Key], ask: Ask) -> _Look:
        at = self._pair.follower.applied(ask).position
        assert at is not None  # the suspects were looked at behind a fence it had reached
        rows = images.read(ask, keys)
        table = images.shape.name
        told = self._history.images_at({table: keys}, at)[table]
        right = {key for key in keys if _shows(images, key, rows.get(key), told[key], ask)}
        return _Look(at, rows, told, frozenset(right))

    def _altered(self, images: Images, look: _Look) -> bool:
        """True when a statement may have changed the table before the position after it was written."""
        until = self._pair.leader.position()
        touched = self._history.touched({images.shape.name: look.wrong}, look.at, until, self._seconds)
        return images.shape.name.database in touched.ddl


def _shows(images: Images, key: Key, row: Row | None, image: Image | Unknown | None, ask: Ask) -> bool:
    """True when a row that was read has the image's very values, as the consumer itself tells values apart."""
    if image is UNKNOWN:
        return False
    if row is None or image is None:
        return row is None and image is None
    columns = [column.name for column in images.shape.columns if column.name in image]
    values = " AND ".join(f"({exactly(quote_name(name), image[name])})" for name in columns)
    return any(tuple(found) == key for found in ask(images.reading.these([key], values or "TRUE")))


def _difference(images: Images, suspect: Suspect, theirs: Row | None, ours: Row | None, at: Position) -> Difference:
    kind: Kind = "missing" if ours is None else "extra" if theirs is None else "changed"
    edge = str(at)
    return Difference(
        images.shape.name, kind, dict(zip(images.shape.key, suspect.key, strict=True)), theirs and theirs.literals,
        ours and ours.literals, theirs and theirs.hash, ours and ours.hash,
        Evidence("after-image", edge, edge, edge, edge, suspect.rounds),
    )  # fmt: skip
