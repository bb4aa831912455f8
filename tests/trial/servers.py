"""One leader and two followers: one for the programs, one for MySQL's own replication, the oracle."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from kit.programs import binlog_end
from pymysql.cursors import DictCursor
from pymysql.err import MySQLError

from docker.local.get_mysql import ROOT
from docker.local.mysql_servers import FOLLOWER, LEADER, PLAIN, RELAXED, MySQLServer, start_server
from shared.events import Position
from shared.mysql import Connection, quote_name

#: nothing of a session may come from the server it is replayed on
HOSTILE = (
    "--default-time-zone=-03:00", "--character-set-server=latin1", "--sql-mode=",
    "--explicit-defaults-for-timestamp=OFF", "--max-allowed-packet=1G",
)  # fmt: skip
#: a follower reports how far it is at once
PROMPT = ("--skip-replica-start", "--replica-checkpoint-period=1")
#: sessions of a script run in turn, so whoever waits for a lock waits for nothing
IMPATIENT = ("--lock-wait-timeout=1", "--innodb-lock-wait-timeout=1")
ONE_BINLOG = "--max-binlog-size=1G"

#: databases that belong to the servers
SYSTEM = ("mysql", "sys", "information_schema", "performance_schema")
#: the programs' account
USER, PASSWORD = "fluvio", "fluvio4cdc!"
#: seconds for the oracle to end
PATIENCE = 120.0

#: variables that say what a server has done, or that cannot be set back while it runs
UNRESTORED = re.compile(
    r"gtid_\w+|\w*_(executed|purged)|server_(id|uuid)|innodb_buffer_pool_\w+|innodb_redo_log_capacity"
)


class Settings(NamedTuple):
    """How the leader logs."""

    gtids: bool = True
    compression: bool = False

    def __str__(self) -> str:
        words = [*([] if self.gtids else ["without GTIDs"]), *(["compressed"] if self.compression else [])]
        return ", ".join(words) or "with GTIDs"


class Native(NamedTuple):
    """How MySQL's own replication ended; `error` is empty when it applied everything."""

    error: str = ""


