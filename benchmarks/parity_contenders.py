"""Those who compare the two tables: this project's audit, its peers, and MySQL's own checksum as the limit."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Protocol

import pymysql
from bench import Bench, BenchError, cpu_seconds, program
from kit.programs import ENVIRONMENT, binlog_end
from parity_cost import Bill, Program
from parity_data import DATABASE, TABLE, UNDER_NULL, column_names
from peers import PeerError, Tool, percona_toolkit, reladiff

from cdc_consumer.profile import Follower
from cdc_consumer.sql.positions import Mark, PositionTables
from docker.local.mysql_servers import MySQLServer

#: where pt-table-checksum writes
PERCONA = "percona"
#: exit status of pt-table-checksum and pt-table-sync: nothing found, or differences only
PT_STATUS = {"pt-table-checksum": (0, 16), "pt-table-sync": (0, 2)}
#: seconds the replica may take to do what the leader has done
PATIENCE = 60


class Found(NamedTuple):
    """What one run has told."""

    #: ids of rows it named, or that were planted in a chunk it named; None when it tells no rows
    rows: frozenset[int] | None
    #: chunks it named in which no planted row lies
    false_chunks: int = 0


class Servers(NamedTuple):
    leader: MySQLServer
    follower: MySQLServer


class Contender(Protocol):
    @property
    def name(self) -> str: ...

    def prepare(self) -> None:
        """Before a run; not measured."""

    def run(self) -> Bill: ...

    def found(self, planted: frozenset[int]) -> Found:
        """What the last run has told."""


class Audit:
    """This project's. Its connections are not encrypted, as those of the others are not."""

    name = "cdc-parity"

    def __init__(self, bench: Bench, servers: Servers) -> None:
        self._bench = bench
        self._servers = servers
        self._reports = bench.folder / "reports"
        self._profile = bench.folder / "parity.toml"
        addresses = "".join(
            f'[{role}]\nhost = "{server.host}"\nport = {server.port}\nuser = "root"\n[{role}.tls]\nmode = "off"\n'
            for role, server in zip(servers._fields, servers, strict=True)
        )
        settings = f'[filters]\ninclude_dbs = ["{DATABASE}"]\n[report]\npath = "{self._reports}"\n'
        self._profile.write_text(addresses + settings)
        # the archive of Java's classes is made anew: the first run has none
        self._env = {**ENVIRONMENT, "XDG_CACHE_HOME": str(bench.folder / "cache")}
        self._position = PositionTables(Follower("root").system_database, "events")
        servers.follower.execute(*self._position.create())

    def prepare(self) -> None:
        """Play the consumer: the follower has all the leader has written, which in this benchmark are only marks."""
        file, _, offset = binlog_end(self._servers.leader).rpartition(":")
        self._servers.follower.execute(self._position.write(Mark(0, 0, file, int(offset), None, None)))

    def run(self) -> Bill:
        log = _fresh(self._bench.folder / "parity.log")
        return Program(program("cdc_consumer.parity", self._profile), log, self._env, self._servers).bill(1)

    def found(self, planted: frozenset[int]) -> Found:
        newest = max(self._reports.iterdir(), key=lambda folder: folder.stat().st_mtime)
        lines = (newest / "differences.jsonl").read_text().splitlines()
        return Found(frozenset(int(json.loads(line)["key"]["id"]) for line in lines))


class Sync:
    """pt-table-sync --print."""

    name = "pt-table-sync --print"

    def __init__(self, bench: Bench, servers: Servers, tool: Tool) -> None:
        self._bench = bench
        self._servers = servers
        self._tool = tool

    def prepare(self) -> None:
        pass

    def run(self) -> Bill:
        self._log = _fresh(self._bench.folder / "pt-table-sync.log")
        tables = [f"{dsn(server)},D={DATABASE},t={TABLE},A=utf8mb4" for server in self._servers]
        command = [*self._tool.command("pt-table-sync"), "--print", "--no-check-replica", *VARIABLES, *tables]
        return Program(command, self._log, self._tool.env, self._servers).bill(*PT_STATUS["pt-table-sync"])

    def found(self, planted: frozenset[int]) -> Found:
        text = self._log.read_text(errors="replace")
        inserted = re.findall(r"^(?:INSERT|REPLACE) INTO .*? VALUES \('(\d+)'", text, re.MULTILINE)
        changed = re.findall(r"^(?:UPDATE|DELETE) .* WHERE `id`='(\d+)'", text, re.MULTILINE)
        return Found(frozenset(map(int, inserted + changed)))


