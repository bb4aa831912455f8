"""Latency from commit on the leader to visible on the follower, both programs running, beside native replication."""

from __future__ import annotations

import argparse
import array
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from bench import Bench, BenchError, Run, arguments, main, positive, program
from kit.programs import write_profiles
from report import Cost, count, percentiles, show
from workloads import DATABASE

from docker.local.mysql_servers import FOLLOWER, LEADER, MySQLServer, Server

#: seconds until the last row must be visible
PATIENCE = 120.0
CAPTURED, APPLIED, WHOLE, NATIVE = "leader to topic", "topic to follower", "leader to follower", "native replica"

#: moment by id of a row
Moments = dict[int, float]


class Race:
    """A leader; a follower with both programs, or a native replica, but never both at work."""

    def __init__(self, bench: Bench, rows: int) -> None:
        self._bench = bench
        self._rows = rows
        self.leader = bench.server("leader", 1, LEADER)
        self._follower = bench.server("follower", 2, FOLLOWER)
        self._replica = bench.server("replica", 3, FOLLOWER)
        self.leader.execute(
            f"CREATE DATABASE {DATABASE}", f"CREATE TABLE {DATABASE}.ticks (id BIGINT PRIMARY KEY, text VARCHAR(50))"
        )
        self._replica.execute(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{self.leader.host}', SOURCE_PORT = {self.leader.port},"
            " SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1"
        )
        self._profiles = write_profiles(
            bench.folder / "programs", self.leader, self._follower, include_dbs=[DATABASE], start="earliest"
        )
        self.notes: list[str] = []

    def ours(self, speeds: Iterable[int]) -> dict[int, dict[str, list[float]]]:
        """Delays in seconds by speed (rows a second, 0 for as fast as it goes) and part of the way."""
        producer = self._bench.run("producer", program("cdc_producer", self._profiles.producer))
        consumer = self._bench.run("consumer", program("cdc_consumer", self._profiles.consumer))
        self._catch_up(self._follower, [producer, consumer])
        found = {}
        for speed in speeds:
            topic = self._probe("topic", str(self._profiles.producer))
            committed, visible = self._write(self._follower, speed, [producer, consumer, topic])
            _stop(topic)
            arrived = fill(_moments(self._bench.folder / "topic.out"), committed)
            found[speed] = {
                CAPTURED: [arrived[row] - committed[row] for row in committed],
                APPLIED: [visible[row] - arrived[row] for row in committed],
                WHOLE: [visible[row] - committed[row] for row in committed],
            }
        for name, run in (("producer", producer), ("consumer", consumer)):
            cost = _stop(run)
            self.notes.append(f"{name}: {cost.cpu:.1f} CPU s, peak {cost.peak:.0f} MB")
        return found

    def native(self, speeds: Iterable[int]) -> dict[int, dict[str, list[float]]]:
        self._replica.execute("START REPLICA")
        self._catch_up(self._replica, [])
        found = {}
        for speed in speeds:
            committed, visible = self._write(self._replica, speed, [])
            found[speed] = {NATIVE: [visible[row] - committed[row] for row in committed]}
        self._replica.execute("STOP REPLICA")
        return found

    def _write(self, server: MySQLServer, speed: int, alive: list[Run]) -> tuple[Moments, Moments]:
        """When each row was committed on the leader, and when it was visible on `server`."""
        watch = self._probe("watch", server.host, str(server.port))
        time.sleep(0.5)
        self._probe("write", self.leader.host, str(self.leader.port), str(self._rows), str(speed)).cost()
        self._catch_up(server, [*alive, watch])
        time.sleep(0.1)
        _stop(watch)
        committed = _moments(self._bench.folder / "write.out")
        self._bench.say(
            f"{count(self._rows / (max(committed.values()) - min(committed.values())))} rows/s written,"
            f" followed by {'a native replica' if server is self._replica else 'both programs'}"
        )
        return committed, fill(_moments(self._bench.folder / "watch.out"), committed)

    def _catch_up(self, server: Server, alive: list[Run]) -> None:
        """Wait until the server has all rows of the leader. Raises BenchError."""
        query = f"SELECT COUNT(*) FROM {DATABASE}.ticks"
        wanted, deadline = self.leader.value(query), time.monotonic() + PATIENCE
        # the table itself may still be on its way
        exists = f"SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{DATABASE}'"
        while not server.value(exists) or server.value(query) < wanted:
            for run in alive:
                if not run.running:
                    raise BenchError(f"a program has ended:\n{run.tail()}")
            if time.monotonic() > deadline:
                raise BenchError(f"{server} does not follow")
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
    ways: list[Callable[..., Mapping[int, dict[str, list[float]]]]] = [race.ours, race.native]
    for number in range(options.runs):
        bench.say(f"run {number + 1} of {options.runs}")
        for way in ways:
            for speed, parts in way(speeds).items():
                for part, found in parts.items():
                    delays[speed].setdefault(part, []).extend(found)
    for speed, parts in delays.items():
        what = f"{count(speed)} rows a second" if speed else "as fast as one client can"
        show(
            f"Transactions of one row, {what}: milliseconds from commit to visible",
            ("", "p50", "p90", "p99", "max"),
            ((part, *percentiles(found)) for part, found in parts.items()),
        )
    for note in race.notes:
        print(note)


if __name__ == "__main__":
    parser = arguments(__doc__, rows=2_000, runs=2)
    parser.add_argument("--rate", type=positive, default=200, metavar="N", help="rows a second of the slower writer")
    chosen = parser.parse_args()
    sys.exit(main(chosen, partial(body, chosen)))
