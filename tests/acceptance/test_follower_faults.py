"""Followers that cannot be written, are not what they must be, or were changed by somebody else."""

from __future__ import annotations

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate, Replication, assert_refused
from kit.faults import account, holding, session, setting, wait_for_statement
from kit.helpers import tables_of, wait_until

from docker.local.mysql_servers import FOLLOWER, Server, free_port


@pytest.fixture
def applied(replication: Replication) -> Replication:
    """Tables with and without a key, with the same three rows on both servers."""
    replication.play(
        "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20), c INT)", "CREATE TABLE bag (a INT, b VARCHAR(20), c INT)",
        "CREATE TABLE bystander (a INT)",
        *(f"INSERT INTO {table} VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)" for table in ("t", "bag")),
    )  # fmt: skip
    replication.replicate()
    return replication


def snapshot(replication: Replication) -> list[object]:
    """Everything a consumer changes on the follower."""
    follower = replication.follower
    return [
        (database, name, follower.execute(f"SELECT * FROM `{database}`.`{name}`"))
        for database in (replication.database, replication.system_database)
        for name in tables_of(follower, database)
    ]


def assert_changes_nothing(replication: Replication, *words: str) -> None:
    """The consumer is refused, and the follower is as it was."""
    before = snapshot(replication)
    assert_refused(replication.consume(), *words)
    assert snapshot(replication) == before


# the profile, the account, the settings

PROFILES: dict[str, tuple[dict[str, object], str]] = {
    "closed port": ({"port": free_port()}, "Connection refused"),
    "unknown host": ({"host": "no-such-host.invalid"}, "no-such-host.invalid"),
    "wrong password": ({"password": "wrong"}, "Access denied for user 'root'"),
    "unknown user": ({"user": "nobody-here"}, "Access denied for user 'nobody-here'"),
}


@pytest.mark.parametrize("case", PROFILES)
def test_a_profile_is_refused(replicate: Replicate, leader: Server, follower: Server, database: str, case: str) -> None:
    change, words = PROFILES[case]
    replication = replicate(leader, follower, [database], consumer={"database": change})
    assert replication.produce().returncode == 0
    assert_refused(replication.consume(), words)
    assert follower.execute(f"SHOW DATABASES LIKE '{database}%'") == []


ACCOUNTS = {
    "": "lacks the privilege SESSION_VARIABLES_ADMIN; run on it: GRANT SESSION_VARIABLES_ADMIN",
    "ALL PRIVILEGES": "",
    "SESSION_VARIABLES_ADMIN": "SELECT command denied to user 'cdc_test'",
    "SESSION_VARIABLES_ADMIN, SELECT, INSERT, UPDATE, CREATE": "DROP command denied",
}


@pytest.mark.parametrize("grants", ACCOUNTS)
def test_privileges(replicate: Replicate, leader: Server, follower: Server, database: str, grants: str) -> None:
    words = ACCOUNTS[grants]
    with account(follower, grants) as user:
        replication = replicate(leader, follower, [database], consumer={"database": user})
        replication.play(
            f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT)", f"DROP TABLE {database}.t"
        )
        assert replication.produce().returncode == 0
        if words:
            assert_refused(replication.consume(), words)
            assert_changes_nothing(replication, words)
        else:
            assert replication.consume().returncode == 0


def test_a_read_only_follower(applied: Replication) -> None:
    applied.play("INSERT INTO t VALUES (4, 'four', 4)")
    assert applied.produce().returncode == 0
    with setting(applied.follower, "super_read_only", "1"):
        assert_changes_nothing(applied, "the follower is super_read_only; run on it: SET GLOBAL super_read_only = OFF")
    applied.follower.execute("SET GLOBAL read_only = OFF")
    applied.replicate()
    applied.same()


def test_a_follower_that_becomes_read_only(applied: Replication) -> None:
    applied.start()
    applied.catch_up()
    with setting(applied.follower, "super_read_only", "1"):
        applied.play("INSERT INTO t VALUES (4, 'four', 4)")
        assert applied.consumer.wait() == 1
    applied.follower.execute("SET GLOBAL read_only = OFF")
    assert "run on it: SET GLOBAL super_read_only = OFF" in applied.consumer.stderr.splitlines()[-1]
    applied.consumer.start()
    applied.catch_up()
    applied.same()


def test_a_packet_larger_than_the_follower_takes(applied: Replication) -> None:
    applied.play("CREATE TABLE large (a LONGTEXT)", "INSERT INTO large VALUES (REPEAT('x', 3000000))")
    assert applied.produce().returncode == 0
    with setting(applied.follower, "max_allowed_packet", "1048576"):
        assert applied.consume().returncode == 1
        assert_changes_nothing(applied, "needs a packet of", "SET PERSIST max_allowed_packet = 4194304")
    applied.replicate()
    applied.same()


# a stranger was here: what was done on the follower, what the leader does, and what the message says

