"""The topic's events as transactions: repeats are dropped, a gap or a mixture is an error; pure."""

from __future__ import annotations

from typing import NamedTuple

from shared.errors import SequenceError, TopicLinkError
from shared.events import Event, Heartbeat, Transaction

#: what to do where the topic does not have what follows
ANOTHER_TOPIC = (
    'give both profiles another topic name and the producer database.start = "file:offset", the leader\'s position that'
    " the follower's table position has (README, Limits); or load the follower anew from a topic that is whole"
)


class Step(NamedTuple):
    """Puts one event in its place."""

    event: Event
    #: topic offset
    offset: int
    #: the first and the last operation of its transaction; a Heartbeat is neither
    first: bool
    last: bool


class Transactions:
    """Follows the events of a topic from one point between two transactions."""

    def __init__(self, sequence: int, gaps: bool = False, several: bool = True) -> None:
        """`sequence` is the last one applied, -1 for none; with `gaps` what is between two events is in other topics.

        Whoever reads some topics only sees by other means that none of their events is lost. `several` says that the
        topics of a producer with routes are read as one.
        """
        self.sequence = sequence
        self._several = several
        self._gaps = gaps
        self._open: tuple[str, Transaction] | None = None

    @property
    def inside(self) -> bool:
        """Is true between the first and the last event of a transaction."""
        return self._open is not None

    def accept(self, event: Event, offset: int) -> Step | None:
        """Return the event's place, or None when it says nothing new. Raises SequenceError.

        A repeat is dropped whatever it holds: a topic may deliver again what it delivered before.
        """
        sequence = event.sequence
        if isinstance(event.operation, Heartbeat):
            if event.operation.routed and not self._several:
                raise TopicLinkError(f"from offset {offset} on the topic's producer writes several topics: reading all")
            if sequence > self.sequence:
                if not self._gaps:
                    raise self._gap(sequence, offset, expected=self.sequence)
                if not self.inside:
                    self.sequence = sequence
            # inside a transaction it is not a place to continue from
            return Step(event, offset, False, False) if sequence == self.sequence and not self.inside else None
        if sequence <= self.sequence:
            return None
        if sequence > self.sequence + 1 and not self._gaps:
            raise self._gap(sequence, offset, expected=self.sequence + 1)
        assert event.transaction is not None  # decode refuses an operation without it
        place = (event.position.file, event.transaction)
        first = self._open is None
        if self._open is not None and self._open != place:
            raise SequenceError(
                f"topic offset {offset} (sequence {sequence}) begins the transaction at {event.position} before the"
                f" one at {self._open[0]}:{self._open[1].begin} has ended: the topic has lost its end; load the"
                " follower anew from a topic that is whole"
            )
        last = event.end is not None
        self._open = None if last else place
        self.sequence = sequence
        return Step(event, offset, first, last)

    def _gap(self, sequence: int, offset: int, expected: int) -> SequenceError:
        return SequenceError(
            f"topic offset {offset} holds sequence {sequence} where {expected} must follow:"
            f" the topic has lost {sequence - expected} events, and what they changed is not known, so no decision can"
            f" stand for them; {ANOTHER_TOPIC}"
        )
