"""Opens connections to MySQL servers, and says in words what their errors mean."""

from __future__ import annotations

import io
import os
import re
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

import pymysql
from pymysql._auth import scramble_caching_sha2
from pymysql.constants import CLIENT, CR
from pymysql.constants import ER as ER
from pymysql.cursors import SSCursor
from pymysql.err import MySQLError as MySQLError

from shared.patient_link import PatientLink, TimedLink, Waiter, keep_alive
from shared.profile import Database, DatabaseTls
from shared.profile_table import expand
from shared.program import broken_off_by_a_stop

Connection: TypeAlias = "pymysql.connections.Connection[Any]"

#: what a server's own defaults must not bend, of any session
SESSION = (
    "SET autocommit = 1, completion_type = 0, transaction_read_only = 0, max_execution_time = 0, sql_big_selects = 1,"
    " sql_select_limit = 18446744073709551615"
)

#: seconds a server may take to accept a connection, and then for all of the login
CONNECT_SECONDS = 10.0

#: numbers that PyMySQL has no names for
ER_CONNECTION_KILLED, ER_SESSION_WAS_KILLED, ER_CLIENT_INTERACTION_TIMEOUT = 1927, 3169, 4031
#: client and server errors that mean "the link is down", not "the statement is wrong"; 0 is a driver's without number
LINK_ERRORS = frozenset(
    {
        0, ER.CON_COUNT_ERROR, ER.SERVER_SHUTDOWN, ER.NORMAL_SHUTDOWN, ER.GOT_SIGNAL, ER.SHUTDOWN_COMPLETE,
        ER.FORCING_CLOSE, ER.ABORTING_CONNECTION, ER.NET_READ_ERROR, ER.NET_READ_INTERRUPTED, ER.NET_ERROR_ON_WRITE,
        ER.NET_WRITE_INTERRUPTED, ER_CONNECTION_KILLED, ER_SESSION_WAS_KILLED, ER_CLIENT_INTERACTION_TIMEOUT,
        CR.CR_CONNECTION_ERROR, CR.CR_CONN_HOST_ERROR, CR.CR_SERVER_GONE_ERROR, CR.CR_SERVER_LOST,
        CR.CR_SERVER_LOST_EXTENDED,
    }
)  # fmt: skip


def connect(
    database: Database, *, multi_statements: bool = False, read_timeout: float | None = None,
    waiter: Waiter | None = None, local_files: bool = False,
) -> Connection:  # fmt: skip
    """Open a connection in autocommit mode whose row counts mean *matched* rows.

    `read_timeout` is in seconds, for each answer as a whole (of `stream`, each row); `waiter` hears of each wait for
    the server once it has let us in; `local_files` lets `load_rows` be used. Raises pymysql.err.MySQLError; see
    `is_link_error`.
    """
    flags = CLIENT.FOUND_ROWS | (CLIENT.MULTI_STATEMENTS if multi_statements else 0)
    flags |= CLIENT.LOCAL_FILES if local_files else 0
    address: dict[str, Any] = {"host": database.host, "port": database.port}
    if database.unix_socket is not None:
        address = {"unix_socket": str(expand(database.unix_socket, "unix_socket"))}
    connection: Any = _Connection(
        **address,
        **_encryption(database),
        user=database.user,
        # as bytes: PyMySQL would encode a str as latin1
        password=os.fsencode(database.secret()),
        charset="utf8mb4",
        init_command=SESSION,
        autocommit=True,
        client_flag=flags,
        connect_timeout=CONNECT_SECONDS,
        # the same, so that what is left of the login's time stays the socket's timeout, for a handshake of TLS too
        read_timeout=CONNECT_SECONDS,
        write_timeout=CONNECT_SECONDS,
        auth_plugin_map={} if database.may_send_password else _GUARDED,
        defer_connect=True,
    )
    _log_in(connection)
    connection._read_timeout = connection._write_timeout = read_timeout
    connection._current_timeout = -1  # neither: the driver sets it anew
    connection.login_until = None
    if database.unix_socket is None:
        keep_alive(connection._sock)
    if waiter is not None:
        connection.patient = PatientLink(connection._sock, waiter)
        connection._rfile = io.BufferedReader(connection.patient)
    elif read_timeout is not None:
        connection.timed = TimedLink(connection._sock, read_timeout)
        connection._rfile = io.BufferedReader(connection.timed)
    else:
        # not the login's reader, whose time ends
        connection._rfile = connection._sock.makefile("rb")
    return cast(Connection, connection)


def _log_in(connection: Any) -> None:
    try:
        with broken_off_by_a_stop():
            connection.connect()
    except MySQLError as error:
        if isinstance(error.__context__, TimeoutError):
            text = f"it accepted the connection, and then did not answer within {CONNECT_SECONDS:g} seconds"
            raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, text) from None
        raise
    except (struct.error, ValueError, LookupError) as error:
        text = f"it does not speak MySQL's protocol ({type(error).__name__})"
        raise pymysql.err.OperationalError(CR.CR_MALFORMED_PACKET, text) from error


