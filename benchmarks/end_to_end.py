"""How far a follower is behind, in single transactions and under the load of sysbench, beside native replication."""

from __future__ import annotations

import argparse
import array
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench import Bench, BenchError, Run, arguments, beside, cpu_seconds, main, positive, program
from kit.programs import write_profiles
from peers import PeerError, sysbench
from report import Cost, count, percentiles, show
from workloads import DATABASE

from cdc_consumer.profile import Apply
from docker.local.mysql_servers import FOLLOWER, LEADER, MySQLServer

#: seconds until the last row must be visible
PATIENCE = 300.0
CAPTURED, APPLIED, WHOLE, NATIVE = "leader to topic", "topic to follower", "leader to follower", "native replica"
PROGRAMS = "both programs"
WORKERS = 4
#: of the tables that sysbench writes
TABLES, TABLE_ROWS = 4, 10_000

#: moment by id of a row
Moments = dict[int, float]


class Side(NamedTuple):
    """Who follows the leader at the moment."""

    name: str
    server: MySQLServer
    #: programs that must not end
    alive: Sequence[Run]

    @property
    def cpu(self) -> float:
        """CPU seconds so far of the server and the programs."""
        return sum(cpu_seconds(pid) for pid in (self.server.pid, *(run.pid for run in self.alive)))


class Load(NamedTuple):
    """What sysbench wrote, and how it was followed."""

    transactions: int
    seconds: float
    #: seconds from its end until all was on the other side
    behind: float
    cpu: float


class Race:
    """A leader; a follower with both programs, or a native replica, but never both at work."""

    def __init__(self, bench: Bench, rows: int) -> None:
        self._bench = bench
        self._rows = rows
        self.leader = bench.server("leader", 1, LEADER)
        self._follower = bench.server("follower", 2, FOLLOWER)
        self._replica = bench.server("replica", 3, (*FOLLOWER, f"--replica-parallel-workers={WORKERS}"))
        self.leader.execute(
            f"CREATE DATABASE {DATABASE}", f"CREATE TABLE {DATABASE}.ticks (id BIGINT PRIMARY KEY, text VARCHAR(50))"
        )
        self._replica.execute(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{self.leader.host}', SOURCE_PORT = {self.leader.port},"
            " SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1"
        )
        workers = {"workers": WORKERS} if "workers" in {field.name for field in fields(Apply)} else {}
        self._profiles = write_profiles(
            bench.folder / "programs", self.leader, self._follower, include_dbs=[DATABASE], start="earliest",
            # as the replica is: not encrypted, and beside the data that it changes
            producer={"database.tls": {"mode": "off"}}, consumer={"database": beside(self._follower), "apply": workers},
        )  # fmt: skip
        self.notes: list[str] = []

    @contextmanager
    def ours(self) -> Iterator[Side]:
        """Let both programs run until all is equal, and then on."""
        producer = self._bench.run("producer", program("cdc_producer", self._profiles.producer))
        consumer = self._bench.run("consumer", program("cdc_consumer", self._profiles.consumer))
        side = Side(PROGRAMS, self._follower, [producer, consumer])
        self._catch_up(side)
        yield side
        for name, run in (("producer", producer), ("consumer", consumer)):
            cost = _stop(run)
            self.notes.append(f"{name}: {cost.cpu:.1f} CPU s, peak {cost.peak:.0f} MB")

    @contextmanager
    def native(self) -> Iterator[Side]:
        """Let the replica run until all is equal, and then on."""
        self._replica.execute("START REPLICA")
        side = Side(NATIVE, self._replica, [])
        self._catch_up(side)
        yield side
        self._replica.execute("STOP REPLICA")

    def delays(self, side: Side, speed: int) -> dict[str, list[float]]:
        """Delays in seconds by part of the way, at so many rows a second, 0 for as fast as it goes."""
        if side.name == NATIVE:
            committed, visible = self._write(side, speed)
            return {NATIVE: [visible[row] - committed[row] for row in committed]}
        topic = self._probe("topic", str(self._profiles.producer))
        committed, visible = self._write(side, speed, topic)
        _stop(topic)
        arrived = fill(_moments(self._bench.folder / "topic.out"), committed)
        return {
            CAPTURED: [arrived[row] - committed[row] for row in committed],
            APPLIED: [visible[row] - arrived[row] for row in committed],
            WHOLE: [visible[row] - committed[row] for row in committed],
        }

    def prepare_load(self) -> None:
        """Create sysbench's tables. Raises PeerError when it cannot be had."""
        self._sysbench("prepare").cost()

    def load(self, side: Side, seconds: int) -> Load:
        """Let four clients write for so long, and wait until all of it is on the other side."""
        cpu = side.cpu
        run = self._sysbench("run", f"--time={seconds}")
        took = run.cost().seconds
        ended = time.monotonic()
        self._catch_up(side)
        behind = time.monotonic() - ended
        found = re.search(r"transactions: +(\d+)", (self._bench.folder / "sysbench-run.log").read_text())
        if found is None:
            raise BenchError(f"sysbench does not say how many transactions it wrote:\n{run.tail()}")
        self._bench.say(f"{found[1]} transactions of sysbench, {side.name} {behind:.2f} s behind")
        return Load(int(found[1]), took, behind, side.cpu - cpu)

    def _sysbench(self, command: str, *options: str) -> Run:
        tool = sysbench()
        words = [
            *tool.command("oltp_write_only"), f"--mysql-host={self.leader.host}", f"--mysql-port={self.leader.port}",
            "--mysql-user=root", f"--mysql-db={DATABASE}", f"--tables={TABLES}", f"--table-size={TABLE_ROWS}",
            "--threads=4", "--rand-seed=1", *options, command,
        ]  # fmt: skip
        log = self._bench.folder / f"sysbench-{command}.log"
        log.unlink(missing_ok=True)
        return self._bench.run(f"sysbench-{command}", words, env=tool.env)

    def _write(self, side: Side, speed: int, *probes: Run) -> tuple[Moments, Moments]:
        """When each row was committed on the leader, and when it was visible on the other side."""
        watch = self._probe("watch", side.server.host, str(side.server.port))
        time.sleep(0.5)
        self._probe("write", self.leader.host, str(self.leader.port), str(self._rows), str(speed)).cost()
        self._catch_up(side, watch, *probes)
        time.sleep(0.1)
        _stop(watch)
        committed = _moments(self._bench.folder / "write.out")
        self._bench.say(
            f"{count(self._rows / (max(committed.values()) - min(committed.values())))} rows/s written,"
            f" followed by {side.name}"
        )
        return committed, fill(_moments(self._bench.folder / "watch.out"), committed)

    def _catch_up(self, side: Side, *probes: Run) -> None:
        """Wait until the other side has all transactions of the leader. Raises BenchError."""
        wanted, deadline = self.leader.value("SELECT @@GLOBAL.gtid_executed"), time.monotonic() + PATIENCE
        while not side.server.value(f"SELECT GTID_SUBSET('{wanted}', @@GLOBAL.gtid_executed)"):
            for run in (*side.alive, *probes):
                if not run.running:
                    raise BenchError(f"a program has ended:\n{run.tail()}")
            if time.monotonic() > deadline:
                raise BenchError(f"{side.server} does not follow")
            time.sleep(0.02)

    def _probe(self, what: str, *places: str) -> Run:
        script = str(Path(__file__).with_name("probe.py"))
        out = str(self._bench.folder / f"{what}.out")
        return self._bench.run(f"probe-{what}", [sys.executable, script, what, out, *places])


