"""Fence and settle: which suspects are equal after all, which are proven different, and which stay undecided.

One round, for some thousand suspects at a time:

    before   the leader's position
    L        the leader's rows
    fence    the leader's position again: whatever L shows was written before it
    F        the follower's rows and position in one snapshot, once it has reached the fence
    L'       the leader's rows again
    after    the leader's position

F equal to L or L' is EQUAL. L equal to L' and F neither: a follower that is right shows L, unless the row was changed
after L and changed back before L'. The topic tells: no event of the row between before and after is the proof. A row
that is written all the time is judged by its last image in the topic, see hot.py.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cdc_consumer.parity import fence
from cdc_consumer.parity.history import History
from cdc_consumer.parity.hot import judge_hot
from cdc_consumer.parity.images import Images, Rows, Seen
from cdc_consumer.parity.model import Difference, Evidence, Round
from cdc_consumer.parity.servers import Reader
from cdc_consumer.parity.state import State, Suspect
from cdc_consumer.positions import Mark, mark_from
from shared.errors import HistoryError, TableMovedError
from shared.events import Position

#: suspects that share one fence
GROUP = 5000
#: rounds after which a suspect stays undecided
ROUNDS = 10
#: rounds after which a row that keeps changing is judged by its last image in the topic
HOT_ROUNDS = 2

NO_TOPIC = "the leader kept writing, and without [topic] in the profile nothing tells whether it wrote this row"
KEPT_CHANGING = f"it changed in each of {ROUNDS} rounds, and the topic does not tell its value"
TOO_LONG = "the row does not fit into one packet: raise max_allowed_packet on both servers"


@dataclass(slots=True)
class Interval:
    """The leader's positions around one look at both sides."""

    before: Position
    fence: Position
    after: Position
    #: the follower's in its snapshot
    follower: Mark

    def evidence(self, proof: Literal["no event", "idle"], rounds: int) -> Evidence:
        follower = f"{self.follower.file}:{self.follower.leader_offset}"
        return Evidence(proof, str(self.before), str(self.fence), str(self.after), follower, rounds)


