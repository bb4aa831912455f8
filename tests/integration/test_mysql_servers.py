"""Servers and programs of one's own: they start fast, come back after a kill, and never outlive their owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fix_mysql import StartServer
from kit.helpers import assert_same_table, wait_until
from kit.programs import ENVIRONMENT, binlog_end

from docker.local.mysql_servers import LEADER, MySQLServer, Server, ServerError, free_port, start_server
from docker.local.processes import Child


def test_the_shared_pair_is_as_the_readme_asks(leader: Server, follower: Server) -> None:
    query = "SELECT @@gtid_mode, @@binlog_format, @@binlog_row_image"
    assert leader.execute(query) == follower.execute(query) == [("ON", "ROW", "FULL")]
    assert leader.value("SELECT @@binlog_row_metadata") == "FULL"
    assert leader.value("SELECT @@server_uuid") != follower.value("SELECT @@server_uuid")
    assert leader.value("SELECT @@server_id") != follower.value("SELECT @@server_id")


def test_plain_servers_have_no_gtids(plain_leader: Server, plain_follower: Server) -> None:
    assert plain_leader.value("SELECT @@gtid_mode") == plain_follower.value("SELECT @@gtid_mode") == "OFF"


def test_a_killed_server_comes_back_with_its_data_and_its_port(own_server: StartServer) -> None:
    server = own_server(LEADER)
    server.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)")
    address, identity = str(server), server.value("SELECT @@server_uuid")
    server.kill()
    assert not server.running
    server.start()
    assert (str(server), server.value("SELECT @@server_uuid")) == (address, identity)
    assert server.execute("SELECT a FROM d.t") == [(1,)]
    server.restart()
    assert server.execute("SELECT a FROM d.t") == [(1,)]


def test_client_programs_reach_the_server(own_server: StartServer) -> None:
    server = own_server()
    server.execute("CREATE DATABASE told_by_mysqlbinlog")
    run = {"capture_output": True, "text": True, "check": True, "timeout": 30}
    said = subprocess.run([*server.client("mysql"), "-N", "-e", "SELECT 40 + 2"], **run).stdout
    assert said == "42\n"
    file = binlog_end(server).partition(":")[0]
    command = [*server.client("mysqlbinlog"), "--read-from-remote-server", file]
    assert "told_by_mysqlbinlog" in subprocess.run(command, **run).stdout


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(tmp_path: Path, leader: Server) -> None:
    with pytest.raises(ServerError, match="unknown option '--nonsense'"):
        start_server(tmp_path / "server", server_id=9, options=["--nonsense"])
    assert list(tmp_path.iterdir()) == []


def test_nothing_outlives_its_owner(tmp_path: Path, own_server: StartServer) -> None:
    """Not even after SIGKILL of the process that started a server."""
    owner = Child([sys.executable, "-c", OWNER, str(tmp_path)], tmp_path / "log", env=ENVIRONMENT)
    pid = int(wait_until(lambda: owner.tail(1) if owner.tail(1).isdigit() else "", "the server starts"))
    owner.kill()
    wait_until(lambda: not _exists(pid), "the server ends")


OWNER = """
import sys, time, pathlib
from docker.local.mysql_servers import start_server
print(start_server(pathlib.Path(sys.argv[1]) / "server", server_id=5).pid, flush=True)
time.sleep(60)
"""


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # a zombie is nobody's server
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_free_ports_are_not_those_of_outgoing_connections() -> None:
    assert all(15000 <= free_port() < 32000 for _ in range(50))


def test_a_child_is_ended_in_order_or_at_once(tmp_path: Path) -> None:
    script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    polite = Child(["sh", "-c", script], tmp_path / "log")
    wait_until(lambda: polite.tail() == "ready", "it starts")
    assert polite.stop() == 3
    assert polite.tail(1) == "bye"
    stubborn = Child(["sh", "-c", "trap '' TERM; while :; do sleep 0.01; done"], tmp_path / "log")
    stubborn.kill()
    assert stubborn.status == -signal.SIGKILL


def test_tables_that_differ_are_told_apart(leader: Server, follower: Server, database: str) -> None:
    for server, value in ((leader, "a"), (follower, "b")):
        server.execute(
            "SET sql_log_bin = 0",
            f"CREATE DATABASE {database}",
            f"CREATE TABLE {database}.t (a INT PRIMARY KEY, b VARCHAR(9))",
            f"INSERT INTO {database}.t VALUES (1, 'same'), (2, '{value}')",
        )
    assert_same_table(leader, leader, database, "t")
    with pytest.raises(AssertionError, match=r"missing: \[\"\(2, 'a'\)\"\]\s+extra: \[\"\(2, 'b'\)\"\]"):
        assert_same_table(leader, follower, database, "t")
    follower.execute("SET sql_log_bin = 0", f"ALTER TABLE {database}.t ADD COLUMN c INT")
    with pytest.raises(AssertionError, match="defined differently"):
        assert_same_table(leader, follower, database, "t")


def test_containers_are_driven_through_the_docker_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands only: a stand-in named docker writes them down."""
    from docker.local import mysql_servers
    from docker.local.get_mysql import DockerMySQL

    (tmp_path / "docker").write_text(FAKE_DOCKER.format(folder=tmp_path))
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(mysql_servers, "find_mysql", DockerMySQL)
    monkeypatch.setattr(MySQLServer, "_is_ours", lambda server: (tmp_path / "up").exists())
    server = start_server(tmp_path / "server", server_id=7, options=["--gtid-mode=ON"])
    server.kill()
    server.start()
    server.stop()
    server.close()
    name = f"cdc-mysql-{os.getpid()}-{server.port}"
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"run --name {name} --publish 127.0.0.1:{server.port}:{server.port} --env MYSQL_ALLOW_EMPTY_PASSWORD=yes"
        f" mysql:8.4.6 --port={server.port} --server-id=7 --loose-mysqlx=OFF --gtid-mode=ON",
        f"kill {name}",
        f"start --attach {name}",
        f"rm --force --volumes {name}",
    ]


FAKE_DOCKER = """#!/bin/sh
echo "$@" >> {folder}/calls
case "$1" in
    run|start) touch {folder}/up; trap 'rm -f {folder}/up; exit 0' TERM; while [ -e {folder}/up ]; do sleep 0.01; done;;
    kill) rm -f {folder}/up;;
esac
"""
