"""Decides which databases take part in replication."""

from __future__ import annotations

from collections.abc import Iterable

from shared.errors import ProfileError
from shared.profile import Filters
from shared.profile_table import check_database_name

#: MySQL's own databases; nothing in them is ever replicated
SYSTEM_DATABASES = frozenset({"mysql", "sys", "information_schema", "performance_schema"})
#: this system's own database on a follower, unless the profile names another
SYSTEM_DATABASE = "fluvio_cdc"


class DatabaseFilter:
    """Applies one rule in all programs: system databases never, then exactly what the profile names."""

    def __init__(self, filters: Filters, system_database: str = SYSTEM_DATABASE) -> None:
        """`system_database` is this system's own, on a leader that is itself a follower."""
        self._include = None if filters.include_dbs is None else frozenset(filters.include_dbs)
        self._exclude = frozenset(filters.exclude_dbs or ()) | SYSTEM_DATABASES | {system_database}

    def missing_from(self, existing: Iterable[str]) -> list[str]:
        """Return the databases that were included by name and are not among the existing ones, in order."""
        return sorted((self._include or frozenset()) - frozenset(existing))

    def __contains__(self, database: object) -> bool:
        if database in self._exclude:
            return False
        return self._include is None or database in self._include

    def split(self, databases: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the databases that take part, and those that do not."""
        inside: list[str] = []
        outside: list[str] = []
        for database in databases:
            (inside if database in self else outside).append(database)
        return inside, outside


def check_filters(filters: Filters, system_database: str = SYSTEM_DATABASE) -> None:
    """Raise ProfileError for a database that is included by name and yet never replicated."""
    never = sorted((SYSTEM_DATABASES | {system_database}) & set(filters.include_dbs or ()))
    if never:
        raise ProfileError(f"filters.include_dbs names {', '.join(never)}, which is never replicated")


def check_system_database(database: str, name: str) -> None:
    """Raise ProfileError when this cannot be the system's own database; `name` is the key that says so."""
    check_database_name(database, name)
    if database in SYSTEM_DATABASES:
        raise ProfileError(f"{name} must be a database of its own, not MySQL's {database}")
