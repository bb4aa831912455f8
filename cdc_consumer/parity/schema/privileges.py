"""Refuses an account that would not see everything: information_schema hides what one has no privilege on."""

from __future__ import annotations

import re
import secrets
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cdc_consumer.sql import literals
from shared.errors import AuditError
from shared.mysql import Connection, quote_name, rows, variables

#: on every database; on a part of it only they show that part and hide the rest
NEEDED = ("SELECT", "SHOW VIEW", "TRIGGER", "EVENT")
#: on the server, one of them; without it the bodies of routines are hidden, and routines too
ROUTINES = ("SHOW_ROUTINE", "SELECT")
#: on the server, one of them; without it databases are hidden
DATABASES = ("SHOW DATABASES", "SELECT")

_GRANT = re.compile(r"(?P<verb>GRANT|REVOKE) (?P<privileges>.+?) ON (?P<scope>\*|`(?:[^`]|``)*`)\.\* (?:TO|FROM) ")


#: between two privileges; those that a server adds to MySQL's old ones stand without a space
_COMMA = re.compile(", ?")


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
    # a name nobody thought of: any may be in it
    anywhere = [DATABASES, ROUTINES] if secrets.token_hex() in databases else [ROUTINES]
    missing = missing_grants(connection, dict.fromkeys(names, NEEDED), anywhere)
    if missing:
        raise AuditError(
            f"{_account(connection)} of {connection.host}:{connection.port} does not see all there is to compare;"
            f" run on it: {'; '.join(missing)}"
        )


def missing_grants(
    connection: Connection, on: Mapping[str, Sequence[str]], anywhere: Iterable[Sequence[str]]
) -> list[str]:
    """Return the GRANT statements that an account lacks.

    It needs the privileges `on` each database, and of each of `anywhere` one on the server: the first is named.
    """
    rules = _rules(connection)
    wildcards = variables(connection, "partial_revokes").get("partial_revokes") != "ON"
    missing = [f"{each[0]} ON *.*" for each in anywhere if not _has_one(rules, each)]
    for name, needed in on.items():
        lacking = _lacking(rules, name, wildcards, needed)
        if lacking:
            missing.append(f"{', '.join(lacking)} ON {quote_name(name)}.*")
    return [f"GRANT {each} TO {_account(connection)}" for each in missing]


def _account(connection: Connection) -> str:
    ((account,),) = rows(connection, "SELECT CURRENT_USER()")
    return "@".join(map(literals.text, account.rsplit("@", 1)))


def _rules(connection: Connection) -> list[_Rule]:
    """What the account has, the roles of this session included; nothing about single tables and routines."""
    ((roles,),) = rows(connection, "SELECT CURRENT_ROLE()")
    using = "" if roles == "NONE" else f" USING {roles}"
    lines = rows(connection, f"SHOW GRANTS FOR CURRENT_USER(){using}")
    found = (_GRANT.match(line) for (line,) in lines)
    return [
        _Rule(
            match["verb"] == "GRANT",
            frozenset(_COMMA.split(match["privileges"])),
            None if match["scope"] == "*" else match["scope"][1:-1].replace("``", "`"),
        )
        for match in found
        if match is not None
    ]


def _lacking(rules: Sequence[_Rule], database: str, wildcards: bool, needed: Sequence[str]) -> list[str]:
    """What is missing on a database; also what will be as soon as a rule of its very name hides those with patterns."""
    named = [rule for rule in rules if rule.gives and rule.names(database)]
    patterns = [rule for rule in rules if wildcards and rule.gives and rule.matches(database)]
    revoked = [rule for rule in rules if not rule.gives and rule.names(database)]

    def has(privilege: str, own: Sequence[_Rule]) -> bool:
        on_server = _has_one(rules, [privilege]) and not any(rule.has(privilege) for rule in revoked)
        # of several MySQL takes only one
        return on_server or (bool(own) and all(rule.has(privilege) for rule in own))

    if all(has(privilege, named or patterns) for privilege in needed):
        return []
    return [privilege for privilege in needed if not has(privilege, named)]


def _has_one(rules: Iterable[_Rule], privileges: Iterable[str]) -> bool:
    """One of these on the server."""
    return any(rule.gives and rule.scope is None and rule.has(privilege) for rule in rules for privilege in privileges)
