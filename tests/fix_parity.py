"""Audits of the leader and follower: the whole program in this process without Spark, or as a child with it."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from fix_replication import Replication
from kit.programs import Program, binlog_end, run_program
from kit.topic import shared_table, toml_value
from kit.type_cases import SESSION

from cdc_consumer.parity import cli
from cdc_consumer.parity.audit import audit
from cdc_consumer.parity.differences import FILE, read_differences
from cdc_consumer.parity.model import Difference
from cdc_consumer.parity.rows import task
from cdc_consumer.parity.rows.plan import Sizes
from cdc_consumer.parity.spark.context import Item, Result, Tick
from cdc_consumer.sql.positions import NOTHING, Mark, PositionTables
from docker.local.mysql_servers import Server
from shared.profile import TopicSettings

MODULE = "cdc_consumer.parity"
#: of a table: literals of the key -> kind, and for changed rows the columns that differ
Rows = Mapping[tuple[str, ...], tuple[str, ...]]
#: so small that tables of some rows have many leaves and tasks
TINY = Sizes(leaf_rows=3, task_rows=(7, 7))


def require_java() -> None:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java 17 or later")


class Here:
    """What Spark is to an audit; runs its tasks in this process, one after the other."""

    master = "here"
    version = "0"
    java = "0"

    def __init__(self, cores: int, log: Path) -> None:
        self.workers = cores
        self._rows = 0
        self._suspects = 0

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], tick: Tick) -> list[Result]:
        found = []
        for item in items:
            found.append(function(item))
            rows, suspects = found[-1].counts
            self._rows, self._suspects = self._rows + rows, self._suspects + suspects
            tick(self._rows, self._suspects)
        return found

    def parquet(self, differences: Path, folder: Path) -> None:
        raise AssertionError("only Spark writes Parquet")

    def stop(self) -> None:
        """A Spark worker keeps its connections for the next task; this process has other tests to run."""
        while task.kept_pairs:
            task.kept_pairs.popitem()[1].close()


@dataclass(frozen=True)
class Audited:
    """What one run of the program left."""

    status: int
    out: str
    err: str
    #: None when it could not begin
    folder: Path | None

    @cached_property
    def run(self) -> dict[str, Any]:
        """run.json."""
        return self._json("run.json")

    @property
    def schema(self) -> list[dict[str, Any]]:
        """The differences of schema.json."""
        return list(self._json("schema.json")["differences"])

    @cached_property
    def differences(self) -> list[Difference]:
        return list(read_differences(self._file(FILE)))

    def table(self, name: str) -> dict[str, Any]:
        """Of run.json what it says of the table with this name."""
        (found,) = (table for table in self.run["tables"] if table["table"] == name)
        return dict(found)

    def found(self) -> dict[str, Rows]:
        """What is different in each table with a difference; all of them with a key. Nothing may be undecided."""
        assert not self.run["undecided"], self.err
        return {table["table"]: rows for table in self.run["tables"] if (rows := self.rows(table["table"]))}

    def kinds(self) -> set[tuple[str, str]]:
        """Table and kind of each difference."""
        return {(each.table.table, each.kind) for each in self.differences}

    def rows(self, table: str) -> Rows:
        """Of a table with a key: literals of the key -> kind, and for changed rows the columns that differ."""
        found = [each for each in self.differences if each.table.table == table]
        rows = {
            tuple(each.key.values()): (each.kind, *(each.columns if each.kind == "changed" else ())) for each in found
        }
        assert len(rows) == len(found), f"a row of {table} is reported twice, or the table has no key"
        return rows

    def assert_refused(self, status: int, *words: str) -> None:
        """Fail unless it ended with `status` and one line that contains all `words`."""
        assert self.status == status, self.err
        (line,) = self.err.splitlines()
        assert line.startswith("cdc-parity: ") and not self.out
        assert all(word in line for word in words), line

    def _json(self, name: str) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self._file(name).read_text())
        return loaded

    def _file(self, name: str) -> Path:
        assert self.folder is not None and (self.folder / name).exists(), self.err
        return self.folder / name


class Parity:
    """The audit of some databases; its profile and its reports are in `folder`."""

    def __init__(
        self, folder: Path, leader: Server, follower: Server, include_dbs: Sequence[str], *,
        topic: TopicSettings | None = None, system_database: str | None = None, **profile: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """
        topic:            of the replication; without it a position is planted before each audit, see `be_current`
        system_database:  the consumer's own; named after the first of include_dbs when None
        profile:          keys to add or replace, by table: limits={"fence_seconds": 2}
        """
        self.folder = folder
        self.leader = leader
        self.follower = follower
        #: the first of the databases, its name for short
        self.database = include_dbs[0]
        self.system_database = system_database or f"{include_dbs[0]}_cdc"
        self.topic = topic
        self.profile = folder / "parity.toml"
        #: see `keep_position`
        self._position: str | None = None
        #: seen by the audit in this process: true when it is to stop
        self.stopped: Callable[[], bool] = lambda: False
        address = {"user": "root", "host": leader.host, "port": leader.port}
        own = {"host": follower.host, "port": follower.port, "system_database": self.system_database}
        self._tables: dict[str, Mapping[str, Any]] = {
            "leader": address, "follower": {**address, **own}, "filters": {"include_dbs": list(include_dbs)},
            "report": {"path": str(folder / "reports")},
            # a TLS context would take most of a short audit's time
            "leader.tls": {"mode": "off"}, "follower.tls": {"mode": "off"},
        }  # fmt: skip
        if topic is not None:
            self._tables["topic"] = shared_table(topic)
        self.change(**profile)

    def change(self, **profile: Mapping[str, Any]) -> None:
        """Add or replace keys of the profile, by table; None removes a key."""
        for name, keys in profile.items():
            self._tables[name] = {**self._tables.get(name, {}), **keys}
        lines = []
        for name, keys in self._tables.items():
            lines.append(f"[{name}]")
            lines += [f"{key} = {toml_value(value)}" for key, value in keys.items() if value is not None]
        self.folder.mkdir(parents=True, exist_ok=True)
        self.profile.write_text("\n".join(lines) + "\n")

    def write(self, both: Sequence[str], leader: Sequence[str] = (), follower: Sequence[str] = ()) -> None:
        """Run statements on both servers, and then some on one of them only; every odd value gets in."""
        for server, own in ((self.leader, leader), (self.follower, follower)):
            server.execute(SESSION, *both, *own, database=self.database)

    def keep_position(self, position: str) -> None:
        """Before each audit let the follower tell that it has applied all up to file:offset; nothing moves it."""
        self._position = position

    def be_current(self) -> None:
        """Let the follower tell that it has applied all up to the leader's present position."""
        file, _, offset = (self._position or binlog_end(self.leader)).partition(":")
        tables = PositionTables(self.system_database, self.topic.name if self.topic else "events")
        mark = Mark(NOTHING.offset, NOTHING.sequence, file, int(offset), None, None)
        self.follower.execute("SET sql_log_bin = 0", *tables.create(), tables.write(mark))

    def audit(self, *arguments: str, sizes: Sizes = TINY) -> Audited:
        """The whole program in this process, without Spark."""
        if self.topic is None:
            self.be_current()
        make = partial(audit, start_spark=Here, sizes=sizes)
        out, err, before = io.StringIO(), io.StringIO(), self.folders()
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(cli, "load_audit", lambda: make))
            stack.enter_context(mock.patch.object(cli, "StopRequest", lambda: self.stopped))
            stack.enter_context(redirect_stdout(out))
            stack.enter_context(redirect_stderr(err))
            try:
                status = cli.main([str(self.profile), *arguments])
            except SystemExit as usage:  # of argparse
                status = int(str(usage.code))
        return self._audited(status, out.getvalue(), err.getvalue(), before)

    def assert_found(self, planted: Mapping[str, Rows]) -> Audited:
        """Fail unless an audit in this process finds exactly these differences, in these tables."""
        result = self.audit()
        assert result.found() == planted
        assert result.status == (1 if planted or result.schema else 0)
        return result

    def resume(self, audited: Audited, *arguments: str) -> Audited:
        """Go on with a run, in this process."""
        assert audited.folder is not None, audited.err
        return replace(self.audit(f"--resume={audited.folder.name}", *arguments), folder=audited.folder)

    def program(self, *arguments: str, timeout: float = 120.0, env: Mapping[str, str] | None = None) -> Audited:
        """The whole program with Spark, as a child process, to its end."""
        require_java()
        if self.topic is None:
            self.be_current()
        before = self.folders()
        done = run_program(MODULE, self.profile, *arguments, timeout=timeout, env=env)
        return self._audited(done.returncode, done.stdout, done.stderr, before)

    def start(self, *arguments: str, env: Mapping[str, str] | None = None) -> Program:
        """The same, but running; `found` tells of it when it has ended."""
        require_java()
        return Program(MODULE, self.profile, *arguments, env=env).start()

    def found(self, program: Program) -> Audited:
        """What a program that has ended left; its two streams are one, and its folder is the newest."""
        assert program.status is not None, f"{program} is running"
        return self._audited(program.status, program.stderr, program.stderr, set())

    def folders(self) -> set[Path]:
        """Of all runs so far."""
        return set((self.folder / "reports").glob("*"))

    def _audited(self, status: int, out: str, err: str, before: set[Path]) -> Audited:
        new = sorted(self.folders() - before, key=lambda folder: folder.stat().st_mtime_ns)
        return Audited(status, out, err, new[-1] if new else None)


