"""Opens connections to MySQL servers, and says in words what their errors mean."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

import pymysql
from pymysql.constants import CLIENT, COMMAND
from pymysql.cursors import SSCursor
from pymysql.err import MySQLError as MySQLError

from shared.profile import Database, Tls, expand

Connection: TypeAlias = "pymysql.connections.Connection[Any]"

#: of a silent link: seconds before the first probe, between two, and how many may stay unanswered; milliseconds that
#: something sent may stay unanswered
KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6, "TCP_USER_TIMEOUT": 90_000}

#: client and server error numbers that mean "the link is down", not "the statement is wrong"
LINK_ERRORS = frozenset(
    {
        0,
        1040,
        1053,
        1077,
        1078,
        1079,
        1080,
        1152,
        1158,
        1159,
        1160,
        1161,
        1927,
        2002,
        2003,
        2006,
        2013,
        2055,
        3169,
        4031,
    }
)


def connect(database: Database, *, multi_statements: bool = False, read_timeout: float | None = None) -> Connection:
    """Open a connection in autocommit mode whose row counts mean *matched* rows.

    `read_timeout` is in seconds. Raises pymysql.err.MySQLError; see `is_link_error`.
    """
    flags = CLIENT.FOUND_ROWS | (CLIENT.MULTI_STATEMENTS if multi_statements else 0)
    address: dict[str, Any] = {"host": database.host, "port": database.port}
    if database.unix_socket is not None:
        address = {"unix_socket": str(expand(database.unix_socket, "unix_socket"))}
    connection: Any = _Connection(
        **address,
        **_encryption(database.tls),
        user=database.user,
        # as bytes: PyMySQL would encode a str as latin1
        password=os.fsencode(database.secret()),
        charset="utf8mb4",
        autocommit=True,
        client_flag=flags,
        connect_timeout=10,
        read_timeout=read_timeout,
    )
    if database.unix_socket is None:
        _keep_alive(connection._sock)
    return cast(Connection, connection)


class _Connection(pymysql.connections.Connection):
    """Without [database.tls] nobody is verified; PyMySQL would load all authorities for it, for a tenth of a second."""

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        return sslp if isinstance(sslp, ssl.SSLContext) else Tls().context()


def _keep_alive(link: socket.socket) -> None:
    """Notice a server that has vanished within minutes, not hours, however long a statement may take."""
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):  # not every system has all of them
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _encryption(tls: Tls | None) -> dict[str, Any]:
    """Without [database.tls] PyMySQL encrypts when the server can; with it, it must."""
    if tls is None:
        return {}
    if tls.mode == "off":
        return {"ssl_disabled": True}
    return {"ssl": tls.context()}


def send(connection: Any, packet: bytes) -> None:
    """Send statements without waiting for their results, which `result` then gives one by one.

    This is the half of PyMySQL's `query` that sends; it has no public name.
    """
    connection._execute_command(COMMAND.COM_QUERY, packet)


def result(connection: Any) -> tuple[int, int]:
    """Return the next result of what was sent: rows matched, and warnings."""
    return connection.next_result(), connection._result.warning_count


def allow_several(connection: Any, several: bool) -> None:
    """Let the server execute several statements of one packet, or only one, from here on."""
    connection._execute_command(COMMAND.COM_SET_OPTION, (0 if several else 1).to_bytes(2, "little"))
    connection._read_packet()


def error_number(error: BaseException) -> int:
    """Return MySQL's number of a driver error, 0 when it carries none."""
    number = error.args[0] if error.args else 0
    return number if isinstance(number, int) else 0


def is_link_error(error: BaseException) -> bool:
    """Is true when a new connection may succeed where this one failed."""
    if isinstance(error, (OSError, EOFError)):
        return True
    return isinstance(error, pymysql.err.MySQLError) and error_number(error) in LINK_ERRORS


def error_text(error: BaseException) -> str:
    """Return the server's or driver's words with their number, on one line."""
    if isinstance(error, pymysql.err.MySQLError) and len(error.args) >= 2:
        return f"{' '.join(str(error.args[1]).split())} ({error.args[0]})"
    return " ".join(str(error).split()) or type(error).__name__


def quote_name(name: str) -> str:
    """Quote an identifier."""
    return "`" + name.replace("`", "``") + "`"


def variables(connection: Connection, *names: str) -> dict[str, Any]:
    """Ask for global variables by name; one the server does not know is left out."""
    with connection.cursor() as cursor:
        marks = ", ".join(["%s"] * len(names))
        cursor.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({marks})", names)
        return dict(cursor.fetchall())


def stream(connection: Connection, sql: str) -> Iterator[tuple[Any, ...]]:
    """The rows of one query, one by one, without holding them all; the connection serves nothing else meanwhile."""
    with connection.cursor(SSCursor) as cursor:
        cursor.execute(sql)
        yield from cursor.fetchall_unbuffered()


def rows(connection: Connection, sql: str | bytes, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Return all rows of one query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())
