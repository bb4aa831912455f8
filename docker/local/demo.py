"""Plays the tutorial between two real MySQL servers through a topic: `make demo`."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
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

from cdc_consumer.profile import load_consumer
from cdc_producer.profile import load_producer
from docker.local.get_mysql import NoMySQLError, find_mysql
from docker.local.mysql_servers import FOLLOWER, LEADER, MySQLServer, ServerError, start_server
from docker.local.processes import Child, uninterrupted
from docker.local.screen import bold, dim, draw, side_by_side
from shared.errors import TopicError
from shared.mysql import Connection, rows
from shared.topic import TopicReader, open_reader
from shared.topic.cli import cut

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
#: where the audit's report stays after the demo
REPORTS = ROOT / ".demo"
DATABASE = "flvDb"
TUTORIAL = (
    "CREATE DATABASE flvDb",
    "CREATE TABLE pet (name VARCHAR(20), owner VARCHAR(20), species VARCHAR(20), sex CHAR(1), birth DATE)",
    "INSERT INTO pet VALUES ('Puffball','Diane','hamster','f','1999-03-30')",
    "INSERT INTO pet VALUES ('Jack','Peter','dog','m','1999-03-30')",
    "UPDATE pet SET birth = '1989-08-31' WHERE name = 'Jack'",
    "ALTER TABLE pet ADD COLUMN last_vaccine DATE",
    "DELETE from pet where name='Puffball'",
    "INSERT INTO pet VALUES ('Spot', 'Jane', 'dog', 'm', '2010-11-2', Null)",
    "UPDATE pet SET last_vaccine='2020-6-10' WHERE name='Spot'",
)
#: seconds an event may take to reach the topic, and the follower
PATIENCE = 30.0


#: the programs are run from this working copy, installed or not
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


class DemoError(Exception):
    """The demo cannot go on; the text is for people."""


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

    def start_servers(self) -> None:
        with self.step("finding MySQL"):
            print(f"  {find_mysql(lambda text: print(dim(f'  {text} ...')))}")
        with self.step("starting servers"):
            self.leader = self._server("leader", 1, LEADER)
            self.follower = self._server("follower", 2, FOLLOWER)

    def _server(self, role: str, server_id: int, options: Sequence[str]) -> MySQLServer:
        server = start_server(self.folder / role, server_id=server_id, options=options)
        self.stack.callback(server.close)
        server.run_file(ROOT / "docker" / f"{role}.sql")
        print(f"  {role:<9} {server}")
        return server

    def start_programs(self) -> None:
        with self.step("starting programs"):
            profile = self._profile("producer", 3080, self.leader)
            self.topic = load_producer(profile).topic
            self._program("cdc-producer", profile)
            reader = self.until(self._open_topic, "the topic did not appear")
            assert reader is not None
            self.stack.callback(reader.close)
            self.reader = reader
            profile = self._profile("consumer", 3090, self.follower)
            self._program("cdc-consumer", profile)
            own = load_consumer(profile).database.system_database
            self.until(lambda: self.follower.execute(f"SHOW DATABASES LIKE '{own}'"), "cdc-consumer did not begin")

    def _profile(self, role: str, port: int, server: MySQLServer, *changes: tuple[str, str]) -> Path:
        """The profile this project ships, with this server's port and a topic in this folder."""
        text = (ROOT / "profiles" / f"{role}_profile.toml").read_text()
        for old, new in (
            (f"port = {port} ", f"port = {server.port} "),
            ('"~/mysql-cdc/topics"', json.dumps(str(self.folder / "topics"))),
            *changes,
        ):
            if text.count(old) != 1:
                raise DemoError(f"profiles/{role}_profile.toml should hold {old!r} once")
            text = text.replace(old, new)
        path = self.folder / f"{role}_profile.toml"
        path.write_text(text)
        return path

    def _program(self, name: str, profile: Path) -> None:
        command = [sys.executable, "-m", name.replace("-", "_"), str(profile)]
        self.programs[name] = Child(command, self.folder / f"{name}.log", env=ENVIRONMENT)
        self.stack.callback(self.programs[name].kill)
        print(f"  {name} {profile.name}")

    def _open_topic(self) -> TopicReader | None:
        try:
            return open_reader(self.topic)
        except TopicError:
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
        """Raise DemoError when a program has ended."""
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
            for question in ("SELECT * FROM pet", "SHOW CREATE TABLE pet", "CHECKSUM TABLE pet"):
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
            follower = ("port = 3090 ", f"port = {self.follower.port} ")
            reports = ('"~/mysql-cdc/reports"', json.dumps(str(self.reports)))
            profile = self._profile("parity", 3080, self.leader, follower, reports)
            print(f"\n{bold('cdc-parity')} {profile.name} audits both, on Spark ...")
            log = self.folder / "cdc-parity.log"
            child = Child([sys.executable, "-m", "cdc_consumer.parity", str(profile)], log, env=ENVIRONMENT)
            self.stack.callback(child.stop)
            if child.wait(PATIENCE * 4) != 0:
                raise DemoError(f"the audit ended with status {child.status}:\n{child.tail()}")
            print(log.read_text().rstrip())

    def keep(self) -> None:
        """Leave everything running and show what passes until Ctrl-C."""
        print("\nEverything stays up until Ctrl-C. In other terminals:")
        for role, server in (("leader", self.leader), ("follower", self.follower)):
            script = self.folder / role / "mysql"
            script.write_text(f'#!/bin/sh\nexec {shlex.join(server.client("mysql"))} "$@"\n')
            script.chmod(0o755)
            print(f"  {script} {DATABASE}")
        with contextlib.suppress(KeyboardInterrupt):
            self.watch()
        print()

    def watch(self) -> None:
        """Show what passes, without end; a program that ends is told, and what it leaves stays to be looked at."""
        ended: set[str] = set()
        while True:
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
    demo.start_programs()
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
    # a polite kill cleans up like Ctrl-C
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print(bold("mysql-cdc") + ": leader -> topic -> follower")
    try:
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
