"""What every benchmark does the same way: servers, children whose cost is known, taking turns, cleaning up."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# run as a script from a working copy that need not be installed
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from kit.programs import ENVIRONMENT  # noqa: E402
from report import Cost, fastest, machine  # noqa: E402

from docker.local.get_mysql import NoMySQLError  # noqa: E402
from docker.local.mysql_servers import MySQLServer, NativeServer, ServerError, start_server  # noqa: E402
from docker.local.processes import Child, uninterrupted  # noqa: E402
from docker.local.screen import dim  # noqa: E402

#: of the programs: their byte code is kept, as where they are installed
PROGRAMS = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONDONTWRITEBYTECODE"}
#: binlogs never end by themselves, so that a workload is in one file
ONE_BINLOG = "--max-binlog-size=1G"
#: how often (seconds) the size of a child is looked at
PEAK_SECONDS = 0.02
#: how often a sync is measured
SYNCS = 200


class BenchError(Exception):
    """The benchmark cannot go on; the text is for people."""


class Run(Child):
    """A child whose cost is known when it has ended."""

    def __init__(self, command: Sequence[str], log: Path, env: Mapping[str, str]) -> None:
        self._began = time.perf_counter()
        super().__init__(command, log, env=env)
        self._peaks: dict[int, int] = {}
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """Look at the size of the process and its children until it ends.

        The kernel's ru_maxrss begins with the size of this process, of which the child is a copy at first.
        """
        while sizes := peaks(self.pid):
            self._peaks.update(sizes)
            time.sleep(PEAK_SECONDS)

    def cost(self) -> Cost:
        """Wait for its end. Raises BenchError unless it ended with status 0, and not before it was to end."""
        if self._process.returncode is not None:
            raise BenchError(f"a child ended early with status {self._process.returncode}:\n{self.tail()}")
        _, status, usage = os.wait4(self.pid, 0)
        seconds = time.perf_counter() - self._began
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._ended()
        if self._process.returncode != 0:
            raise BenchError(f"a child ended with status {self._process.returncode}:\n{self.tail()}")
        return Cost(seconds, usage.ru_utime + usage.ru_stime, sum(self._peaks.values()) / 1024)


def peaks(pid: int) -> dict[int, int]:
    """Peak resident size in KB so far of a process and of its children, by process id; {} when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return {}
    found = re.search(r"VmHWM:\s*(\d+)", status)
    if found is None:
        return {}
    sizes = {pid: int(found[1])}
    for child in children:
        sizes |= peaks(int(child))
    return sizes


def cpu_seconds(pid: int) -> float:
    """User and system time of a running process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sync_seconds(folder: Path) -> float:
    """Measure how long a commit waits, in the middle: until a file that has grown by some bytes is on the disk."""
    found = []
    with open(folder / "synced", "wb", buffering=0) as file:
        for _ in range(SYNCS):
            file.write(bytes(512))
            began = time.perf_counter()
            os.fdatasync(file.fileno())
            found.append(time.perf_counter() - began)
    return statistics.median(found)


class Bench:
    """One benchmark under way: a temporary folder, servers in it, everything gone afterwards."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack, runs: int, keep: bool) -> None:
        self.folder = folder
        self.runs = runs
        self._keep = keep
        self._stack = stack
        self._began = time.monotonic()

    def server(self, name: str, server_id: int, options: Sequence[str]) -> MySQLServer:
        """An empty server that ends with the benchmark."""
        server = start_server(self.folder / name, server_id=server_id, options=(*options, ONE_BINLOG))
        self._stack.callback(server.stop if self._keep else server.close)
        return server

    def run(self, name: str, command: Sequence[str], env: Mapping[str, str] = PROGRAMS) -> Run:
        """Start a program; it is killed with the benchmark. What it writes goes to the log `name`."""
        child = Run(command, self.folder / f"{name}.log", env)
        self._stack.callback(child.kill)
        return child

    def say(self, text: str) -> None:
        """Show what is going on, with the seconds so far."""
        print(dim(f"{time.monotonic() - self._began:6.1f} s  {text}"), flush=True)

    def alternate(self, label: str, contenders: Mapping[str, Callable[[], Cost]]) -> dict[str, Cost]:
        """Measure all of them in turn, `runs` times, so that what disturbs one disturbs all; the fastest runs."""
        costs: dict[str, list[Cost]] = {name: [] for name in contenders}
        for number in range(self.runs):
            for name, measure in contenders.items():
                cost = measure()
                costs[name].append(cost)
                self.say(f"{label}, run {number + 1} of {self.runs}, {name}: {cost.seconds:.2f} s")
        return {name: fastest(found) for name, found in costs.items()}


def beside(server: MySQLServer) -> dict[str, object]:
    """Where a program on the same machine reaches it: without a network, as a replica reads its relay log."""
    if not isinstance(server, NativeServer):
        return {}
    return {"host": None, "port": None, "unix_socket": str(server.socket)}


def program(module: str, profile: Path, *options: str) -> list[str]:
    """The words that run cdc_producer or cdc_consumer."""
    return [sys.executable, "-m", module, str(profile), *options]


def arguments(description: str | None, rows: int, runs: int) -> argparse.ArgumentParser:
    """The options all benchmarks have, with their defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rows", type=positive, default=rows, metavar="N", help="rows of the largest workload")
    parser.add_argument("--runs", type=positive, default=runs, metavar="N", help="measurements of each")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all data and logs")
    return parser


def positive(text: str) -> int:
    """An argument that is a whole number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def main(options: argparse.Namespace, body: Callable[[Bench], None]) -> int:
    """Run a benchmark in a folder of its own; returns the exit status."""
    # a polite kill cleans up like Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with uninterrupted():
        folder = Path(tempfile.mkdtemp(prefix="mysql-cdc-bench-"))
    try:
        with contextlib.ExitStack() as stack:
            print(machine(), flush=True)
            bench = Bench(folder, stack, options.runs, options.keep)
            body(bench)
            bench.say("done")
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except (BenchError, NoMySQLError, ServerError) as error:
        print(f"benchmark failed: {error}", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 0