def _stop(run: Run) -> Cost:
    run.send(signal.SIGTERM)
    return run.cost()


def _moments(path: Path) -> Moments:
    pairs = array.array("d")
    pairs.frombytes(path.read_bytes())
    return {int(pairs[index]): pairs[index + 1] for index in range(0, len(pairs), 2)}


def fill(seen: Moments, rows: Iterable[int]) -> Moments:
    """When each of these rows was visible: when it, or a later one, was first seen."""
    looks = sorted(seen.items())
    found, index = {}, 0
    for row in sorted(rows):
        while index < len(looks) and looks[index][0] < row:
            index += 1
        if index == len(looks):
            raise BenchError(f"row {row} was never seen")
        found[row] = looks[index][1]
    return found


def body(options: argparse.Namespace, bench: Bench) -> None:
    race = Race(bench, options.rows)
    speeds = (options.rate, 0)
    delays: dict[int, dict[str, list[float]]] = {speed: {} for speed in speeds}
    loads: dict[str, Load] = {}
    try:
        race.prepare_load()
        seconds = options.seconds
    except PeerError as error:
        race.notes.append(f"sysbench is skipped: {error}")
        seconds = 0
    for number in range(options.runs):
        bench.say(f"run {number + 1} of {options.runs}")
        for following in (race.ours, race.native):
            with following() as side:
                for speed in speeds:
                    for part, found in race.delays(side, speed).items():
                        delays[speed].setdefault(part, []).extend(found)
                if seconds and number == 0:
                    loads[side.name] = race.load(side, seconds)
    report(delays, loads, race.notes)


def report(delays: Mapping[int, Mapping[str, list[float]]], loads: Mapping[str, Load], notes: Iterable[str]) -> None:
    for speed, parts in delays.items():
        what = f"{count(speed)} rows a second" if speed else "as fast as one client can"
        show(
            f"Transactions of one row, {what}: milliseconds from commit to visible",
            ("", "p50", "p90", "p99", "max"),
            ((part, *percentiles(found)) for part, found in parts.items()),
        )
    if loads:
        show(
            "sysbench oltp_write_only, 4 threads: when all of it is on the other side",
            ("", "transactions", "written in s", "a second", "behind, s", "followed a second", "CPU ms each"),
            (
                (
                    name, count(load.transactions), f"{load.seconds:.1f}", count(load.transactions / load.seconds),
                    f"{load.behind:.2f}", count(load.transactions / (load.seconds + load.behind)),
                    f"{1000 * load.cpu / load.transactions:.2f}",
                )
                for name, load in loads.items()
            ),
        )  # fmt: skip
    for note in notes:
        print(note)


if __name__ == "__main__":
    parser = arguments(__doc__, rows=2_000, runs=2)
    parser.add_argument("--rate", type=positive, default=200, metavar="N", help="rows a second of the slower writer")
    parser.add_argument("--seconds", type=positive, default=60, metavar="N", help="how long sysbench writes")
    chosen = parser.parse_args()
    sys.exit(main(chosen, partial(body, chosen)))
