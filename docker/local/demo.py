"""Plays the tutorial between two real MySQL servers through a topic: `make demo`."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shlex
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

from cdc_producer.profile import load_producer
from docker.local.demo_parts import BEFORE, DATABASE, FIRST, ROOT, ROWS, TUTORIAL, DemoError, make_profile
from docker.local.get_mysql import NoMySQLError, find_mysql
from docker.local.mysql_servers import FOLLOWER, LEADER, MySQLServer, ServerError, start_server
from docker.local.processes import Child, interrupts, uninterrupted
from docker.local.screen import bold, dim, draw, side_by_side
from shared.errors import TopicError
from shared.mysql import Connection, rows
from shared.topic import TopicReader, open_reader
from shared.topic.cli import cut

T = TypeVar("T")

#: where the audit's report stays after the demo
REPORTS = ROOT / ".demo"
#: seconds an event may take to reach the topic, and the follower
PATIENCE = 30.0
#: the programs are run from this working copy, installed or not
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


class Demo:
    """Holds two servers, two programs and a topic, all in one temporary folder."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack, reports: Path = REPORTS) -> None:
        """`reports` is where the audit's report stays after the demo."""
        self.folder = folder
        self.reports = reports
        self.stack = stack
        self.began = time.monotonic()
        self.spent: list[tuple[str, float]] = []
        self.programs: dict[str, Child] = {}

    @contextlib.contextmanager
    def step(self, label: str) -> Iterator[None]:
        """Measure one part of the demo."""
        began = time.monotonic()
        yield
        self.spent.append((label, time.monotonic() - began))
        interrupts.check()

    def start_servers(self) -> None:
        with self.step("finding MySQL"):
            print(f"  {find_mysql(lambda text: print(dim(f'  {text} ...')))}")
        with self.step("starting servers"):
            self.leader = self._server("leader", 1, LEADER)
            self.follower = self._server("follower", 2, (*FOLLOWER, "--local-infile=ON"))

    def _server(self, role: str, server_id: int, options: Sequence[str]) -> MySQLServer:
        server = start_server(self.folder / role, server_id=server_id, options=options)
        self.stack.callback(server.close)
        server.run_file(ROOT / "docker" / f"{role}.sql")
        print(f"  {role:<9} {server}")
        return server

    def fill_leader(self) -> None:
        """Give the leader a past, of which its current binlog file tells nothing."""
        with self.step("filling the leader"):
            self.leader.execute(*FIRST)
            print(f"  the leader has {ROWS:,} rows in {BEFORE}.orders already")

    def start_producer(self) -> None:
        with self.step("starting programs"):
            profile = self._profile("producer")
            self.topic = load_producer(profile).topic
            self._program("cdc-producer", profile)
            reader = self.until(self._open_topic, "the topic did not appear")
            assert reader is not None
            self.stack.callback(reader.close)
            self.reader = reader

    def start_consumer(self) -> None:
        with self.step("starting programs"):
            self._program("cdc-consumer", self._profile("consumer"))
            consumer = self.programs["cdc-consumer"]
            self.until(lambda: "replaying" in consumer.log.read_text(), "cdc-consumer did not begin")

    def _profile(self, role: str) -> Path:
        return make_profile(role, self.folder, {"leader": self.leader, "follower": self.follower}, self.reports)

    def _program(self, name: str, profile: Path) -> None:
        command = [sys.executable, "-m", name.replace("-", "_"), str(profile)]
        self.programs[name] = Child(command, self.folder / f"{name}.log", env=ENVIRONMENT)
        self.stack.callback(self.programs[name].kill)
        print(f"  {name} {profile.name}")

    def _open_topic(self) -> TopicReader | None:
        with contextlib.suppress(TopicError):
            return open_reader(self.topic)
        return None

    def until(self, check: Callable[[], T], what: str) -> T:
        """Wait until `check` returns something true, and return that. Raises DemoError."""
        deadline = time.monotonic() + PATIENCE
        while not (found := check()):
            self.check_programs()
            if time.monotonic() > deadline:
                self.fail(f"{what} within {PATIENCE:.0f} s")
            time.sleep(0.002)
        return found

    def check_programs(self) -> None:
        """Raise DemoError when a program has ended, KeyboardInterrupt when the demo is to end."""
        interrupts.check()
        for name, program in self.programs.items():
            if not program.running:
                self.fail(f"{name} ended with status {program.status}")

    def fail(self, reason: str) -> NoReturn:
        said = "".join(f"\n{name} said:\n{program.tail()}" for name, program in self.programs.items())
        raise DemoError(reason + said)

    def events(self, timeout: float) -> Iterator[str]:
        """Yield operations that have arrived in the topic, as the tutorial prints them."""
        for record in self.reader.read(timeout):
            line = cut(record.value).decode()
            if not line.endswith('"operation":"Heartbeat"}'):
                yield line

    def play(self) -> None:
        """Run the tutorial's statements one by one, and wait for each to arrive."""
        delays = []
        with self.step("tutorial"), self.leader.connect() as leader, self.follower.connect() as follower:
            for sql in TUTORIAL:
                print(f"\n{bold('leader>')} {sql};")
                with leader.cursor() as cursor:
                    cursor.execute(sql)
                    committed = time.monotonic()
                    if sql.startswith("CREATE DATABASE"):
                        cursor.execute(f"USE {DATABASE}")
                    cursor.execute("SELECT @@GLOBAL.gtid_executed")
                    ((gtids,),) = cursor.fetchall()
                for line in self.until(lambda: list(self.events(0)), "the event did not reach the topic"):
                    print(dim(line))
                self.until(partial(arrived_at, follower, gtids), "the event did not reach the follower")
                delays.append(1000 * (time.monotonic() - committed))
        print(
            f"\nFrom commit on the leader to commit on the follower: median {statistics.median(delays):.0f} ms,"
            f" slowest {max(delays):.0f} ms"
        )

    def verify(self) -> None:
        """Show both tables and compare everything about them. Raises DemoError when they differ."""
        with self.step("verifying"):
            blocks = []
            for role, server in (("leader", self.leader), ("follower", self.follower)):
                with server.connect(DATABASE) as connection, connection.cursor() as cursor:
                    cursor.execute("SELECT * FROM pet")
                    names = [column[0] for column in cursor.description or ()]
                    blocks.append([f"{role}> SELECT * FROM pet;", *draw(names, cursor.fetchall())])
            print("\n" + side_by_side(*blocks) + "\n")
            past = f"CHECKSUM TABLE {BEFORE}.orders"
            for question in (past, "SELECT * FROM pet", "SHOW CREATE TABLE pet", "CHECKSUM TABLE pet"):
                answers = [server.execute(question, database=DATABASE) for server in (self.leader, self.follower)]
                if answers[0] != answers[1]:
                    raise DemoError(f"leader and follower differ: {question}\n{answers[0]}\n{answers[1]}")
        ((_, checksum),) = answers[0]
        print(f"Equal: every row and column, SHOW CREATE TABLE, CHECKSUM TABLE ({checksum})")

    def audit(self) -> None:
        """Prove by the audit what `verify` has seen. Raises DemoError when it does not say equal."""
        if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
            print("\nThe audit is left out: it runs on Spark, which needs Java 17 or later.")
            return
        with self.step("audit"):
            self._to_its_end("cdc-parity", "parity", "audits both, on Spark")

    def copy(self) -> None:
        """Run the copy, which makes the follower what the leader is. Raises DemoError."""
        with self.step("copy"):
            self._to_its_end("cdc-copy", "copy", "fills the follower with what the leader has")

    def _to_its_end(self, name: str, role: str, does: str) -> None:
        profile, log = self._profile(role), self.folder / f"{name}.log"
        print(f"\n{bold(name)} {profile.name} {does} ...")
        child = Child([sys.executable, "-m", f"cdc_consumer.{role}", str(profile)], log, env=ENVIRONMENT)
        self.stack.callback(child.stop)
        if child.wait(PATIENCE * 4) != 0:
            raise DemoError(f"{name} ended with status {child.status}:\n{child.tail()}")
        print(log.read_text().rstrip())

    def keep(self) -> None:
        """Leave everything running and show what passes until Ctrl-C."""
        print("\nEverything stays up until Ctrl-C. In other terminals:")
        for role, server in (("leader", self.leader), ("follower", self.follower)):
            script = self.folder / role / "mysql"
            script.write_text(f'#!/bin/sh\nexec {shlex.join(server.client("mysql"))} "$@"\n')
            script.chmod(0o755)
            print(f"  {script} {DATABASE}")
        print(f"  {Path(sys.executable).with_name('cdc-topic')} {self.folder / 'producer_profile.toml'} --cut")
        with contextlib.suppress(KeyboardInterrupt):
            self.watch()
        interrupts.seen = False
        print()

    def watch(self) -> None:
        """Show what passes, without end; a program that ends is told, and what it leaves stays to be looked at."""
        ended: set[str] = set()
        while True:
            interrupts.check()
            for line in self.events(0.5):
                print(dim(line))
            for name, program in self.programs.items():
                if name not in ended and not program.running:
                    ended.add(name)
                    print(f"{name} ended with status {program.status}; the rest stays up in {self.folder}")
                    print(program.tail())

    def stop(self) -> None:
        """Send SIGTERM to both programs, and end the servers. Raises DemoError when a program minds."""
        with self.step("stopping"):
            for name, program in self.programs.items():
                if program.stop() != 0:
                    self.fail(f"{name} ended with status {program.status} on SIGTERM")
            self.stack.close()
        parts = ", ".join(f"{label} {seconds:.1f} s" for label, seconds in self.spent)
        print(f"Time: {parts}; all {time.monotonic() - self.began:.1f} s")


def arrived_at(follower: Connection, gtids: str) -> bool:
    """Tell whether the follower has all these transactions of the leader."""
    ((subset,),) = rows(follower, "SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", (gtids,))
    return bool(subset)


def run(demo: Demo, keep: bool) -> None:
    """Play the demo from the start of the servers to their end."""
    demo.start_servers()
    demo.fill_leader()
    demo.start_producer()
    demo.copy()
    demo.start_consumer()
    demo.play()
    demo.verify()
    demo.audit()
    if keep:
        demo.keep()
    demo.stop()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="leave the servers and programs up until Ctrl-C")
    parser.add_argument(
        "--reports", type=Path, default=REPORTS, metavar="FOLDER", help="where the audit's report stays (%(default)s)"
    )
    options = parser.parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    try:
        interrupts.listen()
        print(bold("mysql-cdc") + ": leader -> topic -> follower")
        with contextlib.ExitStack() as stack:
            with uninterrupted():
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mysql-cdc-demo-"))
            try:
                run(Demo(Path(folder), stack, options.reports.resolve()), options.keep)
            finally:
                # a second Ctrl-C must not leave half of it behind
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    except (DemoError, NoMySQLError, ServerError) as error:
        print(f"demo failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
