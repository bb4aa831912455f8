"""A row that is written all the time: it never rests between two looks, but the topic holds every one of its images.

In one snapshot of the follower both the row and the position are read; the last image of the row up to that very
position is what a follower that is right shows. The leader's row is only what the follower should be made like, so it
must be no older than that image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cdc_consumer.parity.model import Difference, Evidence, Key, Shape
from cdc_consumer.parity.rows.ranges import TableQueries
from cdc_consumer.parity.servers.connection import Select
from cdc_consumer.parity.servers.pair import Pair
from cdc_consumer.parity.state import Suspect
from cdc_consumer.parity.suspects.rows_by_key import HashedRow, RowsByKey, row_difference
from cdc_consumer.parity.witness.answers import UNKNOWN, Unknown
from cdc_consumer.parity.witness.history import History, WireRow
from cdc_consumer.sql.predicates import exactly
from shared.events import Position
from shared.mysql import quote_name

CONVERTED = "it kept changing, and the follower's columns have other types than the images in the topic"


class _Look(NamedTuple):
    """What one snapshot of the follower shows, and what it should show."""

    at: Position
    rows: Mapping[Key, HashedRow]
    images: Mapping[Key, WireRow | Unknown | None]
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

    def judge(self, suspects: Sequence[Suspect], shape: Shape) -> list[tuple[Suspect, Difference]]:
        """Decide those of a table with a key that the topic can tell; the others stay open.

        Raises HistoryError and other TopicErrors.
        """
        if any(column.converted for column in shape.columns):
            for suspect in suspects:
                suspect.reason = CONVERTED
            return []
        # what narrows the audit must not hide a row whose image the topic holds
        table = RowsByKey(TableQueries(shape))
        keys = [suspect.key for suspect in suspects]
        look = self._pair.follower.frozen(lambda select: self._look(table, keys, select))
        for suspect in suspects:
            if suspect.key in look.right:
                suspect.state = "equal"
        wrong = [suspect for suspect in suspects if suspect.key in look.wrong]
        return self._differences(wrong, table, look) if wrong else []

    def _look(self, table: RowsByKey, keys: Sequence[Key], select: Select) -> _Look:
        at = self._pair.follower.applied(select).position
        assert at is not None  # the suspects were looked at behind a fence it had reached
        ahead = self._pair.follower.ahead(select)
        rows = table.read(select, keys)
        name = table.shape.name
        images = dict(self._history.images_at({name: keys}, at)[name])
        if ahead is not None:
            # it may show what was written behind its position, or not
            images.update(
                dict.fromkeys(self._history.touched({name: keys}, at, ahead, self._seconds).keys[name], UNKNOWN)
            )
        right = {key for key in keys if _shows(table, key, rows.get(key), images[key], select)}
        return _Look(at, rows, images, frozenset(right))

    def _differences(self, wrong: Sequence[Suspect], table: RowsByKey, look: _Look) -> list[tuple[Suspect, Difference]]:
        """Prove those of the follower's wrong rows that the leader shows rightly; the others stay open."""
        leader = self._pair.leader
        visible = leader.visible()
        leader_rows = table.read(leader.rows, sorted(look.wrong))
        if self._altered(table, look):
            return []
        found = []
        for suspect in wrong:
            key = suspect.key
            row, follower_row = leader_rows.get(key), look.rows.get(key)
            if visible.position < look.at and not _shows(table, key, row, look.images[key], leader.rows):
                suspect.reason = f"{visible.doubt}, and the row it shows is not the last one in the topic"
            # alike: wrong for a moment only, or the topic is; another round tells
            elif (row and row.hash) != (follower_row and follower_row.hash):
                suspect.state = "proven"
                edge = str(look.at)
                evidence = Evidence("after-image", edge, edge, edge, edge, suspect.rounds)
                found.append((suspect, row_difference(table.shape, key, row, follower_row, evidence)))
        return found

    def _altered(self, table: RowsByKey, look: _Look) -> bool:
        """Tell whether a statement may have changed the table before the position after it was written."""
        until = self._pair.leader.position()
        touched = self._history.touched({table.shape.name: look.wrong}, look.at, until, self._seconds)
        return table.shape.name.database in touched.ddl


def _shows(table: RowsByKey, key: Key, row: HashedRow | None, image: WireRow | Unknown | None, select: Select) -> bool:
    """Tell whether a row that was read has the image's very values, as the consumer itself tells values apart."""
    if image is UNKNOWN:
        return False
    if row is None or image is None:
        return row is None and image is None
    columns = [column.name for column in table.shape.columns if column.name in image]
    values = " AND ".join(f"({exactly(quote_name(name), image[name])})" for name in columns)
    return any(tuple(found) == key for found in select(table.queries.these([key], values or "TRUE")))
