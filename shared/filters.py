"""Decides which databases and tables take part in replication."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

from shared.errors import ProfileError
from shared.profile import Filters
from shared.profile_table import check_database_name
from shared.statements.heads import Statement

#: MySQL's own databases; nothing in them is ever replicated
SYSTEM_DATABASES = frozenset({"mysql", "sys", "information_schema", "performance_schema"})
#: this system's own database on a follower, unless the profile names another
SYSTEM_DATABASE = "fluvio_cdc"


class TablePatterns:
    """Matches tables with patterns of `database.table`, in which `*` stands for any characters, or none."""

    def __init__(self, patterns: Iterable[str]) -> None:
        """Take patterns that a profile has checked: the first dot of each stands between database and table."""
        #: by each its two sides, cut at the stars
        self._patterns = {pattern: [side.split("*") for side in pattern.split(".", 1)] for pattern in patterns}

    def match(self, database: str, table: str) -> bool:
        """Tell whether any pattern is this table's."""
        return any(_is_of(sides, database, table) for sides in self._patterns.values())

    def unmet(self, tables: Collection[tuple[str, str]]) -> list[str]:
        """Return the patterns that are no table's of these (database and name)."""
        return [
            pattern for pattern, sides in self._patterns.items() if not any(_is_of(sides, *table) for table in tables)
        ]


def _is_of(sides: list[list[str]], database: str, table: str) -> bool:
    """Tell whether a pattern, its two sides cut at the stars, is this table's."""
    databases, tables = sides
    return _fits(databases, database) and _fits(tables, table)


def _fits(pieces: list[str], name: str) -> bool:
    """Tell whether the name is these pieces with anything between; one look at the name for each, whatever it is."""
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return name == first
    end = len(name) - len(last)
    at = len(first)
    if not (name.startswith(first) and name.endswith(last)) or end < at:
        return False
    for piece in pieces[1:-1]:
        at = name.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


class DatabaseFilter:
    """Applies one rule in all programs: system databases never, then exactly what the profile names."""

    def __init__(self, filters: Filters, system_database: str = SYSTEM_DATABASE) -> None:
        """`system_database` is this system's own, on a leader that is itself a follower."""
        keys = dataclasses.asdict(filters)
        #: what it was made of: the keys that a profile has, each with its names
        self.told: dict[str, list[str]] = {key: list(names) for key, names in keys.items() if names is not None}
        self._include = None if filters.include_dbs is None else frozenset(filters.include_dbs)
        self._exclude = frozenset(filters.exclude_dbs or ()) | SYSTEM_DATABASES | {system_database}
        self._include_tables = None if filters.include_tables is None else TablePatterns(filters.include_tables)
        self._exclude_tables = None if filters.exclude_tables is None else TablePatterns(filters.exclude_tables)
        #: whether all tables of a database that takes part do so too
        self.whole_databases = self._include_tables is None and self._exclude_tables is None

    def unmet(
        self, databases: Iterable[str], tables: Collection[tuple[str, str]], *, exclusions: bool = False
    ) -> dict[str, str]:
        """Return by each key of the profile what it names, of which there is nothing among these.

        With `exclusions` also what it leaves out, where that can be among these.
        """
        found = {"include_dbs": sorted((self._include or frozenset()) - frozenset(databases))}
        excluded = self._exclude_tables if exclusions else None
        for key, patterns in (("include_tables", self._include_tables), ("exclude_tables", excluded)):
            found[key] = [] if patterns is None else patterns.unmet(tables)
        return {key: ", ".join(names) for key, names in found.items() if names}

    def __contains__(self, database: object) -> bool:
        if database in self._exclude:
            return False
        return self._include is None or database in self._include

    def takes(self, database: str, table: str) -> bool:
        """Tell whether a table or view takes part; its database has to as well."""
        if database not in self or (self._exclude_tables is not None and self._exclude_tables.match(database, table)):
            return False
        return self._include_tables is None or self._include_tables.match(database, table)

    def split_tables(self, tables: Iterable[tuple[str, str]]) -> tuple[list[str], list[str]]:
        """Return those of `tables` (database and name) that take part, and those that do not, as `database.table`.

        Each stands there once.
        """
        inside: list[str] = []
        outside: list[str] = []
        for database, table in dict.fromkeys(tables):
            (inside if self.takes(database, table) else outside).append(f"{database}.{table}")
        return inside, outside

    def takes_statement(self, statement: Statement) -> tuple[bool, str]:
        """Tell whether the tables that a statement writes take part, and why it is refused, "" where it is not.

        Its names are as the server stores them (`folded`). True of a statement that writes no table.
        """
        if self.whole_databases:
            return True, ""
        if statement.drops_database:
            return False, "drops tables that the filter leaves out with those that it includes"
        inside, outside = self.split_tables(statement.tables)
        if not inside or not outside:
            return not outside, ""
        return False, (
            f"writes {', '.join(inside)}, which the filter includes, and {', '.join(outside)}, which it does not;"
            " include all of them or none"
        )

    def split(self, databases: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the databases that take part, and those that do not."""
        inside: list[str] = []
        outside: list[str] = []
        for database in databases:
            (inside if database in self else outside).append(database)
        return inside, outside


def check_filters(filters: Filters, system_database: str = SYSTEM_DATABASE) -> None:
    """Raise ProfileError for what is included by name and yet never replicated, and for patterns of no table."""
    never = SYSTEM_DATABASES | {system_database}
    named = sorted(never & set(filters.include_dbs or ()))
    if named:
        raise ProfileError(f"filters.include_dbs names {', '.join(named)}, which is never replicated")
    never |= set(filters.exclude_dbs or ())
    for key, patterns in (("include_tables", filters.include_tables), ("exclude_tables", filters.exclude_tables)):
        for pattern in patterns or ():
            if not _databases_of(pattern, filters.include_dbs) - never:
                raise ProfileError(
                    f"filters.{key} has {pattern}, which is no table's: no database that takes part has that name (the"
                    " case of letters counts)"
                )
    excluded = TablePatterns(filters.exclude_tables or ())
    included = filters.include_tables or ("*.*",)
    if all(
        excluded.match(database, pattern.partition(".")[2])
        for pattern in included
        for database in _databases_of(pattern, filters.include_dbs) - never
    ):
        raise ProfileError("filters.exclude_tables leaves out every table that the other filters let in")


def _databases_of(pattern: str, include: tuple[str, ...] | None) -> set[str]:
    """The databases of `include` that may have a table of this pattern; without, what the pattern says of them.

    What holds of a pattern as if it were a name, stars and all, holds of all names that it fits.
    """
    database = pattern.partition(".")[0]
    return {database} if include is None else {name for name in include if _fits(database.split("*"), name)}


def check_system_database(database: str, name: str) -> None:
    """Raise ProfileError when this cannot be the system's own database; `name` is the key that says so."""
    check_database_name(database, name)
    if database in SYSTEM_DATABASES:
        raise ProfileError(f"{name} must be a database of its own, not MySQL's {database}")
