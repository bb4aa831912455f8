"""Writes the consumer's own rows on the follower: the position, and a statement's intent to commit by itself."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cdc_consumer.follower.gtids import Gtids
from cdc_consumer.follower.pipe import Pipe, ResultCheck
from cdc_consumer.sql.positions import Intent, LeftOut, Mark, PositionTables, mark_from
from shared.errors import FollowerError

#: seconds between two writes of a position that moves without rows
ADVANCE_SECONDS = 1.0


class Slot(NamedTuple):
    """Tells of what was committed as one, maybe before its turn: by the sequence of its first event and its end."""

    first: int
    end: Mark


class OwnTables:
    """Writes the system's own tables over the session of one worker, between its transactions and outside the binlog.

    Only the position of a transaction with rows is written elsewhere: by the worker, inside that very transaction.
    """

    def __init__(
        self, pipe: Pipe, gtids: Gtids, tables: PositionTables, start: Mark, link: int, intent: Intent | None,
        slots: dict[int, Slot],
    ) -> None:  # fmt: skip
        self._pipe = pipe
        self._gtids = gtids
        self._tables = tables
        #: the position when the session began
        self.start = start
        #: the sequence of the position once all that was sent is committed
        self.sequence = start.sequence
        #: the sequence of the last transaction that moved it
        self.link = link
        #: the statement that was about to run when the last session ended, or is about to run now
        self.intent = intent
        #: the slots when the session began, by number
        self.slots = slots
        #: a position that moved without rows and is not written yet
        self._due: Mark | None = None
        self._advanced = 0.0

    @property
    def ahead(self) -> dict[int, Mark]:
        """Return the ends of what is behind the start and ended before its turn, by the sequences of first events."""
        return {slot.first: slot.end for slot in self.slots.values() if slot.end.sequence > self.start.sequence}

    def moved(self, mark: Mark) -> str:
        """Return the SQL that moves the position inside of the transaction that ends there."""
        self.moves(mark)
        return self._tables.write(mark, link=True)

    def moves(self, mark: Mark) -> None:
        """Note that the transaction that ends there moves the position."""
        self._due, self.sequence, self.link = None, mark.sequence, mark.sequence

    def stands(self) -> bool:
        """Tell whether the position is where all that was sent has brought it, as far as was noted."""
        ((*mark,),) = self._pipe.ask(self._tables.read())
        return mark_from(mark).sequence == self.sequence

    def read_slots(self) -> dict[int, Slot]:
        """Ask for the slots as they are now, by number."""
        return _slots(self._pipe.ask(self._tables.read_slots()))

    def pass_to(self, mark: Mark) -> None:
        """Move the position without rows: at once when the last such move is a second ago, else by `catch_up`."""
        self._due = mark
        if time.monotonic() - self._advanced >= ADVANCE_SECONDS:
            self.catch_up()

    def catch_up(self) -> None:
        """Write the position that `pass_to` has left unwritten."""
        if self._due is not None:
            self.advance(self._due)

    def forget_due(self) -> None:
        """Leave to the transaction that begins to write the position, in which a write from here has no place."""
        self._due = None

    def advance(self, mark: Mark) -> None:
        """Write the position; everything before it is committed first."""
        self._due, self.sequence, self._advanced = None, mark.sequence, time.monotonic()
        self._write(self._tables.write(mark), ResultCheck(1, about=position_of(mark)))

    def leave_out(self, left_out: LeftOut, mark: Mark) -> None:
        """Write down that a transaction was left out, and the position after it, both or neither."""
        self._due, self.sequence = None, mark.sequence
        with self._gtids.hidden():
            self._pipe.put("BEGIN", ResultCheck(about="BEGIN"))
            self._pipe.put(self._tables.write_left_out(left_out), ResultCheck(1, about=f"the decision on {left_out}"))
            self._pipe.put(self._tables.write(mark), ResultCheck(1, about=position_of(mark)))
            self._pipe.put("COMMIT", ResultCheck(about="COMMIT"))
        self._pipe.settle()

    @property
    def forget_intent(self) -> str:
        """Say how an operator lets a statement run again of which it is not known whether it ran."""
        return f"if it did not, run on the follower: {self._tables.delete_intent()}"

    def leaves_out(self, left_out: LeftOut) -> str:
        """Return the SQL that writes it down inside of the transaction that stands for it."""
        return self._tables.write_left_out(left_out)

    def was_left_out(self, sequence: int) -> bool:
        """Tell whether the transaction of this sequence was left out before."""
        return bool(self._pipe.ask(self._tables.read_left_out(sequence)))

    def intend(self, intent: Intent) -> None:
        """Write down that a statement that commits by itself is about to run."""
        self.intent = intent
        self._write(self._tables.write_intent(intent), ResultCheck(about="the intent"))

    def refuse_instead(self, sequence: int) -> None:
        """Raise FollowerError when an operator's statement may have run in the place of this event's."""
        if self.intent is not None and self.intent.sequence == sequence and self.intent.instead:
            raise FollowerError(
                f"a statement of --instead was about to run in the place of sequence {sequence}: decide again with the"
                f" same file; {self.forget_intent}"
            )

    def withdraw(self) -> None:
        """Delete the intent of a statement that failed: what changes from now on is not its doing."""
        self.intent = None
        self._write(self._tables.delete_intent(), ResultCheck(about="the intent"))

    def _write(self, sql: str, check: ResultCheck) -> None:
        with self._gtids.hidden():
            self._pipe.put(sql, check)
        self._pipe.settle()


def open_own_tables(pipe: Pipe, gtids: Gtids, tables: PositionTables) -> OwnTables:
    """Create what is missing of them, and read them."""
    with gtids.hidden():
        for sql in tables.create():
            pipe.put(sql, ResultCheck(about="creating the consumer's own tables"))
        if not pipe.ask(tables.read_chained()):
            pipe.put(tables.chain(), ResultCheck(about="changing the key of the consumer's own table"))
    ((*mark,),) = pipe.ask(tables.read())
    ((link,),) = pipe.ask(tables.read_link())
    intents = pipe.ask(tables.read_intent())
    slots = _slots(pipe.ask(tables.read_slots()))
    return OwnTables(pipe, gtids, tables, mark_from(mark), link, Intent(*intents[0]) if intents else None, slots)


def _slots(rows: Iterable[Sequence[Any]]) -> dict[int, Slot]:
    return {number: Slot(first, mark_from(mark)) for number, first, *mark in rows}


def position_of(mark: Mark) -> str:
    """Say in errors which position was to be written."""
    return f"the position of sequence {mark.sequence}"
