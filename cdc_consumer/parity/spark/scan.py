"""Makes the first pass: Spark compares every range of every table in waves, and what differs becomes a suspect."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from cdc_consumer.parity.model import Shape
from cdc_consumer.parity.profile import ParityProfile
from cdc_consumer.parity.rows.task import Outcome, Setup, Task, run
from cdc_consumer.parity.servers.throttle import window_closes, window_opens
from cdc_consumer.parity.spark.context import Item, Result, Tick
from cdc_consumer.parity.state import State
from shared.errors import ServerGoneError

#: seconds after which the tasks of a wave give back what they have not read, so that what is known can be kept: of the
#: first, and at most; one in between takes as long as all before it
WAVE_SECONDS = (5.0, 60.0)
#: waves in a row that may find nothing to do because a server is too busy
IDLE_WAVES = 20


class Cluster(Protocol):
    """Runs tasks, as Spark does."""

    master: str
    version: str
    java: str
    #: tasks that run at the same time
    workers: int

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], tick: Tick) -> list[Result]: ...

    def parquet(self, differences: Path, folder: Path) -> None: ...

    def stop(self) -> None: ...


class Scan:
    """Reads the open parts of a run."""

    def __init__(
        self,
        profile: ParityProfile,
        state: State,
        shapes: Sequence[Shape],
        where: str,
        leaf_rows: int,
    ) -> None:
        self._profile = profile
        self._state = state
        self._shapes = shapes
        self._where = where
        self._leaf_rows = leaf_rows
        #: tables that changed their definition, and the server's words
        self.moved: dict[int, str] = {}

    def run(self, spark: Cluster, stopped: Callable[[], bool], tick: Tick) -> None:
        """Compare until nothing is open or `stopped`; `tick` hears of rows and suspects in this process so far."""
        idle, began = 0, time.monotonic()
        while not stopped() and idle < IDLE_WAVES:
            tasks = self._tasks()
            if not tasks:
                return
            if not self._wait_for_window(stopped):
                until = time.time() + _wave_seconds(time.monotonic() - began)
                compare = partial(run, setup=Setup(self._profile, spark.workers, until))
                outcomes = spark.map(compare, [task for _, task in tasks], lambda *seen: _tick(tick, stopped, seen))
                tables = {task.number: table for table, task in tasks}
                progress = self._keep([(tables[outcome.task.number], outcome) for outcome in outcomes])
                idle = 0 if progress else idle + 1

    def _keep(self, outcomes: Sequence[tuple[int, Outcome]]) -> bool:
        """Keep what a wave has found, by table; False when it found nothing at all. Raises ServerGoneError."""
        self._state.keep(outcomes)
        for table, outcome in outcomes:
            if outcome.moved:
                self.moved[table] = outcome.error
            if outcome.gone:
                raise ServerGoneError(outcome.error)
        return any(outcome.compared.leaves or outcome.error for _, outcome in outcomes)

    def _tasks(self) -> list[tuple[int, Task]]:
        """List what is open, each with its table."""
        return [
            (table, Task(number, self._shapes[table], part, expected, self._where, self._leaf_rows, place))
            for number, table, part, expected, place in self._state.open_parts()
        ]

    def _wait_for_window(self, stopped: Callable[[], bool]) -> bool:
        """Sleep until rows may be read; True when it had to."""
        window = self._profile.limits.window
        if window is None or window_closes(window, datetime.now()) is not None:
            return False
        opens = window_opens(window, datetime.now())
        while datetime.now() < opens and not stopped():
            time.sleep(0.5)
        return True


class Stopped(Exception):
    """Tells that the user asked to stop while Spark was running."""


def _wave_seconds(elapsed: float) -> float:
    least, most = WAVE_SECONDS
    return min(max(elapsed, least), most)


def _tick(tick: Tick, stopped: Callable[[], bool], seen: tuple[int, ...]) -> None:
    if stopped():
        raise Stopped
    tick(*seen)
