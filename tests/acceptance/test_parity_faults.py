"""What goes wrong around an audit: it goes on, can be gone on with, or ends with one sentence; it never claims too much."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fix_mysql import StartServer
from fix_parity import Audited, Here, Parity, parity_of
from fix_replication import Replicate, Replication
from kit.helpers import wait_until
from kit.programs import Program, binlog_end

from cdc_consumer.parity.servers import connection as servers
from docker.local.mysql_servers import FOLLOWER, LEADER, MySQLServer, Server

#: rows of the large table; its ids are 1 to ROWS
ROWS = 30_000
#: of the large one on the leader alone
MISSING = 30_000
#: of the small one
FEW = 40
TABLES = (
    "CREATE TABLE large (id INT PRIMARY KEY, note VARCHAR(40), n DOUBLE)",
    "CREATE TABLE small (id INT PRIMARY KEY, note VARCHAR(40), n DOUBLE)",
    "CREATE TABLE loose (id INT, note VARCHAR(40), n DOUBLE)",
)
#: what is planted in each table, and how it must be found
DAMAGE = (
    "UPDATE {} SET note = 'strange' WHERE id = 7",
    "DELETE FROM {} WHERE id = 11",
    "INSERT INTO {} VALUES (-5, '', 0)",
)
FOUND = {"7": "changed", "11": "missing", "-5": "extra"}


def fill(table: str, rows: int) -> str:
    return (
        f"INSERT INTO {table} WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
        f" SELECT /*+ SET_VAR(cte_max_recursion_depth = {rows}) */ i, CONCAT('row ', i), i / 3 FROM n"
    )


def replicated(replication: Replication, *, large: int = 0) -> Replication:
    """Fill the tables, bring them over, and damage the follower."""
    database = replication.database
    fills = [fill("small", FEW), fill("loose", FEW), *([fill("large", large)] if large else [])]
    replication.play(f"CREATE DATABASE IF NOT EXISTS {database}")
    replication.play(*TABLES, *fills)
    replication.start()
    replication.catch_up()
    names = ("small", "loose", "large") if large else ("small", "loose")
    damage = [statement.format(name) for name in names for statement in DAMAGE]
    replication.follower.execute("SET sql_log_bin = 0", *damage, database=database)
    return replication


def assert_found(audited: Audited, *tables: str) -> None:
    """Fail unless the damage of these tables was proven, and nothing else was said."""
    assert audited.status == 1, audited.err
    found = [(each.table.table, (each.leader or each.follower or {})["id"], each.kind) for each in audited.differences]
    # the changed row of a table without a key is two
    expected = [(table, id_, kind) for table in tables for id_, kind in FOUND.items()]
    expected += [("loose", "7", "missing"), ("loose", "7", "extra")] if "loose" in tables else []
    expected = [each for each in expected if each != ("loose", "7", "changed")]
    assert sorted(found) == sorted(expected)
    assert audited.run["undecided"] == []
    assert {table["verdict"] for table in audited.run["tables"] if table["table"] in tables} == {"different"}


@pytest.fixture
def own(replicate: Replicate, own_server: StartServer, database: str) -> Iterator[Replication]:
    """Servers this test may stop."""
    leader, follower = own_server(LEADER, server_id=11), own_server(FOLLOWER, server_id=12)
    yield replicate(leader, follower, [database], producer={"database": {"heartbeat_seconds": 0.3}})


def workers(program: Program) -> list[int]:
    """Python processes of Spark that belong to a running audit: not the process that forks them."""
    children = _children()
    daemons = [pid for pid in _descendants(children, program.pid) if b"pyspark.daemon" in _command(pid)]
    return [pid for pid in daemons if not children.get(pid) and children]


def _children() -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        found.setdefault(parent, []).append(int(entry.name))
    return found


def _descendants(children: Mapping[int, list[int]], pid: int) -> Iterator[int]:
    for child in children.get(pid, ()):
        yield child
        yield from _descendants(children, child)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def reading(parity: Parity, program: Program) -> None:
    """Wait until the large table is being read."""
    query = (
        "SELECT COUNT(*) FROM performance_schema.events_statements_summary_by_digest"
        f" WHERE schema_name IS NULL AND digest_text LIKE 'SELECT COUNT%BIT_XOR%`{parity.database}`%large%'"
    )
    wait_until(lambda: parity.follower.value(query), "the audit reads", alive=[program])


def test_servers_and_workers_that_die(own: Replication) -> None:
    replicated(own, large=ROWS)
    # slow enough to be met in the middle
    parity = parity_of(own, [own.database], limits={"rows_per_second": 30_000, "leader_connections": 1})
    program = parity.start("--cores", "2")
    reading(parity, program)
    os.kill(wait_until(lambda: workers(program), "a worker runs", alive=[program])[0], signal.SIGKILL)
    held = []
    for server in (own.leader, own.follower):
        assert isinstance(server, MySQLServer)
        held += slots(own.leader, 0.6)
        server.kill()
        server.start()
        assert program.running, program.stderr
    held += slots(own.leader, 0.6)
    program.wait(90)
    assert_found(parity.found(program), "large", "small", "loose")
    assert max(held) == 1


def slots(server: Server, seconds: float) -> Iterator[int]:
    """For a while, how many readers of an audit read this server."""
    held = "object_type = 'USER LEVEL LOCK' AND object_name LIKE 'cdc-parity-%' AND lock_status = 'GRANTED'"
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield int(server.value(f"SELECT COUNT(*) FROM performance_schema.metadata_locks WHERE {held}"))


@pytest.fixture
def shared(replication: Replication) -> Replication:
    """The shared servers."""
    return replication


def parts(folder: Path) -> dict[int, float]:
    """The ranges a run has read, and the seconds each took; none before it has begun to tell."""
    with closing(sqlite3.connect(folder / "audit.sqlite")) as state:
        if not state.execute("SELECT 1 FROM sqlite_master WHERE name = 'part'").fetchall():
            return {}
        return dict(state.execute("SELECT id, seconds FROM part WHERE done AND seconds IS NOT NULL"))


def test_an_interrupted_audit_goes_on(shared: Replication) -> None:
    replicated(shared, large=ROWS)
    parity = parity_of(shared, [shared.database], limits={"rows_per_second": 3_000})
    program = parity.start("--cores", "2")
    (folder,) = wait_until(parity.folders, "the audit begins", alive=[program])
    wait_until(lambda: (folder / "audit.sqlite").exists() and parts(folder), "a wave ends", alive=[program])
    os.killpg(program.pid, signal.SIGINT)
    assert program.wait() == 130, program.stderr
    assert "Traceback" not in program.stderr
    read = parts(folder)

    parity.change(limits={"rows_per_second": None})
    resumed = parity.program("--cores", "2", "--resume", folder.name)
    assert_found(replace(resumed, folder=folder), "large", "small", "loose")
    assert read.items() <= parts(folder).items()
    assert parity.found(program).run["totals"]["rows"]["leader"] == ROWS + 2 * FEW


def test_a_run_is_resumed_only_for_what_it_compared(shared: Replication) -> None:
    replicated(shared)
    parity = parity_of(shared, [shared.database])
    first = parity.audit("--tables", "*.small")
    assert_found(first, "small")
    assert first.folder is not None
    assert parity.audit("--tables", "*.small", "--resume", first.folder.name).status == 1
    refused = [parity.audit("--resume", first.folder.name)]
    shared.play("ALTER TABLE small ADD COLUMN more INT")
    shared.catch_up()
    refused.append(parity.audit("--tables", "*.small", "--resume", first.folder.name))
    refused.append(parity.audit("--resume", "20200101T000000Z-0000"))
    for audited, words in zip(refused, ("compared something else", "compared something else", "no run"), strict=True):
        assert (audited.status, audited.err.count("\n")) == (4, 1), audited.err
        assert words in audited.err


def test_a_follower_that_stays_away(own: Replication, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "PATIENCE", 1.0)
    replicated(own)
    follower = own.follower
    assert isinstance(follower, MySQLServer)
    parity = parity_of(own, [own.database])
    # it goes when the first rows were compared
    with monkeypatch.context() as patch:
        patch.setattr(Here, "map", _before(follower.stop, Here.map, after=2))
        gone = parity.audit()
    assert gone.status == 4
    assert gone.err.splitlines()[-1].startswith(f"cdc-parity: the follower {follower} does not answer: "), gone.err
    assert "Traceback" not in gone.err
    cannot = parity.audit()
    assert (cannot.status, cannot.err.count("\n")) == (4, 1), cannot.err
    follower.start()
    assert gone.folder is not None
    resumed = parity.audit("--resume", gone.folder.name)
    assert_found(replace(resumed, folder=gone.folder), "small", "loose")


def _before(action: Callable[[], object], run: Callable[..., Any], after: int) -> Callable[..., Any]:
    """Make a `Here.map` that does something once, in between its tasks."""
    left = [after]

    def patched(self: Here, function: Any, items: Sequence[Any], tick: Callable[[int, int], None]) -> list[Any]:
        found = []
        for item in items:
            found += run(self, function, [item], tick)
            left[0] -= 1
            if not left[0]:
                action()
        return found

    return patched


def test_a_consumer_that_does_not_run(shared: Replication) -> None:
    replicated(shared)
    shared.consumer.stop()
    shared.play(
        "UPDATE small SET note = 'on its way' WHERE id > 20", "INSERT INTO loose VALUES (900, 'on its way', 1)",
        "CREATE TABLE later (id INT PRIMARY KEY)", "ALTER TABLE small ADD COLUMN more INT",
    )  # fmt: skip
    parity = parity_of(shared, [shared.database], limits={"fence_seconds": 0.5})
    late = parity.audit()
    assert (late.status, late.differences, late.schema) == (3, [], []), late.out
    verdicts = {table["table"]: table["verdict"] for table in late.run["tables"]}
    assert verdicts == {"large": "equal", "later": "skipped", "loose": "undecided", "small": "skipped"}
    assert all("is the consumer running?" in each["reason"] for each in late.run["undecided"])
    assert "is the consumer running?" in late.table("small")["reason"]
    shared.consumer.start()
    shared.catch_up()
    assert {each.table.table for each in parity.audit().differences} == {"small", "loose"}


def test_tables_that_are_altered_meanwhile(shared: Replication, monkeypatch: pytest.MonkeyPatch) -> None:
    replicated(shared)
    shared.play("CREATE TABLE gone (id INT PRIMARY KEY)", "CREATE TABLE emptied (id INT PRIMARY KEY)",
                fill("emptied", 50).replace(", CONCAT('row ', i), i / 3", ""))  # fmt: skip
    shared.catch_up()

    def alter() -> None:
        shared.play(
            "ALTER TABLE small MODIFY note TEXT, ADD COLUMN more INT DEFAULT 5 FIRST", "DROP TABLE gone",
            "ALTER TABLE loose DROP COLUMN n", "TRUNCATE emptied",
        )  # fmt: skip

    with monkeypatch.context() as patch:
        patch.setattr(Here, "map", _before(alter, Here.map, after=4))
        audited = parity_of(shared, [shared.database]).audit()
    assert audited.status == 1, audited.err
    found = {(each.table.table, (each.leader or each.follower or {})["id"]) for each in audited.differences}
    assert found == {(table, id_) for table in ("small", "loose") for id_ in FOUND}
    assert all(
        "n" not in (each.leader or each.follower or {}) for each in audited.differences if each.table.table == "loose"
    )
    assert {name: audited.table(name)["verdict"] for name in ("emptied", "gone")} == {
        "emptied": "equal",
        "gone": "undecided",
    }
    assert "dropped" in audited.table("gone")["reason"]
    assert audited.schema == []


def test_a_repair_beside_the_consumer(shared: Replication) -> None:
    replicated(shared)
    parity = parity_of(shared, [shared.database])
    repaired = parity.audit("--repair")
    assert repaired.status == 0, repaired.out
    assert repaired.run["run"]["repair"] == "7 rows repaired"
    shared.play("UPDATE small SET n = n + 1", "DELETE FROM loose LIMIT 20")
    shared.catch_up()
    shared.same()
    assert parity.audit().status == 0


def test_an_audit_writes_nothing(shared: Replication) -> None:
    replicated(shared)
    state = "SELECT @@GLOBAL.gtid_executed"
    before = [(binlog_end(server), server.value(state)) for server in (shared.leader, shared.follower)]
    audited = parity_of(shared, [shared.database]).audit()
    assert_found(audited, "small", "loose")
    assert {each.evidence.proof for each in audited.differences} == {"idle"}
    assert [(binlog_end(server), server.value(state)) for server in (shared.leader, shared.follower)] == before


def test_memory_stays_flat_where_everything_differs(shared: Replication, audits: int) -> None:
    """Most megabytes of the driver and of one worker while all rows are missing."""
    shared.play(TABLES[0])
    shared.start()
    shared.catch_up()
    shared.leader.execute("SET sql_log_bin = 0", fill("large", MISSING * min(audits, 10)), database=shared.database)
    program = parity_of(shared, [shared.database]).start("--cores", "2", "--tables", "*.large")
    most: dict[str, int] = {"driver": 0, "worker": 0}
    while program.running:
        most["driver"] = max(most["driver"], megabytes(program.pid))
        most["worker"] = max([most["worker"], *map(megabytes, workers(program))])
        time.sleep(0.2)
    print(most)
    assert program.status == 1, program.stderr
    assert max(most.values()) < 250, most


def megabytes(pid: int) -> int:
    """Of memory a process has to itself, about; 0 when it is gone."""
    try:
        (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    except (OSError, ValueError):
        return 0
    return int(line.split()[1]) // 1024
