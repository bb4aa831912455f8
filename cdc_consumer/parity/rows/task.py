"""What a Spark task does: compare one range of one table with connections its worker process keeps."""

from __future__ import annotations

import time
from dataclasses import dataclass

from cdc_consumer.parity.model import Shape
from cdc_consumer.parity.profile import ParityProfile
from cdc_consumer.parity.rows import copies
from cdc_consumer.parity.rows.leaves import Compared, Leaves
from cdc_consumer.parity.rows.ranges import Range, TableQueries
from cdc_consumer.parity.servers.pair import Pair, open_pair
from cdc_consumer.parity.servers.throttle import Throttle
from shared.errors import CdcError, ServerGoneError, TableMovedError, causes


@dataclass(frozen=True, slots=True)
class Task:
    """Names one range of one table that is to be compared."""

    number: int
    shape: Shape
    part: Range
    expected_rows: int
    #: SQL that narrows the rows, "" for all
    where: str
    leaf_rows: int
    #: where the range begins and ends in the table's key space: 0.0 to 1.0
    place: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Setup:
    """Holds what all tasks of a wave share."""

    profile: ParityProfile
    #: tasks that run at the same time
    workers: int
    #: time.time() at which tasks give back what is left, so that the driver can keep what is known
    until: float


@dataclass(slots=True)
class Outcome:
    """Tells what became of a task."""

    task: Task
    compared: Compared
    #: what was not read yet, None when all was
    rest: Range | None = None
    #: why it could not be read, "" when it could
    error: str = ""
    #: the table is not what it was when the audit began
    moved: bool = False
    #: a server does not answer: nothing was found out, and all is left
    gone: bool = False
    seconds: float = 0.0

    @property
    def counts(self) -> tuple[int, int]:
        """Return how many rows were compared and suspects found."""
        return self.compared.leader_rows, len(self.compared.suspects)


#: suspects after which a task gives back what is left: memory stays flat where everything differs
MOST_SUSPECTS = 10_000

#: of this process; Spark uses a worker for many tasks
kept_pairs: dict[ParityProfile, Pair] = {}


def run(task: Task, setup: Setup) -> Outcome:
    """Never raises what a retry would not mend: an error is part of the outcome."""
    outcome = Outcome(task, Compared(), rest=task.part)
    if time.time() > setup.until:
        return outcome
    began = time.monotonic()
    pair = _pair(setup.profile)
    try:
        if pair.leader.take_slot(setup.until) and pair.follower.take_slot(setup.until):
            outcome.rest = _compare(task, setup, pair, outcome)
    except ServerGoneError as error:
        return Outcome(task, Compared(), rest=task.part, error=causes(error), gone=True)
    except CdcError as error:
        outcome.rest, outcome.error, outcome.moved = None, causes(error), isinstance(error, TableMovedError)
    finally:
        pair.leader.free_slot()
        pair.follower.free_slot()
    outcome.seconds = time.monotonic() - began
    return outcome


def _pair(profile: ParityProfile) -> Pair:
    if profile not in kept_pairs:
        kept_pairs[profile] = open_pair(profile, with_slots=True)
    return kept_pairs[profile]


def _compare(task: Task, setup: Setup, pair: Pair, outcome: Outcome) -> Range | None:
    """What is left of the range."""
    queries = TableQueries(task.shape, task.where)
    if not task.shape.key:
        outcome.compared = _copies(queries, pair)
        return None
    throttle = Throttle(setup.profile.limits, pair, 1 / setup.workers)
    with Leaves(queries, pair, task.leaf_rows) as leaves:
        before = 0
        for rest in leaves.compare(task.part, task.expected_rows, outcome.compared):
            rows, before = outcome.compared.leader_rows - before, outcome.compared.leader_rows
            full = len(outcome.compared.suspects) > MOST_SUSPECTS
            if full or not throttle.allows(rows) or time.time() > setup.until:
                return rest
    return None


def _copies(queries: TableQueries, pair: Pair) -> Compared:
    """The table is read in one go: when a link breaks, from its beginning once more."""
    try:
        copies.compare(queries, pair, found := Compared())
    except ServerGoneError:
        copies.compare(queries, pair, found := Compared())
    return found
