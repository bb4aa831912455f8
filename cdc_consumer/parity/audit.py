"""A whole audit, step by step: schemas, plan, rows, suspects, evidence, report, repair."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeVar

from cdc_consumer.parity import fence, plan, selftest
from cdc_consumer.parity.conclusion import Conclusion
from cdc_consumer.parity.history import History
from cdc_consumer.parity.images import Images
from cdc_consumer.parity.model import Round, Run, SchemaDifference, ServerFacts, TableName
from cdc_consumer.parity.options import Options
from cdc_consumer.parity.plan import SIZES, Sizes
from cdc_consumer.parity.progress import Progress
from cdc_consumer.parity.ranges import Reading
from cdc_consumer.parity.repairing import repair_follower, write_repair
from cdc_consumer.parity.report.differences import FILE
from cdc_consumer.parity.scan import Cluster, Scan, Stopped
from cdc_consumer.parity.schema.compare import compare_schemas
from cdc_consumer.parity.schema.read import TableRecord, read_schema, read_tables
from cdc_consumer.parity.servers import Reader, position_query
from cdc_consumer.parity.settle import Settlement
from cdc_consumer.parity.spark import Spark
from cdc_consumer.parity.state import State
from shared.errors import AuditError
from shared.filters import DatabaseFilter
from shared.profile import ParityProfile

T = TypeVar("T")


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
        seconds = profile.limits.statement_seconds
        self._leader = Reader("leader", profile.leader, statement_seconds=seconds)
        self._follower = Reader("follower", profile.follower, statement_seconds=seconds)
        topic = None if profile.topic is None else profile.topic.name
        self._position_sql = position_query(self._follower, profile.follower.system_database, topic)
        self._databases = DatabaseFilter(profile.filters, profile.follower.system_database)
        self._cores = options.cores or os.cpu_count() or 1
        self._progress = Progress(self._leader, self._follower, self._position_sql)
        self._rounds: list[Round] = []

    def run(self, stack: ExitStack) -> tuple[Run, Path]:
        """Everything; returns what was found and the folder it was written to. `stack` ends what was begun for it."""
        self._started = datetime.now(timezone.utc)
        beside = stack.enter_context(ThreadPoolExecutor(1))
        self._folder, self._resumed = self._choose_folder()
        # Java takes seconds to start; the plan is made meanwhile
        spark = beside.submit(self._start_spark, self._cores, self._folder / "spark.log")
        stack.callback(_stop, spark)
        self._plan()
        stack.callback(self._state.close)
        history = self._open_history(stack)
        self._find(spark, history)
        return self._conclude(spark.result(), history), self._folder

    def _conclude(self, spark: Cluster, history: History | None) -> Run:
        """Write what was found, and repair when that was asked for."""
        conclusion = Conclusion(self._folder, self._name, self._options, self._state, self._shapes)
        conclusion.write_differences(history, self._follower, self._position_sql)
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
                conclusion.write_differences(history, self._follower, self._position_sql)
                results = conclusion.results(self._splits, self._skipped)
        run = conclusion.run(
            plan=self._digest(), started=self._started, leader=self._facts[0], follower=self._facts[1],
            ended=self._both(self._position), spark=spark, tables=results, schema=self._schema_differences,
            rounds=self._rounds, progress=self._progress, interrupted=self._stopped(),
        )  # fmt: skip
        conclusion.write(run)
        if self._options.parquet:
            spark.parquet(self._folder.resolve() / FILE, self._folder.resolve() / "differences.parquet")
        return run

    # the plan

    def _plan(self) -> None:
        named = self._profile.filters.include_dbs or ()
        self._facts = self._both(self._server_facts)
        leader, follower = self._both(lambda reader: reader.use(lambda c: read_schema(c, self._databases, named)))
        self._schema = (leader, follower)
        tables = plan.chosen({*leader.tables, *follower.tables}, self._options.tables)
        self._schema_differences = _of_tables(compare_schemas(leader, follower), tables, bool(self._options.tables))
        self._shapes, self._skipped = plan.shapes(leader, follower, tables)
        self._splits: dict[int, str] = {}
        self._state = State(self._folder, self._digest(), self._started.isoformat(), resumed=self._resumed)
        self._both(self._test)
        for number, shape in enumerate(self._shapes):
            self._split(number, follower.tables[shape.name])

    def _test(self, reader: Reader) -> None:
        for shape in self._shapes:
            selftest.check(shape, reader)

    def _split(self, number: int, record: TableRecord) -> None:
        shape = self._shapes[number]
        self._progress.expected_rows += record.rows
        if self._state.planned(number):
            return
        tasks, method = plan.tasks(shape, record, self._follower, self._cores, self._sizes, self._options.where)
        self._splits[number] = method
        self._state.plan(number, tasks)

    def _choose_folder(self) -> tuple[Path, bool]:
        reports = Path(self._profile.report.path).expanduser()
        if self._options.resume is not None:
            given = Path(self._options.resume).expanduser()
            folder = given if given.is_dir() else reports / self._options.resume
            if not folder.is_dir():
                raise AuditError(f"no run to resume at {given} or {folder}")
            return folder, True
        folder = reports / f"{self._started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise AuditError(f"cannot write a report to {folder}: {error.strerror}") from None
        return folder, False

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

    def _server_facts(self, reader: Reader) -> ServerFacts:
        ((version, uuid),) = reader.rows("SELECT @@version, @@server_uuid")
        return ServerFacts(str(reader.address), version, uuid, self._position(reader), "")

    def _position(self, reader: Reader) -> str:
        """The leader's position; of the follower how far it has applied the leader's binlog."""
        if reader is self._leader:
            return reader.position()
        mark = fence.applied(reader, self._position_sql)
        return f"{mark.file}:{mark.leader_offset}" if mark.file else ""

    def _both(self, ask: Callable[[Reader], T]) -> tuple[T, T]:
        """Ask both servers at the same time."""
        with ThreadPoolExecutor(1) as beside:
            leader = beside.submit(ask, self._leader)
            follower = ask(self._follower)
            return leader.result(), follower

    # rows

    def _open_history(self, stack: ExitStack) -> History | None:
        if self._profile.topic is None:
            return None
        return stack.enter_context(History(self._profile.topic, {shape.name: shape for shape in self._shapes}))

    def _find(self, spark: Future[Cluster], history: History | None) -> None:
        """Compare all rows and settle the suspects; once more the tables whose definition changed meanwhile."""
        if self._options.since is not None:
            self._only_since(history, self._options.since)
        for last in (False, True):
            scan = Scan(
                self._profile, self._state, self._shapes, self._options.where, self._sizes.leaf_rows, self._position_sql
            )
            settlement = self._settlement(history)
            try:
                scan.run(spark.result(), self._stopped, self._progress.tick)
                settlement.rounds(self._progress.began, self._stopped, self._round)
            except Stopped:
                return
            moved = {**scan.moved, **settlement.moved, **self._changed()}
            if not moved or self._stopped():
                return
            for number in moved:
                self._replan(number, moved[number], last)

    def _settlement(self, history: History | None) -> Settlement:
        images = [Images(Reading(shape, self._options.where)) for shape in self._shapes]
        return Settlement(
            self._state, images, self._leader, self._follower, self._position_sql, history,
            self._profile.limits.fence_seconds,
        )  # fmt: skip

    def _replan(self, number: int, reason: str, last: bool) -> None:
        """Begin anew with a table whose definition changed; the second time it stays undecided."""
        name = self._shapes[number].name
        self._state.forget(number)
        tables = self._both(lambda reader: reader.use(lambda connection: read_tables(connection, [name])).get(name))
        shape = plan.shape_of(name, *tables)
        if last or isinstance(shape, plan.Skipped) or tables[1] is None:
            self._state.give_up(number, f"schema moved: {reason if last else getattr(shape, 'reason', reason)}")
            return
        self._shapes[number] = shape
        self._both(lambda reader: selftest.check(shape, reader))
        self._split(number, tables[1])

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
        now = self._both(lambda reader: reader.use(lambda connection: read_tables(connection, names)))
        changed = {}
        for number, name in enumerate(names):
            for schema, tables in zip(self._schema, now, strict=True):
                if name not in tables or tables[name].fingerprint != schema.fingerprint(name):
                    changed[number] = "its definition changed during the audit"
        return changed


def _stop(spark: Future[Cluster]) -> None:
    """End the session, also one that is still starting; that it could not start was said already."""
    if spark.exception() is None:
        spark.result().stop()


def _of_tables(found: list[SchemaDifference], tables: list[TableName], narrowed: bool) -> list[SchemaDifference]:
    """Without --tables all; with it only what belongs to one of them."""
    names = set(tables)
    return [each for each in found if not narrowed or TableName(each.database, each.parent) in names]
