"""What the two programs do beyond one leader, one follower and one database: filters, ends, several followers."""

from __future__ import annotations

import pytest
from fix_replication import Replicate, Replication, assert_refused
from kit.faults import account
from kit.helpers import assert_same_database, tables_of, wait_until
from kit.topic import shared_table

from docker.local.mysql_servers import Server


def test_they_stop_when_asked_and_continue_later(replication: Replication) -> None:
    replication.start()
    replication.play("CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1), (1)")
    replication.catch_up()
    replication.stop()
    replication.play("UPDATE t SET a = 2 LIMIT 1", "ALTER TABLE t ADD COLUMN b INT", "INSERT INTO t VALUES (3, 3)")
    replication.start()
    replication.catch_up()
    replication.stop()
    replication.same()
    assert [event["sequence"] for event in replication.events()] == list(range(6))


def test_they_stop_inside_a_huge_transaction(replication: Replication) -> None:
    """They finish it where they can, and in any case continue."""
    replication.start()
    replication.play(
        "CREATE TABLE t (a INT, b VARCHAR(100))", "SET cte_max_recursion_depth = 1000000",
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
        " SELECT i, REPEAT('x', 100) FROM n",
    )  # fmt: skip
    wait_until(lambda: len(replication.records()) > 2, "the producer is inside", alive=[replication.producer])
    replication.stop()
    replication.start()
    replication.play("INSERT INTO t VALUES (0, 'after')")
    replication.catch_up()
    replication.stop()
    replication.same()


def test_they_stop_at_the_end(replication: Replication) -> None:
    assert_refused(replication.consume(), "does not exist; start its producer first")
    replication.replicate()
    assert tables_of(replication.follower, replication.database) == []
    replication.play("CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1), (2)")
    replication.replicate()
    replication.same()
    position = replication.applied()
    replication.replicate()
    assert (replication.applied(), len(replication.events())) == (position, 3)


def test_a_database_that_is_nowhere_is_told(
    replicate: Replicate, leader: Server, follower: Server, database: str
) -> None:
    """The name in a filter may be a slip."""
    with account(leader, "REPLICATION SLAVE, REPLICATION CLIENT, SHOW DATABASES") as keys:
        replication = replicate(leader, follower, [database, f"{database}x"], producer={"database": keys})
        leader.execute(f"CREATE DATABASE {database}")
        produced, consumed = replication.produce(), replication.consume()
    assert (produced.returncode, consumed.returncode) == (0, 0)
    assert f"WARNING: include_dbs names {database}x: the leader does not have it now" in produced.stderr
    assert f"WARNING: include_dbs names {database}x: nothing of it is in the topic so far" in consumed.stderr


def test_a_table_that_is_nowhere_is_told(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    """The case of a letter may be a slip."""
    filters = {"include_dbs": [database], "include_tables": [f"{database}.T"], "exclude_tables": ["*.Secret"]}
    replication = replicate(leader, follower, [database], producer={"filters": filters}, consumer={"filters": filters})
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1)")
    produced, consumed = replication.produce(), replication.consume()
    assert (produced.returncode, consumed.returncode) == (0, 0)
    assert f"WARNING: include_tables names {database}.T: the leader does not have it now" in produced.stderr
    assert "WARNING: exclude_tables names *.Secret: the leader does not have it now" in produced.stderr
    assert f"WARNING: include_tables names {database}.T: nothing of it is in the topic so far" in consumed.stderr
    assert "Secret" not in consumed.stderr


