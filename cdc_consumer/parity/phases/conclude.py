"""Puts together and writes what a run has found: differences.jsonl, repair.sql, run.json, report.html."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime, timezone
from typing import NamedTuple

from cdc_consumer.parity.diagnosis.explain import explained
from cdc_consumer.parity.diagnosis.patterns import Patterns
from cdc_consumer.parity.differences import FILE, without_values, write_difference
from cdc_consumer.parity.model import Difference, Key, Omission, Shape, TableName, TableResult, Undecided
from cdc_consumer.parity.phases.find import settlement_of
from cdc_consumer.parity.phases.plan import AuditPlan, positions
from cdc_consumer.parity.phases.tools import Tools
from cdc_consumer.parity.repair.apply import RepairResult
from cdc_consumer.parity.repair.proof import Proof
from cdc_consumer.parity.repair.run import repair_follower, write_repair, write_schema_repair
from cdc_consumer.parity.report.write import write_report
from cdc_consumer.parity.run_model import Run
from cdc_consumer.parity.spark.scan import Cluster
from cdc_consumer.parity.state import State
from shared.errors import AuditError
from shared.events import Position

#: differences of each table that report.html shows row by row
SHOWN = 200
#: undecided rows that the report names
NAMED = 1000
#: what was found before a repair
BEFORE = "differences-before-repair.jsonl"


class _Differences(NamedTuple):
    """The rows that are proven different: how many, and the first of each table."""

    total: int
    first: list[Difference]
    #: where the follower was when the first of them was proven
    since: Position


def conclude(plan: AuditPlan, state: State, tools: Tools, spark: Cluster) -> Run:
    """Write what was found, repair when that was asked for, and sum up. Raises CdcErrors."""
    differences, repaired = _write_differences(plan, state, tools), ""
    follower = tools.profile.follower
    if differences.total and tools.options.values:
        proof = _proof(differences.since, tools)
        write_repair(tools.folder, follower, follower.system_database, plan.shapes, proof)
        if tools.options.repair and not tools.stopped():
            repaired = _repair(plan, state, tools, proof)
            differences = _write_differences(plan, state, tools)
    schemas = plan.definitions.leader, plan.definitions.follower
    write_schema_repair(tools.folder, follower, schemas, plan.schema_differences(tools))
    run = _summary(plan, state, tools, spark, differences, repaired)
    try:
        write_report(run, tools.folder)
    except OSError as error:
        raise AuditError(f"cannot write the report to {tools.folder}: {error.strerror}") from None
    if tools.options.parquet:
        spark.parquet(tools.folder.resolve() / FILE, tools.folder.resolve() / "differences.parquet")
    return run


def _write_differences(plan: AuditPlan, state: State, tools: Tools) -> _Differences:
    """Write every proven difference with what the topic tells of it."""
    # a follower that has applied nothing is proven of nothing
    applied = tools.pair.follower.applied().position or Position("", 0)
    shapes = {shape.name: shape for shape in plan.shapes}
    total, first, since = 0, [], applied
    of_table: Counter[TableName] = Counter()
    with (tools.folder / FILE).open("w", encoding="ascii", newline="\n") as file:
        patterns = Patterns(state.differences())
        for found in explained(state.differences(), patterns, shapes, tools.history, applied):
            difference = found if tools.options.values else without_values(found)
            write_difference(file, difference)
            total, since = total + 1, min(since, Position.parse(found.evidence.follower))
            of_table[difference.table] += 1
            if of_table[difference.table] <= SHOWN:
                first.append(difference)
    return _Differences(total, first, since)


def _proof(since: Position, tools: Tools) -> Proof:
    """Make what tells whether the follower still is as it was proven, seen from where it is now."""
    follower = tools.pair.follower
    ((executed,),) = follower.rows("SELECT @@GLOBAL.gtid_executed")
    mark = follower.applied()
    return Proof(tools.history, since, mark.position or since, follower.still(mark, executed))


def _repair(plan: AuditPlan, state: State, tools: Tools, proof: Proof) -> str:
    """Make the follower like the leader, and settle again what was proven; return what became of it, for people."""
    follower = tools.profile.follower
    result = repair_follower(tools.folder, follower, follower.system_database, plan.shapes, proof, tools.progress.say)
    state.reopen()
    settlement_of(plan, state, tools).rounds(tools.progress.began, tools.stopped, tools.progress.round)
    # differences.jsonl will be written anew
    (tools.folder / FILE).replace(tools.folder / BEFORE)
    return _told(result)


def _told(result: RepairResult) -> str:
    told = f"{result.repaired} rows repaired"
    refused = sum(result.refused.values())
    for number, what in (
        (result.moved, "moved meanwhile"),
        (result.failed, "could not be repaired"),
        (refused, "not tried, for what repair.sql says"),
    ):
        told += f", {number} {what}" if number else ""
    return told


def _results(plan: AuditPlan, state: State) -> list[TableResult]:
    found = [
        state.summarize(number, TableResult(shape.name, excluded=shape.excluded))
        for number, shape in enumerate(plan.shapes)
    ]
    found += [TableResult(each.table, "skipped", each.reason) for each in plan.skipped]
    return sorted(found, key=lambda result: result.table)


def _undecided(plan: AuditPlan, state: State) -> list[Undecided]:
    found = []
    for suspect in state.undecided(NAMED):
        shape = plan.shapes[suspect.shape]
        found.append(Undecided(shape.name, _key(shape, suspect.key), suspect.reason or "the audit was stopped"))
    return found


def _omissions(tools: Tools) -> list[Omission]:
    """Ask for the transactions that were left out; without values also without the SQL that ran in their place."""
    found = tools.pair.follower.omissions()
    if tools.options.values:
        return found
    return [each if each.instead is None else replace(each, instead="withheld") for each in found]


def _key(shape: Shape, key: Key) -> dict[str, str]:
    """Name a suspect: by the columns of its key, or by the hash of a row without one."""
    return dict(zip(shape.key, key, strict=True)) if shape.key else {"row hash": f"x'{key[0]}'"}


def _summary(
    plan: AuditPlan, state: State, tools: Tools, spark: Cluster, differences: _Differences, repaired: str
) -> Run:
    leader, follower = (
        replace(server, ended=ended) for server, ended in zip(plan.servers, positions(tools.pair), strict=True)
    )
    return Run(
        id=tools.folder.name, started=tools.started.isoformat(timespec="seconds"),
        ended=datetime.now(timezone.utc).isoformat(timespec="seconds"), profile=tools.name, plan=plan.digest(tools),
        leader=leader, follower=follower, master=spark.master, spark=spark.version, java=spark.java,
        seconds=tools.progress.seconds, tables=_results(plan, state), differences=differences.first,
        total_differences=differences.total, undecided=_undecided(plan, state), schema=plan.schema_differences(tools),
        rounds=tools.progress.rounds, samples=tools.progress.samples, leaf_milliseconds=state.milliseconds(),
        options=tools.options.shown(), interrupted=tools.stopped(), repair=repaired,
        omissions=_omissions(tools),
    )  # fmt: skip
