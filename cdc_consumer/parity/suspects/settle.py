"""Decides by fence and settle which suspects are equal after all, which are proven different, and which stay undecided.

One round, for some thousand suspects at a time:

    before   a position of the leader, up to which its rows show everything
    L        the leader's rows
    fence    the leader's position: whatever L shows was written before it
    F        the follower's rows and position in one snapshot, once it has reached the fence
    L'       the leader's rows again
    after    the leader's position

F equal to L or L' is EQUAL. L equal to L' and F neither: a follower that is right shows L, unless the row was changed
after L and changed back before L', or its change is in the binlog and shows neither in L nor in L' yet. No event of the
row in the topic between before and after is the proof. A row that is written all the time, or whose commit hangs, is
judged by its last image in the topic, see hot.py.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cdc_consumer.parity.model import Evidence, Key, Shape
from cdc_consumer.parity.run_model import Round
from cdc_consumer.parity.servers.connection import Select
from cdc_consumer.parity.servers.pair import Pair, Visible
from cdc_consumer.parity.state import State, Suspect
from cdc_consumer.parity.suspects.hot import Hot
from cdc_consumer.parity.suspects.rows_by_key import BothSides, RowsByKey, Seen
from cdc_consumer.parity.witness.history import History
from shared.errors import AuditError, EventError, ServerGoneError, TableMovedError, TopicError
from shared.events import Position
from shared.recovery import sleep

#: suspects that share one fence
GROUP = 5000
#: of them, how many whole rows are held at a time
ROWS = 500
#: rounds after which a suspect stays undecided
ROUNDS = 10
#: rounds after which a row that keeps changing is judged by its last image in the topic
HOT_ROUNDS = 2
#: seconds of rest after the first round, twice as long after the second...; and at most
REST, LONGEST_REST = 0.05, 2.0

NO_TOPIC = "without [topic] in the profile nothing tells whether it wrote this row"
BUSY = "the leader kept writing"
KEPT_CHANGING = f"it changed in each of {ROUNDS} rounds, and the topic does not tell its value"
TOO_LONG = "the row does not fit into one packet: raise max_allowed_packet on both servers"


@dataclass(frozen=True, slots=True)
class Interval:
    """Holds the leader's positions around one look at both sides."""

    visible: Visible
    fence: Position
    after: Position
    #: the follower's in its snapshot
    follower: Position

    @property
    def before(self) -> Position:
        """Return the position up to which the leader's rows show everything."""
        return self.visible.position

    @property
    def idle(self) -> bool:
        """Tell whether the leader's rows show all that was written before the end."""
        return self.before == self.after

    @property
    def in_order(self) -> bool:
        return self.before <= self.fence <= self.follower <= self.after

    def evidence(self, rounds: int) -> Evidence:
        proof: Literal["no event", "idle"] = "idle" if self.idle else "no event"
        return Evidence(proof, str(self.before), str(self.fence), str(self.after), str(self.follower), rounds)


class _Looks(NamedTuple):
    """What was seen of one table: twice of the leader's rows, and of the follower's in between."""

    first: Seen
    follower: Seen
    second: Seen

    def rests(self, key: Key) -> bool:
        """Tell whether the leader's row was the same at both looks."""
        return self.first.get(key) == self.second.get(key)


