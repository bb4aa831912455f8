"""Writes changes as the leader's own binlog events, where the follower's table takes them, and proves that it did."""

from __future__ import annotations

import logging
import time
from collections.abc import Set

from cdc_consumer.binlog.changes import Changes
from cdc_consumer.binlog.columns import layout_of
from cdc_consumer.binlog.layout import NoLayoutError, RowLayout, read_layout
from cdc_consumer.binlog.position_row import TABLE_ID, PositionRow
from cdc_consumer.binlog.statement import FRAME_SIZE, ChangesStatement
from cdc_consumer.follower.pipe import ChangeGroup, Pipe, ResultCheck, TablePlace
from cdc_consumer.follower.tables import FollowerTables
from cdc_consumer.sql import literals
from shared.errors import DivergedError

logger = logging.getLogger(__name__)

#: bytes of binlog events become this many characters of a statement
CHARACTERS = 4 / 3
#: seconds between two looks at the session's counters
LOOK_SECONDS = 1.0
#: what the session counts of each kind of change
COUNTERS = {"Add": "Handler_write", "Update": "Handler_update", "Delete": "Handler_delete"}
_COUNTED = f"SHOW SESSION STATUS WHERE Variable_name IN ({', '.join(map(literals.text, COUNTERS.values()))})"


def passed_over(sequence: int) -> DivergedError:
    """Explain that the follower answered binlog events, up to this sequence, as if it had applied them."""
    return DivergedError(
        f"the follower took binlog events up to sequence {sequence} and did not apply all rows in them; audit it with"
        ' cdc-parity, and go on with rows = "sql" in [apply]'
    )


class AppliedRows:
    """Proves by the session's own counters that every row of the binlog events was applied.

    MySQL may ignore binlog events without a word. A look costs as much as a small transaction, so there is one a
    second, and the statements between a look and the first SQL after it are what it proves.
    """

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        #: the counters at the last look, None when there was none that something is to be compared with
        self._before: dict[str, int] | None = None
        #: of the pipe, at the last look
        self._uncounted = 0
        self._looked = 0.0
        self._expected = dict.fromkeys(COUNTERS.values(), 0)

    def begin(self) -> None:
        """Note that binlog events follow."""
        if not self._comparable and time.monotonic() - self._looked >= LOOK_SECONDS:
            self._look()

    @property
    def _comparable(self) -> bool:
        return self._before is not None and self._uncounted == self._pipe.uncounted

    def expect(self, kind: str, rows: int) -> None:
        """Note that rows of this kind of change are under way."""
        self._expected[COUNTERS[kind]] += rows

    def check(self, *, end: bool = False) -> bool:
        """Tell whether all is as it must be, looked at once a second; at the `end` of the binlog events in any case.

        All that is under way was sent.
        """
        if self._before is None or not self._comparable:
            return True
        if not end and time.monotonic() - self._looked < LOOK_SECONDS:
            return True
        before, expected = self._before, self._expected
        self._look()
        missing = {name: count - (self._before[name] - before[name]) for name, count in expected.items()}
        # an update that moves a row to another partition is counted as a row written and one deleted
        moved = max(missing.pop(COUNTERS["Update"]), 0)
        # a session that begins a binlog file writes a row of the server's own
        return all(count + moved <= 0 for count in missing.values())

    def _look(self) -> None:
        self._before = {str(name): int(value) for name, value in self._pipe.ask(_COUNTED)}
        self._uncounted, self._looked = self._pipe.uncounted, time.monotonic()
        self._expected = dict.fromkeys(COUNTERS.values(), 0)


