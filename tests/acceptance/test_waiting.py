"""A follower that does not answer is told of within seconds, and no wait for it outlasts a request to stop."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate, Replication
from kit.helpers import wait_until

from docker.local.mysql_servers import FOLLOWER, MySQLServer, Server

#: seconds within which the log tells of a wait, and a program ends that is asked to; the machine may be busy
SOON = 12.0


@pytest.fixture
def running(
    replicate: Replicate, leader: Server, own_server: StartServer, database: str
) -> Iterator[tuple[Replication, MySQLServer]]:
    """Both programs, and a follower of this test's own."""
    follower = own_server(options=FOLLOWER)
    replication = replicate(leader, follower, [database])
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    replication.start()
    replication.catch_up()
    yield replication, follower


@contextmanager
def frozen(server: MySQLServer) -> Iterator[None]:
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def told(replication: Replication) -> None:
    words = "waiting for the follower"
    wait_until(lambda: words in replication.consumer.stderr, "the log tells of the wait", timeout=SOON)


def test_a_frozen_follower(running: tuple[Replication, MySQLServer]) -> None:
    replication, follower = running
    with frozen(follower):
        replication.play("INSERT INTO t VALUES (2)")
        told(replication)
    replication.catch_up()
    assert "the follower answers again after" in replication.consumer.stderr
    replication.same()


def test_a_frozen_follower_and_a_request_to_stop(running: tuple[Replication, MySQLServer]) -> None:
    replication, follower = running
    with frozen(follower):
        replication.play("INSERT INTO t VALUES (2)")
        told(replication)
        began = time.monotonic()
        assert replication.consumer.stop() == 0
        assert time.monotonic() - began < SOON
    replication.consumer.start()
    replication.catch_up()
    replication.same()


@pytest.mark.parametrize("lock", ["FLUSH TABLES WITH READ LOCK", "LOCK TABLES {}.t WRITE", "LOCK INSTANCE FOR BACKUP"])
def test_a_lock(running: tuple[Replication, MySQLServer], lock: str) -> None:
    replication, follower = running
    with follower.connect() as holder, holder.cursor() as cursor:
        cursor.execute(lock.format(replication.database))
        replication.play("INSERT INTO t VALUES (2)", "ALTER TABLE t ADD b INT")
        told(replication)
        assert replication.consumer.stop() == 0
    replication.consumer.start()
    replication.catch_up()
    replication.same()


def test_a_position_that_stands_still_is_seen(running: tuple[Replication, MySQLServer]) -> None:
    """On an idle leader heartbeats move the moment of the position, so that one that does not is stuck."""
    replication, follower = running
    query = f"SELECT updated_at FROM {replication.system_database}.position"
    before = follower.value(query)
    wait_until(lambda: follower.value(query) != before, "a heartbeat moves it", timeout=30.0)
