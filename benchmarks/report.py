"""Measured figures, and the tables they are printed in."""

from __future__ import annotations

import math
import os
import platform
import sqlite3
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

from docker.local.get_mysql import find_mysql
from docker.local.screen import bold, draw


@dataclass(frozen=True, slots=True)
class Cost:
    """What one piece of work took, from its start to its end."""

    #: wall time
    seconds: float
    #: user and system time of the process and its children
    cpu: float
    #: peak resident size in MB of the process and its children; 0 where it was not looked at
    peak: float
    #: user and system time of the server that it wrote to, where that is counted
    server: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """One contender on a workload of `units` rows or transactions."""

    name: str
    units: int
    cost: Cost
    #: what it takes when there is nothing to do
    startup: Cost

    @property
    def rate(self) -> float:
        """Units per second from start to end."""
        return self.units / self.cost.seconds

    @property
    def steady(self) -> float:
        """Units per second without the time that nothing takes; NaN when that is most of it."""
        seconds = self.cost.seconds - self.startup.seconds
        return self.units / seconds if seconds > self.startup.seconds else math.nan


def fastest(costs: Sequence[Cost]) -> Cost:
    """The run of least wall time, its CPU time with it: other work only makes slower; the peak is that of all runs."""
    least = min(costs, key=lambda cost: cost.seconds)
    return replace(least, peak=max(cost.peak for cost in costs))


def table(title: str, unit: str, results: Sequence[Result], *notes: str) -> None:
    """Print one workload; the columns with an x say how many times as fast as each contender the first one is."""
    first = results[0]
    show(
        title,
        ("", "seconds", "CPU s", "peak MB", f"{unit}/s", "", "start-up s", f"{unit}/s after it", ""),
        (
            (
                result.name, f"{result.cost.seconds:.2f}", f"{result.cost.cpu:.2f}",
                f"{result.cost.peak:.0f}" if result.cost.peak else "", count(result.rate),
                times(first.rate / result.rate), f"{result.startup.seconds:.2f}", count(result.steady),
                times(first.steady / result.steady),
            )
            for result in results
        ),
        *notes,
    )  # fmt: skip


def show(title: str, names: Sequence[str], rows: Iterable[Sequence[object]], *notes: str) -> None:
    """Print a table with what must be known to read it."""
    print("\n" + bold(title))
    print("\n".join(draw(names, rows)))
    for note in notes:
        print(note)
    print(flush=True)


def count(number: float) -> str:
    return "?" if math.isnan(number) else f"{number:,.0f}"


def times(factor: float) -> str:
    if math.isnan(factor):
        return "?"
    return f"{factor:.2f}x" if factor < 10 else f"{factor:.1f}x"


def percentiles(seconds: Sequence[float]) -> list[str]:
    """p50, p90, p99 and max, in milliseconds."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return [f"{1000 * value:.1f}" for value in (cuts[49], cuts[89], cuts[98], max(seconds))]


def machine() -> str:
    """Where and with what the figures are measured, and how busy it was before."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    packages = ", ".join(f"{name} {version(name)}" for name in ("mysql-replication", "PyMySQL", "orjson"))
    return (
        f"{cores} cores, {platform.system()} {platform.machine()}, load {os.getloadavg()[0]:.1f} before;"
        f" {find_mysql()}; Python {platform.python_version()}, {packages}, SQLite {sqlite3.sqlite_version}"
    )
