"""Runs a script's sessions on the leader, one statement after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType

from pymysql.err import MySQLError, OperationalError

from docker.local.mysql_servers import MySQLServer
from shared.events import Position
from shared.mysql import Connection
from trial.script import Step
from trial.servers import connect_raw

#: seconds for one statement
PATIENCE = 10
#: statements that end or rewire a server, hide from the binlog or wait for nothing
REFUSED = re.compile(
    rb"""\s*(/\*.*?\*/\s*)*(
        (shutdown|restart|kill|clone|purge|reset|change\s+(master|replication)|(start|stop)\s+(slave|replica|group_repl))\b
      | (install|uninstall)\s | show\s+binlog\s+events | alter\s+instance | lock\s+instance | handler\s
      | set\s.*\b(sql_log_bin|persist(_only)?\b|super_read_only|offline_mode|read_only|innodb_fast_shutdown
                 |binlog_row_metadata|max_connections|log_error_\w+|require_secure_transport|server_id|ssl_\w+|tls_\w+
                 |gtid_purged|admin_\w+|debug\w*|port)
      | select\s.*\b(sleep|benchmark|get_lock|wait_for_executed_gtid_set|source_pos_wait|master_pos_wait)\s*\(
      | .*\bmysql\.(user|db|tables_priv|global_grants)\b
    )""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)


@dataclass(slots=True)
class Played:
    """What became of each step of a script; the lists are as long as its steps."""

    #: "" for a statement that the leader ran, else what it said
    errors: list[str] = field(default_factory=list)
    #: the end of the leader's binlog after each step
    ends: list[Position] = field(default_factory=list)

    def step_at(self, position: Position) -> int | None:
        """Index of the step that wrote what is at this place of the binlog; None when none did."""
        return next((index for index, end in enumerate(self.ends) if position < end), None)


def play(leader: MySQLServer, steps: Sequence[Step]) -> Played:
    """Run all steps; a statement that fails has failed on the leader alone, and nothing of it is replicated."""
    played = Played()
    with leader.connect(read_timeout=PATIENCE) as watch, _Sessions(leader) as sessions:
        for step in steps:
            played.errors.append(sessions.run(step))
            with watch.cursor() as cursor:
                cursor.execute("SHOW BINARY LOG STATUS")
                file, offset, *_ = cursor.fetchone() or ("binlog.0", 0)
            played.ends.append(Position(file, offset))
    return played


class _Sessions:
    """Connections by the names a script gives them; they open when first used."""

    def __init__(self, leader: MySQLServer) -> None:
        self._leader = leader
        self._open: dict[str, Connection] = {}

    def run(self, step: Step) -> str:
        if step.sql is None:
            self._close(step.session)
            return ""
        if REFUSED.match(step.sql):
            return "not run"
        try:
            connection = self._open.get(step.session) or self._connect(step.session)
            with connection.cursor() as cursor:
                cursor.execute(step.sql)
                while cursor.nextset():
                    pass
        except (OperationalError, OSError) as error:
            if isinstance(error, MySQLError) and error.args[0] not in (2006, 2013, 4031):
                return str(error)
            self._end(step.session)
            return str(error)
        except MySQLError as error:
            return str(error)
        return ""

    def _connect(self, name: str) -> Connection:
        connection = connect_raw(self._leader, read_timeout=PATIENCE, use_unicode=False, conv={}, local_infile=True)
        with suppress(MySQLError):
            connection.select_db("test")
        self._open[name] = connection
        return connection

    def _end(self, name: str) -> None:
        """A statement that does not come back is ended, with all that its session holds."""
        connection = self._open.pop(name, None)
        if connection is not None:
            with suppress(MySQLError):
                self._leader.execute(f"KILL {connection.thread_id()}")  # type: ignore[no-untyped-call]

    def _close(self, name: str) -> None:
        connection = self._open.pop(name, None)
        if connection is not None:
            with suppress(MySQLError, OSError):
                connection.close()

    def __enter__(self) -> _Sessions:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for name in list(self._open):
            self._close(name)
