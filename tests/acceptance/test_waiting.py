"""A follower that does not answer is told of within seconds, and no wait for it outlasts a request to stop."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate, Replication, assert_refused
from kit.helpers import wait_until

from docker.local.mysql_servers import FOLLOWER, MySQLServer, Server

#: seconds within which the log tells of a wait, and a program ends that is asked to; the machine may be busy
SOON = 30.0


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
    wait_until(lambda: follower.value(query) != before, "a heartbeat moves it")


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a disk of this size there."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_of_the_follower_s_binlog(
    replicate: Replicate, leader: Server, own_server: StartServer, database: str, tmp_path: Path, minute: bool
) -> None:
    """MySQL waits for room, and so does the consumer, not in silence; both go on with room, or when MySQL has died."""
    with small_disk(tmp_path / "disk", "8m") as disk:
        follower = own_server(options=[*FOLLOWER, f"--log-bin={disk}/binlog"])
        replication = replicate(leader, follower, [database])
        replication.play(f"CREATE DATABASE {database}")
        replication.play("CREATE TABLE t (a INT PRIMARY KEY, b LONGBLOB)")
        replication.start()
        replication.catch_up()
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(shutil.disk_usage(disk).free - (64 << 10)))
        for number in range(3):
            replication.play(
                f"INSERT INTO t VALUES ({number}, RANDOM_BYTES(1000)), (-{number} - 1, REPEAT('x', 500000))"
            )
        told(replication)
        ballast.unlink()
        if not minute:  # after which MySQL would look for room again
            follower.kill()
            follower.start()
        replication.catch_up(timeout=150)
        replication.same()
        replication.stop()


def test_a_full_disk_of_the_follower_s_tables(
    replicate: Replicate, leader: Server, own_server: StartServer, database: str
) -> None:
    """MySQL refuses; nothing of the transaction stays, and with room again the next start goes on."""
    follower = own_server(options=FOLLOWER)
    replication = replicate(leader, follower, [database])
    replication.play(f"CREATE DATABASE {database}")
    replication.replicate()
    with small_disk(follower.datadir / database, "2m"):
        replication.play("CREATE TABLE t (a INT PRIMARY KEY, b LONGBLOB)", "INSERT INTO t VALUES (0, 'small')")
        replication.replicate()
        replication.play("INSERT INTO t VALUES (1, REPEAT('x', 5000000)), (2, 'y')")
        assert replication.produce().returncode == 0
        before = replication.sequence()
        assert_refused(replication.consume(), "has no room", "free space on its disk and start again")
        assert replication.sequence() == before
        assert follower.execute(f"SELECT a FROM {database}.t") == [(0,)]
        grow = ["mount", "-o", "remount,size=64m", str(follower.datadir / database)]
        subprocess.run(grow, check=True)
        replication.replicate()
        replication.same()
