"""Copies one range of one table: its rows and the mark that they are there are one transaction of the follower.

A range is read whenever it may be, by whoever it may be, in a snapshot of its own: what is written meanwhile is mended
afterwards, from the topic. Whoever copies a range a second time waits for its mark, and finds it done.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, replace

from cdc_consumer.copy import moment
from cdc_consumer.copy.copy_tables import CopyTables
from cdc_consumer.copy.profile import CopyProfile
from cdc_consumer.copy.rows.lines import LeaderRows, Pace
from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.parity.model import Shape, TableName
from cdc_consumer.parity.rows.ranges import Range
from cdc_consumer.parity.servers.connection import MOVED
from cdc_consumer.parity.servers.pair import LeaderConnection
from cdc_consumer.sql.server_errors import LOCKED
from shared.errors import CdcError, ServerGoneError, TableMovedError, causes
from shared.mysql import MySQLError, error_number, error_text, is_link_error

logger = logging.getLogger(__name__)

#: how often a range is repeated at once for that reason
REPEATS = 5


@dataclass(frozen=True, slots=True)
class CopyTask:
    """Names one range of one table that is to be copied."""

    shape: Shape
    number: int
    part: Range
    #: a guess
    expected: int
    #: a table without a key is read under a lock: it was written while it was read without one
    locked: bool = False
    #: where it is made on the follower; None for under its own name
    into: TableName | None = None

    @property
    def made(self) -> Shape:
        """Return the same table as it is on the follower."""
        return self.shape if self.into is None else replace(self.shape, name=self.into)


@dataclass(frozen=True, slots=True)
class CopySetup:
    """Holds what all tasks of a copy share."""

    profile: CopyProfile
    #: variables of the follower's session, as SQL
    settings: tuple[tuple[str, str], ...]
    #: whether the follower takes LOAD DATA LOCAL
    local_files: bool
    #: time.time() at which tasks give back what they have not begun
    until: float


@dataclass(frozen=True, slots=True)
class Copied:
    """Tells what became of a task."""

    task: CopyTask
    rows: int = 0
    seconds: float = 0.0
    #: why it could not be copied, "" when it could
    error: str = ""
    #: a server does not answer, or a lock was not to be had: trying again may help
    gone: bool = False
    #: the table is not what it was
    moved: bool = False

    @property
    def counts(self) -> tuple[int, int]:
        """Return how many rows were copied, and how many tasks that was."""
        return self.rows, 1


class _Worker:
    """Keeps what a thread, or one of Spark's processes, holds for its next task."""

    def __init__(self, setup: CopySetup) -> None:
        self.setup = setup
        limits = setup.profile.limits
        self.leader = LeaderConnection(setup.profile.leader, statement_seconds=limits.statement_seconds)
        self.pace = Pace(limits, LeaderConnection(setup.profile.leader))
        self._writer: Writer | None = None

    def writer(self) -> Writer:
        if self._writer is None:
            setup = self.setup
            self._writer = Writer(setup.profile.follower, dict(setup.settings), local_files=setup.local_files)
        return self._writer

    def drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def close(self) -> None:
        self.leader.close()
        self.pace.leader.close()
        self.drop_writer()


_kept = threading.local()


def run(task: CopyTask, setup: CopySetup) -> Copied:
    """Copy one range. Never raises what a retry would not mend: an error is part of what is returned."""
    if time.time() > setup.until:
        return Copied(task)
    worker, began = _worker(setup), time.monotonic()
    try:
        return Copied(task, _repeated(task, worker), time.monotonic() - began)
    except (MySQLError, OSError) as error:
        words, number = f"the follower {setup.profile.follower}: {error_text(error)}", error_number(error)
        gone = is_link_error(error) or number in LOCKED
        return Copied(task, error=f"{task.shape.name}: {words}", gone=gone, moved=number in MOVED)
    except CdcError as error:
        gone = isinstance(error, ServerGoneError) or error_number(error.__cause__ or error) in LOCKED
        moved = isinstance(error, TableMovedError)
        return Copied(task, error=f"{task.shape.name}: {causes(error)}", gone=gone, moved=moved)


def close_worker() -> None:
    """Close the connections this thread keeps for its next task."""
    found: _Worker | None = getattr(_kept, "worker", None)
    if found is not None:
        found.close()
        del _kept.worker


def _worker(setup: CopySetup) -> _Worker:
    found: _Worker | None = getattr(_kept, "worker", None)
    if found is None or found.setup.profile != setup.profile:
        close_worker()
        found = _kept.worker = _Worker(setup)
    return found


def _repeated(task: CopyTask, worker: _Worker) -> int:
    """Copy the range; begin its transaction anew where the follower has ended it for a lock's sake."""
    for _ in range(REPEATS):
        try:
            return _copy(task, worker)
        except MySQLError as error:
            if error_number(error) not in LOCKED:
                raise
            logger.info("%s: the follower undid a range, which is repeated: %s", task.shape.name, error_text(error))
    return _copy(task, worker)


def _copy(task: CopyTask, worker: _Worker) -> int:
    """Copy the range in one transaction; return its rows, 0 when they were there before."""
    profile = worker.setup.profile
    tables = CopyTables(profile.follower.system_database, profile.topic.name)
    name, writer = task.shape.name, worker.writer()
    try:
        writer.run("BEGIN")
        if writer.rows(tables.take_range(name, task.number)) != [(1,)]:
            writer.run("ROLLBACK")
            return 0

        def fill() -> int:
            lines = LeaderRows(
                task.shape, task.part, worker.leader, worker.pace, by_load=worker.setup.local_files,
                room=writer.room(task.made),
            )  # fmt: skip
            return writer.fill(task.made, lines)

        if task.shape.key:
            copied = moment.snapshot(worker.leader, fill)
        else:
            copied, begin, until = moment.shown(worker.leader, name, fill, locked=task.locked)
            writer.expect(tables.place_table(name, begin, until), 1)
        writer.expect(tables.mark_range(name, task.number, copied), 1)
        writer.run("COMMIT")
    except BaseException:
        # whatever state its transaction is in, this ends it
        worker.drop_writer()
        worker.leader.close()
        raise
    return copied
