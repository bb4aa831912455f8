"""Replay, embedded topic to follower, beside native replicas applying the same transactions."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import Bench, BenchError, arguments, beside, cpu_seconds, main, positive, program, sync_seconds
from kit.programs import write_profiles
from kit.topic import topic_table
from report import Cost, count, fastest, show, times
from workloads import DATABASE, create_table, delete, insert_single_rows, insert_statements, prepare, update

from cdc_consumer.profile import Apply
from docker.local.mysql_servers import FOLLOWER, LEADER, RELAXED, MySQLServer

#: MB the consumer may grow to, whatever the size of a transaction
MAX_PEAK = 100
#: seconds a native replica may take for a workload
PATIENCE = 600
#: of the table that each workload gets: in it a row costs CPU microseconds of the program and of its server
COLUMNS = ("", "seconds", "start-up s", "peak MB", "us a row", "us of server", "rows/s after start-up")
#: rows of the table without a key: each change of a row reads all of them
KEYLESS_ROWS = 1000


class Native:
    """A native replica: it receives first, and applies when told to."""

    def __init__(self, server: MySQLServer, leader: MySQLServer) -> None:
        self.server = server
        self._leader = leader
        workers = server.value("SELECT @@replica_parallel_workers")
        self.name = f"native replica, {workers} worker{'s' if workers > 1 else ''}"
        server.execute(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{leader.host}', SOURCE_PORT = {leader.port},"
            " SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1"
        )

    def receive(self) -> str:
        """Wait until the relay log holds all the leader has committed; returns its GTIDs."""
        gtids = str(self._leader.value("SELECT @@GLOBAL.gtid_executed"))
        self.server.execute("START REPLICA IO_THREAD")
        missing = (
            f"SELECT GTID_SUBTRACT('{gtids}', CONCAT(@@GLOBAL.gtid_executed, ',', received_transaction_set))"
            " FROM performance_schema.replication_connection_status"
        )
        deadline = time.monotonic() + PATIENCE
        while self.server.value(missing):
            if time.monotonic() > deadline:
                raise BenchError(f"{self.name} does not receive; see {self.server.error_log}")
            time.sleep(0.05)
        self.server.execute("STOP REPLICA IO_THREAD")
        return gtids

    def apply(self) -> Cost:
        """Time the applier alone."""
        gtids = self.receive()
        with self.server.connect() as connection, connection.cursor() as cursor:
            cpu, began = cpu_seconds(self.server.pid), time.perf_counter()
            cursor.execute("START REPLICA SQL_THREAD")
            cursor.execute(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', {PATIENCE})")
            seconds = time.perf_counter() - began
            if cursor.fetchall() != ((0,),):
                raise BenchError(f"{self.name} does not apply; see {self.server.error_log}")
            cost = Cost(seconds, 0.0, 0.0, cpu_seconds(self.server.pid) - cpu)
            cursor.execute("STOP REPLICA SQL_THREAD")
        return cost


class Ours:
    """The consumer with one setting of [apply], and a follower of its own; the topic is there before."""

    def __init__(self, bench: Bench, name: str, profile: Path, server: MySQLServer) -> None:
        self.name = name
        self.server = server
        self._bench = bench
        self._profile = profile

    def apply(self) -> Cost:
        """The whole program."""
        cpu = cpu_seconds(self.server.pid)
        cost = self._bench.run(self.name, program("cdc_consumer", self._profile, "--exit-at-end")).cost()
        return replace(cost, server=cpu_seconds(self.server.pid) - cpu)


def settings(by_sql: bool) -> dict[str, dict[str, object]]:
    """What is measured: keys of [apply] by name."""
    if "workers" in {field.name for field in fields(Apply)}:
        found: dict[str, dict[str, object]] = {
            "replay, 1 worker": {"workers": 1},
            "replay, 4 workers": {"workers": 4},
            "replay, 4 workers, independent": {"workers": 4, "order": "independent"},
            # sessions that wait for a sync together cost next to nothing here
            "replay, 16 workers, independent": {"workers": 16, "order": "independent"},
        }
    else:
        found = {"replay": {}}
    return {**found, "replay by SQL": {"rows": "sql"}} if by_sql else found


class Race:
    """One leader, and all who follow it."""

    def __init__(self, bench: Bench, by_sql: bool) -> None:
        self._bench = bench
        self.leader = bench.server("leader", 1, (*LEADER, *RELAXED))
        self._producer: Path | None = None
        ours = [self._ours(bench, name, keys, id) for id, (name, keys) in enumerate(settings(by_sql).items(), 10)]
        natives = [
            Native(
                bench.server(f"replica-{workers}", workers + 1, (*FOLLOWER, f"--replica-parallel-workers={workers}")),
                self.leader,
            )
            for workers in (4, 1)
        ]
        self.natives = [native.name for native in natives]
        self.contenders: Sequence[Ours | Native] = (*ours, *natives)
        names = ("sync_binlog", "innodb_flush_log_at_trx_commit", "log_bin")
        ((*values,),) = ours[0].server.execute(f"SELECT {', '.join(f'@@{name}' for name in names)}")
        told = ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
        bench.say(f"followers and replicas: {told}; a sync takes {1000 * sync_seconds(bench.folder):.2f} ms here")

    def _ours(self, bench: Bench, name: str, keys: Mapping[str, object], id: int) -> Ours:
        """All consumers read the topic of the first one's producer."""
        server = bench.server(f"follower-{id}", id, FOLLOWER)
        first = bench.folder / "programs-10"
        profiles = write_profiles(
            bench.folder / f"programs-{id}", self.leader, server, include_dbs=[DATABASE], start="earliest",
            consumer={"database": beside(server), "topic": {"path": topic_table(first)["path"]}, "apply": keys},
        )  # fmt: skip
        self._producer = self._producer or profiles.producer
        return Ours(bench, name, profiles.consumer, server)

    def _write(self, action: Callable[[], None]) -> None:
        action()
        assert self._producer is not None
        self._bench.run("producer", program("cdc_producer", self._producer, "--exit-at-end")).cost()

    def prepare(self, action: Callable[[], None]) -> dict[str, Cost]:
        """Write on the leader what is not measured, and let all apply it; returns what doing nothing takes then."""
        self._write(action)
        for contender in self.contenders:
            contender.apply()
        return {contender.name: contender.apply() for contender in self.contenders}

    def measure(self, what: str, action: Callable[[], None]) -> dict[str, Cost]:
        """Write on the leader and let all apply it, one after the other."""
        self._write(action)
        costs = {}
        for contender in self.contenders:
            cost = costs[contender.name] = contender.apply()
            self._bench.say(f"{what}, {contender.name}: {cost.seconds:.2f} s")
        self._check(what)
        return costs

    def _check(self, what: str) -> None:
        """Raises BenchError when they are not all equal."""
        servers = [self.leader, *(contender.server for contender in self.contenders)]
        sums = [server.execute(f"CHECKSUM TABLE {DATABASE}.orders")[0][1] for server in servers]
        if len(set(sums)) != 1 or sums[0] is None:
            raise BenchError(f"{what}: the tables are not equal, their checksums are {sums}")


