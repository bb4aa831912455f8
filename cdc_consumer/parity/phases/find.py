"""Finds what differs: compares all rows, settles the suspects, and begins anew with tables altered meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from cdc_consumer.parity.model import Shape, TableName
from cdc_consumer.parity.phases.plan import AuditPlan, read_definitions
from cdc_consumer.parity.phases.tools import Tools
from cdc_consumer.parity.rows import selftest
from cdc_consumer.parity.rows.plan import tasks
from cdc_consumer.parity.rows.ranges import TableQueries
from cdc_consumer.parity.schema.read import TableRecord, read_tables
from cdc_consumer.parity.servers.connection import ServerConnection
from cdc_consumer.parity.servers.pair import Pair
from cdc_consumer.parity.spark.scan import Cluster, Scan, Stopped
from cdc_consumer.parity.state import State
from cdc_consumer.parity.suspects.rows_by_key import RowsByKey
from cdc_consumer.parity.suspects.settle import Settlement
from shared.errors import AuditError, TableMovedError

#: a follower lacks most of a table when the leader has more times its rows
LACKING = 4
#: how often tables that are altered are begun anew
TRIES = 2

#: number of a table that is not what it was -> what tells so
Moved = Mapping[int, str]


def find(plan: AuditPlan, state: State, tools: Tools, spark: Callable[[], Cluster]) -> AuditPlan:
    """Keep in `state` all that differs; return the plan as it is in the end, with the shapes of altered tables.

    `spark` waits for the cluster to be there: the ranges are found meanwhile. Raises CdcErrors.
    """
    moved = _begin_all(plan, range(len(plan.shapes)), state, tools)
    if tools.options.since is not None:
        _narrow(plan, state, tools, tools.options.since)
    for left in range(TRIES, -1, -1):
        scan = Scan(tools.profile, state, plan.shapes, tools.options.where, tools.sizes.leaf_rows)
        settlement = settlement_of(plan, state, tools)
        try:
            scan.run(spark(), tools.stopped, tools.progress.tick)
            settlement.rounds(tools.progress.began, tools.stopped, tools.progress.round)
        except Stopped:
            break
        moved = {**moved, **scan.moved, **settlement.moved, **_altered(plan, tools.pair)}
        if not moved or tools.stopped():
            break
        if left:
            plan, moved = _begin_anew(plan, moved, state, tools)
        else:
            _give_up(moved, state)
    return plan


def settlement_of(plan: AuditPlan, state: State, tools: Tools) -> Settlement:
    """Make what settles the suspects of a run."""
    # a row may be in --where on one side only: what is suspect is looked at wherever it is
    tables = [RowsByKey(TableQueries(shape)) for shape in plan.shapes]
    return Settlement(state, tables, tools.pair, tools.history, tools.profile.limits.fence_seconds)


def _begin_all(plan: AuditPlan, numbers: Iterable[int], state: State, tools: Tools) -> Moved:
    """Begin with tables; return those that were altered at the same time."""
    moved = {}
    for number in numbers:
        try:
            _begin(plan, number, state, tools)
        except TableMovedError as error:
            moved[number] = str(error)
    return moved


def _begin(plan: AuditPlan, number: int, state: State, tools: Tools) -> None:
    """Put the hash of a table to the test, and cut the table into ranges. Raises TableMovedError."""
    shape, pair = plan.shapes[number], tools.pair
    pair.both(lambda server: selftest.check(shape, server))
    leader, record = (schema.tables[shape.name] for schema in (plan.definitions.leader, plan.definitions.follower))
    server: ServerConnection = pair.follower
    # the leader is not asked for ranges, unless the follower lacks most of the table
    if leader.rows > LACKING * (record.rows + 1):
        record, server = leader, pair.leader
    tools.progress.expected_rows += record.rows
    if not state.planned(number):
        state.plan(number, *tasks(shape, record, server, tools.cores, tools.sizes, tools.options.where))


def _narrow(plan: AuditPlan, state: State, tools: Tools, sequence: int) -> None:
    """Suspect the rows that the topic has written since, instead of all; tables it cannot tell rows of are read whole.

    Raises AuditError without a topic.
    """
    if tools.history is None:
        raise AuditError("--since needs [topic] in the profile: it tells which rows were written")
    touched = tools.history.keys_since(sequence)
    for number, shape in enumerate(plan.shapes):
        whole = shape.name in touched.untold or shape.name.database in touched.ddl
        if not whole:
            state.forget(number)
            state.suspect(number, ((key, 0.0) for key in touched.keys.get(shape.name, ())))


def _begin_anew(plan: AuditPlan, moved: Moved, state: State, tools: Tools) -> tuple[AuditPlan, Moved]:
    """Plan tables anew whose definition changed; return those that cannot rest even now, too."""
    plan = replace(plan, definitions=read_definitions(tools))
    lost, again = {}, []
    for number in moved:
        state.forget(number)
        shape = plan.shape_again(number)
        if isinstance(shape, Shape):
            plan = plan.with_shape(number, shape)
            again.append(number)
            if tools.history is not None:
                tools.history.know(shape)
        else:
            lost[number] = shape
    still = _begin_all(plan, again, state, tools)
    _give_up({**lost, **still}, state)
    return plan, still


def _give_up(moved: Moved, state: State) -> None:
    """Forget what was found of tables that do not rest; they stay undecided."""
    for number, reason in moved.items():
        state.forget(number)
        state.give_up(number, f"schema moved: {reason}")


def _altered(plan: AuditPlan, pair: Pair) -> Moved:
    """Find the tables that are not what they were when they were planned."""
    names = [shape.name for shape in plan.shapes]
    now = pair.both(lambda server: server.use(lambda connection: read_tables(connection, names)))
    before = (plan.definitions.leader.tables, plan.definitions.follower.tables)
    return {
        number: "its definition changed during the audit"
        for number, name in enumerate(names)
        if any(_fingerprint(old, name) != _fingerprint(new, name) for old, new in zip(before, now, strict=True))
    }


def _fingerprint(tables: Mapping[TableName, TableRecord], name: TableName) -> str | None:
    return tables[name].fingerprint if name in tables else None
