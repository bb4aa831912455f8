"""Programs killed at the moments where one thing is done and the next is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fix_replication import Replicate, Replication, assert_refused
from kit.faults import holding, session, wait_for_statement
from kit.helpers import wait_until
from kit.programs import Program
from kit.topic import CLUSTER
from kit.topic_audit import assert_whole


@pytest.fixture(params=["gtids", "plain", "sql"])
def running(request: pytest.FixtureRequest, replicate: Replicate, database: str) -> Replication:
    """Both programs running between servers with GTIDs, and between servers without; tables t and u are there.

    With "sql" all rows go by SQL, else by the leader's binlog events.
    """
    prefix = "plain_" if request.param == "plain" else ""
    leader, follower = (request.getfixturevalue(prefix + role) for role in ("leader", "follower"))
    rows = "sql" if request.param == "sql" else "auto"
    replication = replicate(leader, follower, [database], consumer={"apply": {"rows": rows}})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(
        "CREATE TABLE t (a INT, b VARCHAR(100))", "INSERT INTO t VALUES (1, 'x'), (1, 'x'), (2, NULL)",
        "CREATE TABLE u (a INT PRIMARY KEY, b VARCHAR(10))", "INSERT INTO u VALUES (1, 'one'), (2, 'two')",
    )  # fmt: skip
    replication.start()
    replication.catch_up()
    return replication


def kill_with_session(replication: Replication) -> None:
    """Kill the consumer, and its session before that can execute anything else."""
    number = session(replication)
    replication.consumer.kill()
    replication.follower.execute(f"KILL {number}")
    wait_until(lambda: session(replication) == 0, "the session ends")


#: statements that fail, or change something else, when they run twice or not at all
STATEMENTS = (
    "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 3",
    "RENAME TABLE t TO swap, u TO t, swap TO u",
    "TRUNCATE TABLE t",
    "CREATE TABLE n LIKE u",
    "CREATE TABLE s AS SELECT * FROM u",
    "DROP TABLE t",
)


def test_consumer_between_a_statement_and_its_position(running: Replication) -> None:
    for statement in STATEMENTS:
        before = running.sequence()
        with holding(running.follower, f"SELECT * FROM `{running.system_database}`.position FOR UPDATE"):
            running.play(statement)
            wait_for_statement(running, "UPDATE%position", "BINLOG")
            kill_with_session(running)
        assert running.sequence() == before, f"the position knows of: {statement}"
        running.play("INSERT INTO u (a) VALUES (3)", "UPDATE u SET b = 'again'", "DELETE FROM u WHERE a = 3")
        running.consumer.start()
        running.catch_up()
        running.same()


def test_consumer_before_a_statement(running: Replication) -> None:
    """It was announced, where there are no GTIDs, and did not run."""
    before = running.sequence()
    with holding(running.follower, f"SELECT * FROM {running.database}.t"):
        running.play(STATEMENTS[0])
        wait_for_statement(running, "ALTER TABLE")
        kill_with_session(running)
    assert running.sequence() == before
    running.consumer.start()
    running.catch_up()
    running.same()


@pytest.mark.parametrize("session_too", [True, False], ids=["session", "program"])
def test_consumer_inside_a_transaction(running: Replication, session_too: bool) -> None:
    """Its session is killed at once, or goes on until it misses the program, as a transaction of one packet may end."""
    before = running.sequence()
    with holding(running.follower, f"SELECT * FROM {running.database}.u FOR UPDATE"):
        running.play("BEGIN", "INSERT INTO t VALUES (1, 'x')", "UPDATE u SET b = 'zwei' WHERE a = 2", "COMMIT")
        wait_for_statement(running, "UPDATE%zwei", "INSERT%zwei", "BINLOG")
        if session_too:
            kill_with_session(running)
        else:
            running.consumer.kill()
    wait_until(lambda: session(running) == 0, "the session ends")
    by_sql = 'rows = "sql"' in running.profiles.consumer.read_text()
    assert running.sequence() in ([before] if session_too or by_sql else [before, before + 2])
    running.consumer.start()
    running.catch_up()
    running.same()


def kill_on_the_way(program: Program, until: str, calls: int, progress: Callable[[], int], whole: int) -> None:
    """Kill a program three times when it has made some progress; it is held, so that it never is `whole`."""
    for _ in range(3):
        before = progress()
        program.start(until=until, calls=calls)
        wait_until(lambda before=before: progress() > before, "it works", alive=[program])
        program.kill()
        assert progress() < whole, "it was killed too late to prove anything"


#: brings a batch to the topic, which is some MB at most
APPEND = f"shared.topic.{'embedded:Embedded' if CLUSTER is None else 'fluvio_topic:Fluvio'}Writer.append"
#: thousands of transactions of one row, wide enough that the producer appends several times
FILL = (
    "CREATE TABLE w (a INT PRIMARY KEY, b VARCHAR(6000))",
    "CREATE PROCEDURE fill () BEGIN DECLARE i INT DEFAULT 0; WHILE i < 700 DO"
    " INSERT INTO w VALUES (i, REPEAT('x', 6000)); UPDATE w SET b = NULL WHERE a = i; DELETE FROM w WHERE a = i - 5;"
    " SET i = i + 1; END WHILE; END",
    "CALL fill()",
)


def test_between_two_transactions(running: Replication) -> None:
    """The producer, and then the consumer."""
    assert (running.producer.stop(), running.consumer.stop()) == (0, 0)
    start = running.last()[0]
    running.play(*FILL)
    kill_on_the_way(running.producer, APPEND, 1, lambda: running.last()[0], start + 2000)
    assert running.produce().returncode == 0
    assert_whole(running.records())
    kill_on_the_way(running.consumer, "cdc_consumer.follower.worker:Worker.commit", 200, running.sequence, start + 2000)
    assert running.consume().returncode == 0
    running.same()


ROWS = 80_000
#: a transaction of so many rows, and one after it
HUGE = (
    "SET cte_max_recursion_depth = 1000000",
    "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
    f" WHERE i < {ROWS}) SELECT MOD(i, 1000), REPEAT('same', 20) FROM n",
    "INSERT INTO u VALUES (3, 'after')",
)
#: more than any offset
BEHIND = 1 << 60


def offset_inside(running: Replication, start: int) -> int:
    """Offset of the topic's last record; BEHIND when it was written after the rows of the transaction after `start`."""
    offset, event = running.last()
    return BEHIND if offset > start and "end" in event["transaction"] else offset


