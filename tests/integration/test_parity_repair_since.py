"""What the leader wrote since the audit is not set back by a repair, though the follower's row has the hash it had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fix_parity import Audited, Parity, parity_of
from fix_replication import Replicate, Replication
from kit.repair import apply_file

from cdc_consumer.parity.phases import conclude
from cdc_consumer.parity.repair import apply
from docker.local.mysql_servers import Server

MADE = [
    "CREATE TABLE flag (id INT PRIMARY KEY, done INT)", "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE loose (v INT)", "INSERT INTO flag VALUES (1, 0), (2, 0)", "INSERT INTO t VALUES (1, 1), (2, 2)",
    "INSERT INTO loose VALUES (1), (2)",
]  # fmt: skip
DAMAGE = ["UPDATE flag SET done = 1", "DELETE FROM t WHERE id = 1", "DELETE FROM loose WHERE v = 1"]
#: what the leader writes after the audit, and the consumer applies
SINCE = {
    "set to what the follower had": ["UPDATE flag SET done = 1 WHERE id = 1"],
    "other rows": ["DELETE FROM loose WHERE v = 2", "INSERT INTO t VALUES (3, 3)"],
    "truncated": ["TRUNCATE t"],
    "made anew": ["DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY, v INT)"],
}
TABLES = ("flag", "t", "loose")


@pytest.fixture
def running(replicate: Replicate, leader: Server, follower: Server, database: str) -> Replication:
    """Both programs, and rows that differ in three tables."""
    replication = replicate(leader, follower, [database], producer={"database": {"heartbeat_seconds": 0.1}})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(*MADE)
    replication.start()
    replication.catch_up()
    follower.execute("SET sql_log_bin = 0", *DAMAGE, database=database)
    return replication


def rows_of(server: Server, database: str) -> dict[str, list[Any]]:
    return {table: server.execute(f"SELECT * FROM {table} ORDER BY 1", database=database) for table in TABLES}


def file_of(audited: Audited) -> Path:
    assert audited.status == 1 and audited.folder is not None, audited.err
    return audited.folder / "repair.sql"


def test_the_file_where_only_heartbeats_moved_the_follower(running: Replication) -> None:
    file = file_of(parity_of(running, [running.database]).audit())
    running.leader.execute("CREATE DATABASE IF NOT EXISTS nobody_asked", "DROP DATABASE nobody_asked")
    before = running.applied()
    while running.applied() == before:
        running.catch_up()
    running.follower.execute("CREATE DATABASE of_its_own", "DROP DATABASE of_its_own")
    for _ in range(2):
        apply_file(running.follower, file)
        running.same()


@pytest.mark.parametrize("since", SINCE.values(), ids=SINCE)
def test_the_file_is_refused_where_the_follower_has_moved(since: list[str], running: Replication) -> None:
    file = file_of(parity_of(running, [running.database]).audit())
    running.play(*since)
    running.catch_up()
    before = rows_of(running.follower, running.database)
    with pytest.raises(AssertionError, match="the follower has moved since the audit: run cdc-parity --repair, or"):
        apply_file(running.follower, file)
    assert rows_of(running.follower, running.database) == before


@pytest.mark.parametrize("since", SINCE)
def test_repair_beside_the_leader(since: str, running: Replication, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written after a rehearsal, and applied before the same transaction is made for good."""
    attempt, left = apply._Repair._attempt, [SINCE[since]]

    def moving(self: Any, target: Any, units: Any, commit: bool) -> Any:
        if commit and left:
            running.play(*left.pop())
            running.catch_up()
        return attempt(self, target, units, commit)

    monkeypatch.setattr(apply._Repair, "_attempt", moving)
    parity = parity_of(running, [running.database])
    repaired = parity.audit("--repair")
    # a statement may have changed any row of its database
    number = {"other rows": 0, "set to what the follower had": 1}.get(since, 4)
    told = f"{4 - number} rows repaired" + f", {number} moved meanwhile" * (number > 0)
    assert repaired.run["run"]["repair"] == told
    monkeypatch.undo()
    if repaired.status:
        assert parity.audit("--repair").status == 0
    running.same()


def test_what_was_written_before_the_file_was_is_left_out_of_it(
    running: Replication, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = conclude._write_differences

    def moving(*given: Any) -> Any:
        running.play("UPDATE flag SET done = 1 WHERE id = 1", "DELETE FROM loose WHERE v = 2")
        running.catch_up()
        return written(*given)

    monkeypatch.setattr(conclude, "_write_differences", moving)
    file = file_of(parity_of(running, [running.database]).audit())
    assert "1 row of" in file.read_text() and "the topic holds a change of it" in file.read_text()
    apply_file(running.follower, file)
    monkeypatch.undo()
    running.same()


def test_a_repair_tells_what_it_did_not_try(running: Replication, monkeypatch: pytest.MonkeyPatch) -> None:
    written, left = conclude._write_differences, [1]

    def moving(*given: Any) -> Any:
        if left:
            left.pop()
            running.play("UPDATE flag SET done = 1 WHERE id = 1")
            running.catch_up()
        return written(*given)

    monkeypatch.setattr(conclude, "_write_differences", moving)
    repaired = parity_of(running, [running.database]).audit("--repair")
    assert repaired.run["run"]["repair"] == "3 rows repaired, 1 not tried, for what repair.sql says"
    assert repaired.status == 0, "the row that was not tried is right now"
    running.same()


def test_without_a_topic(damaged: Parity, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_of(damaged.audit())
    forward = f"UPDATE {damaged.system_database}.position SET sequence = sequence + 1"
    damaged.follower.execute("SET sql_log_bin = 0", forward)
    with pytest.raises(AssertionError, match="the follower has moved"):
        apply_file(damaged.follower, file)
    attempt = apply._Repair._attempt

    def moving(self: Any, target: Any, units: Any, commit: bool) -> Any:
        if commit:
            damaged.follower.execute("SET sql_log_bin = 0", forward)
        return attempt(self, target, units, commit)

    with monkeypatch.context() as patch:
        patch.setattr(apply._Repair, "_attempt", moving)
        assert "0 rows repaired, 3 moved meanwhile" in damaged.audit("--repair").run["run"]["repair"]
    assert damaged.audit("--repair").status == 0


@pytest.mark.parametrize("what", ["a slot ahead", "an intent", "a GTID of the leader", "no position"])
def test_what_the_position_does_not_tell_yet(what: str, damaged: Parity) -> None:
    """A transaction before its turn, and a statement between its end and its position."""
    file = file_of(damaged.audit())
    own = damaged.system_database
    made = {
        "a slot ahead": [
            f"INSERT INTO {own}.position (topic, worker, topic_offset, sequence, leader_file, leader_offset, link)"
            f" SELECT topic, 3, 7, 7, leader_file, leader_offset, 6 FROM {own}.position"
        ],
        "an intent": [f"INSERT INTO {own}.intent (topic, worker, sequence, fingerprint) VALUES ('events', 0, 7, '')"],
        "a GTID of the leader": [
            "SET SESSION sql_log_bin = 1, gtid_next = 'aaaaaaaa-0000-0000-0000-000000000001:1'", "BEGIN", "COMMIT",
            "SET gtid_next = 'AUTOMATIC'",
        ],
        "no position": [f"DELETE FROM {own}.position"],
    }[what]  # fmt: skip
    damaged.follower.execute("SET sql_log_bin = 0", *made)
    with pytest.raises(AssertionError, match="the follower has moved"):
        apply_file(damaged.follower, file)
    with pytest.raises(AssertionError, match="the follower has moved"):
        apply_file(damaged.follower, file)