@pytest.fixture
def parity(leader: Server, follower: Server, database: str, tmp_path: Path) -> Iterator[Parity]:
    """The database of this test, which exists on both sides; no topic, and no consumer runs."""
    for server in (leader, follower):
        server.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    yield Parity(tmp_path / "parity", leader, follower, [database])


THREE_TABLES = [
    "CREATE TABLE a (id INT PRIMARY KEY, v INT, name VARCHAR(20))", "CREATE TABLE b (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE other (v INT)",
    "INSERT INTO a VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'a secret')",
    "INSERT INTO b VALUES (1, 1), (2, 2), (3, 3)", "INSERT INTO other VALUES (1), (2)",
]  # fmt: skip
#: one row of each
DAMAGE = [
    "UPDATE a SET v = 0, name = 'another secret' WHERE id = 4", "DELETE FROM b WHERE id = 1",
    "INSERT INTO other VALUES (2)",
]  # fmt: skip


@pytest.fixture
def damaged(parity: Parity) -> Parity:
    """Three tables; in `a` a row is changed, in `b` one is missing, of one in `other` there is a copy too many."""
    parity.write(THREE_TABLES, [], DAMAGE)
    return parity


def parity_of(replication: Replication, databases: Sequence[str], **profile: Mapping[str, Any]) -> Parity:
    """The audit of a replication's two servers, with its topic."""
    return Parity(
        replication.folder / "parity", replication.leader, replication.follower, databases,
        topic=replication.topic, system_database=replication.system_database, **profile,
    )  # fmt: skip
