"""Leaders, settings and statements that cannot be replicated exactly: each stops the producer with its own words.

Names are those of the catalogue of binlog traps where a case is in it: R4, L9 ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from fix_mysql import Servers
from fix_replication import Replicate, Replication, assert_refused, write_topic
from kit.faults import account, setting
from kit.helpers import wait_until
from kit.programs import binlog_end, run_program
from kit.topic import shared_table
from kit.topic_audit import assert_whole

from docker.local.mysql_servers import LEADER, Server, free_port
from shared.errors import TopicMissingError
from shared.topic import open_reader


def assert_changes_nothing(replication: Replication, *words: str) -> None:
    """The producer is refused, and the topic is as it was."""
    before = replication.records()
    assert_refused(replication.produce(), *words)
    assert replication.records() == before


# settings of the leader, looked at before anything is read

SETTINGS = {
    "format": ("binlog_format", "STATEMENT", "binlog_format must be ROW, not STATEMENT", "SET PERSIST binlog_format = ROW"),
    "R1": ("binlog_row_image", "MINIMAL", "binlog_row_image must be FULL, not MINIMAL", "SET PERSIST"),
    "R1-noblob": ("binlog_row_image", "NOBLOB", "binlog_row_image must be FULL, not NOBLOB", "SET PERSIST"),
    "R3": ("binlog_row_metadata", "MINIMAL", "binlog_row_metadata must be FULL, not MINIMAL", "SET PERSIST"),
    "R2": ("binlog_row_value_options", "PARTIAL_JSON", "binlog_row_value_options must be empty", "SET PERSIST"),
    "retention": ("binlog_expire_logs_seconds", "600", "binlog_expire_logs_seconds must be at least 3600 or 0", "SET PERSIST"),
}  # fmt: skip


@pytest.mark.parametrize("case", SETTINGS)
def test_a_setting_is_refused(replication: Replication, case: str) -> None:
    name, value, *words = SETTINGS[case]
    replication.play("CREATE TABLE t (a INT)")
    with setting(replication.leader, name, value):
        assert_changes_nothing(replication, str(replication.leader), *words)
    replication.replicate()
    replication.same()


# the profile and the account

PROFILES: dict[str, tuple[dict[str, object], str]] = {
    "closed port": ({"port": free_port()}, "Connection refused"),
    "unknown host": ({"host": "no-such-host.invalid"}, "no-such-host.invalid"),
    "wrong password": ({"password": "wrong"}, "Access denied for user 'root'"),
    "unknown user": ({"user": "nobody-here"}, "Access denied for user 'nobody-here'"),
    "L9 leader's id": ({"server_id": 1}, "server_id 1 is taken by the leader"),
    "start after the end": ({"start": "FILE:999999999"}, "is after the end of the leader's binlog"),
    "start in a file never written": ({"start": "binlog.999999:4"}, "does not have binlog.999999"),
    "start at an unknown GTID": ({"start": "00000000-0000-0000-0000-000000000001:5"}, "never executed"),
    "start inside an event": ({"start": "FILE:5"}, "1236"),
}


@pytest.mark.parametrize("case", PROFILES)
def test_a_profile_is_refused(replicate: Replicate, leader: Server, follower: Server, database: str, case: str) -> None:
    change, words = PROFILES[case]
    if "start" in change:
        file = binlog_end(leader).partition(":")[0]
        change = {"start": str(change["start"]).replace("FILE", file)}
    replication = replicate(leader, follower, [database], producer={"database": change})
    assert_changes_nothing(replication, words)
    if "start" not in change:
        # not even an empty topic is made
        with pytest.raises(TopicMissingError):
            open_reader(replication.topic)


@pytest.mark.parametrize("grants", ["", "REPLICATION CLIENT", "REPLICATION SLAVE", "SELECT, PROCESS"])
def test_missing_privileges(replicate: Replicate, leader: Server, follower: Server, database: str, grants: str) -> None:
    with account(leader, grants) as user:
        replication = replicate(leader, follower, [database], producer={"database": user})
        assert_changes_nothing(replication, "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO")


def test_l9_another_replica_has_the_id(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    first, second = (
        replicate(leader, follower, [database], name=name, producer={"database": {"server_id": 777}, "topic": {"name": f"{name}-{database[-8:]}"}})
        for name in ("first", "second")
    )  # fmt: skip
    first.producer.start()
    # the leader may still know a producer of another test
    wait_until(
        lambda: any(row[0] == 777 for row in leader.execute("SHOW REPLICAS")), "the first producer is registered"
    )
    assert_changes_nothing(second, "server_id 777 is taken by another replica")
    assert first.producer.stop() == 0


# statements that come while the settings are right; OTHER is a database the filter leaves out

XA = ("XA START 'x'", "INSERT INTO t VALUES (9, '[]', '')", "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'")
STATEMENTS: dict[str, tuple[tuple[str, ...], str]] = {
    "R21": (("SET binlog_format = STATEMENT", "INSERT INTO t VALUES (9, '[]', '')"), "changes rows as text"),
    "R21-intvar": (("SET binlog_format = STATEMENT", "INSERT INTO n (b) VALUES (1)"), "changes rows as text"),
    "R21-rand": (("SET binlog_format = STATEMENT", "INSERT INTO n VALUES (5, RAND())"), "changes rows as text"),
    "R1": (("SET binlog_row_image = MINIMAL", "UPDATE t SET j = '{}'"), "a row image is not FULL"),
    "R1-noblob": (("SET binlog_row_image = NOBLOB", "UPDATE t SET a = 8"), "a row image is not FULL"),
    "R2": (
        ("SET binlog_row_value_options = PARTIAL_JSON", "UPDATE t SET j = JSON_SET(j, '$.a', 1, '$.b', 2)"),
        "PARTIAL_JSON",
    ),
    "R3": (("SET GLOBAL binlog_row_metadata = MINIMAL", "INSERT INTO t VALUES (9, '[]', '')"), "has no column names"),
    "R17": (XA, "XA transaction"),
    "R31": (("DROP TABLE t, OTHER.t",), "which it does not; include all of them or none"),
    "R32-out": (("RENAME TABLE t TO OTHER.gone",), "which it does not; include all of them or none"),
    "R32-in": (("RENAME TABLE OTHER.t TO come",), "which it does not; include all of them or none"),
}


@pytest.mark.parametrize("case", STATEMENTS)
def test_a_statement_stops_the_producer(replication: Replication, case: str) -> None:
    """What was whole before it is published and replayed; what comes after it only by the way the error names."""
    statements, words = STATEMENTS[case]
    other = f"{replication.database}_other"
    replication.play(
        "CREATE TABLE t (a INT PRIMARY KEY, j JSON, x TEXT)", "CREATE TABLE n (a INT AUTO_INCREMENT PRIMARY KEY, b DOUBLE)",
        f"CREATE DATABASE {other}", f"CREATE TABLE {other}.t (a INT)",
        "INSERT INTO t VALUES (1, JSON_OBJECT('a', REPEAT('a', 500), 'b', REPEAT('b', 500), 'c', REPEAT('c', 500)), 'x')",
    )  # fmt: skip
    try:
        replication.play(*(statement.replace("OTHER", other) for statement in statements))
    finally:
        replication.leader.execute("SET GLOBAL binlog_row_metadata = FULL")
    replication.play("INSERT INTO n VALUES (100, 1)")
    refused = replication.produce()
    assert_refused(refused, words)
    assert_changes_nothing(replication, words)
    assert_whole(replication.records())
    assert [next(iter(event["operation"])) for event in replication.events()] == ["Query", "Query", "Query", "Add"]
    assert replication.consume().returncode == 0
    assert replication.follower.value(f"SELECT a FROM {replication.database}.t") == 1
    way = re.findall(r"cdc-producer (--skip \S+)$", refused.stderr, re.MULTILINE)[0].split()
    produced = run_program("cdc_producer", replication.profiles.producer, "--exit-at-end", *way, "--reason", "a test")
    assert produced.returncode == 0, produced.stderr
    assert replication.consume().returncode == 0
    assert replication.follower.value(f"SELECT a FROM {replication.database}.n") == 100


# the binlog is not the one the topic continues


@pytest.fixture(scope="module")
def spare_leader(servers: Servers) -> Iterator[Server]:
    """A leader whose binlogs nobody else needs."""
    with ExitStack() as stack:
        yield servers.start("spare", 31, LEADER, stack)


@pytest.fixture
def own(replicate: Replicate, spare_leader: Server, follower: Server, database: str) -> Replication:
    """A leader with nothing but two operations in its binlog, and a topic that has them."""
    spare_leader.execute("RESET BINARY LOGS AND GTIDS")
    replication = replicate(spare_leader, follower, [database], start="earliest")
    replication.play(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT PRIMARY KEY)")
    assert replication.produce().returncode == 0
    return replication


def test_purged_binlogs(own: Replication) -> None:
    own.play("INSERT INTO t VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (2)", "FLUSH BINARY LOGS")
    last = own.leader.execute("SHOW BINARY LOGS")[-1][0]
    own.leader.execute(f"PURGE BINARY LOGS TO '{last}'")
    assert_changes_nothing(own, "cannot give its binlog from where the topic ends", "load the follower anew")


def test_purged_binlogs_before_the_first_start(own: Replication, replicate: Replicate) -> None:
    own.leader.execute("FLUSH BINARY LOGS")
    last = own.leader.execute("SHOW BINARY LOGS")[-1][0]
    own.leader.execute(f"PURGE BINARY LOGS TO '{last}'")
    other = replicate(own.leader, own.follower, [own.database], name="other", start="earliest")
    assert_changes_nothing(other, f"the oldest binlog of leader {own.leader} is {last} and earlier changes are purged")


@pytest.mark.parametrize("written", [0, 1, 500])
def test_reset_binlogs(own: Replication, written: int) -> None:
    """However much the leader writes into its new first binlog."""
    own.play("INSERT INTO t VALUES (1)")
    assert own.produce().returncode == 0
    own.play("RESET BINARY LOGS AND GTIDS", *(f"INSERT INTO t VALUES ({number + 10})" for number in range(written)))
    assert_changes_nothing(own, str(own.leader), "load the follower anew")


def test_reset_binlogs_that_look_alike(own: Replication) -> None:
    """The topic ends with a heartbeat, and the new binlog has a transaction's edge at its very place."""
    other = "x" * len(own.database)
    own.play(
        f"DROP DATABASE IF EXISTS {other}", f"CREATE DATABASE {other}", f"CREATE TABLE {other}.t (a INT PRIMARY KEY)"
    )
    own.play("RESET BINARY LOGS AND GTIDS")
    write_topic(own.topic, [])
    own.play(f"INSERT INTO {other}.t VALUES (1)")
    assert own.produce().returncode == 0
    end = binlog_end(own.leader)
    own.play("RESET BINARY LOGS AND GTIDS", "INSERT INTO t VALUES (1)")
    assert binlog_end(own.leader) == end
    own.play("INSERT INTO t VALUES (2)")
    assert_changes_nothing(own, "load the follower anew")


@pytest.mark.parametrize("last", ["operation", "heartbeat"])
def test_another_leader(own: Replication, leader: Server, replicate: Replicate, last: str) -> None:
    if last == "heartbeat":
        own.play("CREATE DATABASE IF NOT EXISTS elsewhere")
        assert own.produce().returncode == 0
    assert (own.last()[1]["operation"] == "Heartbeat") == (last == "heartbeat")
    other = replicate(
        leader, own.follower, [own.database], name="other", start="earliest",
        producer={"topic": shared_table(own.topic)},
    )  # fmt: skip
    other.topic = own.topic
    assert_changes_nothing(other, "load the follower anew")
