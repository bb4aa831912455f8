"""Says why a follower cannot be a clone of the leader, before anything is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cdc_consumer.copy.profile import CopyProfile
from cdc_consumer.follower.preflight import probe_privileges
from cdc_consumer.sql import literals
from shared.errors import CdcError, FollowerError, LeaderError
from shared.filters import SYSTEM_DATABASES, DatabaseFilter
from shared.mysql import Connection, MySQLError, connect, error_text, rows, variables

#: what both servers must have alike: MySQL refuses some of it itself, and the rest would keep the clone from starting
_ALIKE = (
    "version", "version_compile_os", "version_compile_machine", "innodb_page_size", "innodb_data_file_path",
    "lower_case_table_names", "character_set_server", "collation_server",
)  # fmt: skip
_OTHERWISE = 'or set method = "rows" in [copy]'
_PLUGIN = "INSTALL PLUGIN clone SONAME 'mysql_clone.so'"


def refuse_clone(
    profile: CopyProfile, databases: DatabaseFilter, leader: Connection, follower: Connection, *, gtids: bool
) -> None:
    """Raise CdcError unless the whole of the leader may become the follower's; `gtids`: the consumer will use them."""
    _refuse_filter(profile, databases, leader)
    _refuse_engines(leader)
    theirs, ours = (variables(connection, *_ALIKE) for connection in (leader, follower))
    for name in _ALIKE:
        if theirs.get(name) != ours.get(name):
            raise FollowerError(
                f"{name} of the follower is {ours.get(name)}, and of the leader {theirs.get(name)}: a clone needs them"
                f" alike; change that, {_OTHERWISE}"
            )
    for role, connection in (("leader", leader), ("follower", follower)):
        _refuse_without_plugin(role, connection)
    _refuse_events(leader, follower)
    _refuse_unverified(profile, follower)
    _refuse_accounts(profile, gtids)


def _refuse_filter(profile: CopyProfile, databases: DatabaseFilter, leader: Connection) -> None:
    system = profile.follower.system_database
    names = [name for (name,) in rows(leader, "SHOW DATABASES") if name not in SYSTEM_DATABASES]
    if system in names:
        raise LeaderError(
            f"the leader has a database {system}, so it is a follower itself, and a clone would take its position for"
            f" its own; name another system_database in [follower], {_OTHERWISE}"
        )
    outside = [name for name in names if name not in databases]
    if outside or not databases.whole_databases:
        what = f"database {outside[0]}" if outside else "tables"
        raise FollowerError(
            f"the filters leave out {what} of the leader, and a clone is of all it has; take all databases (exclude_dbs"
            f" = []), {_OTHERWISE}"
        )


def _refuse_engines(leader: Connection) -> None:
    system = ", ".join(map(literals.text, sorted(SYSTEM_DATABASES)))
    found = rows(
        leader,
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE'"
        f" AND ENGINE <> 'InnoDB' AND TABLE_SCHEMA NOT IN ({system}) LIMIT 1",
    )
    for database, table, engine in found:
        raise LeaderError(
            f"table {database}.{table} of the leader is stored by {engine}, and a clone has the rows of InnoDB alone;"
            " run there: ALTER TABLE ... ENGINE=InnoDB"
        )


def _refuse_without_plugin(role: str, connection: Connection) -> None:
    status = rows(connection, "SELECT PLUGIN_STATUS FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'clone'")
    if status != [("ACTIVE",)]:
        raise FollowerError(f"the {role} has no plugin to clone with; run on it: {_PLUGIN}; {_OTHERWISE}")


def _refuse_events(leader: Connection, follower: Connection) -> None:
    """Refuse a follower that would run the leader's events once it has restarted."""
    enabled = "SELECT EVENT_SCHEMA, EVENT_NAME FROM information_schema.EVENTS WHERE STATUS = 'ENABLED' LIMIT 1"
    if not (found := rows(leader, enabled)):
        return
    ((source,),) = rows(
        follower,
        "SELECT VARIABLE_SOURCE FROM performance_schema.variables_info WHERE VARIABLE_NAME = 'event_scheduler'",
    )
    persisted: Mapping[str, str] = dict(
        rows(follower, "SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.persisted_variables")
    )
    now = variables(follower, "event_scheduler")["event_scheduler"]
    after = persisted.get("event_scheduler", now if source != "DYNAMIC" else "ON")
    if "ON" in (now, after):
        raise FollowerError(
            f"event {'.'.join(found[0])} of the leader would run on the follower once it is a clone and has restarted;"
            " run on the follower: SET PERSIST event_scheduler = OFF"
        )


def _refuse_unverified(profile: CopyProfile, follower: Connection) -> None:
    tls = profile.leader.tls
    if tls is not None and tls.verified and not variables(follower, "clone_ssl_ca").get("clone_ssl_ca"):
        raise FollowerError(
            f'the leader is to be verified (mode = "{tls.mode}" in [leader.tls]), and the follower, which connects to'
            " it for a clone, has no authority to do so; run on it: SET PERSIST clone_ssl_ca = '...'"
        )


def _refuse_accounts(profile: CopyProfile, gtids: bool) -> None:
    """Refuse accounts of the leader with which nobody could go on here: they are the follower's after a clone."""
    own, there = profile.follower, profile.leader
    address = replace(there, user=own.user, password=own.password, password_env=own.password_env)
    words = f"a clone has the leader's accounts, and user {own.user} of [follower] cannot go on with that one of them"
    advice = "make it there as the follower has it, with the consumer's grants"
    try:
        connection = connect(address)
    except (MySQLError, OSError, RuntimeError) as error:
        raise FollowerError(f"{words}: {error_text(error)}; {advice}") from None
    try:
        probe_privileges(connection, gtids)
    except CdcError as error:
        raise FollowerError(f"{words}; {advice}") from error
    finally:
        connection.close()
