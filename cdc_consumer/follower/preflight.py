"""Checks the follower before anything is written to it; each refusal says what to run."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cdc_consumer.sql.session import SWITCHED_OFF
from shared.errors import FollowerError
from shared.filters import DatabaseFilter
from shared.mysql import Connection, MySQLError, error_number, quote_account, rows, variables

#: MySQL's number for a missing privilege
ACCESS_DENIED = 1227
_VERSION = re.compile(r"\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Facts:
    """Holds what the consumer needs to know of the server it writes to."""

    version: str
    #: server_uuid
    uuid: str
    #: transactions run under the leader's GTIDs
    gtids: bool
    #: writes of our own must be kept out of the binlog, or they would be GTIDs the leader does not know
    hides_own_writes: bool
    #: bytes of one packet at most
    max_packet: int
    lower_case_table_names: int
    #: name of a collation's character set, by the collation's id
    charsets: Mapping[int, str]

    @property
    def number(self) -> int:
        """Return the version as MySQL writes it in executed comments: 90704 for 9.7.4."""
        major, minor, patch = (int(part) for part in _VERSION.findall(self.version)[:3])
        return major * 10_000 + minor * 100 + patch

    @property
    def folds(self) -> bool:
        """Tell whether the server takes names in any case of letters for the same."""
        return self.lower_case_table_names != 0


def inspect(connection: Connection, databases: DatabaseFilter, leaders_gtids: bool = True) -> Facts:
    """Look at the server; `leaders_gtids` asks for the leader's GTIDs where it has GTIDs.

    Raises FollowerError when it cannot be a follower.
    """
    found = variables(
        connection, "version", "version_comment", "server_uuid", "gtid_mode", "log_bin", "binlog_format",
        "super_read_only", "event_scheduler", "lower_case_table_names",
    )  # fmt: skip
    _refuse_version(f"{found['version']} {found.get('version_comment', '')}")
    if found.get("super_read_only") == "ON":
        raise FollowerError("the follower is super_read_only; run on it: SET GLOBAL super_read_only = OFF")
    if found["log_bin"] == "ON" and found.get("binlog_format", "ROW") != "ROW":
        raise FollowerError(
            f"binlog_format of the follower must be ROW, not {found['binlog_format']};"
            " run on it: SET PERSIST binlog_format = 'ROW'"
        )
    gtids = leaders_gtids and found.get("gtid_mode") in ("ON", "ON_PERMISSIVE")
    probe_privileges(connection, gtids)
    if found.get("event_scheduler") == "ON":
        _refuse_events(connection, databases)
    ((packet,),) = rows(connection, "SELECT @@session.max_allowed_packet")
    charsets = dict(rows(connection, "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS"))
    folded = int(found["lower_case_table_names"])
    hides = gtids and found["log_bin"] == "ON"
    return Facts(found["version"], found["server_uuid"], gtids, hides, packet, folded, charsets)


def _refuse_version(version: str) -> None:
    major = version.split(".")[0]
    if "mariadb" in version.lower() or not major.isdigit() or int(major) < 8:
        raise FollowerError(f"the follower must be MySQL 8.0 or later, not {version}")


def probe_privileges(connection: Connection, gtids: bool) -> None:
    """Try what will be needed, each in a way that changes nothing."""
    probe(connection, "SET SESSION sql_log_bin = 1", "SESSION_VARIABLES_ADMIN")
    if gtids:
        probe(connection, "SET SESSION gtid_next = 'AUTOMATIC'", "REPLICATION_APPLIER")
    else:
        # without GTIDs the identity of InnoDB's tables tells whether an interrupted statement ran
        probe(connection, "SELECT 1 FROM information_schema.INNODB_TABLES LIMIT 1", "PROCESS")


def probe_purging(connection: Connection) -> None:
    """Raise FollowerError unless this account may tell the server which transactions count as executed."""
    with contextlib.suppress(MySQLError):
        # no server takes this value, but it looks at the privilege first
        probe(connection, "SET GLOBAL gtid_purged = '?'", "SYSTEM_VARIABLES_ADMIN")


def probe(connection: Connection, sql: str, privilege: str) -> None:
    """Run a statement that needs a privilege. Raises FollowerError when this account does not have it."""
    try:
        rows(connection, sql)
    except MySQLError as error:
        if error_number(error) != ACCESS_DENIED:
            raise
        ((account,),) = rows(connection, "SELECT CURRENT_USER()")
        user = quote_account(*account.rsplit("@", 1))
        where = connection.unix_socket or f"{connection.host}:{connection.port}"
        raise FollowerError(
            f"user {user} of {where} lacks the privilege {privilege}; run on it: GRANT {privilege} ON *.* TO {user}"
        ) from None


def _refuse_events(connection: Connection, databases: DatabaseFilter) -> None:
    enabled = "SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS WHERE STATUS = 'ENABLED'"
    for database, name in rows(connection, enabled):
        if database in databases:
            raise events_would_run(f"{database}.{name}")


def events_would_run(event: str) -> FollowerError:
    """Explain an event that would run on both servers."""
    return FollowerError(
        f"event {event} would run on the follower as well as on the leader;"
        " run on the follower: SET PERSIST event_scheduler = OFF"
    )


def session_settings(connection: Connection, lock_wait_seconds: int) -> dict[str, str]:
    """Return variables set once for the connection, as SQL.

    Only those whose value differs where a privilege is needed.
    """
    settings = {
        "lock_wait_timeout": str(lock_wait_seconds),
        "innodb_lock_wait_timeout": str(lock_wait_seconds),
        "wait_timeout": "31536000",
        "transaction_isolation": "'READ-COMMITTED'",
        "sql_safe_updates": "0",
    }
    # of the session: an account's init_connect may have set them
    marks = ", ".join(["%s"] * len(SWITCHED_OFF))
    for name, value in rows(connection, f"SHOW VARIABLES WHERE Variable_name IN ({marks})", SWITCHED_OFF):
        if value != "OFF":
            settings[name] = "0"
    return settings
