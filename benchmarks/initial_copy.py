"""The initial copy of a table, whole processes, also on Spark, beside mysqldump | mysql and mydumper with myloader."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench import Bench, BenchError, Run, arguments, cpu_seconds, main, program
from kit.programs import ENVIRONMENT, ROOT
from parity_data import DATABASE, TABLE, fill
from peers import PeerError, mydumper
from report import Cost, count, show, times

from docker.local.mysql_servers import FOLLOWER, LEADER, MySQLServer
from shared.errors import TopicError
from shared.profile import TopicSettings
from shared.topic import open_reader

COPY, SPARK, DUMP = "cdc-copy", "cdc-copy on Spark", "mysqldump | mysql"
#: what spark-submit runs
JOB = ROOT / "cdc_consumer" / "copy" / "job.py"
SYSTEM = "fluvio_cdc"
TOPIC = "copied"
#: seconds within which the producer makes the topic
BEGIN_SECONDS = 30
#: both hold the table in memory
OPTIONS = ("--innodb-buffer-pool-size=1G",)


class Race:
    """Both servers, and the ways from one to the other."""

    def __init__(self, bench: Bench, connections: int) -> None:
        self._bench = bench
        self._connections = connections
        self.leader = bench.server("leader", 1, (*LEADER, *OPTIONS))
        self.follower = bench.server("follower", 2, (*FOLLOWER, *OPTIONS, "--local-infile=ON"))
        #: CPU seconds of the two servers in the fastest run so far, by contender
        self.servers: dict[str, tuple[float, float, float]] = {}

    def start_producer(self) -> None:
        """Let the topic begin; the copy needs its first record."""
        profile = self._profile("producer", {"database": {**self._address(self.leader), "start": "copy"}}, "mysql-srv1")
        self._bench.run("producer", program("cdc_producer", profile))
        deadline = time.monotonic() + BEGIN_SECONDS
        while not self._topic_begun():
            if time.monotonic() > deadline:
                raise BenchError(f"the topic did not begin within {BEGIN_SECONDS} s")
            time.sleep(0.1)

    def _topic_begun(self) -> bool:
        try:
            reader = open_reader(TopicSettings(TOPIC, path=str(self._bench.folder / "topics")))
        except TopicError:
            return False
        found = reader.next_offset() > 0
        reader.close()
        return found

    @staticmethod
    def _address(server: MySQLServer) -> dict[str, object]:
        return {"host": server.host, "port": server.port, "user": "root"}

    def _profile(self, name: str, tables: Mapping[str, Mapping[str, object]], resource: str = "") -> Path:
        path = self._bench.folder / f"{name}.toml"
        own: dict[str, Mapping[str, object]] = {
            "filters": {"include_dbs": [DATABASE]},
            "topic": {"name": TOPIC, "path": str(self._bench.folder / "topics")},
        }
        lines = [f'mysql_resource_name = "{resource}"'] if resource else []
        for table, keys in {**tables, **own}.items():
            # JSON's strings, numbers and lists are TOML's too
            lines += [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
        path.write_text("\n".join(lines) + "\n")
        return path

    def prepare(self) -> None:
        """Leave nothing of an earlier run on the follower."""
        drop = (f"DROP DATABASE IF EXISTS {name}" for name in (DATABASE, SYSTEM))
        self.follower.execute("SET sql_log_bin = 0", *drop)

    def measure(self, name: str, run: Callable[[], Run]) -> Cost:
        """Run one contender and see that the follower is the leader."""
        self.prepare()
        leader, follower = cpu_seconds(self.leader.pid), cpu_seconds(self.follower.pid)
        cost = run().cost()
        leader, follower = cpu_seconds(self.leader.pid) - leader, cpu_seconds(self.follower.pid) - follower
        question = f"CHECKSUM TABLE {DATABASE}.{TABLE}"
        if self.leader.execute(question) != self.follower.execute(question):
            raise BenchError(f"{name} did not copy the table as it is")
        if name not in self.servers or cost.seconds < self.servers[name][0]:
            self.servers[name] = (cost.seconds, leader, follower)
        return cost

    def copy(self, spark: bool = False) -> Run:
        more: dict[str, Mapping[str, object]] = {
            "limits": {"connections": self._connections},
            "report": {"path": str(self._bench.folder / "reports")},
        }
        addresses = {"leader": self._address(self.leader), "follower": self._address(self.follower)}
        profile = self._profile("copy", {**addresses, **more})
        command = [sys.executable, str(JOB), str(profile)] if spark else program("cdc_consumer.copy", profile)
        return self._bench.run(SPARK if spark else COPY, command)

    def dump(self) -> Run:
        dump = [
            *self.leader.client("mysqldump"),
            "--single-transaction",
            "--set-gtid-purged=OFF",
            "--databases",
            DATABASE,
        ]
        load = [*self.follower.client("mysql"), "--init-command=SET sql_log_bin = 0"]
        line = f"set -o pipefail; {shlex.join(dump)} | {shlex.join(load)}"
        return self._bench.run("mysqldump", ["bash", "-c", line])

    def mydumper(self, command: Callable[[str], list[str]], env: Mapping[str, str]) -> Run:
        folder = self._bench.folder / "mydumper"
        shutil.rmtree(folder, ignore_errors=True)
        threads = ["--threads", str(self._connections), "--user", "root"]
        dump = [*command("mydumper"), *threads, "--host", "127.0.0.1", "--port", str(self.leader.port)]
        dump += ["--database", DATABASE, "--rows", "100000", "--outputdir", str(folder)]
        load = [*command("myloader"), *threads, "--host", "127.0.0.1", "--port", str(self.follower.port)]
        load += ["--directory", str(folder)]
        return self._bench.run("mydumper", ["bash", "-c", f"{shlex.join(dump)} && {shlex.join(load)}"], env)


def body(options: argparse.Namespace, bench: Bench) -> None:
    race = Race(bench, options.connections)
    bench.say(f"writing {count(options.rows)} rows on the leader")
    fill([race.leader], options.rows)
    race.start_producer()
    ways: dict[str, Callable[[], Run]] = {COPY: race.copy, DUMP: race.dump}
    notes = ["MySQL Shell is left out: Debian has no package of it."]
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        notes.append("Spark is left out: there is no Java.")
    else:
        ways[SPARK] = partial(race.copy, spark=True)
    try:
        tool = mydumper()
        name = f"{tool.version} | myloader"
        ways[name] = partial(race.mydumper, tool.command, {**ENVIRONMENT, **tool.env})
    except PeerError as error:
        notes.append(f"mydumper is left out: {error}")
    costs = bench.alternate("copy", {name: partial(race.measure, name, run) for name, run in ways.items()})
    ours = costs[COPY].seconds
    show(
        f"{count(options.rows)} rows of 10 columns, {options.connections} connections",
        ("", "s", "rows/s", "CPU s leader", "follower", "client", "x", "peak MB"),
        [_line(name, cost, race.servers[name], options.rows, ours) for name, cost in costs.items()],
        "x: its time beside that of cdc-copy. The fastest run of each, from an empty follower to the end of the whole"
        " process, with Spark's start; checksums are equal. Peak: of the program and all its children, Java's too.",
        *notes,
    )


def _line(name: str, cost: Cost, servers: tuple[float, float, float], rows: int, ours: float) -> Sequence[object]:
    _, leader, follower = servers
    rate = count(rows / cost.seconds)
    figures = f"{leader:.1f}", f"{follower:.1f}", f"{cost.cpu:.1f}"
    return name, f"{cost.seconds:.1f}", rate, *figures, times(cost.seconds / ours), f"{cost.peak:.0f}"


if __name__ == "__main__":
    parser = arguments(__doc__, rows=2_000_000, runs=3)
    parser.add_argument("--connections", type=int, default=2, metavar="N", help="ranges, or files, at the same time")
    chosen = parser.parse_args()
    sys.exit(main(chosen, partial(body, chosen)))
