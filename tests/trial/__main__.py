"""The command behind `make trial`: tries files, or what is invented, beside native replication."""

from __future__ import annotations

import argparse
import random
import re
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from pymysql.err import MySQLError

from cdc_consumer.profile import ORDERS, ROWS, Apply
from docker.local.mysql_servers import ServerError
from trial.invent.inventor import invent
from trial.limits import is_fault, limit_of
from trial.script import Script, Step, read_script, write_script
from trial.servers import Settings, start_servers
from trial.shrink import first_faulty, shrink
from trial.trial import Place, Trial, Tried

#: statements of one invented script
LENGTH = 60
#: of a table that is not InnoDB's
OTHER_ENGINE = re.compile(
    rb"\bENGINE(\s*=\s*|\s+)(MyISAM|MEMORY|HEAP|CSV|MERGE|MRG_MYISAM|ARCHIVE|BLACKHOLE)\b", re.IGNORECASE
)
#: a script that damaged the tables of accounts leaves an oracle that stops at everything
SYSTEM_TABLE = re.compile(r"^stops: .*\bmysql\.\w+")
#: where minimal scripts are left
FINDS = Path("trial-finds")


class Session:
    """One run of the command; servers that a script has broken are started anew."""

    def __init__(self, folder: Path, settings: Settings, stack: ExitStack, apply: Apply, *, locate: bool) -> None:
        self._folder = folder
        self._settings = settings
        self._stack = stack.enter_context(ExitStack())
        self._trial: Trial | None = None
        self._apply = apply
        self._locate = locate
        self.counts: Counter[str] = Counter()
        self.statements = 0
        self.failed = False
        self._kept: set[tuple[str, ...]] = set()

    def run(self, steps: Sequence[Step]) -> Tried:
        """Try one script."""
        if self._trial is None:
            folder = self._folder / secrets.token_hex(3)
            servers = self._stack.enter_context(start_servers(folder, self._settings))
            self._trial = Trial(servers, folder / "programs", self._apply)
        tried = self._trial.run(steps)
        if SYSTEM_TABLE.search(tried.verdict.native):
            self._end()
        return tried

    def _end(self) -> None:
        """End the servers; the next script gets others."""
        self._trial = None
        self._stack.close()

    def guard(self, name: object, action: Callable[[], None]) -> None:
        """Do this; a script may leave servers that cannot go on, also to the one after it, which then is tried again."""
        for again in (True, False):
            try:
                return action()
            except (MySQLError, OSError, ServerError) as error:
                self._end()
                if not again:
                    print(f"{name}: not tried: {type(error).__name__}: {error}", flush=True)
                    self.counts["not tried"] += 1

    def file(self, path: Path, innodb: bool) -> None:
        """Try one file and say how it went."""
        text = path.read_bytes()
        script = read_script(OTHER_ENGINE.sub(b"ENGINE=InnoDB", text) if innodb else text)
        if not script.steps:
            self.counts["without SQL"] += 1
            return
        began = time.monotonic()
        tried = self.run(script.steps)
        self._count(tried)
        print(f"{path}: {tried.verdict}; {_taken(script, tried)}, {time.monotonic() - began:.0f} s", flush=True)
        place = self._place(tried)
        if place is not None:
            print(f"    {place}", flush=True)

    def random(self, seed: int) -> None:
        """Try one invented script; leave a minimal one when it fails."""
        steps = invent(random.Random(seed), LENGTH)
        tried = self.run(steps)
        self._count(tried)
        print(f"SEED={seed}: {tried.verdict}; {_taken(Script(steps), tried)}", flush=True)
        sort = tried.verdict.sort
        if is_fault(tried.verdict) and sort not in self._kept:
            self._kept.add(sort)
            self._keep(sort, steps, seed)

    def _count(self, tried: Tried) -> None:
        limit = limit_of(tried.verdict)
        self.counts[f"{tried.verdict.kind} within the limits" if limit else tried.verdict.kind] += 1
        self.statements += sum(step.sql is not None for step in tried.steps)
        self.failed |= is_fault(tried.verdict)

    def _place(self, tried: Tried) -> Place | None:
        """The first transaction of a difference or a stop; None when there is neither, or the stop names no place."""
        if not tried.verdict.is_silent or not self._locate:
            return tried.stop()
        index = first_faulty(tried.steps, lambda steps: self.run(steps).verdict.is_silent)
        return tried.place(index)

    def _keep(self, sort: tuple[str, ...], steps: Sequence[Step], seed: int) -> None:
        """Write what shows the same fault and is as short as can be; one script for each fault."""
        small = shrink(steps, lambda some: self.run(some).verdict.sort == sort)
        last = self.run(small)
        FINDS.mkdir(exist_ok=True)
        file = FINDS / f"seed-{seed}.sql"
        file.write_bytes(write_script(small, [str(last.verdict), f"found with SEED={seed}"]))
        print(
            f"    make trial FILES={file}: {len(small)} statements, the last: {last.place(len(small) - 1)}", flush=True
        )


def _taken(script: Script, tried: Tried) -> str:
    refused = f", {tried.refused} of them failed on the leader" if tried.refused else ""
    return f"{script.taken} statements taken{refused}" + (f", {script.skipped} skipped" if script.skipped else "")


def main() -> int:
    """Entry point; the status is 1 when a follower differed in silence, or a stop is none of README's Limits."""
    parser = argparse.ArgumentParser("make trial", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="SQL, or *.test of MySQL's own tests")
    parser.add_argument("--seconds", type=float, help="invent scripts for so long")
    parser.add_argument("--seed", type=int, help="the first invented script; the ones after it count up")
    parser.add_argument("--gtids", choices=("on", "off"), default="on")
    parser.add_argument("--compression", choices=("on", "off"), default="off")
    parser.add_argument("--rows", choices=ROWS, default="auto", help="how the consumer applies rows")
    parser.add_argument("--workers", type=int, default=Apply().workers, help="sessions that apply transactions")
    parser.add_argument("--order", choices=ORDERS, default="leader", help="in which they are committed")
    parser.add_argument("--innodb", action="store_true", help="read every other storage engine as InnoDB")
    parser.add_argument("--no-locate", action="store_true", help="do not look for the transaction of a difference")
    options = parser.parse_intermixed_args()
    settings = Settings(options.gtids == "on", options.compression == "on")
    apply = Apply(options.rows, options.workers, options.order)
    with tempfile.TemporaryDirectory(prefix="mysql-cdc-trial-") as name, ExitStack() as stack:
        session = Session(Path(name), settings, stack, apply, locate=not options.no_locate)
        for file in options.files:
            session.guard(file, partial(session.file, file, options.innodb))
        if options.seconds is not None:
            seed = random.randrange(1 << 32) if options.seed is None else options.seed
            deadline = time.monotonic() + options.seconds
            while time.monotonic() < deadline:
                session.guard(f"SEED={seed}", partial(session.random, seed))
                seed += 1
    counts = ", ".join(f"{count} {kind}" for kind, count in session.counts.most_common())
    print(f"{settings}, {apply.workers} workers, order {apply.order}: {counts}; {session.statements} statements")
    return int(session.failed)


if __name__ == "__main__":
    sys.exit(main())