class Workload(NamedTuple):
    """What is written on the leader and applied by all."""

    title: str
    rows: int
    action: Callable[[], None]
    #: what is written before, and not measured
    before: Callable[[], None] | None = None
    runs: int | None = None


def workloads(leader: MySQLServer, options: argparse.Namespace) -> list[Workload]:
    rows, single, large = options.rows, options.transactions, options.transaction_rows
    rounds, anew = max(1, rows // 4 // KEYLESS_ROWS), partial(create_table, leader)
    return [
        Workload("inserts, 1,000 rows a statement", rows, partial(insert_statements, leader, rows), anew),
        Workload("updates by primary key, 1,000 rows a statement", rows, partial(update, leader, rows)),
        Workload("deletes by primary key, 1,000 rows a statement", rows, partial(delete, leader, rows)),
        Workload("transactions of one row", single, partial(insert_single_rows, leader, single), anew),
        Workload(
            f"updates of a table without a key, {count(KEYLESS_ROWS)} rows in it", rounds * KEYLESS_ROWS,
            partial(_update_all, leader, rounds), partial(_keyless, leader, KEYLESS_ROWS),
        ),
        Workload(
            "inserts in one transaction", large,
            partial(insert_statements, leader, large, one_transaction=True), anew, runs=1,
        ),
    ]  # fmt: skip


def body(options: argparse.Namespace, bench: Bench) -> None:
    race = Race(bench, options.sql)
    race.prepare(partial(prepare, race.leader))
    chosen = workloads(race.leader, options)
    costs: list[list[dict[str, Cost]]] = [[] for _ in chosen]
    startups: list[dict[str, Cost]] = []
    for number in range(options.runs):
        bench.say(f"run {number + 1} of {options.runs}")
        for workload, found in zip(chosen, costs, strict=True):
            if workload.runs is None or number < workload.runs:
                if workload.before is not None:
                    startups.append(race.prepare(workload.before))
                found.append(race.measure(workload.title, workload.action))
    idle = {contender.name: fastest([found[contender.name] for found in startups]) for contender in race.contenders}
    for workload, found in zip(chosen, costs, strict=True):
        report(workload, found, idle, race.natives)
    peak = max(cost.peak for run in costs[-1] for cost in run.values())
    print(f"to reach in one transaction: below {MAX_PEAK} MB, found {peak:.0f} MB")


def report(
    workload: Workload, costs: Sequence[Mapping[str, Cost]], idle: Mapping[str, Cost], natives: Sequence[str]
) -> None:
    """Print the fastest runs of one workload, and the middle ones of the same-run ratios to each native replica.

    What a contender takes when there is nothing to apply is told, and taken off all that is told of a row.
    """

    def seconds(run: Mapping[str, Cost], name: str) -> float:
        return max(run[name].seconds - idle[name].seconds, 0.001)

    def each(name: str, spent: Callable[[Cost], float]) -> str:
        middle = statistics.median(spent(run[name]) - spent(idle[name]) for run in costs)
        return f"{1e6 * middle / workload.rows:.1f}"

    def line(name: str) -> Sequence[str]:
        best = fastest([run[name] for run in costs])
        ratios = [statistics.median(seconds(run, native) / seconds(run, name) for run in costs) for native in natives]
        return (
            name, f"{best.seconds:.2f}", f"{idle[name].seconds:.2f}", f"{best.peak:.0f}" if best.peak else "",
            each(name, lambda cost: cost.cpu) if best.cpu else "", each(name, lambda cost: cost.server),
            count(workload.rows / min(seconds(run, name) for run in costs)), *map(times, ratios),
        )  # fmt: skip

    show(f"{count(workload.rows)} rows: {workload.title}", (*COLUMNS, *natives), map(line, costs[0]))


def _update_all(leader: MySQLServer, rounds: int) -> None:
    for _ in range(rounds):
        update(leader, KEYLESS_ROWS)


def _keyless(leader: MySQLServer, rows: int) -> None:
    create_table(leader, key=False)
    insert_statements(leader, rows)


if __name__ == "__main__":
    parser = arguments(__doc__, rows=400_000, runs=2)
    parser.add_argument("--sql", action="store_true", help="measure the replay of rows by SQL, too")
    parser.add_argument("--transactions", type=positive, default=10_000, metavar="N", help="transactions of one row")
    parser.add_argument(
        "--transaction-rows", type=positive, default=1_000_000, metavar="N", help="rows of the largest transaction"
    )
    chosen = parser.parse_args()
    sys.exit(main(chosen, partial(body, chosen)))
