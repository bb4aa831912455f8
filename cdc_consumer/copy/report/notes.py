"""Keeps on the follower what a copy's page tells at the end, so that it tells of all runs of the program."""

from __future__ import annotations

import logging
from typing import Literal, NamedTuple

from cdc_consumer.copy.copy_tables import CopyTables
from cdc_consumer.parity.schema.records import Schema
from cdc_consumer.sql import literals
from shared.mysql import ER, Connection, MySQLError, error_number, rows

logger = logging.getLogger(__name__)

#: "run": an attempt began; "phase": a phase did; "again": a table is copied once more; "warning": something is not on
#: the follower; "audit": the audit has ended
NoteKind = Literal["run", "phase", "again", "warning", "audit"]


class Note(NamedTuple):
    """Holds something that is told at the end."""

    kind: NoteKind
    words: str
    #: seconds since 1970, by the follower's clock
    at: float


class CopyNotes:
    """Writes and reads notes over a connection whose writes stay out of the follower's binlog."""

    def __init__(self, connection: Connection, tables: CopyTables) -> None:
        self._connection = connection
        self._sql = tables

    def note(self, kind: NoteKind, words: str = "") -> None:
        """Keep a note."""
        values = ", ".join((self._sql.topic, literals.text(kind), literals.text(words)))
        rows(self._connection, literals.encode(f"INSERT INTO {self._sql.note} (topic, kind, words) VALUES ({values})"))

    def warn_of_triggers(self, schema: Schema) -> None:
        """Keep and log that the triggers of the leader are not on the follower."""
        forget = f"DELETE FROM {self._sql.note} WHERE topic = {self._sql.topic} AND kind = 'warning'"
        rows(self._connection, literals.encode(forget))
        triggers = sorted(str(each.name) for each in schema.objects.values() if each.kind == "TRIGGER")
        for each in triggers:
            self.note("warning", f"Trigger {each} is not on the follower: the rows hold what it did.")
        if triggers:
            logger.warning(
                "not created on the follower, whose rows hold what they did: triggers %s", ", ".join(triggers)
            )

    def read(self) -> list[Note]:
        """Return all notes, the oldest first; none where a copy of an earlier version made no table for them."""
        sql = (
            f"SELECT kind, words, UNIX_TIMESTAMP(noted_at) FROM {self._sql.note} WHERE topic = {self._sql.topic}"
            " ORDER BY number"
        )
        try:
            found = rows(self._connection, literals.encode(sql))
        except MySQLError as error:
            if error_number(error) != ER.NO_SUCH_TABLE:
                raise
            return []
        return [Note(kind, words, float(at)) for kind, words, at in found]
