"""Capture, binlog to embedded topic, beside mysqlbinlog and mysql-replication reading the same binlog."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import Bench, BenchError, arguments, main, positive, program
from kit.programs import binlog_end, write_profiles
from report import Cost, Result, count, table, times
from workloads import DATABASE, create_table, insert_single_rows, insert_statements, prepare

from cdc_producer.profile import load_producer
from docker.local.mysql_servers import LEADER, RELAXED, MySQLServer
from shared.topic import open_reader

CAPTURE, TO_NULL, TO_FILE, LIBRARY = "capture", "mysqlbinlog > /dev/null", "mysqlbinlog > file", "mysql-replication"
#: mysql-replication reads one row in ten
FRACTION = 10
#: MB the producer may grow to, whatever the size of a transaction
MAX_PEAK = 150


class Readers:
    """The ways to read what the leader wrote between two positions of one binlog."""

    def __init__(self, bench: Bench, leader: MySQLServer, start: str, end: str) -> None:
        """`start` and `end` are "file:offset"."""
        self._bench = bench
        self._leader = leader
        self._file, _, self._start = start.partition(":")
        _, _, self._end = end.partition(":")

    def capture(self, start: str | None = None) -> Cost:
        """The whole program, into a new topic."""
        folder = self._bench.folder / "capture"
        shutil.rmtree(folder, ignore_errors=True)
        position = f"{self._file}:{start or self._start}"
        # its consumer's profile is not used
        profile = write_profiles(folder, self._leader, self._leader, include_dbs=[DATABASE], start=position).producer
        return self._bench.run("producer", program("cdc_producer", profile, "--exit-at-end")).cost()

    def mysqlbinlog(self, output: Path, start: str | None = None) -> Cost:
        options = ["-vv", "--base64-output=decode-rows", "--read-from-remote-server", f"--result-file={output}"]
        place = [f"--start-position={start or self._start}", f"--stop-position={self._end}", self._file]
        return self._bench.run("mysqlbinlog", [*self._leader.client("mysqlbinlog"), *options, *place]).cost()

    def library(self, rows: int, start: str | None = None) -> Cost:
        script = str(Path(__file__).with_name("iterate.py"))
        place = [self._leader.host, str(self._leader.port), self._file, start or self._start, str(rows)]
        return self._bench.run("mysql-replication", [sys.executable, script, *place]).cost()

    def compare(self, label: str, rows: int) -> dict[str, Result]:
        """Measure all of them on `rows` rows, and where there is nothing to read."""
        end, part, null = self._end, max(1, rows // FRACTION), Path("/dev/null")
        file = self._bench.folder / "mysqlbinlog.txt"
        startups = self._bench.alternate(
            f"{label}, nothing to read",
            {
                CAPTURE: partial(self.capture, end),
                TO_NULL: partial(self.mysqlbinlog, null, end),
                TO_FILE: partial(self.mysqlbinlog, file, end),
                LIBRARY: partial(self.library, 1, end),
            },
        )
        costs = self._bench.alternate(
            label,
            {
                # last, so that its topic is the one to look at
                TO_NULL: partial(self.mysqlbinlog, null),
                TO_FILE: partial(self.mysqlbinlog, file),
                LIBRARY: partial(self.library, part),
                CAPTURE: self.capture,
            },
        )
        file.unlink()
        costs[LIBRARY] = scaled(costs[LIBRARY], startups[LIBRARY], rows / part)
        return {name: Result(name, rows, costs[name], startup) for name, startup in startups.items()}

    def captured(self, rows: int) -> int:
        """Events in the topic. Raises BenchError when they do not hold `rows` rows."""
        events = found = 0
        reader = open_reader(load_producer(self._bench.folder / "capture" / "producer.toml").topic)
        try:
            while records := reader.read(0.0):
                events += len(records)
                found += sum(record.value.count(b'{"cols":[') for record in records)
        finally:
            reader.close()
        if found != rows:
            raise BenchError(f"the topic holds {found} rows of {rows}")
        return events


def scaled(part: Cost, startup: Cost, factor: float) -> Cost:
    """The cost of reading `factor` times as much."""
    seconds = startup.seconds + factor * (part.seconds - startup.seconds)
    return Cost(seconds, startup.cpu + factor * (part.cpu - startup.cpu), part.peak)


def body(options: argparse.Namespace, bench: Bench) -> None:
    leader = bench.server("leader", 1, (*LEADER, *RELAXED))
    prepare(leader)
    many_rows(bench, leader, options.rows)
    single_rows(bench, leader, options.transactions)
    one_transaction(bench, leader, options.transaction_rows)


def write(bench: Bench, leader: MySQLServer, what: str, action: Callable[[], None]) -> Readers:
    """Write a workload into a binlog of its own."""
    create_table(leader)
    leader.execute("FLUSH BINARY LOGS")
    start = binlog_end(leader)
    bench.say(f"writing {what} on the leader")
    action()
    return Readers(bench, leader, start, binlog_end(leader))


def many_rows(bench: Bench, leader: MySQLServer, rows: int) -> None:
    what = f"{count(rows)} rows of 10 columns, in statements of 1,000"
    readers = write(bench, leader, what, partial(insert_statements, leader, rows))
    results = readers.compare("rows", rows)
    table(what, "rows", list(results.values()), *events(readers, results, rows), *reached(results, 8, TO_NULL, TO_FILE))


def single_rows(bench: Bench, leader: MySQLServer, transactions: int) -> None:
    what = f"{count(transactions)} transactions of one row"
    readers = write(bench, leader, what, partial(insert_single_rows, leader, transactions))
    results = readers.compare("single rows", transactions)
    table(what, "rows", list(results.values()), *events(readers, results, transactions), *reached(results, 4))


def one_transaction(bench: Bench, leader: MySQLServer, rows: int) -> None:
    what = f"one transaction of {count(rows)} rows"
    readers = write(bench, leader, what, partial(insert_statements, leader, rows, one_transaction=True))
    startup = readers.capture(binlog_end(leader).partition(":")[2])
    result = Result(CAPTURE, rows, bench.alternate(what, {CAPTURE: readers.capture})[CAPTURE], startup)
    note = f"to reach: below {MAX_PEAK} MB, found {result.cost.peak:.0f} MB"
    table(what, "rows", [result], *events(readers, {CAPTURE: result}, rows), note)


def events(readers: Readers, results: dict[str, Result], rows: int) -> list[str]:
    """Notes on what was read; checks the topic."""
    found = readers.captured(rows)
    notes = [f"{count(found)} events in the topic, {count(found / results[CAPTURE].cost.seconds)} events/s"]
    if LIBRARY in results:
        notes.append(f"{LIBRARY} read one row in {FRACTION}; its figures are scaled")
    return notes


def reached(results: dict[str, Result], library: float, *others: str) -> list[str]:
    """Notes on what is to be reached, with and without start-up."""
    capture = results[CAPTURE]
    return [
        f"to reach: {times(wanted)} {name}, found {times(capture.rate / results[name].rate)},"
        f" after start-up {times(capture.steady / results[name].steady)}"
        for name, wanted in {LIBRARY: library, **dict.fromkeys(others, 1.0)}.items()
    ]


if __name__ == "__main__":
    parser = arguments(__doc__, rows=1_000_000, runs=3)
    parser.add_argument("--transactions", type=positive, default=100_000, metavar="N", help="transactions of one row")
    parser.add_argument(
        "--transaction-rows", type=positive, default=1_000_000, metavar="N", help="rows of the largest transaction"
    )
    chosen = parser.parse_args()
    sys.exit(main(chosen, partial(body, chosen)))
