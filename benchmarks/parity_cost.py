"""What a program costs together with the processes it starts and the servers it asks."""

from __future__ import annotations

import ctypes
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import BenchError, cpu_seconds

from docker.local.mysql_servers import MySQLServer
from docker.local.processes import Child

#: seconds between two looks at the sizes of the processes
LOOK_SECONDS = 0.1
#: what a process left behind may take to end by itself
PATIENCE = 60.0
#: Linux: orphans of this process's children become its own children, so that their CPU time is told
SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Bill:
    """One run of a program."""

    #: wall time until the program itself had ended
    seconds: float
    #: user and system time of all its processes and, in that time, of the servers
    cpu: float
    #: peak resident size in MB by kind of process: "driver", "Java", "Python workers"
    peaks: Mapping[str, float] = field(default_factory=dict)


def adopt_orphans() -> None:
    """Needed once, before the first Program."""
    ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Program(Child):
    """A program whose processes are watched until the last of them has ended."""

    def __init__(self, command: Sequence[str], log: Path, env: Mapping[str, str], servers: Sequence[MySQLServer]):
        self._servers = servers
        self._before = self._servers_cpu()
        self._began = time.perf_counter()
        super().__init__(command, log, env=env)
        self._sizes: dict[str, dict[int, int]] = {"driver": {}, "Java": {}, "Python workers": {}}
        threading.Thread(target=self._watch, daemon=True).start()

    def bill(self, *expected: int) -> Bill:
        """Wait for its end. Raises BenchError when its exit status is none of `expected`."""
        _, status, usage = os.wait4(self.pid, 0)
        seconds = time.perf_counter() - self._began
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._ended()
        cpu = usage.ru_utime + usage.ru_stime + self._orphans_cpu() + self._servers_cpu() - self._before
        if self._process.returncode not in expected:
            raise BenchError(f"a program ended with status {self._process.returncode}:\n{self.tail()}")
        workers = sum(self._sizes["Python workers"].values())
        peaks = {"driver": self._largest("driver"), "Java": self._largest("Java"), "Python workers": workers}
        return Bill(seconds, cpu, {kind: size / 1024 for kind, size in peaks.items()})

    def _largest(self, kind: str) -> int:
        # the short-lived Java that puts a command line together is not counted beside the one that matters
        return max(self._sizes[kind].values(), default=0)

    def _servers_cpu(self) -> float:
        return sum(cpu_seconds(server.pid) for server in self._servers)

    def _orphans_cpu(self) -> float:
        """Wait for those that have outlived it; their CPU time."""
        deadline = time.monotonic() + PATIENCE
        found = 0.0
        while orphans := [pid for pid in _children(os.getpid()) if _session(pid) == self.pid]:
            if time.monotonic() > deadline:
                raise BenchError(f"process {orphans[0]} does not end")
            for pid in orphans:
                ended, _, usage = os.wait4(pid, os.WNOHANG)
                if ended:
                    found += usage.ru_utime + usage.ru_stime
            time.sleep(LOOK_SECONDS)
        return found

    def _watch(self) -> None:
        while self._process.returncode is None:
            for pid in _tree(self.pid):
                try:
                    words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
                    peak = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
                except OSError:
                    continue
                if peak is not None and (kind := self._kind(pid, words)):
                    self._sizes[kind][pid] = int(peak[1])
            time.sleep(LOOK_SECONDS)

    def _kind(self, pid: int, words: str) -> str:
        if pid == self.pid:
            return "driver"
        if words.partition("\0-m\0")[2].startswith("pyspark."):
            return "Python workers"
        return "Java" if words.partition("\0")[0].endswith("java") else ""


def _tree(pid: int) -> Iterator[int]:
    """A process and all below it."""
    yield pid
    for child in _children(pid):
        yield from _tree(child)


def _children(pid: int) -> list[int]:
    """Those of all its threads."""
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in path.read_text().split()]
        except OSError:
            continue
    return found


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0
