"""What goes wrong around an audit: it goes on, or ends with one sentence; it never claims too much."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from fix_damaged_pair import FOUND, ROWS, assert_found, fill, replicated
from fix_mysql import StartServer
from fix_parity import Here, Parity, parity_of
from fix_replication import Replicate, Replication
from kit.helpers import wait_until
from kit.programs import Program
from kit.spark_processes import workers

from cdc_consumer.parity.servers import connection as servers
from docker.local.mysql_servers import FOLLOWER, LEADER, MySQLServer, Server


@pytest.fixture
def own(replicate: Replicate, own_server: StartServer, database: str) -> Iterator[Replication]:
    """Servers this test may stop."""
    leader, follower = own_server(LEADER, server_id=11), own_server(FOLLOWER, server_id=12)
    yield replicate(leader, follower, [database], producer={"database": {"heartbeat_seconds": 0.3}})


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


def test_a_consumer_that_does_not_run(replication: Replication) -> None:
    replicated(replication)
    replication.consumer.stop()
    replication.play(
        "UPDATE small SET note = 'on its way' WHERE id > 20", "INSERT INTO loose VALUES (900, 'on its way', 1)",
        "CREATE TABLE later (id INT PRIMARY KEY)", "ALTER TABLE small ADD COLUMN more INT",
    )  # fmt: skip
    parity = parity_of(replication, [replication.database], limits={"fence_seconds": 0.5})
    late = parity.audit()
    assert (late.status, late.differences, late.schema) == (3, [], []), late.out
    verdicts = {table["table"]: table["verdict"] for table in late.run["tables"]}
    assert verdicts == {"large": "equal", "later": "skipped", "loose": "undecided", "small": "skipped"}
    assert all("is the consumer running?" in each["reason"] for each in late.run["undecided"])
    assert "is the consumer running?" in late.table("small")["reason"]
    replication.consumer.start()
    replication.catch_up()
    assert {each.table.table for each in parity.audit().differences} == {"small", "loose"}


def test_tables_that_are_altered_meanwhile(replication: Replication, monkeypatch: pytest.MonkeyPatch) -> None:
    replicated(replication)
    replication.play("CREATE TABLE gone (id INT PRIMARY KEY)", "CREATE TABLE emptied (id INT PRIMARY KEY)",
                fill("emptied", 50).replace(", CONCAT('row ', i), i / 3", ""))  # fmt: skip
    replication.catch_up()

    def alter() -> None:
        replication.play(
            "ALTER TABLE small MODIFY note TEXT, ADD COLUMN more INT DEFAULT 5 FIRST", "DROP TABLE gone",
            "ALTER TABLE loose DROP COLUMN n", "TRUNCATE emptied",
        )  # fmt: skip

    with monkeypatch.context() as patch:
        patch.setattr(Here, "map", _before(alter, Here.map, after=4))
        audited = parity_of(replication, [replication.database]).audit()
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