class ChangesWriter:
    """Writes changes into statements that each hold one transaction or several, or a part of a large one."""

    def __init__(
        self,
        pipe: Pipe,
        tables: FollowerTables,
        position: PositionRow,
        refused: Set[TablePlace],
        max_packet: int,
        limit: int,
    ) -> None:
        """`refused` are tables whose changes go by SQL; `limit` is how many characters a statement may grow to."""
        self.applied = AppliedRows(pipe)
        self.position = position
        self._pipe = pipe
        self._known = tables
        self._refused = refused
        self._largest = int((max_packet - 2 * FRAME_SIZE) / CHARACTERS) - limit
        self._limit = int(limit / CHARACTERS)
        #: which layouts fit, by table and bytes of the layout
        self._fits: dict[tuple[bytes, bytes, bytes], bool] = {}
        #: those of them that took rows since somebody emptied this
        self.used: set[tuple[bytes, bytes, bytes]] = set()
        #: the only table that takes rows now, and its layout, where nothing can be asked
        self._expected: tuple[TablePlace, RowLayout | None] | None = None
        self.statement = ChangesStatement()
        #: what was added to it, with numbers of rows
        self._added: list[tuple[Changes, int]] = []

    def forget(self) -> None:
        """Note that a statement may have changed a table."""
        self._fits.clear()
        self.used.clear()

    def see_again(self, table: tuple[bytes, bytes, bytes]) -> tuple[str, str] | None:
        """Prove anew that a table fits; return its name, and what happens now, where it does not any more."""
        if self._expected is not None or not self._fits.get(table):
            return None
        place = (table[0].decode(), table[1].decode())
        if layout_of(self._pipe.ask, *place) == read_layout(table[2]):
            return None
        self._fits[table] = False
        self._known.forget()
        return ".".join(place), "other columns; its rows go by SQL from here on"

    def expect(self, place: TablePlace | None, layout: RowLayout | None = None) -> None:
        """Take rows of this table alone, whose layout is known; None ends that."""
        self._expected = None if place is None else (place, layout)
        self.forget()

    def takes(self, changes: Changes) -> bool:
        """Tell whether the follower's table was proven to store these bytes as the leader's does."""
        if changes.size > self._largest or changes.table_id == TABLE_ID:
            return False  # under the id of the position's table its row would go to this one
        table = (changes.database, changes.table, changes.layout)
        fits = self._fits.get(table)
        if fits is None:
            fits = self._fits[table] = self._prove(changes)
        self.used.add(table)
        return fits

    def _prove(self, changes: Changes) -> bool:
        place = (changes.database.decode(), changes.table.decode())
        if place in self._refused:
            return False
        if self._expected is None:
            # what is under way is judged first: its errors are not about this table
            self._pipe.settle()
        try:
            layout = read_layout(changes.layout)
            if self._expected is not None:
                return self._expected == (place, layout)
            self._known.find(*place)
        except DivergedError:
            return False  # the other way names it
        except NoLayoutError as error:
            logger.info("rows of %s.%s go by SQL: %s", *place, error)
            return False
        found = layout_of(self._pipe.ask, *place)
        if found != layout:
            logger.info(
                "rows of %s.%s go by SQL: the table differs from the leader's, or has generated columns", *place
            )
        return found == layout

    @property
    def full(self) -> bool:
        """Tell whether the statement should grow no more."""
        return self.statement.size > self._limit

    def add(self, changes: Changes, rows: int) -> None:
        """Let the statement under way grow by these changes, which it takes."""
        self.statement.add(changes)
        self._added.append((changes, rows))

    @property
    def added(self) -> int:
        """Count how often `add` was called since the statement began."""
        return len(self._added)

    def cut(self, kept: int) -> list[tuple[Changes, int]]:
        """Take back from the statement, and return, what was added to it after the first `kept`."""
        added = self._added
        self.abandon()
        for changes, rows in added[:kept]:
            self.add(changes, rows)
        return added[kept:]

    def abandon(self) -> None:
        """Give up the statement under way; the next one begins."""
        self.statement, self._added = ChangesStatement(), []

    def finish(self, sequence: int) -> tuple[str, ResultCheck]:
        """Return the statement, whose last event is that of `sequence`; the next one begins."""
        for changes, rows in self._added:
            self.applied.expect(changes.kind, rows)
        group = ChangeGroup(sequence, [changes for changes, _ in self._added])
        sql = self.statement.sql()
        self.abandon()
        return sql, ResultCheck(about=group)