DIVERGED: dict[str, tuple[str, str, str]] = {
    "update of a deleted row": (
        "DELETE FROM t WHERE a = 2", "UPDATE t SET b = 'x'", "Update of D.t (a=2), sequence 7 (topic offset"
    ),
    "delete of a deleted row": ("DELETE FROM t WHERE a = 2", "DELETE FROM t", "Delete of D.t (a=2), sequence 7"),
    "A1 delete of a changed row": (
        "UPDATE bag SET b = 'TWO' WHERE a = 2", "DELETE FROM bag", "Delete of D.bag (a=2, b='two', c=2), sequence 7"
    ),
    "A1 update of a changed row": (
        "UPDATE bag SET b = 'two ' WHERE a = 2", "UPDATE bag SET c = 0", "Update of D.bag (a=2, b='two', c=2), sequence 7"
    ),
    "A2 insert of a row that is there": (
        "INSERT INTO t VALUES (5, 'mine', 5)", "INSERT INTO t VALUES (4, 'y', 4), (5, 'y', 5)", "Duplicate entry '5'"
    ),
    "a table that is gone": ("DROP TABLE t", "DELETE FROM t WHERE a = 1", "table D.t does not exist on the follower"),
    "a column that is gone": (
        "ALTER TABLE t DROP COLUMN c", "DELETE FROM t", "column D.t.c does not exist on the follower"
    ),
    "a column too narrow": ("ALTER TABLE t MODIFY b VARCHAR(5)", "UPDATE t SET b = 'longer'", "column D.t.b is varchar(5)"),
    "a column too many": ("ALTER TABLE t ADD d INT NOT NULL", "INSERT INTO t VALUES (4, 'y', 4)", "column D.t.d exists"),
    "R26 a trigger": (
        "CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW SET NEW.c = 0", "UPDATE t SET b = 'x'", "has the trigger g"
    ),
    "R19 an engine": ("ALTER TABLE t ENGINE = MyISAM", "UPDATE t SET b = 'x'", "is stored by MyISAM"),
    "a statement that cannot run": ("DROP TABLE bag", "DROP TABLE bag", "Unknown table 'D.bag'"),
    "a table that exists": ("CREATE TABLE n (a INT)", "CREATE TABLE n (a INT)", "Table 'n' already exists"),
    "R15 a filled table that exists": (
        "CREATE TABLE n AS SELECT * FROM t", "CREATE TABLE n AS SELECT * FROM t", "exists on the follower and holds rows"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DIVERGED)
def test_a_stranger_was_here(applied: Replication, case: str) -> None:
    """Nothing of the transaction is on the follower."""
    damage, change, words = DIVERGED[case]
    words = words.replace("D.", f"{applied.database}.")
    applied.follower.execute(damage, database=applied.database)
    is_statement = change.startswith(("DROP", "CREATE"))
    applied.play(*(() if is_statement else ("BEGIN", "INSERT INTO bystander VALUES (8)")), change, "COMMIT")
    assert applied.produce().returncode == 0
    assert_changes_nothing(applied, words)
    assert applied.follower.execute(f"SELECT * FROM {applied.database}.bystander") == []


# what passes by itself


def test_a_killed_connection(applied: Replication) -> None:
    """In the middle of a transaction."""
    applied.start()
    applied.catch_up()
    with holding(applied.follower, f"SELECT * FROM {applied.database}.t WHERE a = 3 FOR UPDATE"):
        applied.play("BEGIN", "INSERT INTO bag VALUES (4, 'four', 4)", "UPDATE t SET c = 9", "COMMIT")
        number = wait_for_statement(applied, "UPDATE%", "BINLOG")
        applied.follower.execute(f"KILL {number}")
        wait_until(lambda: session(applied) not in (0, number), "it is back", alive=[applied.consumer])
    applied.catch_up()
    applied.same()
    assert applied.consumer.stop() == 0
    assert "trying again until it is reached" in applied.consumer.stderr


def test_a11_a_lock_that_is_free_again(applied: Replication) -> None:
    """The whole transaction is tried again, not its last statement alone."""
    profile = applied.profiles.consumer
    profile.write_text(profile.read_text().replace("[database]", "[database]\nlock_wait_seconds = 1"))
    applied.start()
    with holding(applied.follower, f"SELECT * FROM {applied.database}.t WHERE a = 3 FOR UPDATE"):
        applied.play("BEGIN", "INSERT INTO bag VALUES (4, 'four', 4)", "UPDATE t SET c = 9", "COMMIT")
        wait_until(
            lambda: applied.consumer.stderr.count("Lock wait timeout exceeded") >= 2, "it tries again",
            alive=[applied.consumer],
        )  # fmt: skip
    applied.catch_up()
    applied.same()
    applied.stop()


def test_a12_native_replication_was_faster(applied: Replication) -> None:
    """A transaction that the follower has under its GTID is not executed again."""
    applied.play("INSERT INTO bag VALUES (4, 'four', 4)")
    assert applied.produce().returncode == 0
    gtid = applied.events()[-1]["transaction"]["gtid"]
    applied.follower.execute(
        f"SET gtid_next = '{gtid}'", f"INSERT INTO {applied.database}.bag VALUES (4, 'four', 4)",
        "SET gtid_next = 'AUTOMATIC'",
    )  # fmt: skip
    assert applied.consume().returncode == 0
    applied.same()


def test_a_follower_that_restarts(replicate: Replicate, leader: Server, own_server: StartServer, database: str) -> None:
    follower = own_server(FOLLOWER, server_id=41)
    replication = replicate(leader, follower, [database])
    replication.play(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT)")
    replication.start()
    replication.catch_up()
    follower.stop()
    replication.play("INSERT INTO t VALUES (1)", "DROP TABLE t", "CREATE TABLE t (b INT)", "INSERT INTO t VALUES (2)")
    wait_until(lambda: "trying again until" in replication.consumer.stderr, "it notices", alive=[replication.consumer])
    follower.start()
    replication.catch_up()
    replication.same()
    replication.stop()