def test_the_consumer_may_be_first(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    replication = replicate(leader, follower, [database])
    replication.consumer.start()
    wait_until(lambda: "waiting for the topic" in replication.consumer.stderr, "it says that it waits")
    replication.play(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT)")
    replication.producer.start()
    replication.catch_up()
    replication.same()
    replication.stop()


def test_one_topic_has_any_number_of_followers(
    replication: Replication, replicate: Replicate, plain_follower: Server
) -> None:
    """The second one has no GTIDs, and comes when there is something already."""
    other = replicate(
        replication.leader, plain_follower, [replication.database],
        name="other", consumer={"topic": shared_table(replication.topic)},
    )  # fmt: skip
    replication.start()
    replication.play("CREATE TABLE t (a INT PRIMARY KEY, b JSON)", "INSERT INTO t VALUES (1, '{}'), (2, NULL)")
    replication.catch_up()
    other.consumer.start()
    replication.play("UPDATE t SET b = '[1.0]'", "CREATE INDEX i ON t (a)", "DELETE FROM t WHERE a = 2")
    replication.catch_up()
    wait_until(lambda: other.sequence() == replication.sequence(), "the second follower has it", alive=[other.consumer])
    replication.stop()
    assert other.consumer.stop() == 0
    for follower in (replication.follower, plain_follower):
        assert_same_database(replication.leader, follower, replication.database)


@pytest.fixture
def three(database: str, leader: Server) -> list[str]:
    """Three databases of the leader, each with a table of one row."""
    names = [f"{database}_{letter}" for letter in "abc"]
    for name in names:
        leader.execute(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (a INT PRIMARY KEY)")
    return names


#: one transaction in all three, and changes of each alone
CHANGES = (
    "BEGIN",
    *(f"INSERT INTO {{{index}}}.t VALUES (1)" for index in range(3)),
    "COMMIT",
    *(f"INSERT INTO {{{index}}}.t VALUES (2)" for index in (2, 0, 1)),
    "UPDATE {0}.t, {1}.t, {2}.t SET {0}.t.a = 12, {1}.t.a = 12, {2}.t.a = 12"
    " WHERE {0}.t.a = 2 AND {1}.t.a = 2 AND {2}.t.a = 2",
    "ALTER TABLE {0}.t ADD COLUMN b INT",
    "ALTER TABLE {2}.t ADD COLUMN b INT",
)


def changes(names: list[str]) -> list[str]:
    return [statement.format(*names) for statement in CHANGES]


def followed(server: Server, names: list[str]) -> list[str]:
    """The letters of those of the databases that exist on a server."""
    found = {name for (name,) in server.execute("SHOW DATABASES")}
    return [name[-1] for name in names if name in found]


def test_exclude_dbs(replicate: Replicate, leader: Server, follower: Server, three: list[str]) -> None:
    """On the producer: nothing of the database is in the topic."""
    other = [name for (name,) in leader.execute("SHOW DATABASES") if name not in three]
    filters = {"exclude_dbs": [three[1], *other]}
    replication = replicate(
        leader,
        follower,
        system_database=f"{three[0]}_cdc",
        producer={"filters": filters},
        consumer={"filters": filters},
    )
    for name in (three[0], three[2]):
        follower.execute(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (a INT PRIMARY KEY)")
    leader.execute(*changes(three))
    replication.replicate()
    assert followed(follower, three) == ["a", "c"]
    for name in (three[0], three[2]):
        assert_same_database(leader, follower, name)
    uris = {event["uri"].split("/")[3] for event in replication.events()}
    assert uris == {three[0], three[2]}


@pytest.mark.parametrize("key", ["include_dbs", "exclude_dbs"])
def test_the_consumer_filters_too(
    replicate: Replicate, leader: Server, follower: Server, three: list[str], key: str
) -> None:
    """The topic holds three databases, the follower gets two."""
    wanted = [three[0], three[2]]
    filters = {"include_dbs": None, "exclude_dbs": None, key: wanted if key == "include_dbs" else [three[1]]}
    replication = replicate(leader, follower, three, consumer={"filters": filters})
    for name in wanted:
        follower.execute(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (a INT PRIMARY KEY)")
    leader.execute(*changes(three))
    replication.replicate()
    assert followed(follower, three) == ["a", "c"]
    for name in wanted:
        assert_same_database(leader, follower, name)
    assert {event["uri"].split("/")[3] for event in replication.events()} == set(three)
    assert replication.sequence() == len(replication.events()) - 1
    # the excluded parts of the transactions are executed all the same, as far as GTIDs tell
    gtids = {event["transaction"]["gtid"] for event in replication.events()}
    executed = follower.value("SELECT @@GLOBAL.gtid_executed")
    assert all(follower.value(f"SELECT GTID_SUBSET('{gtid}', '{executed}')") for gtid in gtids)
