"""Puts together what a run has found, and writes it: differences.jsonl, run.json, report.html."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from cdc_consumer.parity.diagnosis.explain import explained
from cdc_consumer.parity.diagnosis.patterns import Patterns
from cdc_consumer.parity.differences import FILE, without_values, write_difference
from cdc_consumer.parity.model import (
    Difference,
    Round,
    Run,
    SchemaDifference,
    ServerFacts,
    Shape,
    TableName,
    TableResult,
    Undecided,
)
from cdc_consumer.parity.options import Options
from cdc_consumer.parity.progress import Progress
from cdc_consumer.parity.repair.apply import RepairResult
from cdc_consumer.parity.report.write import write_report
from cdc_consumer.parity.rows.plan import Skipped
from cdc_consumer.parity.spark.scan import Cluster
from cdc_consumer.parity.state import State
from cdc_consumer.parity.witness.history import History
from shared.errors import AuditError
from shared.events import Position

#: differences of each table that report.html shows row by row
SHOWN = 200
#: undecided rows that the report names
NAMED = 1000
#: what was found before a repair
BEFORE = "differences-before-repair.jsonl"


class Conclusion:
    """Puts together what a run has found, and writes it."""

    def __init__(self, folder: Path, profile: str, options: Options, state: State, shapes: Sequence[Shape]) -> None:
        """`profile` is the file's name."""
        self._folder = folder
        self._profile = profile
        self._options = options
        self._repair = ""
        self._state = state
        self._shapes = {shape.name: shape for shape in shapes}
        #: number of proven differences
        self.total = 0
        self._shown: list[Difference] = []

    def write_differences(self, history: History | None, applied: Position | None) -> None:
        """Write every proven difference with what the topic tells of it; `applied` is how far the follower is."""
        self.total, self._shown = 0, []
        shown: Counter[TableName] = Counter()
        with (self._folder / FILE).open("w", encoding="ascii", newline="\n") as file:
            patterns = Patterns(self._state.differences())
            # a follower that has applied nothing is proven of nothing
            until = applied or Position("", 0)
            for found in explained(self._state.differences(), patterns, self._shapes, history, until):
                difference = found if self._options.values else without_values(found)
                write_difference(file, difference)
                self.total += 1
                shown[difference.table] += 1
                if shown[difference.table] <= SHOWN:
                    self._shown.append(difference)

    def repaired(self, result: RepairResult) -> None:
        """Keep what was found before, for differences.jsonl will be written anew."""
        (self._folder / FILE).replace(self._folder / BEFORE)
        told = f"{result.repaired} rows repaired"
        for number, what in ((result.moved, "moved meanwhile"), (result.failed, "could not be repaired")):
            told += f", {number} {what}" if number else ""
        self._repair = told

    def results(self, splits: Mapping[int, str], skipped: Sequence[Skipped]) -> list[TableResult]:
        found = [
            self._state.summarize(
                number, TableResult(shape.name, split=splits.get(number, ""), excluded=shape.excluded)
            )
            for number, shape in enumerate(self._shapes.values())
        ]
        found += [TableResult(each.table, "skipped", each.reason) for each in skipped]
        return sorted(found, key=lambda result: result.table)

    def run(
        self, *, plan: str, started: datetime, leader: ServerFacts, follower: ServerFacts, ended: tuple[str, str],
        spark: Cluster, tables: list[TableResult], schema: list[SchemaDifference], rounds: list[Round],
        progress: Progress, interrupted: bool,
    ) -> Run:  # fmt: skip
        """Sum up the whole run; see `Run`."""
        names = list(self._shapes.values())
        undecided = [
            Undecided(names[each.shape].name, _key(names[each.shape], each.key), each.reason or "the audit was stopped")
            for each in self._state.undecided(NAMED)
        ]
        return Run(
            id=self._folder.name, started=started.isoformat(timespec="seconds"),
            ended=datetime.now(timezone.utc).isoformat(timespec="seconds"), profile=self._profile, plan=plan,
            leader=replace(leader, ended=ended[0]), follower=replace(follower, ended=ended[1]), master=spark.master,
            spark=spark.version, java=spark.java, seconds=progress.seconds, tables=tables, differences=self._shown,
            total_differences=self.total, undecided=undecided, schema=schema, rounds=rounds,
            samples=progress.samples, leaf_milliseconds=self._state.milliseconds(), options=self._options.shown(),
            repair=self._repair, interrupted=interrupted,
        )  # fmt: skip

    def write(self, run: Run) -> None:
        try:
            write_report(run, self._folder)
        except OSError as error:
            raise AuditError(f"cannot write the report to {self._folder}: {error.strerror}") from None


def _key(shape: Shape, key: tuple[str, ...]) -> dict[str, str]:
    """What names a suspect: the columns of its key, or the hash of a row without one."""
    return dict(zip(shape.key, key, strict=True)) if shape.key else {"row hash": f"x'{key[0]}'"}
