"""The audit of two tables, whole processes with Spark's start, beside pt-table-checksum, pt-table-sync and reladiff."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version

from bench import Bench, arguments, main
from parity_contenders import Audit, Contender, Found, Servers, peers
from parity_cost import Bill, adopt_orphans
from parity_data import Kind, fill, plant
from report import count, show, times

from docker.local.mysql_servers import FOLLOWER, LEADER, RELAXED

FIRST = "cdc-parity, first run ever"


def body(options: argparse.Namespace, bench: Bench) -> None:
    adopt_orphans()
    servers = Servers(
        bench.server("leader", 1, (*LEADER, *RELAXED)),
        bench.server("follower", 2, (*FOLLOWER, *RELAXED)),
    )
    bench.say(f"PySpark {version('pyspark')}; writing {count(options.rows)} rows on both servers")
    fill(servers, options.rows)
    planted = plant(*servers, options.rows)
    others, skipped = peers(bench, servers)
    audit = Audit(bench, servers)
    race = Race(bench, planted)
    race.run(FIRST, audit)
    for _ in range(options.runs):
        for contender in (audit, *others):
            race.run(contender.name, contender)
    race.report(options.rows, skipped)


class Race:
    """All runs of all contenders."""

    def __init__(self, bench: Bench, planted: Mapping[int, Kind]) -> None:
        self._bench = bench
        self._planted = planted
        self._bills: dict[str, list[Bill]] = {}
        self._found: dict[str, list[Found]] = {}

    def run(self, name: str, contender: Contender) -> None:
        contender.prepare()
        bill = contender.run()
        self._bench.say(f"{name}: {bill.seconds:.2f} s")
        self._bills.setdefault(name, []).append(bill)
        self._found.setdefault(name, []).append(contender.found(frozenset(self._planted)))

    def report(self, rows: int, skipped: Sequence[str]) -> None:
        ours = _middle(self._bills[Audit.name]).seconds
        show(
            f"{count(rows)} rows of 10 columns, {len(self._planted)} of them differ",
            ("", "best s", "median s", "CPU s", "", "found", "missed", "false"),
            [self._line(name, ours) for name in (*(name for name in self._bills if name != FIRST), FIRST)],
            "CPU: of all its processes and both servers, in the median run. x: its median beside the audit's.",
            *skipped,
            *self._memory(),
        )

    def _line(self, name: str, ours: float) -> Sequence[object]:
        bills = sorted(self._bills[name], key=lambda bill: bill.seconds)
        middle = bills[(len(bills) - 1) // 2]
        figures = (
            f"{bills[0].seconds:.2f}",
            f"{middle.seconds:.2f}",
            f"{middle.cpu:.1f}",
            times(middle.seconds / ours),
        )
        told = [found.rows for found in self._found[name]]
        if None in told:
            return name, *figures, "no rows told", "", ""
        # of the run that found least
        right = min((self._planted.keys() & (rows or ()) for rows in told), key=len)
        missed = {kind.name: None for row, kind in self._planted.items() if row not in right}
        false = max(
            len((found.rows or set()) - self._planted.keys()) + found.false_chunks for found in self._found[name]
        )
        return name, *figures, f"{len(right)} of {len(self._planted)}", ", ".join(missed), false

    def _memory(self) -> list[str]:
        peaks: dict[str, float] = {}
        for bill in self._bills[Audit.name]:
            for kind, size in bill.peaks.items():
                peaks[kind] = max(size, peaks.get(kind, 0.0))
        told = ", ".join(f"{kind} {size:.0f} MB" for kind, size in peaks.items())
        return [f"peak memory of {Audit.name}: {told}"]


def _middle(bills: Sequence[Bill]) -> Bill:
    """The run of median wall time."""
    return sorted(bills, key=lambda bill: bill.seconds)[(len(bills) - 1) // 2]


if __name__ == "__main__":
    chosen = arguments(__doc__, rows=200_000, runs=3).parse_args()
    sys.exit(main(chosen, partial(body, chosen)))
