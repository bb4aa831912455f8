"""Two tables that differ, the differences between them as an audit would prove them, and both ways to repair them."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from cdc_consumer.parity import canonical
from cdc_consumer.parity.model import Column, Difference, Evidence, Shape, TableName
from cdc_consumer.parity.repair.apply import RepairResult, repair
from cdc_consumer.parity.repair.files import Header, write_files
from cdc_consumer.parity.repair.plan import Plan
from cdc_consumer.parity.schema.read import read_tables
from docker.local.get_mysql import MySQL, find_mysql
from docker.local.mysql_servers import MySQLServer, Server
from shared.mysql import Connection, rows

NO_EVENT = Evidence("no event", "b.1:4", "b.1:4", "b.1:4", "b.1:4", 2)
#: lets every odd value in
WRITING = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00', foreign_key_checks = 0"
HEADER = Header("20261121T101500Z-4f2a", "127.0.0.1:3306", True)

#: of a table, hash -> how often
State = Mapping[str, int]


def reading(server: Server) -> Connection:
    connection = server.connect(charset="utf8mb4")
    for sql in canonical.SESSION:
        rows(connection, sql)
    return connection


class Pair:
    """A database on a leader and a follower."""

    def __init__(self, leader: Server, follower: Server, database: str) -> None:
        self.leader, self.follower, self.database = leader, follower, database
        self.shapes: dict[TableName, Shape] = {}
        for server in (leader, follower):
            server.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")

    def create(self, *definitions: str) -> None:
        """CREATE TABLE statements, the same for both sides."""
        for server in (self.leader, self.follower):
            server.execute("SET foreign_key_checks = 0", *definitions, database=self.database)
        self.look()

    def look(self) -> None:
        """Learn the shapes of all tables, as the leader has them."""
        found = self.leader.execute(f"SHOW FULL TABLES FROM {self.database} WHERE Table_type = 'BASE TABLE'")
        with self.leader.connect() as connection:
            records = read_tables(connection, [TableName(self.database, name) for name, _ in found])
        for name, record in records.items():
            columns = tuple(
                Column(c.name, c.type, c.data_type, c.charset, c.nullable, bool(c.generated))
                for c in record.columns
                if c.generated != "VIRTUAL"
            )
            self.shapes[name] = Shape(name, columns, record.primary_key)

    def write(self, leader: Iterable[str], follower: Iterable[str]) -> None:
        """Run statements on each side."""
        for server, statements in ((self.leader, leader), (self.follower, follower)):
            server.execute(WRITING, *statements, database=self.database)

    def state(self, server: Server) -> dict[TableName, State]:
        with closing(reading(server)) as connection:
            return {name: Counter(row[0] for row in _read(connection, shape)) for name, shape in self.shapes.items()}

    def differences(self) -> list[Difference]:
        found: list[Difference] = []
        with closing(reading(self.leader)) as leader, closing(reading(self.follower)) as follower:
            for shape in self.shapes.values():
                compare = _keyed if shape.key else _keyless
                found += compare(shape, _read(leader, shape), _read(follower, shape))
        return found

    def plan(self, differences: Iterable[Difference] | None = None) -> Plan:
        connection = reading(self.follower)
        every = self.differences() if differences is None else differences
        return Plan(connection, every, self.shapes, "fluvio_cdc")

    def repair(self, plan: Plan, **options: Any) -> RepairResult:
        """As `--repair` does it."""
        with closing(self.follower.connect(charset="utf8mb4", client_flag=2)) as connection:
            return repair(connection, plan, hides_own_writes=True, **options)

    def apply_file(self, file: Path) -> str:
        return apply_file(self.follower, file)

    def assert_both_ways_repair(self, folder: Path) -> None:
        """repair.sql, undo.sql, and then `repair`: the leader's state, the one before, the leader's again."""
        differences = self.differences()
        before, wanted = self.state(self.follower), self.state(self.leader)
        with self.plan(differences) as plan:
            assert len(plan) == len(differences) and not plan.refused
            forward, back = write_files(plan, folder, HEADER)
            assert self.apply_file(forward).split()[-1] == "0"
            assert self.state(self.follower) == wanted
            assert self.apply_file(back).split()[-1] == "0"
            assert self.state(self.follower) == before
            result = self.repair(plan)
        assert (result.repaired, result.moved, result.failed) == (len(differences), 0, 0), result.left
        assert self.state(self.follower) == wanted


def apply_file(server: Server, file: Path) -> str:
    """As a person does it; what the client said."""
    command = [*_client(server), "--binary-mode", "--comments", "--default-character-set=utf8mb4"]
    with file.open("rb") as script:
        done = subprocess.run(command, stdin=script, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{done.stderr}\n{file.read_text('utf-8', 'replace')}"
    return done.stdout


def _client(server: Server) -> list[str]:
    if isinstance(server, MySQLServer):
        return server.client("mysql")
    mysql = find_mysql()
    assert isinstance(mysql, MySQL), "a running server needs a mysql client on this machine"
    return [*mysql.command("mysql"), "--no-defaults", f"--host={server.host}", f"--port={server.port}", "--user=root"]


def _read(connection: Connection, shape: Shape) -> Iterator[tuple[str, dict[str, str]]]:
    """Hash and literals of every row."""
    literals = ", ".join(map(canonical.literal, shape.columns))
    names = [column.name for column in shape.columns]
    for digest, *values in rows(connection, f"SELECT {canonical.row_hash(shape)}, {literals} FROM {shape.name.sql}"):
        yield digest, dict(zip(names, values, strict=True))


Rows = Iterator[tuple[str, dict[str, str]]]


def _keyed(shape: Shape, leader: Rows, follower: Rows) -> Iterator[Difference]:
    def by_key(found: Rows) -> dict[tuple[str, ...], tuple[str, dict[str, str]]]:
        return {tuple(row[name] for name in shape.key): (digest, row) for digest, row in found}

    ours, theirs = by_key(follower), by_key(leader)
    for key in [*theirs, *(key for key in ours if key not in theirs)]:
        leader_hash, leader_row = theirs.get(key, (None, None))
        follower_hash, follower_row = ours.get(key, (None, None))
        if leader_hash != follower_hash:
            kind: Any = "missing" if follower_row is None else "extra" if leader_row is None else "changed"
            names = dict(zip(shape.key, key, strict=True))
            yield Difference(
                shape.name, kind, names, leader_row, follower_row, leader_hash, follower_hash, NO_EVENT
            )  # fmt: skip


def _keyless(shape: Shape, leader: Rows, follower: Rows) -> Iterator[Difference]:
    theirs, ours = list(leader), list(follower)
    values = dict(theirs + ours)
    wanted, found = Counter(digest for digest, _ in theirs), Counter(digest for digest, _ in ours)
    for digest, row in values.items():
        if wanted[digest] != found[digest]:
            there, here = (
                (row, digest) if wanted[digest] else (None, None),
                (row, digest) if found[digest] else (None, None),
            )
            yield Difference(
                shape.name, "copies", {}, there[0], here[0], there[1], here[1], NO_EVENT,
                copies=(wanted[digest], found[digest]),
            )  # fmt: skip
