"""Refuses an account that would not see everything: information_schema hides what one has no privilege on."""

from __future__ import annotations

import re
import secrets
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from cdc_consumer.sql import literals
from shared.errors import AuditError
from shared.mysql import Connection, quote_name, rows, variables

#: on every database; on a part of it only they show that part and hide the rest
NEEDED = ("SELECT", "SHOW VIEW", "TRIGGER", "EVENT")
#: on the server, one of them; without it the bodies of routines are hidden, and routines too
ROUTINES = frozenset({"SELECT", "SHOW_ROUTINE"})
#: on the server, one of them; without it databases are hidden
DATABASES = frozenset({"SELECT", "SHOW DATABASES"})

_GRANT = re.compile(r"(?P<verb>GRANT|REVOKE) (?P<privileges>.+?) ON (?P<scope>\*|`(?:[^`]|``)*`)\.\* (?:TO|FROM) ")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line of SHOW GRANTS that gives or revokes something on all of a database or of the server."""

    gives: bool
    privileges: frozenset[str]
    #: what it says of the database: a pattern of LIKE, or just a name; None for the server
    scope: str | None

    def has(self, privilege: str) -> bool:
        return privilege in self.privileges or "ALL PRIVILEGES" in self.privileges

    def names(self, database: str) -> bool:
        return self.scope is not None and database in (self.scope, re.sub(r"\\(.)", r"\1", self.scope))

    def matches(self, database: str) -> bool:
        if self.scope is None:
            return False
        parts = re.findall(r"\\.|.", self.scope, re.DOTALL)
        pattern = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)
        return re.fullmatch(pattern, database, re.DOTALL) is not None


def refuse_missing_privileges(connection: Connection, names: Sequence[str], databases: Container[str]) -> None:
    """Check that the account sees all of `names`, and every database in `databases`.

    Raises AuditError naming each GRANT that is missing.
    """
    rules = _rules(connection)
    wildcards = variables(connection, "partial_revokes").get("partial_revokes") != "ON"
    missing: list[str] = []
    if secrets.token_hex() in databases and not _has_one(
        rules, DATABASES
    ):  # a name nobody thought of: any may be in it
        missing.append("SHOW DATABASES ON *.*")
    for name in names:
        lacking = _lacking(rules, name, wildcards)
        if lacking:
            missing.append(f"{', '.join(lacking)} ON {quote_name(name)}.*")
    if not _has_one(rules, ROUTINES):
        missing.append("SHOW_ROUTINE ON *.*")
    if missing:
        ((account,),) = rows(connection, "SELECT CURRENT_USER()")
        user = "@".join(map(literals.text, account.rsplit("@", 1)))
        grants = "; ".join(f"GRANT {each} TO {user}" for each in missing)
        raise AuditError(
            f"{user} of {connection.host}:{connection.port} does not see all there is to compare; run on it: {grants}"
        )


def _rules(connection: Connection) -> list[_Rule]:
    """What the account has, the roles of this session included; nothing about single tables and routines."""
    ((roles,),) = rows(connection, "SELECT CURRENT_ROLE()")
    using = "" if roles == "NONE" else f" USING {roles}"
    lines = rows(connection, f"SHOW GRANTS FOR CURRENT_USER(){using}")
    found = (_GRANT.match(line) for (line,) in lines)
    return [
        _Rule(
            match["verb"] == "GRANT",
            frozenset(match["privileges"].split(", ")),
            None if match["scope"] == "*" else match["scope"][1:-1].replace("``", "`"),
        )
        for match in found
        if match is not None
    ]


def _lacking(rules: Sequence[_Rule], database: str, wildcards: bool) -> list[str]:
    """What is missing on a database; also what will be as soon as a rule of its very name hides those with patterns."""
    named = [rule for rule in rules if rule.gives and rule.names(database)]
    patterns = [rule for rule in rules if wildcards and rule.gives and rule.matches(database)]
    revoked = [rule for rule in rules if not rule.gives and rule.names(database)]

    def has(privilege: str, own: Sequence[_Rule]) -> bool:
        on_server = _has_one(rules, [privilege]) and not any(rule.has(privilege) for rule in revoked)
        # of several MySQL takes only one
        return on_server or (bool(own) and all(rule.has(privilege) for rule in own))

    if all(has(privilege, named or patterns) for privilege in NEEDED):
        return []
    return [privilege for privilege in NEEDED if not has(privilege, named)]


def _has_one(rules: Iterable[_Rule], privileges: Iterable[str]) -> bool:
    """One of these on the server."""
    return any(rule.gives and rule.scope is None and rule.has(privilege) for rule in rules for privilege in privileges)