class Checksum:
    """pt-table-checksum; it names no rows, only chunks."""

    name = "pt-table-checksum"

    def __init__(self, bench: Bench, servers: Servers, tool: Tool) -> None:
        """It needs a native replica."""
        self._bench = bench
        self._servers = servers
        self._tool = tool
        leader, follower = servers
        follower.execute(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{leader.host}', SOURCE_PORT = {leader.port},"
            " SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1",
            "START REPLICA",
        )
        leader.execute(
            f"CREATE DATABASE {PERCONA}",
            f"CREATE TABLE {PERCONA}.dsns (id INT PRIMARY KEY, parent_id INT, dsn VARCHAR(255) NOT NULL)",
            f"INSERT INTO {PERCONA}.dsns VALUES (1, NULL, '{dsn(follower)}')",
        )
        self._caught_up()

    def _caught_up(self) -> None:
        gtids = self._servers.leader.value("SELECT @@GLOBAL.gtid_executed")
        if self._servers.follower.value(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', {PATIENCE})") != 0:
            raise BenchError(f"the native replica does not apply; see {self._servers.follower.error_log}")

    def prepare(self) -> None:
        self._servers.leader.execute(f"DROP TABLE IF EXISTS {PERCONA}.checksums")
        self._caught_up()

    def run(self) -> Bill:
        replicas = f"--recursion-method=dsn={dsn(self._servers.leader)},D={PERCONA},t=dsns"
        command = [*self._tool.command("pt-table-checksum"), f"--databases={DATABASE}", replicas, *VARIABLES]
        command += ["--no-check-binlog-format", dsn(self._servers.leader)]
        log = _fresh(self._bench.folder / "pt-table-checksum.log")
        return Program(command, log, self._tool.env, self._servers).bill(*PT_STATUS["pt-table-checksum"])

    def found(self, planted: frozenset[int]) -> Found:
        chunks = self._servers.follower.execute(
            f"SELECT lower_boundary, upper_boundary FROM {PERCONA}.checksums"
            " WHERE this_cnt <> source_cnt OR this_crc <> source_crc"
        )
        inside: set[int] = set()
        empty = 0
        for low, high in chunks:
            rows = {row for row in planted if int(low or 0) <= row <= int(high or sys.maxsize)}
            inside |= rows
            empty += not rows
        return Found(frozenset(inside), empty)


class Reladiff:
    name = "reladiff, 9 of 10 columns"

    def __init__(self, bench: Bench, servers: Servers, tool: Tool) -> None:
        """It needs MD5(), which MySQL 9.6 has moved to a component. Raises PeerError."""
        self._bench = bench
        self._servers = servers
        self._tool = tool
        for server in servers:
            try:
                _have_md5(server)
            except pymysql.err.MySQLError as error:
                raise PeerError(f"it needs MD5(), which this MySQL has not: {error}") from error

    def prepare(self) -> None:
        pass

    def run(self) -> Bill:
        self._log = _fresh(self._bench.folder / "reladiff.log")
        tables = [
            part
            for s in self._servers
            for part in (f"mysql://root@{s.host}:{s.port}/{DATABASE}?ssl_disabled=True", TABLE)
        ]
        # a row that holds NULL on one side and text on the other makes it fail with TypeError
        columns = [f"--columns={name}" for name in column_names() if name not in ("id", UNDER_NULL)]
        command = [*self._tool.command("reladiff"), *tables, "--json", f"--threads={os.cpu_count() or 1}", *columns]
        return Program(command, self._log, self._tool.env, self._servers).bill(0)

    def found(self, planted: frozenset[int]) -> Found:
        named = re.findall(r'^\["[-+]", ?\["(\d+)"', self._log.read_text(), re.MULTILINE)
        return Found(frozenset(map(int, named)))


class Limit:
    """CHECKSUM TABLE on both servers at once: 32 bits that say whether the tables differ, and nothing else."""

    name = "CHECKSUM TABLE, the limit"

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    def prepare(self) -> None:
        pass

    def run(self) -> Bill:
        before, began = sum(cpu_seconds(server.pid) for server in self._servers), time.perf_counter()
        with ThreadPoolExecutor(len(self._servers)) as pool:
            list(pool.map(lambda server: server.execute(f"CHECKSUM TABLE {DATABASE}.{TABLE}"), self._servers))
        seconds = time.perf_counter() - began
        return Bill(seconds, sum(cpu_seconds(server.pid) for server in self._servers) - before)

    def found(self, planted: frozenset[int]) -> Found:
        return Found(None)


#: both tools of percona-toolkit read the `rows` of a plain EXPLAIN, which is a tree since MySQL 9.5
VARIABLES = ("--set-vars=explain_format=TRADITIONAL",)


def dsn(server: MySQLServer) -> str:
    """As percona-toolkit writes addresses."""
    return f"h={server.host},P={server.port},u=root"


def _have_md5(server: MySQLServer) -> None:
    try:
        server.execute("SELECT MD5('')")
    except pymysql.err.OperationalError:
        server.execute("SET sql_log_bin = 0", "INSTALL COMPONENT 'file://component_classic_hashing'")
        server.execute("SELECT MD5('')")


def _fresh(log: Path) -> Path:
    """A log that holds one run only."""
    log.unlink(missing_ok=True)
    return log


def peers(bench: Bench, servers: Servers) -> tuple[Sequence[Contender], Sequence[str]]:
    """Those that can take part, and why the others cannot."""
    found: list[Contender] = []
    skipped = []
    bench.say("getting percona-toolkit from Debian and reladiff from PyPI, unless they are here already")
    try:
        tool = percona_toolkit()
        bench.say(tool.version)
        found += [Checksum(bench, servers, tool), Sync(bench, servers, tool)]
    except PeerError as error:
        skipped.append(f"pt-table-checksum and pt-table-sync skipped: {error}")
    try:
        found.append(Reladiff(bench, servers, reladiff()))
    except PeerError as error:
        skipped.append(f"reladiff skipped: {error}")
    return [*found, Limit(servers)], skipped
