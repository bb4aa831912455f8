"""What ended before its turn, or comes late, where several sessions apply: whoever goes on fills the gap first."""

from __future__ import annotations

import contextlib
import time

import pymysql
import pytest
from fix_mysql import StartServer
from fix_replication import Replicate, assert_refused
from kit.faults import holding, session
from kit.helpers import wait_until
from kit.side_by_side import ORDERS, TABLE, fill, on_follower, parallel, sessions
from kit.written_topic import lines, open_topic_anew, records

from docker.local.mysql_servers import FOLLOWER, Server


@pytest.mark.parametrize("last", ["INSERT INTO g (id) VALUES ({})", "INSERT INTO t VALUES ({} + 100, 'a')"])
def test_a_transaction_whose_end_comes_late(
    replicate: Replicate, leader: Server, follower: Server, database: str, last: str
) -> None:
    """While the first session waits inside of one, the position of those that ended before is not written there."""
    replication = replicate(leader, follower, [database], consumer=parallel("independent"))
    replication.play(
        f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t {TABLE}",
        f"CREATE TABLE {database}.g (id INT PRIMARY KEY, up INT AS (id + 1) STORED)",
    )  # fmt: skip
    replication.play(
        *(f"INSERT INTO t VALUES ({number}, 'a')" for number in range(40)),
        "BEGIN",
        *map(last.format, range(3)),
        "COMMIT",
    )
    assert replication.produce().returncode == 0
    whole = [lines(record) for record in records(replication)]
    with open_topic_anew(replication) as writer:
        writer.append(whole[:-1])
        replication.consumer.start()
        count = f"SELECT COUNT(*) = 40 FROM {database}.t"
        wait_until(lambda: replication.sequence() >= 3 and follower.value(count), "it has come to the last one")
        time.sleep(2)  # it looks twice for what follows
        writer.append(whole[-1:])
    replication.producer.start()
    replication.catch_up()
    replication.same()


@pytest.mark.parametrize("gtids", ["gtids", "plain"])
@pytest.mark.parametrize("then", ["one", "leader", "independent", "sql"])
def test_what_ended_before_its_turn_is_passed_over(
    request: pytest.FixtureRequest, replicate: Replicate, database: str, gtids: str, then: str
) -> None:
    """Whoever goes on, in whatever order: a gap is filled first."""
    prefix = "plain_" if gtids == "plain" else ""
    leader, follower = (request.getfixturevalue(prefix + role) for role in ("leader", "follower"))
    replication = replicate(leader, follower, [database], consumer=parallel("independent"))
    replication.play(f"CREATE DATABASE {database}")
    # all that follows is in one file of the leader: what comes after the first transaction of a file waits for that
    replication.play("FLUSH BINARY LOGS")
    base = fill(replication)
    # the first one is looked at before the others are shared, and large ones are not made one
    replication.play(
        "UPDATE t SET name = 'first' WHERE id = 1", "BEGIN", "UPDATE t SET name = 'new' WHERE id = 0", "INSERT INTO t VALUES (100, 'a')", "COMMIT",
        *(f"INSERT INTO t SELECT {n} * 10000 + p.id * 40 + q.id, REPEAT('x', 390) FROM p, p AS q" for n in range(1, 6)),
    )  # fmt: skip
    assert replication.produce().returncode == 0
    ahead = f"SELECT COUNT(*) FROM {replication.system_database}.position WHERE worker > 0 AND sequence > {base}"
    with holding(follower, f"SELECT * FROM {database}.t WHERE id = 0 FOR UPDATE"):
        replication.consumer.start()
        wait_until(lambda: follower.value(ahead), "one ends before its turn", alive=[replication.consumer])
        replication.consumer.kill()
        for number in (session(replication), *sessions(replication)):
            with contextlib.suppress(pymysql.err.MySQLError):
                follower.execute(f"KILL {number}")
        wait_until(lambda: not sessions(replication), "the sessions end")
    # without GTIDs the first one waits together with the second
    assert replication.sequence() == (base + 1 if gtids == "gtids" else base)
    found = follower.value(ahead)
    assert found
    apply = {"one": {}, "sql": {"rows": "sql"}}.get(then) or (parallel(then)["apply"] if then in ORDERS else {})
    topic = {"topic": {"path": replication.topic.path}}
    other = replicate(leader, follower, [database], name="then", consumer={"apply": apply, **topic})
    own = f"UPDATE {replication.system_database}.position SET leader_offset = leader_offset {{}} 1 WHERE worker > 0"
    on_follower(replication, own.format("+"))
    assert_refused(other.consume(), "the topic holds another transaction there")
    on_follower(replication, own.format("-"))
    result = other.consume()
    assert result.returncode == 0, result.stderr
    assert f"{found} transactions behind it ended before their turn" in result.stderr
    other.same()
    assert other.sequence() == len(replication.events()) - 1


@pytest.mark.parametrize("apply", [{}, *(parallel(order)["apply"] for order in ORDERS)], ids=["one", *ORDERS])
def test_binlog_files_that_the_follower_begins(
    replicate: Replicate, leader: Server, own_server: StartServer, database: str, apply: dict[str, object]
) -> None:
    """The session that begins one writes a row more than it was given."""
    follower = own_server(FOLLOWER, 31)
    follower.execute("SET GLOBAL max_binlog_size = 4096")
    replication = replicate(leader, follower, [database], consumer={"apply": apply})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(f"CREATE TABLE t {TABLE}", *(f"INSERT INTO t VALUES ({n}, REPEAT('x', 300))" for n in range(60)))
    replication.replicate()
    replication.same()
    assert len(follower.execute("SHOW BINARY LOGS")) > 5