class _Connection(pymysql.connections.Connection):
    """PyMySQL's, but for what it would do before anybody can ask it not to."""

    #: what packets are sent through once somebody wants to hear of waiting
    patient: PatientLink | None = None
    #: what answers are read through that must come in time
    timed: TimedLink | None = None
    #: when the login must be over (monotonic seconds), 0 until its first word is waited for, None afterwards
    login_until: float | None = 0.0

    def _read_bytes(self, num_bytes: int) -> bytes:
        this: Any = self
        if self.login_until is not None:
            self.login_until = self.login_until or time.monotonic() + CONNECT_SECONDS
            # nothing is read ahead, as the link may become one of TLS after any word
            this._rfile = io.BufferedReader(TimedLink(this._sock, CONNECT_SECONDS, self.login_until), 1)
        return super()._read_bytes(num_bytes)  # type: ignore[misc,no-any-return]  # not in the stubs

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        if self.timed is not None:
            self.timed.restart()
        super()._execute_command(command, sql)  # type: ignore[misc]  # not in the stubs

    def _write_bytes(self, data: bytes) -> None:
        if self.patient is None:
            super()._write_bytes(data)  # type: ignore[misc]  # not in the stubs
            return
        try:
            self.patient.send(data)
        except OSError as error:
            raise pymysql.err.OperationalError(
                CR.CR_SERVER_GONE_ERROR, f"MySQL server has gone away ({error!r})"
            ) from None

    def _create_ssl_ctx(self, sslp: Any) -> ssl.SSLContext:
        # Without [database.tls] nobody is verified; PyMySQL would load all authorities for it, for a tenth of a second.
        return sslp if isinstance(sslp, ssl.SSLContext) else DatabaseTls().context()

    def _get_server_information(self) -> None:
        super()._get_server_information()  # type: ignore[misc]  # not in the stubs
        this: Any = self
        if this._auth_plugin_name in this._auth_plugin_map and this._auth_plugin_name != _CHALLENGES:
            # it would send the password with its first packet already
            _Refusing(self).authenticate(None)


class _Refusing:
    """Takes the place of a way to log in that gives the password itself to the server."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def authenticate(self, packet: Any) -> Any:
        """Refuse. Raises pymysql.err.OperationalError."""
        raise pymysql.err.OperationalError(
            CR.CR_AUTH_PLUGIN_ERR,
            "it asks for the password itself and has not proved who it is: give its authority to tls.ca with tls.mode ="
            ' "verify-identity" or "verify-ca", or say tls.send_password_unverified = true',
        )


class _Challenged(_Refusing):
    """Logs in by caching_sha2_password as long as the server knows the password's hash and asks for no more."""

    def authenticate(self, packet: Any) -> Any:
        """Answer the server's challenge; returns its last word. Raises pymysql.err.OperationalError."""
        connection = self._connection
        if packet.is_auth_switch_request():
            connection.salt = packet.read_all().removesuffix(b"\0")
            connection.write_packet(scramble_caching_sha2(connection.password, connection.salt))
            packet = connection._read_packet()
        if packet.is_ok_packet():
            return packet
        if packet.get_all_data() == _HASH_IS_ENOUGH:
            return connection._read_packet()
        return super().authenticate(packet)


_CHALLENGES, _HASH_IS_ENOUGH = "caching_sha2_password", b"\1\3"
#: ways to log in by which the password, or what it can be told from, would leave
_GUARDED: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("mysql_clear_password", "dialog", "sha256_password", "mysql_old_password"), _Refusing),
    _CHALLENGES: _Challenged,
}


def _encryption(database: Database) -> dict[str, Any]:
    """Without [database.tls] PyMySQL encrypts when the server can; with it, it must.

    What goes through a socket's file leaves no kernel: as for MySQL's own clients it is not encrypted unless told so.
    """
    tls = database.tls
    if tls is None:
        return {} if database.unix_socket is None else {"ssl_disabled": True}
    if tls.mode == "off":
        return {"ssl_disabled": True}
    return {"ssl": tls.context()}


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


def quote_account(user: str, host: str = "%") -> str:
    """Quote an account."""
    return f"{quote_name(user)}@{quote_name(host)}"


def variables(connection: Connection, *names: str) -> dict[str, Any]:
    """Ask for global variables by name; one the server does not know is left out."""
    with connection.cursor() as cursor:
        marks = ", ".join(["%s"] * len(names))
        cursor.execute(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({marks})", names)
        return dict(cursor.fetchall())


def server_version(connection: Any) -> tuple[int, ...]:
    """Ask for the numbers of the server's version, (8, 0, 46)."""
    return tuple(map(int, re.findall("[0-9]+", connection.server_version)))


def binlog_end(connection: Connection) -> tuple[str, int] | None:
    """Return file and offset at which the server will write its next transaction.

    None of a server that writes no binlog.
    """
    statement = "SHOW BINARY LOG STATUS" if server_version(connection) >= (8, 2) else "SHOW MASTER STATUS"
    found = rows(connection, statement)
    return (found[0][0], int(found[0][1])) if found else None


def stream(connection: Connection, sql: str) -> Iterator[tuple[Any, ...]]:
    """The rows of one query, one by one, without holding them all; the connection serves nothing else meanwhile."""
    with connection.cursor(SSCursor) as cursor:
        cursor.execute(sql)
        timed: TimedLink | None = connection.timed  # type: ignore[attr-defined]
        for row in cursor.fetchall_unbuffered():
            yield row
            if timed is not None:
                timed.restart()


@contextmanager
def bytes_as_text(connection: Connection) -> Iterator[Callable[[Any], Any]]:
    """Let text come as the bytes it is, meanwhile; yields what makes text of them.

    Bytes that are no UTF-8, as of _latin1'...' in a view, become lone surrogates, which `sql.literals.encode` undoes.
    """
    link: Any = connection
    before, link.use_unicode = link.use_unicode, False
    try:
        yield lambda value: value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
    finally:
        link.use_unicode = before


def rows(connection: Connection, sql: str | bytes, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Return all rows of one query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())
