"""Fuzz: python tests/fuzz/run.py TARGET... --runs N. Workers try inputs, this watches them and tells the totals."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import mmap
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# run as a script from a working copy that need not be installed
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from fuzz.targets import TARGETS  # noqa: E402
from fuzz.worker import LARGEST, LENGTH, Totals, work  # noqa: E402

#: seconds without a report after which a worker is killed: it hangs where no signal reaches it
PATIENCE = 600.0
FOUND = Path(__file__).with_name("found")


class Worker:
    """One process at work on a part of the runs; a new one takes the place of one that dies."""

    def __init__(self, name: str, engine: str, runs: int, number: int) -> None:
        self._job = (name, engine)
        self._runs = runs
        self._number = number
        self.totals = Totals()
        #: of those before the one that works now
        self._before = Totals()
        self._shared = tempfile.NamedTemporaryFile()  # noqa: SIM115  # as long as the worker
        self._shared.truncate(LENGTH.size + LARGEST)
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.reports, theirs = context.Pipe(duplex=False)
        left = self._runs - self.totals.inputs
        arguments = (*self._job, left, self._number, self._shared.name, theirs)
        self._process = context.Process(target=work, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._heard = time.monotonic()

    def look(self) -> bool:
        """Take what it reports; False when all is done."""
        try:
            while self.reports.poll():
                report = self.reports.recv()
                self._heard = time.monotonic()
                self.totals = Totals()
                self.totals.add(self._before)
                self.totals.add(report)
            ended = False
        except EOFError:
            ended = True
        if ended:
            self._process.join()
            return self._ended(f"died with status {self._process.exitcode}")
        if time.monotonic() - self._heard > PATIENCE:
            self._process.kill()
            self._process.join()
            return self._ended(f"hung for {PATIENCE:g} s")
        return True

    def _ended(self, how: str) -> bool:
        self.reports.close()
        if self.totals.inputs >= self._runs:
            return False
        with closing(mmap.mmap(self._shared.fileno(), LENGTH.size + LARGEST)) as hand:
            (size,) = LENGTH.unpack_from(hand)
            if not size:
                raise RuntimeError(f"a worker {how} before its first input")
            self.totals.fail(how, hand[LENGTH.size : LENGTH.size + size])
        self._before = self.totals
        self._number += 1_000_003
        if self.totals.inputs >= self._runs:
            return False
        self._start()
        return True

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def fuzz(name: str, runs: int, *, engine: str = "plain", number: int = 0, workers: int = 1) -> Totals:
    """Try `runs` inputs of a target with so many processes; `number` chooses other inputs."""
    parts = [runs // workers + (index < runs % workers) for index in range(workers)]
    running = [Worker(name, engine, part, number + index) for index, part in enumerate(parts) if part]
    done: list[Worker] = []
    stopped = False
    try:
        while running:
            multiprocessing.connection.wait([worker.reports for worker in running], 1.0)
            done += [worker for worker in running if not worker.look()]
            running = [worker for worker in running if worker not in done]
    except KeyboardInterrupt:
        stopped = True
    finally:
        for worker in running:
            worker.kill()
    totals = Totals(stopped=stopped)
    for worker in (*done, *running):
        totals.add(worker.totals)
    return totals


def save(name: str, totals: Totals) -> None:
    """Keep an input of each kind of failure."""
    for data in totals.examples.values():
        folder = FOUND / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=TARGETS, metavar="TARGET", help=f"of {', '.join(TARGETS)}; all")
    parser.add_argument("--runs", type=int, default=100_000, metavar="N", help="inputs of each target")
    parser.add_argument("--number", type=int, default=int(time.time()), metavar="N", help="chooses the inputs")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes")
    atheris = "atheris" if importlib.util.find_spec("atheris") else "plain"
    parser.add_argument("--engine", choices=("plain", "atheris"), default=atheris, help="atheris is guided by coverage")
    options = parser.parse_args(arguments)
    failed = False
    for name in options.targets:
        began = time.monotonic()
        totals = fuzz(name, options.runs, engine=options.engine, number=options.number, workers=options.workers)
        save(name, totals)
        failed |= bool(totals.failures)
        print(
            f"{name}: {totals}, slowest {totals.slowest:.2f} s, {time.monotonic() - began:.0f} s, {options.engine}",
            flush=True,
        )
        for what, count in totals.failures.most_common():
            print(f"  {count:,} {what}", flush=True)
        if totals.stopped:
            return 130
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