class Settlement:
    """Settles the suspects of a run, round by round."""

    def __init__(
        self, state: State, tables: Sequence[RowsByKey], pair: Pair, history: History | None, fence_seconds: float
    ) -> None:
        """`tables` read the rows of each table, by the index the suspects name it with."""
        self._state = state
        self._tables = tables
        self._pair = pair
        self._history = history
        self._hot = None if history is None else Hot(pair, history, fence_seconds)
        self._seconds = fence_seconds
        #: the follower did not reach the last fence
        self._stalled = False
        self._stopped: Callable[[], bool] = lambda: False
        #: seconds spent waiting for the follower
        self._waited = 0.0
        #: tables whose definition changed while they were settled
        self.moved: dict[int, str] = {}

    def rounds(self, began: float, stopped: Callable[[], bool], tell: Callable[[Round], None]) -> None:
        """Settle until nothing is open, nothing more can be told, or `stopped`; `tell` hears of every round."""
        self._stopped = stopped
        for number in range(1, ROUNDS + 1):
            suspects = self._state.count("open")
            if not suspects or stopped():
                return
            equal, proven, self._waited = self._state.count("equal"), self._state.count("proven"), 0.0
            self._round(number)
            still = self._state.count("open")
            equal, proven = self._state.count("equal") - equal, self._state.count("proven") - proven
            tell(Round(number, time.monotonic() - began, suspects, equal, proven, still, self._waited))
            if still and number < ROUNDS:
                sleep(min(REST * 2 ** (number - 1), LONGEST_REST), stopped)

    def _round(self, number: int) -> None:
        """Look at every open suspect once."""
        last = 0
        while (group := self._state.open_suspects(last, GROUP)) and not self._stopped():
            last = group[-1].id
            by_table: dict[int, list[Suspect]] = defaultdict(list)
            for suspect in group:
                suspect.rounds = number
                by_table[suspect.shape].append(suspect)
            self._try(by_table)
            if number == ROUNDS and not self._stopped():
                self._end(group)

    def _try(self, by_table: Mapping[int, list[Suspect]]) -> None:
        """Settle what can be read, each table alone when one of several cannot."""
        try:
            self._settle(by_table)
        except ServerGoneError:
            raise
        except AuditError as error:
            for shape, suspects in by_table.items():
                still = [each for each in suspects if each.state == "open"]
                if len(by_table) > 1 and still:
                    self._try({shape: still})
                elif still:
                    self._end(still, str(error))
                    if isinstance(error, TableMovedError):
                        self.moved[shape] = str(error)

    def _end(self, suspects: Sequence[Suspect], reason: str = "") -> None:
        """Nothing more can be told of those that are open, for this reason or the one found last."""
        for suspect in suspects:
            if suspect.state == "open":
                suspect.state, suspect.reason = "undecided", reason or suspect.reason or KEPT_CHANGING
        self._state.settle([each for each in suspects if each.state == "undecided"], [])

    def _settle(self, by_table: Mapping[int, list[Suspect]]) -> None:
        everything = [each for suspects in by_table.values() for each in suspects]
        leader, follower = self._pair.leader, self._pair.follower
        visible = leader.visible()
        first = self._look(by_table, leader.rows)
        fence = leader.position()
        if not self._reach(fence):
            if not self._stopped():
                self._end(everything, self._late(fence))
            return
        at, rows = follower.frozen(lambda select: (follower.applied(select).position, self._look(by_table, select)))
        second = self._look(by_table, leader.rows)
        assert at is not None  # it has reached the fence
        interval = Interval(visible, fence, leader.position(), at)
        if not interval.in_order:
            self._end(everything, _strange(interval))
            return
        for shape, suspects in by_table.items():
            self._judge(shape, suspects, _Looks(first[shape], rows[shape], second[shape]), interval)

    def _reach(self, fence: Position) -> bool:
        """Wait for the follower; but not again for each group when it does not move."""
        began = time.monotonic()
        seconds = 0.0 if self._stalled else self._seconds
        reached = self._pair.wait_until_applied(fence, seconds, self._stopped)
        self._waited += time.monotonic() - began
        self._stalled = reached is None
        return reached is not None

    def _late(self, fence: Position) -> str:
        return (
            f"the follower did not reach {fence} within {self._seconds:g} s (it is at"
            f" {self._pair.follower.applied().position or 'its beginning'}): is the consumer running?"
        )

    def _look(self, by_table: Mapping[int, list[Suspect]], select: Select) -> dict[int, Seen]:
        return {shape: self._tables[shape].look(select, keys_of(found)) for shape, found in by_table.items()}

    def _judge(self, shape: int, suspects: Sequence[Suspect], looks: _Looks, interval: Interval) -> None:
        """Decide what one look at a table tells of its suspects."""
        table = self._tables[shape]
        candidates: list[Suspect] = []
        hot: list[Suspect] = []
        for suspect in suspects:
            _decide(suspect, looks)
            if suspect.state == "open":
                (candidates if looks.rests(suspect.key) else hot).append(suspect)
        # a table without a key is read in one go
        for part in _parts(candidates, ROWS if table.shape.key else GROUP):
            rows = table.rows(part, looks.first, looks.follower, self._pair)
            touched = set() if interval.idle else self._touched(rows, part, interval)
            hot += [each for each in part if each.id in touched]
            self._prove([each for each in part if each.id not in touched], rows, interval)
        if self._hot is not None and table.shape.key:
            for part in _parts([each for each in hot if each.rounds > HOT_ROUNDS], ROWS):
                self._judge_hot(self._hot, part, table.shape)
        self._state.settle([each for each in suspects if each.state != "proven"], [])

    def _prove(self, suspects: Sequence[Suspect], rows: BothSides, interval: Interval) -> None:
        found = []
        for suspect in suspects:
            difference = rows.difference(suspect.key, interval.evidence(suspect.rounds))
            if difference is not None:
                suspect.state = "proven"
                found.append((suspect, difference))
        self._state.settle([suspect for suspect, _ in found], found)

    def _judge_hot(self, hot: Hot, suspects: Sequence[Suspect], shape: Shape) -> None:
        try:
            found = hot.judge(suspects, shape)
        except (TopicError, EventError) as error:
            for suspect in suspects:
                suspect.reason = str(error)
            return
        self._state.settle([suspect for suspect, _ in found], found)

    def _touched(self, rows: BothSides, suspects: Sequence[Suspect], interval: Interval) -> set[int]:
        """Ids of the suspects that may have been written meanwhile, as far as anybody can tell."""
        if self._history is None:
            for suspect in suspects:
                suspect.reason = f"{interval.visible.doubt or BUSY}, and {NO_TOPIC}"
            return {suspect.id for suspect in suspects}
        table = rows.shape.name
        keys = {suspect.id: rows.topic_key(suspect.key) for suspect in suspects}
        wanted = {table: {key for key in keys.values() if key is not None}}
        try:
            written = self._history.touched(wanted, interval.before, interval.after, self._seconds).keys[table]
        except (TopicError, EventError) as error:
            for suspect in suspects:
                suspect.reason = ", and ".join(filter(None, [interval.visible.doubt, str(error)]))
            return set(keys)
        for suspect in suspects:
            suspect.reason = interval.visible.doubt and f"{interval.visible.doubt}, and it wrote this row there"
        return {id for id, key in keys.items() if key is None or key in written}


def _decide(suspect: Suspect, looks: _Looks) -> None:
    """Settle a suspect that is equal to one of the leader's rows, or that cannot be compared at all."""
    first, follower, second = (seen.get(suspect.key) for seen in looks)
    if "" in (first, follower, second):
        suspect.state, suspect.reason = "undecided", TOO_LONG
    elif follower in (first, second):
        suspect.state = "equal"


def keys_of(suspects: Sequence[Suspect]) -> list[tuple[str, ...]]:
    """Return the keys of suspects."""
    return [suspect.key for suspect in suspects]


def _parts(suspects: Sequence[Suspect], size: int) -> Iterator[Sequence[Suspect]]:
    for start in range(0, len(suspects), size):
        yield suspects[start : start + size]


def _strange(interval: Interval) -> str:
    return (
        f"the leader's binlog went from {interval.before} to {interval.after} while the follower was at"
        f" {interval.follower}: it was reset, or [leader] is not the leader of this follower"
    )
