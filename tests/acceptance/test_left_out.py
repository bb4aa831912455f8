"""Every stop on one transaction can be passed by a named decision, which is logged and kept on the follower."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from fix_left_out import REASON, assert_executed, consume, left_out, produce, rows
from fix_replication import Replicate, Replication, assert_refused, write_topic
from kit.faults import holding, session, wait_for_statement
from kit.helpers import tables_of, wait_until
from kit.programs import Program

from cdc_consumer.parity.servers.pair import FollowerConnection
from shared.profile import Database


def follower_connection(replication: Replication) -> FollowerConnection:
    """Connect as the audit does."""
    follower = Database("root", host=replication.follower.host, port=replication.follower.port)
    return FollowerConnection(follower, replication.system_database, replication.topic.name)


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


@pytest.mark.parametrize("moment", ["before it", "after it"])
def test_a_statement_in_its_place_runs_once_whenever_the_consumer_dies(
    pair: Replication, tmp_path: Path, moment: str
) -> None:
    """It would fail the second time, and what follows fails without it."""
    pair.follower.execute(f"ALTER TABLE {pair.database}.t ADD c INT")
    pair.play("ALTER TABLE t ADD c INT", "INSERT INTO t VALUES (2, 'b', 3)")
    assert produce(pair).returncode == 0
    file = tmp_path / "instead.sql"
    file.write_text(f"ALTER TABLE {pair.database}.t RENAME COLUMN c TO c2, ADD d INT;")
    decision = ("--exit-at-end", "--skip", "3", "--reason", REASON, "--instead", str(file))
    pair.consumer = Program("cdc_consumer", pair.profiles.consumer, *decision)
    locked = f"{pair.database}.t" if moment == "before it" else f"`{pair.system_database}`.position"
    with holding(pair.follower, f"SELECT * FROM {locked} FOR UPDATE"):
        pair.consumer.start()
        wait_for_statement(pair, "ALTER TABLE" if moment == "before it" else "UPDATE%position")
        number = session(pair)
        pair.consumer.kill()
        pair.follower.execute(f"KILL {number}")
        wait_until(lambda: session(pair) == 0, "the session ends")
    if pair.leader.value("SELECT @@GLOBAL.gtid_mode") == "OFF":
        # without the decision nothing tells what was meant, and another one is not taken for it
        assert_refused(consume(pair), "decide again with the same file", "DELETE FROM")
        other = tmp_path / "other.sql"
        other.write_text(f"ALTER TABLE {pair.database}.t ADD e INT")
        words = ("another statement than this one", "DELETE FROM")
        assert_refused(consume(pair, *decision[1:-1], str(other)), *words)
    result = consume(pair, *decision[1:])
    assert_refused(result, "t.c")  # the column of the row that follows is c2 here, and d is there besides
    assert [row[0] for row in pair.follower.execute(f"SHOW COLUMNS FROM {pair.database}.t")] == [
        "id",
        "name",
        "c2",
        "d",
    ]
    assert left_out(pair)[0][:4] == (3, 3, "follower", REASON)


def test_the_table_of_a_half_published_creation_is_undone(pair: Replication) -> None:
    """Its rows that are published stop the producer before the last; the follower has the empty table by then."""
    pair.play(
        "CREATE TABLE source (id INT PRIMARY KEY, j JSON)",
        "INSERT INTO source VALUES (1, '1')",
    )
    pair.play("CREATE TABLE made AS SELECT * FROM source", "INSERT INTO t VALUES (2, 'b')")
    assert produce(pair).returncode == 0
    values = [value for value in pair.records() if json.loads(value)["operation"] != "Heartbeat"]
    create = next(number for number, value in enumerate(values) if b"CREATE TABLE `made`" in value)
    skipped = json.loads(values[create + 1])
    for key in ("columns", "types", "key", "session"):
        skipped.pop(key, None)
    skipped["operation"] = {"Query": "/* left out at the leader */"}
    place = {"database": "", "writes": [], "session": {}, "skipped": REASON, "transaction": skipped.pop("transaction")}
    values[create + 1] = json.dumps({**skipped, **place}, separators=(",", ":")).encode()
    write_topic(pair.topic, values)
    result = consume(pair)
    assert result.returncode == 0, result.stderr
    assert pair.follower.execute(f"SHOW TABLES FROM {pair.database} LIKE 'made'") == []
    assert rows(pair.follower, pair) == [(1, "a"), (2, "b")]
    assert [row[2] for row in left_out(pair)] == ["leader"]


@pytest.fixture
def half_made(pair: Replication) -> tuple[Replication, str]:
    """The follower stops between a table and its rows, which cannot be read; and the sequence of these."""
    pair.play("CREATE TABLE made AS SELECT * FROM t", "INSERT INTO t VALUES (2, 'b')")
    assert produce(pair).returncode == 0
    records = [json.loads(value) for value in pair.records()]
    made = [number for number, record in enumerate(records) if record["uri"].endswith("/made")]
    records[made[0]]["operation"] = {"Add": {"rows": "none"}}
    # without the leader's binlog events: the table is made by itself, before its rows
    write_topic(pair.topic, [json.dumps(record, separators=(",", ":")).encode() for record in records])
    return pair, str(records[made[0]]["sequence"])


def test_a_table_goes_with_its_rows_that_are_left_out(half_made: tuple[Replication, str]) -> None:
    """Whoever is killed in between, what is left says whose table it is."""
    pair, sequence = half_made
    assert_refused(consume(pair), "is not an event")
    assert pair.follower.execute(f"SELECT * FROM {pair.database}.made") == []
    decision = ("--exit-at-end", "--skip", sequence, "--reason", REASON)
    pair.consumer = Program("cdc_consumer", pair.profiles.consumer, *decision)
    with holding(pair.follower, f"SELECT * FROM `{pair.system_database}`.position FOR UPDATE"):
        pair.consumer.start()
        wait_for_statement(pair, "UPDATE%position")
        number = session(pair)
        pair.consumer.kill()
        pair.follower.execute(f"KILL {number}")
        wait_until(lambda: session(pair) == 0, "the session ends")
    assert left_out(pair) == []
    assert_refused(consume(pair), "is not an event")  # without the decision the table is made again
    assert pair.follower.execute(f"SELECT * FROM {pair.database}.made") == []
    result = consume(pair, *decision[1:])
    assert result.returncode == 0, result.stderr
    assert "dropped: the empty table" in result.stderr
    assert tables_of(pair.follower, pair.database) == ["t"]
    assert rows(pair.follower, pair) == [(1, "a"), (2, "b")]


def test_a_table_of_somebody_else_stays(half_made: tuple[Replication, str]) -> None:
    pair, sequence = half_made
    pair.follower.execute(f"CREATE TABLE {pair.database}.made (id INT, name VARCHAR(20))")
    assert_refused(consume(pair), "is not an event")
    result = consume(pair, "--skip", sequence, "--reason", REASON)
    assert result.returncode == 0, result.stderr
    assert f"the table `{pair.database}`.`made` stays: somebody else has made it" in result.stderr
    assert tables_of(pair.follower, pair.database) == ["made", "t"]


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


def test_what_no_decision_can_pass_comes_again_in_another_topic(pair: Replication, replicate: Replicate) -> None:
    """Events that the topic has lost are on the leader still, and the follower knows from where on."""
    pair.play("INSERT INTO t VALUES (2, 'b')", "ALTER TABLE t ADD c INT", "INSERT INTO t VALUES (3, 'c', 3)")
    assert produce(pair).returncode == 0
    records = [json.loads(value) for value in pair.records()]
    kept = [record for record in records if record["sequence"] != 4]
    write_topic(pair.topic, [json.dumps(record, separators=(",", ":")).encode() for record in kept])
    for _ in range(2):
        assert_refused(consume(pair), "the topic has lost 1 events", 'database.start = "file:offset"')
    query = f"SELECT CONCAT(leader_file, ':', leader_offset) FROM {pair.system_database}.position WHERE worker = 0"
    topic = {"topic": {"name": "again"}}
    again = replicate(
        pair.leader, pair.follower, [pair.database],
        name="again", start=str(pair.follower.value(query)), producer=topic, consumer=topic,
    )  # fmt: skip
    pair.follower.execute(f"DELETE FROM {pair.system_database}.position WHERE topic = '{pair.topic.name}'")
    again.play("INSERT INTO t VALUES (4, 'd', 4)")
    again.replicate()
    again.same()
    assert [row[0] for row in rows(pair.follower, pair)] == [1, 2, 3, 4]


def test_a_decision_on_the_follower_that_is_not_met_is_told(pair: Replication) -> None:
    """Its sequence is not in the topic yet."""
    assert_refused(consume(pair, "--skip", "3", "--reason", REASON), "the topic ends before it", "nothing was left out")
    assert left_out(pair) == []
