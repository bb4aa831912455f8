"""Which databases take part in replication."""

from __future__ import annotations

from collections.abc import Iterable

from shared.profile import Filters

#: MySQL's own databases; nothing in them is ever replicated
SYSTEM_DATABASES = frozenset({"mysql", "sys", "information_schema", "performance_schema"})


class DatabaseFilter:
    """One rule for both programs: system databases never, then exactly what the profile names."""

    def __init__(self, filters: Filters, system_database: str = "fluvio_cdc") -> None:
        """`system_database` is this system's own, on a leader that is itself a follower."""
        self._include = None if filters.include_dbs is None else frozenset(filters.include_dbs)
        self._exclude = frozenset(filters.exclude_dbs or ()) | SYSTEM_DATABASES | {system_database}

    @property
    def includes_unknown(self) -> bool:
        """Whether a database that nobody named takes part."""
        return self._include is None

    def __contains__(self, database: object) -> bool:
        if database in self._exclude:
            return False
        return self._include is None or database in self._include

    def split(self, databases: Iterable[str]) -> tuple[list[str], list[str]]:
        """The databases that take part, and those that do not."""
        inside: list[str] = []
        outside: list[str] = []
        for database in databases:
            (inside if database in self else outside).append(database)
        return inside, outside
