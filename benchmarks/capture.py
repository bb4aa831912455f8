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
from report import Cost, Result, count, show, table, times
from workloads import (
    DATABASE,
    create_table,
    create_tables,
    insert_in_turn,
    insert_single_rows,
    insert_statements,
    insert_wide,
    prepare,
    update,
)

from cdc_producer.profile import load_producer
from docker.local.mysql_servers import LEADER, RELAXED, MySQLServer
from shared.topic import open_reader

CAPTURE, TO_NULL, TO_FILE, LIBRARY = "capture", "mysqlbinlog > /dev/null", "mysqlbinlog > file", "mysql-replication"
#: mysql-replication reads one row in ten
FRACTION = 10
#: MB the producer may grow to, whatever the size of a transaction
MAX_PEAK = 120
#: tables that transactions change in turn, and whether they have equal columns
TABLES = ((1, True), (10, True), (1000, True), (10_000, True), (10_000, False))


class Readers:
    """The ways to read what the leader wrote between two positions of one binlog."""

    def __init__(self, bench: Bench, leader: MySQLServer, start: str, end: str, include: str = DATABASE) -> None:
        """`start` and `end` are "file:offset"; capture includes one database."""
        self._bench = bench
        self._leader = leader
        self._include = include
        self._file, _, self._start = start.partition(":")
        _, _, self._end = end.partition(":")

    @property
    def binlog_bytes(self) -> int:
        """Of the binlog between the two."""
        return int(self._end) - int(self._start)

    def capture(self, start: str | None = None) -> Cost:
        """The whole program, into a new topic."""
        folder = self._bench.folder / "capture"
        shutil.rmtree(folder, ignore_errors=True)
        position = f"{self._file}:{start or self._start}"
        # its consumer's profile is not used
        profiles = write_profiles(folder, self._leader, self._leader, include_dbs=[self._include], start=position)
        return self._bench.run("producer", program("cdc_producer", profiles.producer, "--exit-at-end")).cost()

    def mysqlbinlog(self, output: Path, start: str | None = None) -> Cost:
        options = ["-vv", "--base64-output=decode-rows", "--read-from-remote-server", f"--result-file={output}"]
        place = [f"--start-position={start or self._start}", f"--stop-position={self._end}", self._file]
        return self._bench.run("mysqlbinlog", [*self._leader.client("mysqlbinlog"), *options, *place]).cost()

    def library(self, rows: int, start: str | None = None) -> Cost:
        script = str(Path(__file__).with_name("iterate.py"))
        place = [self._leader.host, str(self._leader.port), self._file, start or self._start, str(rows)]
        return self._bench.run("mysql-replication", [sys.executable, script, *place]).cost()

    def compare(self, label: str, rows: int, *, all_peers: bool = True) -> dict[str, Result]:
        """Measure capture and its peers on `rows` rows, and where there is nothing to read."""
        part, file = max(1, rows // FRACTION), self._bench.folder / "mysqlbinlog.txt"
        ways: dict[str, Callable[[str | None], Cost]] = {TO_NULL: partial(self.mysqlbinlog, Path("/dev/null"))}
        if all_peers:
            ways |= {TO_FILE: partial(self.mysqlbinlog, file), LIBRARY: partial(self.library, part)}
        ways[CAPTURE] = self.capture  # last, so that its topic is the one to look at
        nothing = {name: partial(way, self._end) for name, way in ways.items()} | {
            name: partial(self.library, 1, self._end) for name in ways if name == LIBRARY
        }
        startups = self._bench.alternate(f"{label}, nothing to read", nothing)
        costs = self._bench.alternate(label, {name: partial(way, None) for name, way in ways.items()})
        if all_peers:
            file.unlink()
            costs[LIBRARY] = scaled(costs[LIBRARY], startups[LIBRARY], rows / part)
        names = (CAPTURE, *(name for name in ways if name != CAPTURE))
        return {name: Result(name, rows, costs[name], startups[name]) for name in names}

    def topic_bytes(self) -> int:
        """What the topic takes on disk."""
        return sum(file.stat().st_size for file in (self._bench.folder / "capture" / "topics").iterdir())

    def captured(self, rows: int, row: bytes = b'{"cols":[') -> int:
        """Events in the topic. Raises BenchError when they do not hold `rows` rows, which begin with `row`."""
        events = found = 0
        reader = open_reader(load_producer(self._bench.folder / "capture" / "producer.toml").topic)
        try:
            while records := reader.read(0.0):
                events += len(records)
                found += sum(record.value.count(row) for record in records)
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
    updates(bench, leader, options.rows // 5)
    wide_rows(bench, leader, options.rows // 10)
    tables_in_turn(bench, leader, options.transactions // 2)
    left_out(bench, leader, options.transactions)


def write(
    bench: Bench, leader: MySQLServer, what: str, action: Callable[[], None], *, anew: bool = True,
    include: str = DATABASE,
) -> Readers:  # fmt: skip
    """Write a workload into a binlog of its own; `anew` begins with an empty table."""
    if anew:
        create_table(leader)
    leader.execute("FLUSH BINARY LOGS")
    start = binlog_end(leader)
    bench.say(f"writing {what} on the leader")
    action()
    return Readers(bench, leader, start, binlog_end(leader), include)


def many_rows(bench: Bench, leader: MySQLServer, rows: int) -> None:
    what = f"{count(rows)} rows of 10 columns, in statements of 1,000"
    readers = write(bench, leader, what, partial(insert_statements, leader, rows))
    results = readers.compare("rows", rows)
    table(
        what,
        "rows",
        list(results.values()),
        *events(readers, results, rows),
        *reached(results, {LIBRARY: 8, TO_NULL: 1, TO_FILE: 1}),
    )


def single_rows(bench: Bench, leader: MySQLServer, transactions: int) -> None:
    what = f"{count(transactions)} transactions of one row"
    readers = write(bench, leader, what, partial(insert_single_rows, leader, transactions))
    results = readers.compare("single rows", transactions)
    table(
        what,
        "rows",
        list(results.values()),
        *events(readers, results, transactions),
        *reached(results, {LIBRARY: 4, TO_NULL: 0.5}),
    )


def one_transaction(bench: Bench, leader: MySQLServer, rows: int) -> None:
    what = f"one transaction of {count(rows)} rows"
    readers = write(bench, leader, what, partial(insert_statements, leader, rows, one_transaction=True))
    startup = readers.capture(binlog_end(leader).partition(":")[2])
    result = Result(CAPTURE, rows, bench.alternate(what, {CAPTURE: readers.capture})[CAPTURE], startup)
    note = f"to reach: below {MAX_PEAK} MB, found {result.cost.peak:.0f} MB"
    table(what, "rows", [result], *events(readers, {CAPTURE: result}, rows), note)


def updates(bench: Bench, leader: MySQLServer, rows: int) -> None:
    create_table(leader)
    insert_statements(leader, rows)
    what = f"{count(rows)} rows updated, 1,000 a statement"
    readers = write(bench, leader, what, partial(update, leader, rows), anew=False)
    results = readers.compare("updates", rows, all_peers=False)
    notes = events(readers, results, rows, b'{"before_cols":[')
    table(what, "rows", list(results.values()), *notes, *reached(results, {TO_NULL: 0.9}))


def wide_rows(bench: Bench, leader: MySQLServer, rows: int) -> None:
    what = f"{count(rows)} rows of 20 columns of all types, JSON and BLOB among them"
    readers = write(bench, leader, what, partial(insert_wide, leader, rows))
    results = readers.compare("wide rows", rows, all_peers=False)
    table(what, "rows", list(results.values()), *events(readers, results, rows), *reached(results, {TO_NULL: 0.6}))


def tables_in_turn(bench: Bench, leader: MySQLServer, transactions: int) -> None:
    """The same transactions, in one table or in very many."""
    lines = []
    for tables, equal in TABLES:
        name = "turn" if equal else "other"
        create_tables(leader, name, tables, equal=equal)
        kind = f"{count(tables)} {'equal' if equal else 'different'}"
        what = f"{count(transactions)} transactions in {kind} tables"
        readers = write(bench, leader, what, partial(insert_in_turn, leader, transactions, name, tables))
        results = readers.compare(what, transactions, all_peers=False)
        events(readers, results, transactions)
        capture, peer = results[CAPTURE], results[TO_NULL]
        micros = 1e6 * (capture.cost.cpu - capture.startup.cpu) / transactions
        lines.append((kind, f"{capture.cost.seconds:.2f}", f"{micros:.0f}", times(capture.rate / peer.rate)))
    names = ("tables", "seconds", "CPU µs a transaction", TO_NULL)
    show(f"{count(transactions)} transactions of one row, in so many tables in turn", names, lines)


def left_out(bench: Bench, leader: MySQLServer, transactions: int) -> None:
    """Transactions of a database that the profile does not include."""
    what = f"{count(transactions)} transactions of one row, all left out by the filter"
    readers = write(bench, leader, what, partial(insert_single_rows, leader, transactions), include="other")
    results = readers.compare("left out", transactions, all_peers=False)
    capture = results[CAPTURE]
    micros = 1e6 * (capture.cost.cpu - capture.startup.cpu) / transactions
    table(what, "rows", list(results.values()), f"to reach: 10 µs of CPU a transaction, found {micros:.1f}")


def events(readers: Readers, results: dict[str, Result], rows: int, row: bytes = b'{"cols":[') -> list[str]:
    """Notes on what was read; checks the topic."""
    found, size = readers.captured(rows, row), readers.topic_bytes()
    notes = [
        f"{count(found)} events in the topic, {count(found / results[CAPTURE].cost.seconds)} events/s;"
        f" it has {size / 1e6:.1f} MB, {times(size / readers.binlog_bytes)} the binlog"
    ]
    if LIBRARY in results:
        notes.append(f"{LIBRARY} read one row in {FRACTION}; its figures are scaled")
    return notes


def reached(results: dict[str, Result], wanted: dict[str, float]) -> list[str]:
    """Notes on what is to be reached, with and without start-up."""
    capture = results[CAPTURE]
    return [
        f"to reach: {times(factor)} {name}, found {times(capture.rate / results[name].rate)},"
        f" after start-up {times(capture.steady / results[name].steady)}"
        for name, factor in wanted.items()
    ]


if __name__ == "__main__":
    parser = arguments(__doc__, rows=1_000_000, runs=3)
    parser.add_argument("--transactions", type=positive, default=100_000, metavar="N", help="transactions of one row")
    parser.add_argument(
        "--transaction-rows", type=positive, default=1_000_000, metavar="N", help="rows of the largest transaction"
    )
    chosen = parser.parse_args()
    sys.exit(main(chosen, partial(body, chosen)))
