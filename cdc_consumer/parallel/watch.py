"""Sees that somebody has changed a table of the follower while rows are applied to it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from cdc_consumer.follower.worker import Worker

logger = logging.getLogger(__name__)

#: seconds between two looks
LOOK_SECONDS = 1.0
#: tables at most that are looked at again in one look: a server with too many tables reads definitions all the time
MOST = 20
_READ = "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Opened_table_definitions'"

#: what names a table
Named = TypeVar("Named")


class DefinitionWatch:
    """Looks again at the tables that took rows, once the server has read definitions of tables meanwhile.

    That a table stores rows as the leader does was proven before its first row. Whoever changes it makes the server
    read its definition anew, and the server counts that: one question a second tells whether to prove it again.
    """

    def __init__(self, worker: Worker) -> None:
        """Nothing was asked about a table of the follower yet."""
        self._worker = worker
        self._looked = time.monotonic()
        #: when a definition was read first since the tables were looked at, None for not at all
        self._moved: float | None = None
        self._count = self._read()

    def _read(self) -> object:
        return self._worker.ask(_READ, counted=True)

    def begin_anew(self) -> None:
        """Note that a statement of the leader may have changed any table: nothing is known of them any more."""
        self._moved, self._count = None, self._read()

    def look(self, *, end: bool = False) -> None:
        """Look once a second, and at the `end` of what is there to apply; warn of each table that has changed.

        Nothing is open on the worker's session. How such a table takes rows is found out anew.
        """
        now = time.monotonic()
        if not end and now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        tables, changes = self._worker.tables, self._worker.changes
        used = tables.used or (changes is not None and changes.used)
        count = self._read() if used else self._count
        if count != self._count:
            self._count, self._moved = count, self._moved or now
        if self._moved is not None and used:
            # a definition may be read a moment before it is that of the changed table
            settled = now - self._moved >= LOOK_SECONDS
            if settled or end:
                self._see_again(tables.used, tables.see_again, settled)
                if changes is not None:
                    self._see_again(changes.used, changes.see_again, settled)
            if settled and not tables.used and (changes is None or not changes.used):
                self._moved = None
        elif used:
            tables.used.clear()
            if changes is not None:
                changes.used.clear()

    def _see_again(self, used: set[Named], see: Callable[[Named], tuple[str, str] | None], settled: bool) -> None:
        """Look again at some of the tables; once things have settled they need no other look."""
        for table in list(used)[:MOST]:
            if changed := see(table):
                logger.warning(
                    "table %s of the follower was changed while rows were applied to it (%s): what went there up to"
                    " sequence %d may not be what the leader has; audit it with cdc-parity",
                    *changed, self._worker.own.sequence,
                )  # fmt: skip
            if settled:
                used.discard(table)
