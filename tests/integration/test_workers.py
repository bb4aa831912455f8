"""Several sessions that apply transactions: the same rows, in the leader's order or as they are done."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pymysql
import pytest
from fix_mysql import Servers
from fix_replication import Replicate, Replication, assert_refused
from kit.helpers import wait_until
from kit.side_by_side import ORDERS, TABLE, fill, on_follower, parallel, sessions
from kit.write_at_once import write_at_once

from docker.local.mysql_servers import LEADER, Server


@pytest.fixture(params=[(order, gtids) for order in ORDERS for gtids in ("gtids", "plain")], ids="-".join)
def replication(request: pytest.FixtureRequest, replicate: Replicate, database: str) -> Replication:
    """Both orders, with GTIDs and without."""
    order, gtids = request.param
    prefix = "plain_" if gtids == "plain" else ""
    leader, follower = (request.getfixturevalue(prefix + role) for role in ("leader", "follower"))
    consumer = {**parallel(order), "database": {"lock_wait_seconds": 1}}
    replication = replicate(leader, follower, [database], consumer=consumer)
    replication.play(f"CREATE DATABASE {database}")
    return replication


def test_they_apply_what_several_clients_wrote(replication: Replication, seed: int) -> None:
    """Statements, a table that goes by SQL and a transaction too large to be held stand in between."""
    replication.play(
        f"CREATE TABLE t {TABLE}", "CREATE TABLE n (id INT PRIMARY KEY, n INT)", "INSERT INTO n VALUES (0,0), (1,0), (2,0)",
        "CREATE TABLE g (id INT PRIMARY KEY, up INT AS (id + 1) STORED)",
    )  # fmt: skip
    write_at_once(replication.leader, replication.database, seed)
    replication.play(
        "FLUSH BINARY LOGS", "INSERT INTO g (id) VALUES (1)", "INSERT INTO t VALUES (-1, 'a')",
        "ALTER TABLE t ADD c INT DEFAULT 1", "BEGIN", "INSERT INTO t VALUES (-2, 'a', 2)", "INSERT INTO g (id) VALUES (2)",
        "COMMIT", "SET SESSION cte_max_recursion_depth = 100000", "CREATE TABLE big (id INT PRIMARY KEY, s VARCHAR(600))",
        "INSERT INTO big WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)"
        " SELECT i, REPEAT('x', 600) FROM n", "DELETE FROM big WHERE id = 5", "ALTER TABLE t DROP c",
    )  # fmt: skip
    assert replication.produce().returncode == 0
    result = replication.consume()
    assert result.returncode == 0, result.stderr
    assert "applied by 4 sessions" in result.stderr
    replication.same()
    assert replication.sequence() == len(replication.events()) - 1


# what breaks


class Failure(NamedTuple):
    """What the leader writes for each row, what makes it fail on the follower, what mends that, and how it is named."""

    write: str
    spoil: str
    mend: str
    words: str


FAILURES = {
    "missing": Failure(
        "UPDATE t SET name = 'new' WHERE id = {}", "DELETE FROM t WHERE id = {}", "INSERT INTO t VALUES ({0}, 'old{0}')",
        "Update of {1}.t (id={0}), sequence {2} ",
    ),
    "duplicate": Failure(
        "INSERT INTO t VALUES (1000 + {}, 'new')", "INSERT INTO t VALUES (1000 + {}, 'mine')",
        "DELETE FROM t WHERE id = 1000 + {}", "Add of {1}.t (id=10{0:02}), sequence {2} ",
    ),
    "foreign key": Failure(
        "INSERT INTO c VALUES ({0}, {0})", "DELETE FROM p WHERE id = {}", "INSERT INTO p VALUES ({})",
        "Add of {1}.c (id={0}), sequence {2} ",
    ),
}  # fmt: skip
#: of the transactions that stand under way together: the first, one in the middle, the last
ROWS, PLACES = 40, (0, 20, 39)


def assert_named(replication: Replication, failure: Failure) -> None:
    """Make rows fail at all places; each in turn is named, all before it is applied, and it goes on once it is mended."""
    base = replication.sequence()
    replication.play(*(failure.write.format(number) for number in range(ROWS)))
    assert replication.produce().returncode == 0
    on_follower(replication, *map(failure.spoil.format, PLACES))
    for number in PLACES:
        sequence = base + number + 1
        assert_refused(replication.consume(), failure.words.format(number, replication.database, sequence))
        assert replication.sequence() == base + number
        on_follower(replication, failure.mend.format(number))
    result = replication.consume()
    assert result.returncode == 0, result.stderr
    replication.same()


def test_the_row_is_named(replication: Replication) -> None:
    fill(replication)
    for failure in ("missing", "duplicate"):
        assert_named(replication, FAILURES[failure])


@pytest.mark.parametrize("apply", [{}, *(parallel(order)["apply"] for order in ORDERS)], ids=["one", *ORDERS])
def test_the_row_without_its_parent_is_named(
    servers: Servers, replicate: Replicate, follower: Server, database: str, apply: dict[str, object]
) -> None:
    """The rows of a leader that leaves foreign keys to its storage engine, as all did before 9.6, are checked again."""
    leader = servers.shared("native_keys", 5, (*LEADER, "--innodb-native-foreign-keys=ON"))
    replication = replicate(leader, follower, [database], consumer={"apply": apply})
    replication.play(f"CREATE DATABASE {database}")
    fill(replication)
    assert_named(replication, FAILURES["foreign key"])


class Holder:
    """Holds one row of `t` on the follower, and may have the other one that whoever waits for it has."""

    def __init__(self, replication: Replication, number: int) -> None:
        self._replication = replication
        self._number = number
        self._connection = replication.follower.connect(replication.database)
        self._id = self._execute("SELECT CONNECTION_ID()")[0][0]
        self._execute("BEGIN")
        self._execute(f"SELECT * FROM t WHERE id = {number} FOR UPDATE")
        self.close, self.release = self._connection.close, self._connection.rollback

    def _execute(self, sql: str) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def waiting(self) -> int:
        """A connection that waits for the row, 0 for none."""
        threads = "performance_schema.threads {0} ON {0}.THREAD_ID = waits.{1}_THREAD_ID"
        query = (
            "SELECT MIN(waiter.PROCESSLIST_ID) FROM performance_schema.data_lock_waits AS waits"
            f" JOIN {threads.format('waiter', 'REQUESTING')} JOIN {threads.format('holder', 'BLOCKING')}"
            f" WHERE holder.PROCESSLIST_ID = {self._id}"
        )
        return self._replication.follower.value(query) or 0

    def end_session(self) -> None:
        """End a session that waits for the row."""
        with contextlib.suppress(pymysql.err.MySQLError):  # it may have given up an instant ago
            self._replication.follower.execute(f"KILL {self.waiting()}")

    def deadlock(self) -> None:
        """Want the other row; so much was written here that it is the other transaction that is undone."""
        self._execute("INSERT IGNORE INTO p SELECT id + 1000 FROM p WHERE id < 1000")
        with contextlib.suppress(pymysql.err.MySQLError):
            self._execute(f"SELECT * FROM t WHERE id = {self._number} + 200 FOR UPDATE")


#: what happens to a transaction that waits for a row, and what the log says of it
TROUBLES: dict[str, tuple[Callable[[Holder], None], str]] = {
    "lock": (lambda holder: None, "Lock wait timeout"),
    "link": (Holder.end_session, "the connection to the follower is lost"),
    # on a slow machine the wait may be over before the other row is wanted
    "deadlock": (Holder.deadlock, "trying again: changes of"),
}


def met(replication: Replication, holder: Holder, trouble: str, before: int) -> bool:
    """Make trouble for whoever waits; tell whether the log says more often than before what happened."""
    act, said = TROUBLES[trouble]
    if holder.waiting():
        act(holder)
    return replication.consumer.stderr.count(said) > before


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_passes_is_tried_again(replication: Replication, trouble: str) -> None:
    """A row that is locked for longer than a wait lasts, a session that is lost, a deadlock: at each place in turn."""
    fill(replication)
    replication.play(*(f"INSERT INTO t VALUES ({number} + 200, 'more')" for number in PLACES))
    replication.replicate()
    both = (
        "BEGIN",
        "UPDATE t SET name = 'both' WHERE id = {} + 200",
        "UPDATE t SET name = 'new' WHERE id = {}",
        "COMMIT",
    )
    replication.play(*(statement.format(number) for number in range(ROWS) for statement in both))
    assert replication.produce().returncode == 0
    consumer = replication.consumer
    with contextlib.ExitStack() as stack:
        holders = [stack.enter_context(contextlib.closing(Holder(replication, number))) for number in PLACES]
        consumer.start()
        for holder in holders:
            before = consumer.stderr.count(TROUBLES[trouble][1])
            check = partial(met, replication, holder, trouble, before)
            wait_until(check, f"{trouble}: it is told", alive=[consumer], pause=0.1)
            holder.release()
    replication.producer.start()
    replication.catch_up()
    replication.same()
    assert trouble == "link" or f"changes of {replication.database}.t up to sequence" in consumer.stderr


def test_a_conflict_that_the_clock_does_not_tell(replication: Replication) -> None:
    """The follower alone has a unique key: what the leader wrote side by side there is an order."""
    fill(replication)
    on_follower(replication, "ALTER TABLE t ADD UNIQUE (name)")
    replication.play(
        *(
            f"UPDATE t SET name = '{name}{n}' WHERE id = {n + step}"
            for n in range(39)
            for step, name in enumerate(("free", "old"))
        )
    )
    assert replication.produce().returncode == 0
    result = replication.consume()
    assert result.returncode == 0, result.stderr
    on_follower(replication, "ALTER TABLE t DROP KEY name")
    replication.same()


def test_sessions_that_are_killed(replication: Replication, seed: int) -> None:
    replication.play(f"CREATE TABLE t {TABLE}", "CREATE TABLE n (id INT PRIMARY KEY, n INT)")
    replication.play("INSERT INTO n VALUES (0,0), (1,0), (2,0)")
    replication.start()
    killed = 0
    for turn in range(20):
        writers = range(4 * turn, 4 * turn + 4)
        writer = threading.Thread(target=write_at_once, args=(replication.leader, replication.database, seed, writers))
        writer.start()
        victims = wait_until(
            lambda turn=turn: sessions(replication)[turn % 4 :], "they apply", alive=[replication.consumer]
        )
        while victims:
            for number in victims:
                with contextlib.suppress(pymysql.err.MySQLError):
                    replication.follower.execute(f"KILL {number}")
                    killed += 1
            time.sleep(0.1)
            victims = sessions(replication)[turn % 4 :] if writer.is_alive() else []
        writer.join()
        replication.catch_up()
        if killed > 5:
            break
    replication.same()
    assert killed > 5, replication.consumer.stderr
