"""Replay, embedded topic to follower, beside native replicas applying the same transactions."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from bench import Bench, BenchError, arguments, cpu_seconds, main, positive, program
from kit.programs import write_profiles
from report import Cost, Result, count, fastest, table
from workloads import DATABASE, create_table, delete, insert_single_rows, insert_statements, prepare, update

from docker.local.mysql_servers import FOLLOWER, LEADER, RELAXED, MySQLServer

REPLAY = "replay"
#: MB the consumer may grow to, whatever the size of a transaction
MAX_PEAK = 150
#: seconds a native replica may take for a workload
PATIENCE = 600
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
            cost = Cost(seconds, cpu_seconds(self.server.pid) - cpu, 0.0)
            cursor.execute("STOP REPLICA SQL_THREAD")
        return cost


class Ours:
    """Both programs: capture, which is not timed, and replay, which is."""

    name = REPLAY

    def __init__(self, bench: Bench, leader: MySQLServer, follower: MySQLServer) -> None:
        self._bench = bench
        self.server = follower
        self._profiles = write_profiles(
            bench.folder / "programs", leader, follower, include_dbs=[DATABASE], start="earliest"
        )

    def receive(self) -> None:
        self._bench.run("producer", program("cdc_producer", self._profiles.producer, "--exit-at-end")).cost()

    def apply(self) -> Cost:
        """The whole program; the CPU time is that of the follower with it."""
        self.receive()
        cpu = cpu_seconds(self.server.pid)
        cost = self._bench.run("consumer", program("cdc_consumer", self._profiles.consumer, "--exit-at-end")).cost()
        return Cost(cost.seconds, cost.cpu + cpu_seconds(self.server.pid) - cpu, cost.peak)


class Race:
    """One leader, and all who follow it."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.leader = bench.server("leader", 1, (*LEADER, *RELAXED))
        follower = bench.server("follower", 2, FOLLOWER)
        default = bench.server("replica", 3, FOLLOWER)
        single = bench.server("replica-1", 4, (*FOLLOWER, "--replica-parallel-workers=1"))
        self.contenders: Sequence[Ours | Native] = (
            Ours(bench, self.leader, follower), Native(default, self.leader), Native(single, self.leader),
        )  # fmt: skip
        settings = follower.execute("SELECT @@sync_binlog, @@innodb_flush_log_at_trx_commit, @@log_bin")[0]
        names = ("sync_binlog", "innodb_flush_log_at_trx_commit", "log_bin")
        told = ", ".join(f"{name}={value}" for name, value in zip(names, settings, strict=True))
        bench.say(f"follower and replicas: {told}")

    def prepare(self, action: Callable[[], None]) -> dict[str, Cost]:
        """Write on the leader what is not measured, and let all apply it; returns what doing nothing takes then."""
        action()
        for contender in self.contenders:
            contender.apply()
        return {contender.name: contender.apply() for contender in self.contenders}

    def measure(self, what: str, action: Callable[[], None]) -> dict[str, Cost]:
        """Write on the leader and let all apply it, one after the other."""
        action()
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


def body(options: argparse.Namespace, bench: Bench) -> None:
    race = Race(bench)
    leader = race.leader
    race.prepare(partial(prepare, leader))
    some, few = max(1, options.rows // 4), min(KEYLESS_ROWS, options.rows)
    #: name, rows, what is written
    workloads: list[tuple[str, int, Callable[[], None]]] = [
        ("inserts, 1,000 rows a statement", options.rows, partial(insert_statements, leader, options.rows)),
        ("updates by primary key, 1,000 rows a statement", some, partial(update, leader, some)),
        ("deletes by primary key, 1,000 rows a statement", some, partial(delete, leader, some)),
        ("transactions of one row", options.transactions, partial(insert_single_rows, leader, options.transactions)),
        (f"updates of a table without a key, {count(few)} rows in it", few, partial(update, leader, few)),
    ]
    #: what is written before the workload of that index, and not measured
    before: dict[int, Callable[[], None]] = {
        0: partial(create_table, leader),
        3: partial(create_table, leader),
        4: partial(_keyless, leader, few),
    }
    costs: list[list[dict[str, Cost]]] = [[] for _ in workloads]
    startups: list[dict[str, Cost]] = []
    for number in range(options.runs):
        bench.say(f"run {number + 1} of {options.runs}")
        for index, (what, _, action) in enumerate(workloads):
            if index in before:
                startups.append(race.prepare(before[index]))
            costs[index].append(race.measure(what, action))
    for (what, rows, _), found in zip(workloads, costs, strict=True):
        report(f"{count(rows)} rows: {what}", rows, found, startups)
    one_transaction(bench, race, options.transaction_rows, startups)


def _keyless(leader: MySQLServer, rows: int) -> None:
    create_table(leader, key=False)
    insert_statements(leader, rows)


def one_transaction(bench: Bench, race: Race, rows: int, startups: list[dict[str, Cost]]) -> None:
    race.prepare(partial(create_table, race.leader))
    what = f"one transaction of {count(rows)} rows"
    bench.say(f"writing {what} on the leader")
    costs = race.measure(what, partial(insert_statements, race.leader, rows, one_transaction=True))
    report(what, rows, [costs], startups, f"to reach: below {MAX_PEAK} MB, found {costs[REPLAY].peak:.0f} MB")


def report(title: str, rows: int, costs: list[dict[str, Cost]], startups: list[dict[str, Cost]], *notes: str) -> None:
    """Print the fastest runs of one workload."""
    table(
        title, "rows",
        [
            Result(name, rows, fastest([found[name] for found in costs]), fastest([found[name] for found in startups]))
            for name in costs[0]
        ],
        *notes,
    )  # fmt: skip


if __name__ == "__main__":
    parser = arguments(__doc__, rows=100_000, runs=3)
    parser.add_argument("--transactions", type=positive, default=3_000, metavar="N", help="transactions of one row")
    parser.add_argument(
        "--transaction-rows", type=positive, default=1_000_000, metavar="N", help="rows of the largest transaction"
    )
    chosen = parser.parse_args()
    sys.exit(main(chosen, partial(body, chosen)))
