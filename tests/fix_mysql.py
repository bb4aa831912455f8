"""Leader and follower servers, one pair for the whole run, and databases of one's own on them.

CDC_TEST_LEADER and CDC_TEST_FOLLOWER (host:port, root without password) name running servers to use instead.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pymysql
import pytest

from docker.local.get_mysql import NoMySQLError, find_mysql, installed_mysql
from docker.local.mysql_servers import FOLLOWER, LEADER, PLAIN, RELAXED, MySQLServer, Server, ServerError, start_server

#: binlogs end often, so that every longer test meets a rotation; the kernel has few places for input and output beside
#: a program, and many servers run at the same time; what a server has written outlives its process, and a definition
#: need not wait for the disk three times
OPTIONS = (
    "--max-binlog-size=16M", "--innodb-use-native-aio=OFF", "--innodb-flush-method=nosync",
    # a fifth less memory than half a gigabyte for each
    "--innodb-log-buffer-size=4M", "--innodb-buffer-pool-size=64M", "--performance-schema-events-statements-history-long-size=100",
)  # fmt: skip
#: a test's databases begin with this
PREFIX = "test_"


def pytest_report_header() -> list[str]:
    named = [f"{name}: {os.environ[name]}" for name in ("CDC_TEST_LEADER", "CDC_TEST_FOLLOWER") if name in os.environ]
    try:
        found = installed_mysql()
    except NoMySQLError as error:
        return [*named, f"MySQL: {error}"]
    return [*named, f"servers: {found or 'MySQL will be downloaded'}"]


class Servers:
    """The servers of this run; they start when first asked for."""

    def __init__(self, folder: Path, stack: ExitStack, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._stack = stack
        self._say = say
        self._shared: dict[str, Server] = {}

    def shared(self, role: str, server_id: int, options: Sequence[str]) -> Server:
        """One server for all tests that name this role."""
        if role not in self._shared:
            named = os.environ.get(f"CDC_TEST_{role.upper()}")
            self._shared[role] = _running(named) if named else self.start(role, server_id, options, self._stack)
        return self._shared[role]

    def start(self, name: str, server_id: int, options: Sequence[str], stack: ExitStack) -> MySQLServer:
        """A server that ends with `stack`."""
        folder = self._folder / f"{name}-{secrets.token_hex(3)}"
        try:
            find_mysql(self._say)
            server = start_server(folder, server_id=server_id, options=(*options, *RELAXED, *OPTIONS))
        except (NoMySQLError, ServerError) as error:
            # once, not for every test; but one of several processes cannot end the others
            if "PYTEST_XDIST_WORKER" in os.environ:
                pytest.fail(str(error), pytrace=False)
            pytest.exit(str(error), returncode=1)
        stack.callback(server.close)
        return server

    def drop(self, prefix: str) -> None:
        """Remove a test's databases from the servers that outlive it."""
        for server in self._shared.values():
            found = server.execute(f"SHOW DATABASES LIKE '{prefix}%'")
            server.execute("SET foreign_key_checks = 0", *(f"DROP DATABASE `{name}`" for (name,) in found))


def _running(address: str) -> Server:
    host, _, port = address.rpartition(":")
    server = Server(host, int(port))
    try:
        server.execute("SELECT 1")
    except pymysql.err.MySQLError as error:
        pytest.exit(f"no MySQL answers root at {address}: {error}", returncode=1)
    return server


@pytest.fixture(scope="session")
def servers(pytestconfig: pytest.Config) -> Iterator[Servers]:
    def say(text: str) -> None:
        capture = pytestconfig.pluginmanager.getplugin("capturemanager")
        with capture.global_and_fixture_disabled():
            print(f"\n{text} ...", flush=True)

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mysql-cdc-tests-"))
        yield Servers(Path(folder), stack, say)


@pytest.fixture
def leader(servers: Servers) -> Server:
    """A leader as the README asks for, with GTIDs."""
    return servers.shared("leader", 1, LEADER)


@pytest.fixture
def follower(servers: Servers) -> Server:
    return servers.shared("follower", 2, FOLLOWER)


@pytest.fixture
def plain_leader(servers: Servers) -> Server:
    """A leader without GTIDs."""
    return servers.shared("plain_leader", 3, ["--binlog-row-metadata=FULL", *PLAIN])


@pytest.fixture
def plain_follower(servers: Servers) -> Server:
    return servers.shared("plain_follower", 4, PLAIN)


StartServer = Callable[..., MySQLServer]


@pytest.fixture
def own_server(servers: Servers) -> Iterator[StartServer]:
    """Starts servers this test may kill: own_server(options=LEADER, server_id=11)."""
    with ExitStack() as stack:
        yield lambda options=(), server_id=11: servers.start("own", server_id, options, stack)


@pytest.fixture
def database(servers: Servers) -> Iterator[str]:
    """A database name of this test alone; it is dropped afterwards, with all names that begin with it."""
    name = PREFIX + secrets.token_hex(4)
    yield name
    servers.drop(name)