class Servers:
    """The three servers; empty after `reset`, which every script begins with."""

    def __init__(self, folder: Path, settings: Settings, stack: ExitStack) -> None:
        self.settings = settings
        shared = LEADER if settings.gtids else ("--binlog-row-metadata=FULL", *PLAIN)
        following = (*(FOLLOWER if settings.gtids else PLAIN), "--event-scheduler=OFF")
        options = {
            "leader": (
                *shared,
                *IMPATIENT,
                "--local-infile=ON",
                *(["--binlog-transaction-compression=ON"] * settings.compression),
            ),
            "follower": (*following, *HOSTILE, "--log-bin-trust-function-creators=ON"),
            "native": (*following, *HOSTILE, *PROMPT),
        }
        started: list[MySQLServer] = []
        for number, (name, given) in enumerate(options.items(), start=1):
            server = start_server(folder / name, server_id=number, options=(*given, *RELAXED, ONE_BINLOG))
            stack.callback(server.close)
            started.append(server)
        self.leader, self.follower, self.native = started
        for server, file in ((self.leader, "leader.sql"), (self.follower, "follower.sql")):
            server.run_file(ROOT / "docker" / file)
        self._variables = {server.port: _variables(server) for server in started}

    def reset(self) -> None:
        """Remove what a script left, on all three, and begin the leader's binlog and the oracle anew."""
        self.native.execute("STOP REPLICA", "RESET REPLICA ALL")
        for server in (self.leader, self.follower, self.native):
            self._clean(server)
            server.execute("RESET BINARY LOGS AND GTIDS" if _version(server) >= (8, 4) else "RESET MASTER")
        self.leader.execute("CREATE DATABASE test")
        self._attach()

    def _clean(self, server: MySQLServer) -> None:
        """Give a server back its variables, and drop transactions, databases and accounts that are not its own."""
        statements = ["SET sql_log_bin = 0", "SET foreign_key_checks = 0"]
        before = self._variables[server.port]
        for name, value in _variables(server).items():
            if before.get(name) != value and not UNRESTORED.fullmatch(name):
                with suppress(MySQLError):
                    server.execute(f"SET GLOBAL {name} = {_literal(before.get(name, ''))}")
        for *_, length, _, data in server.execute("XA RECOVER CONVERT XID"):
            gtrid = str(data)[: 2 + 2 * int(length)]
            statements.append(f"XA ROLLBACK {gtrid}, 0x{str(data)[len(gtrid) :]}")
        with server.connect() as connection:
            statements += [f"DROP DATABASE {quote_name(name)}" for name in databases(connection)]
        accounts = "SELECT user, host FROM mysql.user WHERE user NOT IN ('root', %s) AND user NOT LIKE 'mysql.%%'"
        found = server.execute(accounts.replace("%s", f"'{USER}'").replace("%%", "%"))
        statements += [f"DROP USER {_literal(user)}@{_literal(host)}" for user, host in found]
        server.execute(*statements)

    def _attach(self) -> None:
        source = "SOURCE_AUTO_POSITION = 1"
        if not self.settings.gtids:
            file = binlog_end(self.leader).partition(":")[0]
            source = f"SOURCE_LOG_FILE = '{file}', SOURCE_LOG_POS = 4"
        self.native.execute(
            f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{self.leader.host}', SOURCE_PORT = {self.leader.port},"
            f" SOURCE_USER = 'root', GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1, {source}",
            "START REPLICA",
        )

    def oracle(self, end: Position) -> Native:
        """Wait until native replication has applied everything before `end`, or has stopped."""
        deadline = time.monotonic() + PATIENCE
        with self.native.connect() as connection, connection.cursor(DictCursor) as cursor:
            while time.monotonic() < deadline:
                cursor.execute("SHOW REPLICA STATUS")
                state = cursor.fetchone() or {}
                error = state.get("Last_SQL_Error") or state.get("Last_IO_Error") or ""
                if error or state.get("Replica_SQL_Running") == "No":
                    return Native(self._worker_error() or str(error) or "stopped")
                file = state.get("Relay_Source_Log_File")
                if file and Position(file, state["Exec_Source_Log_Pos"]) >= end:
                    return Native()
                time.sleep(0.01)
        return Native(f"not at {end} after {PATIENCE:.0f} s")

    def _worker_error(self) -> str:
        """What a worker says, without the words that are the same in every such message."""
        table = "performance_schema.replication_applier_status_by_worker"
        found = self.native.execute(f"SELECT LAST_ERROR_MESSAGE FROM {table} WHERE LAST_ERROR_NUMBER <> 0")
        return re.sub(r"^.*?end_log_pos \d+[;,.]? ?", "", str(found[0][0])) if found else ""


@contextmanager
def start_servers(folder: Path, settings: Settings) -> Iterator[Servers]:
    """The three servers; they end with the context."""
    with ExitStack() as stack:
        yield Servers(folder, settings, stack)


def connect_raw(server: MySQLServer, **options: Any) -> Connection:
    """Connect as root; each byte of a statement and of a result is one character, whatever it means."""
    connection = server.connect(charset="utf8mb4", **options)
    connection.encoding = "latin-1"
    return connection


def databases(connection: Connection) -> list[str]:
    """Names of all databases that are not the server's own, sorted."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        return sorted(name for (name,) in cursor.fetchall() if name not in SYSTEM)


def _variables(server: MySQLServer) -> dict[str, str]:
    return dict(server.execute("SELECT variable_name, variable_value FROM performance_schema.global_variables"))


def _literal(value: str) -> str:
    if re.fullmatch(r"-?\d+(\.\d+)?", value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _version(server: MySQLServer) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", server.value("SELECT VERSION()"))[:2])
