"""A worker: gives one target its inputs, one after the other, and counts what comes of them.

The input in hand is in a shared memory before it is tried, so that what kills the worker is known.
"""

from __future__ import annotations

import hashlib
import logging
import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from fuzz.mutate import Mutator
from fuzz.targets import Target, load_target
from shared.errors import CdcError

#: what one input may take: seconds of CPU time, bytes of memory
SECONDS, MEMORY = 1.0, 256 << 20
#: what atheris keeps for itself besides
ATHERIS_MEMORY = 1 << 30
#: inputs between two reports
REPORT_EVERY = 500
LARGEST = 1 << 20
LENGTH = struct.Struct("<I")
HERE = str(Path(__file__).parent)


class TooSlowError(BaseException):
    """No `except Exception` of the code under test catches it."""


@dataclass
class Totals:
    """What came of the inputs so far."""

    exact: int = 0
    refused: int = 0
    #: by what went wrong and where: how often
    failures: Counter[str] = field(default_factory=Counter)
    #: by the same: an input
    examples: dict[str, bytes] = field(default_factory=dict)
    slowest: float = 0.0
    #: whether somebody ended it before its time
    stopped: bool = False

    @property
    def inputs(self) -> int:
        return self.exact + self.refused + sum(self.failures.values())

    def fail(self, what: str, data: bytes) -> None:
        self.failures[what] += 1
        self.examples.setdefault(what, data)

    def add(self, other: Totals) -> None:
        self.exact += other.exact
        self.refused += other.refused
        self.failures.update(other.failures)
        self.examples = other.examples | self.examples
        self.slowest = max(self.slowest, other.slowest)

    def __str__(self) -> str:
        failed = sum(self.failures.values())
        return f"{self.inputs:,} inputs: {self.exact:,} exact, {self.refused:,} refused by name, {failed:,} failed"


class Trial:
    """Tries inputs of one target, with limits of time and memory."""

    def __init__(self, target: Target) -> None:
        self._check = target.check
        self.totals = Totals()
        signal.signal(signal.SIGPROF, _too_slow)

    def __call__(self, data: bytes) -> None:
        began = time.process_time()
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                self._check(data)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            self.totals.exact += 1
        except CdcError:
            self.totals.refused += 1
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.totals.fail(place(error), data)
        self.totals.slowest = max(self.totals.slowest, time.process_time() - began)


def _too_slow(*_: object) -> None:
    raise TooSlowError(f"more than {SECONDS:g} s")


def place(error: BaseException) -> str:
    """Kind of a failure: the exception, and the last line of the program that it passed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(HERE)]
    where = f"{'/'.join(frames[-1].filename.split('/')[-2:])}:{frames[-1].lineno}" if frames else "the oracle"
    text = str(error).splitlines()[0][:100] if str(error) else ""
    return f"{type(error).__name__} at {where}" if frames else f"{type(error).__name__} ({text})"


def limit_memory(allowance: int) -> None:
    """From here on the process may grow by so many bytes; beyond it Python raises MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + allowance
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def work(name: str, engine: str, runs: int, number: int, shared: str, reports: Connection) -> None:
    """Try `runs` inputs of a target; `number` tells which. What is in hand is in the file `shared`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()
    target = _target(name, engine)
    trial = Trial(target)
    mutator = Mutator(target.seeds(), number)
    with open(shared, "r+b") as file:
        hand = mmap.mmap(file.fileno(), LENGTH.size + LARGEST)

    def one(data: bytes) -> None:
        data = data[:LARGEST]
        hand[: LENGTH.size + len(data)] = LENGTH.pack(len(data)) + data
        trial(data)
        if trial.totals.inputs % REPORT_EVERY == 0 or trial.totals.inputs == runs:
            reports.send(trial.totals)
            if trial.totals.inputs == runs:
                reports.close()
                os._exit(0)

    if engine == "atheris":
        _atheris(target, one, number)
    limit_memory(MEMORY)
    while True:
        one(mutator.next())


def _target(name: str, engine: str) -> Target:
    if engine == "plain":
        return load_target(name)
    import atheris

    with atheris.instrument_imports(include=["cdc_producer", "cdc_consumer", "shared"]):
        return load_target(name)


def _atheris(target: Target, one: Callable[[bytes], None], number: int) -> None:
    """Coverage-guided: what reaches new code is altered further. Does not return."""
    import atheris

    with TemporaryDirectory(prefix="mysql-cdc-fuzz-") as corpus:
        for seed in target.seeds():
            Path(corpus, hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
        limit_memory(MEMORY + ATHERIS_MEMORY)
        options = [f"-seed={number}", "-max_len=8192", "-rss_limit_mb=0", "-timeout=600", "-verbosity=0"]
        atheris.Setup([sys.argv[0], *options, corpus], one)
        atheris.Fuzz()
