"""Runs the tasks of a copy: in threads of this process, or by Spark under spark-submit."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cdc_consumer.copy.rows.lines import Pace
from cdc_consumer.copy.rows.task import Copied, CopySetup, CopyTask, close_worker, run
from shared.errors import FollowerError

if TYPE_CHECKING:
    from cdc_consumer.parity.spark.context import Item, Result, Tick
    from cdc_consumer.parity.spark.scan import Cluster

logger = logging.getLogger(__name__)

#: rows below which Spark would take longer to start than they take to copy
FEW_ROWS = 100_000
#: seconds between two looks at how far the tasks are
LOOK_SECONDS = 0.5
#: hears of each task that has ended; what it raises ends the rest
Heard = Callable[[Copied], None]
#: hears now and then how many rows were read so far; what it raises ends the rest
RowsTick = Callable[[int], None]


class Runner(Protocol):
    """Runs tasks, several at the same time."""

    def run(self, tasks: Sequence[CopyTask], setup: CopySetup, heard: Heard, tick: RowsTick) -> None: ...


class Threads:
    """Runs tasks in threads of this process: the servers do the work."""

    def run(self, tasks: Sequence[CopyTask], setup: CopySetup, heard: Heard, tick: RowsTick) -> None:
        """Run all tasks; this thread alone calls `heard` and `tick`. Tasks under way end before an error does."""
        before = Pace.read
        Pace.ending.clear()
        waiting: queue.SimpleQueue[CopyTask] = queue.SimpleQueue()
        done: queue.SimpleQueue[Copied | BaseException | None] = queue.SimpleQueue()
        for task in tasks:
            waiting.put(task)
        count = min(setup.profile.limits.connections, len(tasks))
        threads = [threading.Thread(target=_work, args=(waiting, done, setup), daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        left = count
        try:
            while left:
                try:
                    found = done.get(timeout=LOOK_SECONDS)
                except queue.Empty:
                    tick(Pace.read - before)
                    continue
                if isinstance(found, BaseException):
                    raise found
                if found is None:
                    left -= 1
                else:
                    heard(found)
        finally:
            Pace.ending.set()
            for thread in threads:
                thread.join()


def _work(
    waiting: queue.SimpleQueue[CopyTask], done: queue.SimpleQueue[Copied | BaseException | None],
    setup: CopySetup,
) -> None:  # fmt: skip
    try:
        while not Pace.ending.is_set():
            done.put(run(waiting.get_nowait(), setup))
    except queue.Empty:
        pass
    except BaseException as error:
        done.put(error)
    finally:
        close_worker()
        done.put(None)


class OnSpark:
    """Runs tasks on the cluster that spark-submit names, or on cores of this machine; few rows in threads."""

    def __init__(self, stack: ExitStack, log: Path) -> None:
        """`stack` ends what was begun; `log` gets what Java writes, which is started when it is needed."""
        self._stack = stack
        self._log = log
        self._spark: Cluster | None = None
        #: what all tasks so far have counted: rows, and tasks
        self._counts = 0, 0

    def run(self, tasks: Sequence[CopyTask], setup: CopySetup, heard: Heard, tick: RowsTick) -> None:
        """Run all tasks; `heard` is called when all have ended."""
        if self._spark is None and sum(task.expected for task in tasks) < FEW_ROWS:
            Threads().run(tasks, setup, heard, tick)
            return
        spark = self._begin(setup.profile.limits.connections)
        before, _ = self._counts

        def seen(rows: int, count: int) -> None:
            self._counts = rows, count
            tick(rows - before)

        for found in spark.map(partial(run, setup=setup), tasks, seen):
            heard(found)

    def _begin(self, cores: int) -> Cluster:
        if self._spark is None:
            self._spark = _start(cores, self._log)
            self._stack.callback(self._spark.stop)
            logger.info("Spark %s runs the tasks, on %s", self._spark.version, self._spark.master)
        return self._spark

    def lend(self, cores: int, log: Path) -> Cluster:
        """Return the same Spark for an audit: one process has one. Its end is not the audit's to decide."""
        return Lent(self._begin(cores), self._counts)


class Lent:
    """Lends a cluster that has run tasks before: it counts anew, and goes on when it is stopped."""

    def __init__(self, cluster: Cluster, counted: tuple[int, int]) -> None:
        self._cluster = cluster
        self._counted = counted
        self.master, self.version, self.java = cluster.master, cluster.version, cluster.java
        self.workers = cluster.workers

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], tick: Tick) -> list[Result]:
        """Run tasks, see `Cluster`."""
        first, second = self._counted
        return self._cluster.map(function, items, lambda one, two: tick(one - first, two - second))

    def parquet(self, differences: Path, folder: Path) -> None:
        """Write differences, see `Cluster`."""
        self._cluster.parquet(differences, folder)

    def stop(self) -> None:
        """Leave it running."""


def _start(cores: int, log: Path) -> Cluster:
    try:
        from cdc_consumer.parity.spark.context import Spark
    except ModuleNotFoundError as error:
        if error.name != "pyspark":
            raise
        raise FollowerError("tasks of Spark need it; install it with: pip install 'mysql-cdc[parity]'") from None
    return Spark(cores, log)
