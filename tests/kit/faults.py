"""Things that go wrong: settings, accounts, and a link that falls silent."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator

from fix_replication import Replication

from docker.local.mysql_servers import Server
from kit.helpers import wait_until

PASSWORD = "päss wörd!"


@contextlib.contextmanager
def setting(server: Server, name: str, value: str) -> Iterator[None]:
    """A global variable for a while; `value` is SQL."""
    before = server.value(f"SELECT @@GLOBAL.{name}")
    server.execute(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        server.execute(f"SET GLOBAL {name} = {before if isinstance(before, int) else repr(before)}")


@contextlib.contextmanager
def account(server: Server, grants: str, require: str = "") -> Iterator[dict[str, object]]:
    """An account with PASSWORD and some privileges for a while; gives the profile's keys for it."""
    user = "cdc_test"
    # `grants` and the account are not for a follower
    hide = "SET sql_log_bin = 0"
    drop = f"DROP USER IF EXISTS {user}@'%'"
    server.execute(hide, drop, f"CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}' {require}")
    try:
        if grants:
            server.execute(hide, f"GRANT {grants} ON *.* TO {user}@'%'")
        yield {"user": user, "password": PASSWORD}
    finally:
        server.execute(hide, drop)


def session(replication: Replication) -> int:
    """The connection of the consumer on the follower, 0 for none."""
    return replication.follower.value(f"SELECT IS_USED_LOCK('{replication.system_database}.events')") or 0


def wait_for_statement(replication: Replication, *words: str) -> int:
    """Wait until the consumer's session waits for a lock in a statement like one of these words; its connection."""
    like = " OR ".join(f"info LIKE '%{each}%'" for each in words)
    query = (
        f"SELECT info FROM performance_schema.processlist WHERE id = {{}} AND ({like})"
        " AND (state LIKE 'Waiting%' OR EXISTS (SELECT 1 FROM performance_schema.data_lock_waits))"
    )
    follower = replication.follower
    wait_until(
        lambda: follower.execute(query.format(session(replication))),
        f"the consumer is stopped at {' or '.join(words)}", alive=[replication.consumer],
    )  # fmt: skip
    return session(replication)


@contextlib.contextmanager
def holding(server: Server, *statements: str) -> Iterator[None]:
    """A transaction that holds the locks of its statements."""
    connection = server.connect(autocommit=False)
    try:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
        yield
    finally:
        connection.close()


class Proxy:
    """A TCP proxy in front of a server that can fall silent: it stays connected and forwards nothing."""

    def __init__(self, server: Server) -> None:
        self._target = (server.host, server.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        #: connections accepted so far
        self.accepted = 0
        self._silent: set[socket.socket] = set()
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def fall_silent(self) -> None:
        """The connections of this moment carry nothing any more, in either direction; new ones do."""
        self._silent |= set(self._pairs)

    def cut(self) -> None:
        """End the connections of this moment, wherever in a packet or a record they are."""
        for one in list(self._pairs):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while not self._closing:
            for key, _ in self._selector.select(0.05):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._forward(key.fileobj)  # type: ignore[arg-type]  # only sockets are registered

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(self._target)
        except OSError:
            client.close()
            return
        self.accepted += 1
        for one, other in ((client, server), (server, client)):
            self._pairs[one] = other
            self._selector.register(one, selectors.EVENT_READ)

    def _forward(self, source: socket.socket) -> None:
        if source in self._silent:
            self._selector.unregister(source)
            return
        try:
            data = source.recv(1 << 16)
            self._pairs[source].sendall(data)
        except OSError:
            data = b""
        if not data:
            for one in (source, self._pairs[source]):
                with contextlib.suppress(KeyError, ValueError):
                    self._selector.unregister(one)
                one.close()

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        self._thread.join(10)
        for one in (self._listener, *self._pairs):
            one.close()
        self._selector.close()
