"""Every stop of the producer on one transaction can be passed by a named decision, which the follower keeps too."""

from __future__ import annotations

import json
import re

from fix_left_out import REASON, assert_executed, consume, left_out, produce, rows
from fix_replication import Replication, assert_refused

from docker.local.mysql_servers import Server
from shared.events import Position


def test_a_transaction_is_left_out_at_the_leader(pair: Replication) -> None:
    pair.play("XA START 'x'", "INSERT INTO t VALUES (2, 'xa')", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
    pair.play("INSERT INTO t VALUES (3, 'c')")
    refused = produce(pair)
    assert_refused(refused, "XA transaction")
    place = re.findall(r"rows at (\S+:\d+) ", refused.stderr)[-1]
    result = produce(pair, "--skip", place, "--reason", REASON)
    assert result.returncode == 0, result.stderr
    assert "left out by decision" in result.stderr
    assert_refused(produce(pair, "--skip", place, "--reason", REASON), "left out already; nothing was changed")
    assert consume(pair).returncode == 0
    assert rows(pair.follower, pair) == [(1, "a"), (3, "c")]
    assert left_out(pair) == [(3, 3, "leader", REASON, None)]


def binlog_end(server: Server) -> Position:
    file, offset, *_ = server.execute("SHOW BINARY LOG STATUS")[0]
    return Position(str(file), int(str(offset)))


def test_a_decision_at_the_leader_that_comes_too_late_is_refused(pair: Replication) -> None:
    """Nothing is changed: a name that nothing has would else stay, and end as if the transaction were passed."""
    end, before = binlog_end(pair.leader), pair.records()
    names = {
        f"{end.file}:4": "the topic continues behind it",
        f"{end.file}:{end.offset - 1}": "the topic continues behind it",
        f"{end.file}:{end.offset}": f"ends at {end}",
        "binlog.999999:4": f" to {end.file}",
        "00000000-0000-0000-0000-000000000001:1": "has not executed",
    }
    if pair.leader.value("SELECT @@GLOBAL.gtid_mode") == "ON":
        for record in map(json.loads, before[:2]):
            names[record["transaction"]["gtid"]] = "the topic continues behind it"
    for name, words in names.items():
        assert_refused(produce(pair, "--skip", name, "--reason", REASON), words, "nothing was changed")
    assert pair.records() == before


def test_a_decision_at_the_leader_that_is_not_met_is_told(pair: Replication) -> None:
    end = binlog_end(pair.leader)
    pair.play("INSERT INTO t VALUES (2, 'b')")
    result = produce(pair, "--skip", f"{end.file}:{end.offset + 1}", "--reason", REASON)
    assert_refused(result, "no such transaction was read")
    assert "it is left out as soon as it is read" in result.stderr
    assert consume(pair).returncode == 0
    assert rows(pair.follower, pair) == [(1, "a"), (2, "b")]
    end = binlog_end(pair.leader)
    pair.play("INSERT INTO t VALUES (3, 'c')", "INSERT INTO t VALUES (4, 'd')")
    result = produce(pair, "--skip", f"{end.file}:{end.offset + 1}", "--reason", REASON)
    assert_refused(result, "no transaction has a binlog event there: the next one begins at")
    assert produce(pair).returncode == 0
    assert consume(pair).returncode == 0
    assert [number for number, _ in rows(pair.follower, pair)] == [1, 2, 3, 4]


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


def test_two_that_follow_each_other(pair: Replication) -> None:
    """What was left out last is read again at the next start, where it is not judged a second time."""
    inside, outside = pair.database, f"{pair.database}_outside"
    pair.leader.execute(f"CREATE DATABASE {outside}")
    for name in ("u", "v"):
        pair.leader.execute(*(f"CREATE TABLE {database}.{name} (id INT)" for database in (inside, outside)))
    pair.leader.execute(*(f"DROP TABLE {inside}.{name}, {outside}.{name}" for name in ("u", "v")))
    for status in (1, 0):
        place = re.findall(r"--skip (\S+:\d+)", produce(pair).stderr)[-1]
        assert produce(pair, "--skip", place, "--reason", REASON).returncode == status
    for _ in range(2):
        assert produce(pair).returncode == 0
    assert consume(pair).returncode == 0
    assert [row[2:] for row in left_out(pair)] == [("leader", REASON, None)] * 2
    assert_executed(pair)
