"""Links that break, fall silent, or must be encrypted; leaders that restart: survived, without a gap or a repeat."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate, Replication, assert_refused
from kit.faults import Proxy, account
from kit.helpers import wait_until
from kit.rogue import server_that_says
from kit.topic_audit import assert_whole

from docker.local.mysql_servers import LEADER, Server

#: the connections of producers, on a leader
DUMPS = "SELECT id FROM performance_schema.processlist WHERE command LIKE 'Binlog Dump%'"
#: what the README asks of a producer's account
PRODUCER = "REPLICATION SLAVE, REPLICATION CLIENT"


@pytest.fixture
def running(replication: Replication) -> Replication:
    """Both programs running, a table with a row on both servers."""
    replication.start()
    replication.play("CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)")
    replication.catch_up()
    return replication


def assert_complete(replication: Replication) -> None:
    replication.catch_up()
    replication.same()
    replication.stop()
    assert_whole(replication.records())


def test_a_killed_dump(running: Replication) -> None:
    for number in range(3):
        ((dump,),) = wait_until(lambda: running.leader.execute(DUMPS), "the producer is connected")
        running.play(f"INSERT INTO t VALUES ({number})", f"KILL {dump}", "UPDATE t SET a = a + 1")
        running.catch_up()
    assert "trying again until it is reached" in running.producer.stderr
    assert_complete(running)


def test_new_binlogs(running: Replication) -> None:
    for number in range(5):
        running.play("FLUSH BINARY LOGS", f"INSERT INTO t VALUES ({number})", "FLUSH BINARY LOGS")
    running.play("INSERT INTO t VALUES (5)")
    running.catch_up()
    assert "trying again" not in running.producer.stderr
    assert_complete(running)


def test_l1_a_leader_that_restarts(
    replicate: Replicate, own_server: StartServer, follower: Server, database: str
) -> None:
    """It gives the ids of tables anew: another table's rows must not appear as those of an included one."""
    leader = own_server(LEADER, server_id=51)
    replication = replicate(leader, follower, [database])
    secret = f"{database}_secret"
    for name in (database, secret):
        leader.execute(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (a INT)")
    replication.start()
    replication.catch_up()
    leader.restart()
    leader.execute(f"INSERT INTO {database}.t VALUES (1)")
    replication.catch_up()
    leader.kill()
    leader.start()
    leader.execute(f"INSERT INTO {secret}.t VALUES (666)", f"INSERT INTO {database}.t VALUES (2)")
    replication.catch_up()
    assert "666" not in str([event["operation"] for event in replication.events()])
    assert_complete(replication)


def test_l8_a_link_that_falls_silent(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    """Nobody closes it, and it carries nothing: three heartbeats are missed, and a new link is made."""
    with Proxy(leader) as proxy:
        change = {"database": {"port": proxy.port, "heartbeat_seconds": 0.3}}
        replication = replicate(leader, follower, [database], producer=change)
        replication.play(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT)")
        replication.start()
        replication.catch_up()
        proxy.fall_silent()
        replication.play("INSERT INTO t VALUES (1)")
        replication.catch_up()
        assert "no sign of life for 0.9 seconds, the link is dead" in replication.producer.stderr
        assert_complete(replication)


def test_an_idle_link_is_not_dead(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    replication = replicate(leader, follower, [database], producer={"database": {"heartbeat_seconds": 0.1}})
    replication.play(f"CREATE DATABASE {database}")
    replication.start()
    replication.catch_up()
    # a heartbeat record says that seconds have passed
    leader.execute(f"CREATE DATABASE {database}_other")
    wait_until(lambda: b'"Heartbeat"' in replication.records()[-1], "time passes", alive=[replication.producer])
    assert "trying again" not in replication.producer.stderr
    assert_complete(replication)


def test_l9_another_producer_of_the_same_name(
    replicate: Replicate, leader: Server, follower: Server, database: str
) -> None:
    """On another machine, with a file of its own or the same topic of a cluster: the leader keeps the newer, and the
    older says so.
    """
    first = replicate(leader, follower, [database], name="first")
    same = {"topic": {"name": first.topic.name}}
    second = replicate(leader, follower, [database], name="second", producer=same, consumer=same)
    first.producer.start()
    wait_until(lambda: leader.execute(DUMPS), "the first is connected")
    second.producer.start()
    assert first.producer.wait() == 1
    assert "another replica took this producer's place" in first.producer.stderr.splitlines()[-1]
    assert second.producer.stop() == 0


# encryption; the servers make certificates of their own, for no host name


def authority(server: Server, name: str = "ca.pem") -> str:
    folder = Path(server.value("SELECT @@datadir"))
    if not (folder / name).exists():
        pytest.skip("the server's files are not on this machine")
    return str(folder / name)


def stranger(server: Server) -> str:
    """A certificate that has signed nothing."""
    return authority(server, "client-cert.pem")


TLS = {
    "when it can": ("", None),
    "required": ("REQUIRE SSL", {"mode": "required"}),
    "verified": ("REQUIRE SSL", {"mode": "verify-ca", "ca": authority}),
    "P2 off": ("", {"mode": "off"}),
}


def tls(server: Server, keys: dict[str, object] | None) -> dict[str, dict[str, object]]:
    """The table [database.tls] of a profile."""
    values = {key: value(server) if callable(value) else value for key, value in (keys or {}).items()}
    return {"database.tls": values} if keys else {}


@pytest.mark.parametrize("case", TLS)
def test_encryption(replicate: Replicate, leader: Server, follower: Server, database: str, case: str) -> None:
    """With caching_sha2_password, whose cache is empty the first time: the password is sent, encrypted either way."""
    require, keys = TLS[case]
    with account(leader, PRODUCER, require) as producer, account(follower, "ALL PRIVILEGES", require) as consumer:
        for server in (leader, follower):
            server.execute("SET sql_log_bin = 0", "FLUSH PRIVILEGES")
        replication = replicate(
            leader, follower, [database],
            producer={"database": producer, **tls(leader, keys)}, consumer={"database": consumer, **tls(follower, keys)},
        )  # fmt: skip
        replication.play(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT)")
        replication.start()
        replication.catch_up()
        query = (
            "SELECT DISTINCT t.variable_value <> '' FROM performance_schema.status_by_thread t"
            " JOIN performance_schema.threads USING (thread_id)"
            " WHERE processlist_user = 'cdc_test' AND variable_name = 'Ssl_cipher'"
        )
        for server in (leader, follower):
            assert server.execute(query) == [(case != "P2 off",)]
        replication.stop()
    replication.same()


@pytest.mark.parametrize("fault", ["silent", "cut"])
def test_an_encrypted_link_that_breaks(
    replicate: Replicate, leader: Server, follower: Server, database: str, fault: str
) -> None:
    """Of both programs, while they wait and while much is on its way."""
    required = {"database.tls": {"mode": "required"}}
    with Proxy(leader) as near, Proxy(follower) as far:
        replication = replicate(
            leader, follower, [database],
            producer={"database": {"port": near.port, "heartbeat_seconds": 0.5}, **required},
            consumer={"database": {"port": far.port}, **required},
        )  # fmt: skip
        replication.play(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT, b LONGTEXT)")
        replication.start()
        replication.catch_up()
        for number in range(3):
            replication.play(f"INSERT INTO t VALUES ({number}, REPEAT('x', 3000000)), (-1, 'y')")
            if fault == "silent":
                near.fall_silent()
            else:
                near.cut()
                far.cut()
        replication.catch_up()
        replication.same()
        if fault == "silent":
            far.fall_silent()
            replication.play("INSERT INTO t VALUES (9, 'z')")
            wait_until(lambda: "waiting for the follower" in replication.consumer.stderr, "it is told")
            assert replication.consumer.stop(20) == 0
            assert replication.producer.stop() == 0
            # the follower hears of the end of the first session
            far.cut()
            replication.replicate()
            replication.same()
        else:
            assert_complete(replication)


NOT_TRUSTED = {
    "not encrypted": ({"mode": "off"}, "Access denied for user 'cdc_test'"),
    "signed by nobody known": ({"mode": "verify-ca", "ca": stranger}, "certificate verify failed"),
    "of another host": ({"mode": "verify-identity", "ca": authority}, "certificate is not valid for '127.0.0.1'"),
}


@pytest.mark.parametrize("case", NOT_TRUSTED)
def test_a_server_or_link_that_is_not_trusted(
    replicate: Replicate, leader: Server, follower: Server, database: str, case: str
) -> None:
    keys, words = NOT_TRUSTED[case]
    with account(leader, PRODUCER, "REQUIRE SSL") as producer, account(follower, "ALL", "REQUIRE SSL") as consumer:
        replication = replicate(
            leader, follower, [database],
            producer={"database": producer, **tls(leader, keys)}, consumer={"database": consumer, **tls(follower, keys)},
        )  # fmt: skip
        assert_refused(replication.produce(), str(leader), words)
        assert_refused(replication.consume(), str(follower), words)


def test_a_first_login_elsewhere_needs_a_verified_server_or_the_word(
    replicate: Replicate, leader: Server, follower: Server, database: str
) -> None:
    """The server knows no hash yet and asks for the password; from then on a hash is enough."""
    host: dict[str, object] = {"host": "0.0.0.0"}  # an address of this machine that is no loopback
    trusted = {"database.tls": {"mode": "required", "send_password_unverified": True}}
    with account(leader, PRODUCER) as producer, account(follower, "ALL PRIVILEGES") as consumer:

        def profiles(name: str, more: dict[str, dict[str, object]]) -> Replication:
            databases = {"database": {**producer, **host}, **more}, {"database": {**consumer, **host}, **more}
            return replicate(leader, follower, [database], name=name, producer=databases[0], consumer=databases[1])

        plain = profiles("plain", {})
        told = profiles("told", {**trusted, "topic": {"name": plain.topic.name}})
        plain.play(f"CREATE DATABASE {database}")
        assert_refused(plain.produce(), "asks for the password itself", "tls.send_password_unverified = true")
        told.replicate()
        plain.replicate()


def test_a_server_that_accepts_and_says_nothing(
    replicate: Replicate, leader: Server, follower: Server, database: str
) -> None:
    """Each program ends by itself, with the address."""
    with server_that_says(b"") as port:
        silent = {"database": {"port": port}}
        replication = replicate(leader, follower, [database], producer=silent, consumer=silent)
        for program in (replication.producer, replication.consumer):
            program.start()
        for program in (replication.producer, replication.consumer):
            assert program.wait(25) == 1
            last = program.stderr.splitlines()[-1]
            assert f"127.0.0.1:{port}" in last and "did not answer within 10 seconds" in last
