"""Tells whether what the audit proved of a row still holds: the consumer may have written the row since.

A hash does not tell it. A row that the leader has set to the very value that the follower had is right now, and of a
row that is not there no hash tells whether the leader still has it.
"""

from __future__ import annotations

from collections.abc import Callable

from cdc_consumer.parity.model import Shape, TableName
from cdc_consumer.parity.repair.statements import Change
from cdc_consumer.parity.witness.answers import Written
from cdc_consumer.parity.witness.history import History
from cdc_consumer.parity.witness.row_keys import Literals, certain
from shared.errors import EventError, TopicError
from shared.events import Position
from shared.mysql import MySQLError
from shared.topic.walk import Place, place

#: keys that are remembered at most; above, nothing holds
MOST_KEYS = 1_000_000

WRITTEN = "the topic holds a change of it since the audit proved it"
MOVED = "the follower has moved since the audit proved it, and without [topic] in the profile nothing tells why"


class Proof:
    """Knows what the leader wrote since the first row was proven."""

    def __init__(self, history: History | None, since: Position, at: Position, still: str) -> None:
        """
        since:  where the follower was when the first of all rows was proven
        at:     where it is now
        still:  a statement that fails once it is no longer there, see `FollowerConnection.still`
        """
        self.still = still
        self._history = history
        self._since = since
        self._at = at
        #: offset in the topic up to which all is known
        self._offset: int | None = None
        #: the last places where each row was written, and where any row of a table or a database may have been
        self._rows: dict[tuple[TableName, Literals], Place] = {}
        self._tables: dict[TableName, Place] = {}
        self._databases: dict[str, Place] = {}
        #: why nothing holds any more
        self._failure = ""

    def look(self, ask: Callable[[str], object]) -> None:
        """Learn what was written up to now; `ask` asks the follower.

        What the consumer applied before is in the topic, so that of a row that cannot be written meanwhile, because a
        transaction has locked it, all is known after this.
        """
        if self._history is None:
            try:
                ask(self.still)
            except MySQLError:
                self._failure = MOVED
            return
        try:
            if self._offset is None:
                self._offset = self._history.begin(self._since)
            for written in self._history.written(self._offset):
                self._learn(written)
                self._offset = written.offset
        except (TopicError, EventError) as error:
            self._failure = f"the topic does not tell whether it was written since the audit proved it: {error}"
        if len(self._rows) > MOST_KEYS:
            self._failure = f"over {MOST_KEYS:,} rows were written since the audit proved it"
            self._rows.clear()

    def doubt(self, change: Change, shape: Shape) -> str:
        """Return why a change may no longer be right, as far as `look` knows; "" when it still is."""
        if self._failure:
            return self._failure
        proven = Position.parse(change.proven)
        if self._history is None:
            return "" if proven == self._at else MOVED
        names = shape.key or tuple(column.name for column in shape.columns)
        rows = (self._rows.get((shape.name, tuple(image.row[name] for name in names))) for image in change.images)
        last = (*rows, self._tables.get(shape.name), self._databases.get(shape.name.database))
        return WRITTEN if any(each is not None and each >= place(proven) for each in last) else ""

    def _learn(self, written: Written) -> None:
        self._databases.update(dict.fromkeys(written.databases, written.place))
        self._tables.update(dict.fromkeys(written.below, written.place))
        if written.table is None:
            return
        for known in written.keys:
            if certain(known) is None:
                self._tables[written.table] = written.place
            else:
                self._rows[written.table, known] = written.place
