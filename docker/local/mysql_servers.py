"""MySQL servers of one's own, for the demo, the tests and the benchmarks.

    with start_server(folder / "leader", server_id=1, options=LEADER) as leader:
        leader.execute("CREATE DATABASE d")

Every server is empty, listens on a free port of 127.0.0.1, has a `root` without password, and dies with this process.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pymysql

from docker.local.get_mysql import DockerMySQL, MySQL, find_mysql, home, locked
from docker.local.processes import Child
from shared.mysql import Connection

#: what the README asks of a leader and of a follower, here with GTIDs
GTIDS = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
LEADER = ("--binlog-row-metadata=FULL", *GTIDS)
FOLLOWER = (*GTIDS, "--event-scheduler=OFF", "--log-bin-trust-function-creators=ON")
#: since 9.7 a server has GTIDs unless told otherwise
PLAIN = ("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")
#: a killed process loses nothing with these, only a power cut does
RELAXED = ("--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0")

#: below those the system gives to outgoing connections
PORTS = range(15000, 32000)
#: seconds until a server must answer; a container initialises its data first
START_SECONDS = 120.0
CONTAINER_START_SECONDS = 180.0

#: else half of a data directory that is copied again and again would be empty logs; a server makes its own
SMALL_LOG = "--loose-innodb-redo-log-capacity=8M"
#: how an option begins that a data directory is made with
AT_FIRST = "--lower-case-table-names"

#: the account everything here uses, also from outside a container
ROOT_ACCOUNT = "CREATE USER root@'%'; GRANT ALL ON *.* TO root@'%' WITH GRANT OPTION; GRANT PROXY ON ''@'' TO root@'%';"


class ServerError(Exception):
    """A server did not start, with the end of what it wrote."""


class Server:
    """Reaches a running MySQL where `root` needs no password."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    def connect(self, database: str | None = None, **options: Any) -> Connection:
        """Connect as root in autocommit mode; `options` are PyMySQL's."""
        # a TLS handshake would be nine tenths of a short conversation
        defaults: dict[str, Any] = {"user": "root", "password": "", "autocommit": True, "ssl_disabled": True}
        return pymysql.connect(host=self.host, port=self.port, database=database, **{**defaults, **options})

    def execute(self, *statements: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run statements in one session and return the rows of the last."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def run_file(self, path: Path) -> None:
        """Run the statements of an SQL file, each ended by a semicolon at the end of its line."""
        lines = [line for line in path.read_text().splitlines() if not line.startswith("--")]
        self.execute(*(statement for statement in re.split(r";\s*(?:\n|$)", "\n".join(lines)) if statement.strip()))

    def value(self, query: str) -> Any:
        """Ask for the only column of the only row."""
        ((value,),) = self.execute(query)
        return value

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class MySQLServer(Server):
    """A server this process owns. `options` may be changed while it is stopped."""

    start_seconds = START_SECONDS

    def __init__(self, folder: Path, port: int, server_id: int, options: Sequence[str]) -> None:
        super().__init__("127.0.0.1", port)
        self.folder = folder
        self.server_id = server_id
        self.options = tuple(options)
        self.error_log = folder / "error.log"
        self._child: Child | None = None

    @property
    def pid(self) -> int:
        assert self._child is not None, "the server was never started"
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    def start(self) -> None:
        """Start it on the data and the port it had, and wait until it answers. Raises ServerError."""
        assert not self.running, "the server is running"
        child = self._child = self._spawn()
        deadline = time.monotonic() + self.start_seconds
        try:
            while not self._answers():
                if not child.running or time.monotonic() > deadline:
                    state = "did not answer" if child.running else f"ended with status {child.status}"
                    raise ServerError(f"the MySQL server in {self.folder} {state}:\n{child.tail()}")
                time.sleep(0.02)
        except BaseException:
            child.kill()
            raise

    def stop(self) -> None:
        """Shut it down in order."""
        if self._child is not None:
            self._child.stop()

    def kill(self) -> None:
        """Send SIGKILL: the server loses whatever it had not written."""
        if self._child is not None:
            self._child.kill()

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """End it and remove its data."""
        self.kill()
        shutil.rmtree(self.folder)

    def client(self, program: str) -> list[str]:
        """Return the words that run mysql, mysqlbinlog, mysqldump... against this server as root; arguments follow."""
        raise NotImplementedError

    def _spawn(self) -> Child:
        raise NotImplementedError

    def _answers(self) -> bool:
        try:
            return self._is_ours()
        except (pymysql.err.MySQLError, OSError):
            return False

    def _is_ours(self) -> bool:
        return bool(self.value("SELECT 1"))

    def __enter__(self) -> MySQLServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class NativeServer(MySQLServer):
    """Runs a mysqld process. Its socket is `datadir`/mysql.sock."""

    def __init__(self, mysql: MySQL, folder: Path, port: int, server_id: int, options: Sequence[str]) -> None:
        super().__init__(folder, port, server_id, options)
        self.mysql = mysql
        self.datadir = folder / "data"
        self.socket = self.datadir / "mysql.sock"
        folder.mkdir(parents=True)
        shutil.copytree(_template(mysql, [each for each in options if each.startswith(AT_FIRST)]), self.datadir)

    def client(self, program: str) -> list[str]:
        address = [f"--host={self.host}", f"--port={self.port}", "--user=root"]
        return [*self.mysql.command(program), "--no-defaults", *address]

    def _spawn(self) -> Child:
        arguments = [
            f"--port={self.port}",
            "--bind-address=127.0.0.1",
            # after a kill the port may take a moment to come back
            "--port-open-timeout=10",
            # in the data directory: an absolute name may be too long for a socket
            "--socket=mysql.sock",
            "--pid-file=mysqld.pid",
            f"--server-id={self.server_id}",
            *self.options,
        ]
        return Child([*_mysqld(self.mysql, self.datadir), *arguments], self.error_log)

    def _is_ours(self) -> bool:
        # another program may have taken the port
        return Path(self.value("SELECT @@datadir")) == self.datadir


class ContainerServer(MySQLServer):
    """Runs a container of the MySQL image; the client programs run inside it."""

    start_seconds = CONTAINER_START_SECONDS

    def __init__(self, mysql: DockerMySQL, folder: Path, port: int, server_id: int, options: Sequence[str]) -> None:
        super().__init__(folder, port, server_id, options)
        self.name = f"cdc-mysql-{os.getpid()}-{port}"
        self.mysql = mysql
        folder.mkdir(parents=True)

    def client(self, program: str) -> list[str]:
        return ["docker", "exec", "-i", self.name, program, "--host=127.0.0.1", f"--port={self.port}", "--user=root"]

    def _spawn(self) -> Child:
        # `run` the first time, `start` on the same data afterwards; attached, both hand SIGTERM on to mysqld
        command = ["docker", "start", "--attach", self.name]
        if self._child is None:
            settings = ["--name", self.name, "--publish", f"127.0.0.1:{self.port}:{self.port}"]
            command = ["docker", "run", *settings, "--env", "MYSQL_ALLOW_EMPTY_PASSWORD=yes", self.mysql.image]
            command += [f"--port={self.port}", f"--server-id={self.server_id}", "--loose-mysqlx=OFF", *self.options]
        return Child(command, self.error_log, kill_command=["docker", "kill", self.name])

    def close(self) -> None:
        self.kill()
        Child(["docker", "rm", "--force", "--volumes", self.name], self.error_log).wait(60)
        super().close()


def start_server(folder: Path, *, server_id: int, options: Sequence[str] = ()) -> MySQLServer:
    """Start an empty server that keeps everything in `folder`, a new one. Raises NoMySQLError, ServerError."""
    mysql = find_mysql()
    port = free_port()
    server: MySQLServer
    if isinstance(mysql, DockerMySQL):
        server = ContainerServer(mysql, folder, port, server_id, options)
    else:
        server = NativeServer(mysql, folder.resolve(), port, server_id, options)
    try:
        server.start()
    except BaseException:
        server.close()
        raise
    return server


def free_port() -> int:
    """A free port of 127.0.0.1 below those the system gives to outgoing connections.

    A program that keeps trying to reach a stopped server on one of *those* would one day connect to itself.
    """
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _mysqld(mysql: MySQL, datadir: Path) -> list[str]:
    user = ["--user=root"] if os.geteuid() == 0 else []
    options = ["--secure-file-priv=NULL", "--loose-mysqlx=OFF", f"--datadir={datadir}"]
    return [*mysql.command("mysqld"), "--no-defaults", *user, *mysql.options, *options]


def _template(mysql: MySQL, options: Sequence[str]) -> Path:
    """An initialised data directory to copy; making one takes seconds, once for each version and such options."""
    cache = home()
    template = cache / f"datadir-small-{re.sub('[^0-9A-Za-z.]', '-', '-'.join([mysql.version, *options]))}"
    with locked(cache):
        if not template.exists():
            with tempfile.TemporaryDirectory(prefix="initialize-", dir=cache) as name:
                work = Path(name)
                (work / "init.sql").write_text(ROOT_ACCOUNT.replace("; ", ";\n") + "\n")
                command = [
                    *_mysqld(mysql, work / "data"),
                    "--initialize-insecure",
                    f"--init-file={work}/init.sql",
                    SMALL_LOG,
                    *options,
                ]
                child = Child(command, work / "log")
                if child.wait(120) != 0:
                    raise ServerError(f"mysqld could not initialise a data directory:\n{child.tail()}")
                # each copy makes a server_uuid of its own
                (work / "data" / "auto.cnf").unlink()
                (work / "data").rename(template)
    return template