class Settlement:
    """Settles the suspects of a run, round by round."""

    def __init__(
        self, state: State, images: Sequence[Images], leader: Reader, follower: Reader, position_sql: str,
        history: History | None, fence_seconds: float,
    ) -> None:  # fmt: skip
        """`images` read the rows of each table, by the index the suspects name it with."""
        self._state = state
        self._images = images
        self._leader = leader
        self._follower = follower
        self._position_sql = position_sql
        self._history = history
        self._seconds = fence_seconds
        #: tables whose definition changed while they were settled
        self.moved: dict[int, str] = {}

    def rounds(self, began: float, stopped: Callable[[], bool], tell: Callable[[Round], None]) -> None:
        """Settle until nothing is open, nothing more can be told, or `stopped`; `tell` hears of every round."""
        for number in range(1, ROUNDS + 1):
            suspects = self._state.count("open")
            if not suspects or stopped():
                return
            equal, proven = self._state.count("equal"), self._state.count("proven")
            waited = self._round(number, stopped)
            still = self._state.count("open")
            equal, proven = self._state.count("equal") - equal, self._state.count("proven") - proven
            tell(Round(number, time.monotonic() - began, suspects, equal, proven, still, waited))

    def _round(self, number: int, stopped: Callable[[], bool]) -> float:
        """Look at every open suspect once; returns the seconds spent waiting for the follower."""
        waited, last = 0.0, 0
        while group := self._state.open_suspects(last, GROUP):
            last = group[-1].id
            if stopped():
                break
            for suspect in group:
                suspect.rounds = number
            by_table: dict[int, list[Suspect]] = defaultdict(list)
            for suspect in group:
                by_table[suspect.shape].append(suspect)
            try:
                found, seconds = self._settle(by_table, stopped)
            except TableMovedError as error:
                self._give_up(by_table, str(error))
                continue
            waited += seconds
            if number == ROUNDS:
                for suspect in group:
                    if suspect.state == "open":
                        suspect.state = "undecided"
                        suspect.reason = suspect.reason or KEPT_CHANGING
            self._state.settle(group, found)
        return waited

    def _give_up(self, by_table: Mapping[int, list[Suspect]], reason: str) -> None:
        """A definition changed: which of the tables it was, the caller finds out."""
        for shape, suspects in by_table.items():
            self.moved[shape] = reason
            for suspect in suspects:
                suspect.state, suspect.reason = "undecided", reason
            self._state.settle(suspects, [])

    def _settle(
        self, by_table: Mapping[int, list[Suspect]], stopped: Callable[[], bool]
    ) -> tuple[list[tuple[Suspect, Difference]], float]:
        before = fence.leader_position(self._leader)
        first = self._look(by_table, self._leader)
        edge = fence.leader_position(self._leader)
        began = time.monotonic()
        reached = fence.wait_until_applied(self._follower, self._position_sql, edge, self._seconds, stopped)
        waited = time.monotonic() - began
        if reached is None:
            mark = fence.applied(self._follower, self._position_sql)
            for suspect in (each for suspects in by_table.values() for each in suspects):
                suspect.reason = (
                    f"the follower did not reach {edge} within {self._seconds:g} s (it is at"
                    f" {mark.file}:{mark.leader_offset}): is the consumer running?"
                )
                suspect.state = "undecided"
            return [], waited
        with self._follower.frozen() as ask:
            mark = mark_from(ask(self._position_sql)[0])
            ours = {shape: self._images[shape].look(ask, keys_of(suspects)) for shape, suspects in by_table.items()}
        second = self._look(by_table, self._leader)
        interval = Interval(before, edge, fence.leader_position(self._leader), mark)
        found: list[tuple[Suspect, Difference]] = []
        for shape, suspects in by_table.items():
            found += self._judge(shape, suspects, first[shape], ours[shape], second[shape], interval)
        return found, waited

    def _look(self, by_table: Mapping[int, list[Suspect]], reader: Reader) -> dict[int, Seen]:
        return {shape: self._images[shape].look(reader.rows, keys_of(found)) for shape, found in by_table.items()}

    def _judge(
        self, shape: int, suspects: Sequence[Suspect], first: Seen, ours: Seen, second: Seen, interval: Interval
    ) -> list[tuple[Suspect, Difference]]:
        candidates, hot = [], []
        for suspect in suspects:
            one, two, mine = first.get(suspect.key), second.get(suspect.key), ours.get(suspect.key)
            if "" in (one, two, mine):
                suspect.state, suspect.reason = "undecided", TOO_LONG
            elif mine in (one, two):
                suspect.state = "equal"
            elif one == two:
                candidates.append(suspect)
            elif suspect.rounds > HOT_ROUNDS:
                hot.append(suspect)
        images = self._images[shape]
        idle = interval.before == interval.after
        rows = images.rows(candidates, first, ours, self._leader, self._follower)
        if not idle:
            touched = self._touched(rows, candidates, interval)
            hot += [each for each in candidates if each.id in touched and each.rounds > HOT_ROUNDS]
            candidates = [each for each in candidates if each.id not in touched]
        found = []
        for suspect in candidates:
            difference = rows.difference(suspect.key, interval.evidence("idle" if idle else "no event", suspect.rounds))
            if difference is not None:
                suspect.state = "proven"
                found.append((suspect, difference))
        if hot and self._history is not None and images.shape.key:
            found += judge_hot(hot, images, self._history, self._leader, self._follower, self._position_sql)
        return found

    def _touched(self, rows: Rows, suspects: Sequence[Suspect], interval: Interval) -> set[int]:
        """Ids of the suspects that may have been written meanwhile, as far as anybody can tell."""
        if self._history is None:
            for suspect in suspects:
                suspect.reason = NO_TOPIC
            return {suspect.id for suspect in suspects}
        table = rows.shape.name
        keys = {suspect.id: rows.topic_key(suspect.key) for suspect in suspects}
        wanted = {table: {key for key in keys.values() if key is not None}}
        try:
            written = self._history.touched(wanted, interval.before, interval.after, self._seconds).keys[table]
        except HistoryError as error:
            for suspect in suspects:
                suspect.reason = str(error)
            return set(keys)
        return {id for id, key in keys.items() if key is None or key in written}


def keys_of(suspects: Sequence[Suspect]) -> list[tuple[str, ...]]:
    return [suspect.key for suspect in suspects]