def test_inside_a_huge_transaction(running: Replication) -> None:
    """The producer, and then the consumer."""
    assert (running.producer.stop(), running.consumer.stop()) == (0, 0)
    running.play(*HUGE)
    start = running.last()[0]
    kill_on_the_way(running.producer, APPEND, 1, lambda: offset_inside(running, start), BEHIND)
    assert running.produce().returncode == 0
    assert_whole(running.records())

    modified = "SELECT COALESCE(MAX(trx_rows_modified), 0) FROM information_schema.innodb_trx"
    applied = running.sequence()
    for part in (0.5, 0.8):
        calls = int(part * (running.last()[1]["sequence"] - applied))
        running.consumer.start(until="cdc_consumer.replay:Attempt._apply", calls=calls)
        # the server answers anew only when it was not asked for a tenth of a second
        wait_until(lambda: running.follower.value(modified) > ROWS // 20, "it writes rows", pause=0.11)
        running.consumer.kill()
        assert running.sequence() == applied, "it was killed too late to prove anything"
    assert running.consume().returncode == 0
    running.same()
    assert running.follower.value(f"SELECT COUNT(*) FROM {running.database}.t") == ROWS + 3


def test_other_filters_inside_a_transaction(running: Replication) -> None:
    """Its second half would be missing in silence."""
    assert (running.producer.stop(), running.consumer.stop()) == (0, 0)
    running.play(*HUGE)
    start = running.last()[0]
    running.producer.start(until=APPEND)
    wait_until(lambda: running.last()[0] > start, "it is inside", alive=[running.producer])
    running.producer.kill()
    profile = running.profiles.producer
    words = profile.read_text()
    profile.write_text(words.replace(f'"{running.database}"', '"another"'))
    before = running.records()
    assert_refused(running.produce(), "the filters changed while the transaction", "was half published")
    assert running.records() == before
    profile.write_text(words)
    assert running.produce().returncode == 0
    assert_whole(running.records())
