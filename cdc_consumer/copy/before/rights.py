"""Refuses accounts that would stop a copy later: what one lacks is told before the first row is copied."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.parity.schema.privileges import missing_grants
from cdc_consumer.parity.schema.records import ObjectKind, Schema
from cdc_consumer.parity.servers.pair import LeaderConnection
from cdc_consumer.sql import literals
from shared.errors import FollowerError, LeaderError
from shared.mysql import MySQLError, server_version, variables

#: on each database of the follower: what rows need, and what each kind of object does besides
ROWS = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "INDEX", "REFERENCES")
OBJECTS: dict[ObjectKind, tuple[str, ...]] = {
    "VIEW": ("CREATE VIEW", "SHOW VIEW"),
    "PROCEDURE": ("CREATE ROUTINE", "ALTER ROUTINE"),
    "FUNCTION": ("CREATE ROUTINE", "ALTER ROUTINE"),
    "EVENT": ("EVENT",),
}
#: from here on a definer that does not exist needs a privilege of its own
NONEXISTENT_DEFINERS = (8, 2)
_DEFINER = re.compile(r"\bDEFINER\s*=\s*`((?:[^`]|``)*)`@`((?:[^`]|``)*)`")


def refuse_leaders_account(leader: LeaderConnection, databases: Iterable[str], *, gtids: bool, locks: bool) -> None:
    """Raise LeaderError naming each GRANT that is missing; that it sees all is known.

    `gtids`: the copy reads the leader's binlog for them; `locks`: it may have to lock a table against writes.
    """
    on = dict.fromkeys(databases, ("LOCK TABLES",)) if locks else {}
    anywhere = [("REPLICATION SLAVE",)] if gtids else []
    missing = leader.use(lambda connection: missing_grants(connection, on, anywhere))
    if missing:
        raise LeaderError(f"the account on the {leader} lacks what the copy needs; run on it: {'; '.join(missing)}")


def refuse_followers_account(writer: Writer, schema: Schema) -> None:
    """Raise FollowerError naming each GRANT that is missing for what the leader has."""
    connection = writer.connection
    made = [record for record in schema.objects.values() if record.kind != "TRIGGER"]
    on = {
        name: (
            *ROWS,
            *dict.fromkeys(right for each in made if each.name.database == name for right in _rights(each.kind)),
        )
        for name in schema.databases
    }
    definers = {found for each in made if (found := _definer(each.definition))}
    missing = missing_grants(connection, on, list(_for_definers(writer, definers)))
    if missing:
        where = f"the account on the follower {connection.host}:{connection.port}"
        raise FollowerError(f"{where} lacks what the copy needs; run on it: {'; '.join(missing)}")
    if any(each.kind == "FUNCTION" for each in made):
        _refuse_functions(writer)


def _rights(kind: ObjectKind) -> tuple[str, ...]:
    return OBJECTS.get(kind, ())


def _definer(definition: str) -> tuple[str, str] | None:
    found = _DEFINER.search(definition)
    return None if found is None else (found[1].replace("``", "`"), found[2].replace("``", "`"))


def _for_definers(writer: Writer, definers: Collection[tuple[str, str]]) -> Iterable[tuple[str, ...]]:
    """Yield what the account needs, on the server, to make objects with these definers: one of each."""
    ((account,),) = writer.rows("SELECT CURRENT_USER()")
    others = {each for each in definers if "@".join(each) != account}
    if not others:
        return
    new = server_version(writer.connection) >= NONEXISTENT_DEFINERS
    yield ("SET_ANY_DEFINER", "SUPER") if new else ("SET_USER_ID", "SUPER")
    accounts = ", ".join(f"({literals.text(user)}, {literals.text(host)})" for user, host in others)
    try:
        existing = set(writer.rows(f"SELECT User, Host FROM mysql.user WHERE (User, Host) IN ({accounts})"))
        system = writer.rows(
            f"SELECT 1 FROM mysql.global_grants WHERE (USER, HOST) IN ({accounts}) AND PRIV = 'SYSTEM_USER' LIMIT 1"
        )
    except MySQLError:
        return  # who may not look there is told when the object is made
    if new and others - existing:
        yield ("ALLOW_NONEXISTENT_DEFINER",)
    if system:
        yield ("SYSTEM_USER",)


def _refuse_functions(writer: Writer) -> None:
    """Raise FollowerError where the server, whoever asks, takes functions with a privilege alone."""
    found = variables(writer.connection, "log_bin", "log_bin_trust_function_creators")
    if found.get("log_bin") == "ON" and found.get("log_bin_trust_function_creators") == "OFF":
        missing = missing_grants(writer.connection, {}, [("SUPER",)])
        if missing:
            raise FollowerError(
                "the leader has functions, and the follower takes them with SUPER alone; run on it: SET PERSIST"
                " log_bin_trust_function_creators = ON"
            )
