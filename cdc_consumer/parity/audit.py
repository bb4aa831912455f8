"""Makes a whole audit, step by step: schemas, plan, rows, suspects, evidence, report, repair."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from cdc_consumer.parity.conclusion import Conclusion
from cdc_consumer.parity.definitions import Definitions, define
from cdc_consumer.parity.differences import FILE
from cdc_consumer.parity.folders import choose_folder, discard_unused
from cdc_consumer.parity.model import Round, Run, SchemaDifference, ServerFacts, TableName
from cdc_consumer.parity.options import Options
from cdc_consumer.parity.profile import ParityProfile
from cdc_consumer.parity.progress import Progress
from cdc_consumer.parity.repair.run import repair_follower, write_repair, write_schema_repair
from cdc_consumer.parity.rows import plan, selftest
from cdc_consumer.parity.rows.plan import SIZES, Sizes
from cdc_consumer.parity.rows.ranges import TableQueries
from cdc_consumer.parity.schema.read import TableRecord, read_schema, read_tables
from cdc_consumer.parity.servers.connection import ServerConnection
from cdc_consumer.parity.servers.pair import open_pair
from cdc_consumer.parity.spark.context import Spark
from cdc_consumer.parity.spark.scan import Cluster, Scan, Stopped
from cdc_consumer.parity.state import State
from cdc_consumer.parity.suspects.rows_by_key import RowsByKey
from cdc_consumer.parity.suspects.settle import Settlement
from cdc_consumer.parity.witness.cascades import silent_cascades
from cdc_consumer.parity.witness.history import History
from shared.errors import AuditError, TableMovedError
from shared.filters import DatabaseFilter
from shared.profile_table import expand

#: a follower lacks most of a table when the leader has more times its rows
LACKING = 4


class Audit:
    """One run; its folder holds all it has found."""

    def __init__(
        self, profile: ParityProfile, options: Options, name: str, stopped: Callable[[], bool],
        start_spark: Callable[[int, Path], Cluster] = Spark, sizes: Sizes = SIZES,
    ) -> None:  # fmt: skip
        """`name` is the profile's file, for the report. Raises CdcErrors when it cannot begin."""
        self._start_spark = start_spark
        self._sizes = sizes
        self._profile = profile
        self._options = options
        self._name = name
        self._stopped = stopped
        self._pair = open_pair(profile)
        self._pair.follower.applied()  # refuses a follower without a position before anything else is begun
        self._databases = DatabaseFilter(profile.filters, profile.follower.system_database)
        self._cores = options.cores or os.cpu_count() or 1
        self._progress = Progress(self._pair)
        self._rounds: list[Round] = []

    def run(self, stack: ExitStack) -> tuple[Run, Path]:
        """Do everything; returns what was found and the folder it was written to.

        `stack` ends what was begun for it.
        """
        self._started = datetime.now(timezone.utc)
        beside = stack.enter_context(ThreadPoolExecutor(1))
        reports = expand(self._profile.report.path, "report.path")
        self._folder, self._resumed = choose_folder(reports, self._options.resume, self._started)
        stack.callback(discard_unused, self._folder)
        # Java takes seconds to start; the plan is made meanwhile
        spark = beside.submit(self._start_spark, self._cores, self._folder / "spark.log")
        stack.callback(_stop, spark)
        history = self._open_history(stack)
        self._plan(history)
        stack.callback(self._state.close)
        self._find(spark, history)
        return self._conclude(spark.result(), history), self._folder

    def _conclude(self, spark: Cluster, history: History | None) -> Run:
        """Write what was found, and repair when that was asked for."""
        conclusion = Conclusion(self._folder, self._name, self._options, self._state, self._shapes)
        conclusion.write_differences(history, self._pair.follower.applied().position)
        results = conclusion.results(self._splits, self._skipped)
        if conclusion.total and self._options.values:
            database = self._profile.follower.system_database
            write_repair(self._folder, self._profile.follower, database, self._shapes)
            if self._options.repair and not self._stopped():
                repaired = repair_follower(
                    self._folder, self._profile.follower, database, self._shapes, self._progress.say
                )
                self._state.reopen()
                self._settlement(history).rounds(self._progress.began, self._stopped, self._round)
                conclusion.repaired(repaired)
                conclusion.write_differences(history, self._pair.follower.applied().position)
                results = conclusion.results(self._splits, self._skipped)
        schema = self._of_tables(self._definitions.real)
        both = self._definitions.leader, self._definitions.follower
        write_schema_repair(self._folder, self._profile.follower, both, schema)
        run = conclusion.run(
            plan=self._digest(), started=self._started, leader=self._facts[0], follower=self._facts[1],
            ended=self._positions(), spark=spark, tables=results,
            schema=schema, rounds=self._rounds, progress=self._progress,
            interrupted=self._stopped(),
        )  # fmt: skip
        conclusion.write(run)
        if self._options.parquet:
            spark.parquet(self._folder.resolve() / FILE, self._folder.resolve() / "differences.parquet")
        return run

    # the plan

    def _plan(self, history: History | None) -> None:
        leader_facts, follower_facts = self._pair.both(self._server_facts)
        began = self._positions()
        self._facts = replace(leader_facts, started=began[0]), replace(follower_facts, started=began[1])
        self._definitions = self._define(history)
        leader, follower = self._definitions.leader, self._definitions.follower
        plan.refuse_unknown(self._profile.filters, {*leader.databases, *follower.databases})
        tables = plan.chosen({*leader.tables, *follower.tables}, self._options.tables)
        unclear = [name for name in self._definitions.unclear if name in tables or not self._options.tables]
        self._shapes, self._skipped = plan.shapes(leader, follower, [name for name in tables if name not in unclear])
        self._skipped += [plan.Skipped(name, self._definitions.doubt) for name in unclear]
        if history is not None:
            for shape in self._shapes:
                history.know(shape)
            history.know_cascades(silent_cascades(self._pair.leader))
        if self._options.where:
            plan.check_where(self._options.where, self._shapes, self._pair.follower)
        self._splits: dict[int, str] = {}
        self._state = State(self._folder, self._digest(), self._started.isoformat(), resumed=self._resumed)
        #: tables altered while they were planned, and the server's words
        self._moved: dict[int, str] = {}
        for number, shape in enumerate(self._shapes):
            try:
                self._begin(number, follower.tables[shape.name])
            except TableMovedError as error:
                self._moved[number] = str(error)

    def _define(self, history: History | None) -> Definitions:
        named, limits = self._profile.filters.include_dbs or (), self._profile.limits
        return define(
            lambda server: server.use(lambda connection: read_schema(connection, self._databases, named)),
            self._pair, history, limits.fence_seconds, self._stopped,
        )  # fmt: skip

    def _begin(self, number: int, record: TableRecord) -> None:
        """Trust the hash of a table, and cut it into ranges."""
        self._pair.both(lambda server: selftest.check(self._shapes[number], server))
        self._split(number, record)

    def _split(self, number: int, record: TableRecord) -> None:
        shape = self._shapes[number]
        # the leader is not asked for ranges, unless the follower lacks most of the table
        on_leader = self._definitions.leader.tables[shape.name]
        server: ServerConnection = self._pair.follower
        if on_leader.rows > LACKING * (record.rows + 1):
            record, server = on_leader, self._pair.leader
        self._progress.expected_rows += record.rows
        if self._state.planned(number):
            return
        tasks, method = plan.tasks(shape, record, server, self._cores, self._sizes, self._options.where)
        self._splits[number] = method
        self._state.plan(number, tasks)

    def _digest(self) -> str:
        """Of what is compared and how: runs with the same one can be resumed and compared."""
        facts = (
            [server.uuid for server in self._facts],
            self._shapes,
            self._options.where,
            self._options.since,
            self._sizes,
        )
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def _server_facts(self, server: ServerConnection) -> ServerFacts:
        ((version, uuid),) = server.rows("SELECT @@version, @@server_uuid")
        return ServerFacts(str(server.address), version, uuid, "", "")

    def _positions(self) -> tuple[str, str]:
        """The leader's position, and how far the follower has applied the leader's binlog."""
        applied = self._pair.follower.applied().position
        return str(self._pair.leader.position()), str(applied or "")

    # rows

    def _open_history(self, stack: ExitStack) -> History | None:
        if self._profile.topic is None:
            return None
        return stack.enter_context(History(self._profile.topic, {}))

    def _find(self, spark: Future[Cluster], history: History | None) -> None:
        """Compare all rows and settle the suspects; again the tables whose definition changed meanwhile."""
        if self._options.since is not None:
            self._only_since(history, self._options.since)
        for last in (False, False, True):
            scan = Scan(self._profile, self._state, self._shapes, self._options.where, self._sizes.leaf_rows)
            settlement = self._settlement(history)
            try:
                scan.run(spark.result(), self._stopped, self._progress.tick)
                settlement.rounds(self._progress.began, self._stopped, self._round)
            except Stopped:
                return
            moved = {**self._moved, **scan.moved, **settlement.moved, **self._changed()}
            if not moved or self._stopped():
                return
            self._replan(moved, history, last)

    def _settlement(self, history: History | None) -> Settlement:
        # a row may be in --where on one side only: what is suspect is looked at wherever it is
        tables = [RowsByKey(TableQueries(shape)) for shape in self._shapes]
        return Settlement(self._state, tables, self._pair, history, self._profile.limits.fence_seconds)

    def _replan(self, moved: Mapping[int, str], history: History | None, last: bool) -> None:
        """Begin anew with tables whose definition changed; after the last time they stay undecided."""
        self._moved = {}
        if not last:
            self._definitions = self._define(history)
        for number, reason in moved.items():
            self._state.forget(number)
            try:
                left = reason if last else self._plan_again(number, history)
            except TableMovedError as error:
                self._moved[number] = left = str(error)
            if left:
                self._state.give_up(number, f"schema moved: {left}")

    def _plan_again(self, number: int, history: History | None) -> str:
        """Why it cannot be, "" when it was."""
        name, found = self._shapes[number].name, self._definitions
        leader, follower = found.leader.tables.get(name), found.follower.tables.get(name)
        if name in found.unclear:
            return found.doubt
        if leader is None and follower is None:
            return "it was dropped during the audit"
        shape = plan.shape_of(name, leader, follower)
        if isinstance(shape, plan.Skipped) or follower is None:
            return getattr(shape, "reason", "")
        self._shapes[number] = shape
        if history is not None:
            history.know(shape)
        self._begin(number, follower)
        return ""

    def _round(self, found: Round) -> None:
        self._rounds.append(found)
        self._progress.round(found)

    def _only_since(self, history: History | None, sequence: int) -> None:
        """Suspects are the rows the topic has written; tables it cannot tell rows of are read whole."""
        if history is None:
            raise AuditError("--since needs [topic] in the profile: it tells which rows were written")
        touched = history.keys_since(sequence)
        for number, shape in enumerate(self._shapes):
            whole = shape.name in touched.untold or shape.name.database in touched.ddl
            if not whole:
                self._state.forget(number)
                self._state.suspect(number, ((key, 0.0) for key in touched.keys.get(shape.name, ())))

    def _changed(self) -> dict[int, str]:
        """Tables that are not what they were when the audit began."""
        names = [shape.name for shape in self._shapes]
        now = self._pair.both(lambda server: server.use(lambda connection: read_tables(connection, names)))
        before = (self._definitions.leader.tables, self._definitions.follower.tables)
        return {
            number: "its definition changed during the audit"
            for number, name in enumerate(names)
            if any(_fingerprint(old, name) != _fingerprint(new, name) for old, new in zip(before, now, strict=True))
        }

    def _of_tables(self, found: list[SchemaDifference]) -> list[SchemaDifference]:
        """Without --tables all; with it only what belongs to one of them."""
        names = {*(shape.name for shape in self._shapes), *(skipped.table for skipped in self._skipped)}
        return [each for each in found if not self._options.tables or TableName(each.database, each.parent) in names]


def _fingerprint(tables: Mapping[TableName, TableRecord], name: TableName) -> str | None:
    return tables[name].fingerprint if name in tables else None


def _stop(spark: Future[Cluster]) -> None:
    """End the session, also one that is still starting; that it could not start was said already."""
    if spark.exception() is None:
        spark.result().stop()
