"""Every stop on one transaction can be passed by a named decision, which is logged and kept on the follower."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from fix_replication import Replicate, Replication, assert_refused, write_topic
from kit.programs import run_program

from cdc_consumer.parity.servers.pair import FollowerConnection
from docker.local.mysql_servers import Server
from shared.profile import Database

REASON = "the operator's words, with a 'quote'"


@pytest.fixture(params=["gtids", "plain"])
def pair(request: pytest.FixtureRequest, replicate: Replicate, database: str) -> Replication:
    """Two servers with GTIDs, and two without; the database and its table t are on both."""
    prefix = "" if request.param == "gtids" else "plain_"
    leader, follower = request.getfixturevalue(f"{prefix}leader"), request.getfixturevalue(f"{prefix}follower")
    replication = replicate(leader, follower, [database])
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))", "INSERT INTO t VALUES (1, 'a')")
    replication.replicate()
    return replication


def consume(replication: Replication, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_program("cdc_consumer", replication.profiles.consumer, "--exit-at-end", *arguments)


def produce(replication: Replication, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_program("cdc_producer", replication.profiles.producer, "--exit-at-end", *arguments)


def follower_connection(replication: Replication) -> FollowerConnection:
    """Connect as the audit does."""
    follower = Database("root", host=replication.follower.host, port=replication.follower.port)
    return FollowerConnection(follower, replication.system_database, replication.topic.name)


def rows(server: Server, replication: Replication) -> list[tuple[object, ...]]:
    return server.execute(f"SELECT * FROM {replication.database}.t ORDER BY 1")


def left_out(replication: Replication) -> list[tuple[object, ...]]:
    columns = "first_sequence, last_sequence, side, reason, instead"
    return replication.follower.execute(f"SELECT {columns} FROM {replication.system_database}.left_out ORDER BY 1")


def assert_executed(replication: Replication) -> None:
    """Fail unless the follower has executed what was left out, where there are GTIDs."""
    gtids = replication.follower.execute(f"SELECT gtid FROM {replication.system_database}.left_out")
    assert gtids
    for (gtid,) in gtids:
        if replication.leader.value("SELECT @@GLOBAL.gtid_mode") == "ON":
            assert replication.follower.value(f"SELECT GTID_SUBSET('{gtid}', @@GLOBAL.gtid_executed)") == 1
        else:
            assert gtid is None


@pytest.fixture
def stopped(pair: Replication) -> Replication:
    """The follower stops at sequences 3 and 4: somebody has written the row there."""
    pair.follower.execute(f"INSERT INTO {pair.database}.t VALUES (2, 'foreign')")
    pair.play("BEGIN", "INSERT INTO t VALUES (3, 'c')", "INSERT INTO t VALUES (2, 'b')", "COMMIT")
    pair.play("INSERT INTO t VALUES (4, 'd')")
    assert produce(pair).returncode == 0
    result = consume(pair)
    assert_refused(result, "Duplicate entry")
    assert "--help tells how to --skip the transaction" in result.stderr
    return pair


@pytest.mark.parametrize("sequence", ["3", "4"])
def test_a_transaction_is_left_out(stopped: Replication, sequence: str) -> None:
    result = consume(stopped, "--skip", sequence, "--reason", REASON)
    assert result.returncode == 0, result.stderr
    assert f"(sequences 3 to 4, at the follower): {REASON}" in result.stderr
    assert rows(stopped.follower, stopped) == [(1, "a"), (2, "foreign"), (4, "d")]
    assert left_out(stopped) == [(3, 4, "follower", REASON, None)]
    assert_executed(stopped)
    with closing(follower_connection(stopped)) as audit:
        (told,) = audit.omissions()
    assert (told.first, told.last, told.side, told.reason) == (3, 4, "follower", REASON)
    again = consume(stopped, "--skip", sequence, "--reason", REASON)
    assert (again.returncode, "was left out before" in again.stderr) == (0, True)


def test_statements_run_in_its_place(stopped: Replication, tmp_path: Path) -> None:
    file = tmp_path / "instead.sql"
    table = f"{stopped.database}.t"
    text = f"UPDATE {table} SET name = 'b; --' WHERE id = 2;\n-- a comment\nINSERT INTO {table} VALUES (3, 'c');\n"
    file.write_text(text)
    result = consume(stopped, "--skip", "3", "--reason", REASON, "--instead", str(file))
    assert result.returncode == 0, result.stderr
    assert rows(stopped.follower, stopped) == [(1, "a"), (2, "b; --"), (3, "c"), (4, "d")]
    ((_, _, _, _, instead),) = left_out(stopped)
    assert str(instead).startswith("UPDATE")
    assert_executed(stopped)


def test_a_statement_that_fails_in_its_place_changes_nothing(stopped: Replication, tmp_path: Path) -> None:
    file = tmp_path / "instead.sql"
    file.write_text(f"DELETE FROM {stopped.database}.t; INSERT INTO {stopped.database}.nowhere VALUES (1)")
    assert_refused(
        consume(stopped, "--skip", "3", "--reason", REASON, "--instead", str(file)), "nowhere' doesn't exist"
    )
    assert rows(stopped.follower, stopped) == [(1, "a"), (2, "foreign")]
    assert left_out(stopped) == []


def test_a_statement_that_commits_by_itself_runs_in_its_place(pair: Replication, tmp_path: Path) -> None:
    pair.follower.execute(f"ALTER TABLE {pair.database}.t ADD c INT")
    pair.play("ALTER TABLE t ADD c INT", "INSERT INTO t VALUES (2, 'b', 3)")
    assert produce(pair).returncode == 0
    assert_refused(consume(pair), "Duplicate column name")
    file = tmp_path / "instead.sql"
    file.write_text(f"ALTER TABLE {pair.database}.t COMMENT 'ours';")
    result = consume(pair, "--skip", "3", "--reason", REASON, "--instead", str(file))
    assert result.returncode == 0, result.stderr
    assert rows(pair.follower, pair) == [(1, "a", None), (2, "b", 3)]
    assert "COMMENT='ours'" in pair.follower.execute(f"SHOW CREATE TABLE {pair.database}.t")[0][1]
    assert_executed(pair)


def test_another_transaction_is_not_touched(stopped: Replication) -> None:
    assert_refused(consume(stopped, "--skip", "5", "--reason", REASON), "has the sequences 3 to 4")
    assert_refused(consume(stopped, "--skip", "2", "--reason", REASON), "has applied 2 already")
    assert left_out(stopped) == []
    assert_refused(consume(stopped), "Duplicate entry")


def test_a_decision_needs_a_reason(stopped: Replication, tmp_path: Path) -> None:
    assert_refused(consume(stopped, "--skip", "3"), "needs --reason", status=2)
    assert_refused(
        consume(stopped, "--skip", "3", "--reason", "x", "--instead", "none.sql"), "cannot be read", status=2
    )
    file = tmp_path / "mixed.sql"
    file.write_text("DELETE FROM a.t; DROP TABLE a.t")
    assert_refused(
        consume(stopped, "--skip", "3", "--reason", "x", "--instead", str(file)), "one transaction", status=2
    )
    assert_refused(produce(stopped, "--skip", "nonsense", "--reason", "x"), "--skip must be the GTID", status=2)
    assert consume(stopped, "--reason", "x").returncode == 2


def test_an_event_that_cannot_be_read_is_left_out(pair: Replication) -> None:
    pair.play("INSERT INTO t VALUES (2, 'b')", "INSERT INTO t VALUES (3, 'c')")
    assert produce(pair).returncode == 0
    records = [json.loads(value) for value in pair.records()]
    (damaged,) = [record for record in records if record["sequence"] == 3 and record["operation"] != "Heartbeat"]
    damaged["operation"] = {"Add": {"rows": "none"}}
    write_topic(pair.topic, [json.dumps(record, separators=(",", ":")).encode() for record in records])
    assert_refused(consume(pair), "is not an event", "where sequence 3 was expected")
    result = consume(pair, "--skip", "3", "--reason", REASON)
    assert result.returncode == 0, result.stderr
    assert rows(pair.follower, pair) == [(1, "a"), (3, "c")]


def test_a_transaction_is_left_out_at_the_leader(pair: Replication) -> None:
    pair.play("XA START 'x'", "INSERT INTO t VALUES (2, 'xa')", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    pair.play("INSERT INTO t VALUES (3, 'c')")
    refused = produce(pair)
    assert_refused(refused, "XA transaction")
    place = re.findall(r"rows at (\S+:\d+) ", refused.stderr)[-1]
    result = produce(pair, "--skip", place, "--reason", REASON)
    assert result.returncode == 0, result.stderr
    assert "left out by decision" in result.stderr
    assert produce(pair, "--skip", place, "--reason", REASON).returncode == 0
    assert consume(pair).returncode == 0
    assert rows(pair.follower, pair) == [(1, "a"), (3, "c")]
    assert left_out(pair) == [(3, 3, "leader", REASON, None)]


def test_what_was_published_of_it_is_undone(pair: Replication) -> None:
    """The leader's rows before the one that cannot be carried are in the topic already, and on the follower never."""
    pair.play(
        "CREATE TABLE j (id INT PRIMARY KEY, d JSON)", "INSERT INTO j VALUES (1, JSON_OBJECT('a', REPEAT('x', 900)))"
    )
    pair.play(
        "SET binlog_row_value_options = PARTIAL_JSON", "BEGIN", "INSERT INTO t VALUES (2, 'b')",
        "INSERT INTO t VALUES (3, 'c')", "UPDATE j SET d = JSON_SET(d, '$.a', 'y')", "INSERT INTO t VALUES (4, 'd')", "COMMIT",
    )  # fmt: skip
    pair.play("INSERT INTO t VALUES (5, 'e')")
    refused = produce(pair)
    assert_refused(refused, "partial JSON update")
    assert consume(pair).returncode == 0
    name = re.findall(r" at (\S+:\d+) are", refused.stderr)[-1]
    if pair.leader.value("SELECT @@GLOBAL.gtid_mode") == "ON":
        last = [record for record in map(json.loads, pair.records()) if record["operation"] != "Heartbeat"][-1]
        name = last["transaction"]["gtid"]
    result = produce(pair, "--skip", name, "--reason", REASON)
    assert result.returncode == 0, result.stderr
    assert consume(pair).returncode == 0
    assert rows(pair.follower, pair) == [(1, "a"), (5, "e")]
    assert left_out(pair)[0][2:] == ("leader", REASON, None)
    assert_executed(pair)
