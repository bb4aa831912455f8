"""Says what a copy is of: everything the filters take, some tables, or one database that is added."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from cdc_consumer.parity.model import TableName
from shared.errors import ProfileError
from shared.filters import DatabaseFilter


@dataclass(frozen=True, slots=True)
class CopyScope:
    """Names some tables, or a database; neither of a copy of everything."""

    tables: tuple[TableName, ...] = ()
    database: str = ""

    @property
    def partial(self) -> bool:
        """Tell whether the follower has all else already."""
        return bool(self.tables or self.database)

    @property
    def kept(self) -> tuple[TableName, ...]:
        """Return what the state on the follower keeps of it: a database is a table without a name."""
        return (TableName(self.database, ""),) if self.database else self.tables

    @property
    def option(self) -> str:
        """Return the option that names it."""
        if self.database:
            return f"--add {self.database}"
        return f"--tables {','.join(map(str, self.tables))}" if self.tables else "neither --tables nor --add"

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return what names its tables to an audit."""
        return (f"{self.database}.*",) if self.database else tuple(map(str, self.tables))

    def takes(self, name: TableName) -> bool:
        """Tell whether a table is part of it."""
        return not self.partial or name.database == self.database or name in self.tables

    def check(self, databases: DatabaseFilter, method: str) -> None:
        """Raise ProfileError where the filters leave out what it names, or the method takes all there is."""
        if self.partial and method == "clone":
            raise ProfileError(f'{self.option} needs method = "rows" in [copy]: a clone is of the whole server')
        for name in self.tables:
            if not databases.takes(*name):
                raise ProfileError(f"--tables names {name}, which [filters] leaves out")
        if self.database and self.database not in databases:
            raise ProfileError(
                f"--add names {self.database}, which [filters] leaves out: name it there, and in the profiles of"
                " cdc-producer, which must run with it first, and of cdc-consumer"
            )


def scope_of(tables: Sequence[str], database: str) -> CopyScope:
    """Return what `--tables` (each some names between commas) and `--add` name. Raises ProfileError."""
    names = [name for each in tables for name in each.split(",")]
    for name in names:
        if not all(name.partition(".")[::2]):
            raise ProfileError(f"--tables takes names like flvDb.pet, not {name!r:.60}")
    found = dict.fromkeys(TableName(*name.split(".", 1)) for name in names)
    return CopyScope(tuple(sorted(found)), database)


def scope_from(kept: Sequence[TableName]) -> CopyScope:
    """Return the scope that a copy on the follower was begun with, see `kept`."""
    if kept and not kept[0].table:
        return CopyScope(database=kept[0].database)
    return CopyScope(tuple(sorted(kept)))


def built(name: TableName, system_database: str, topic: str) -> TableName:
    """Return where a table is made that takes the place of another one when it is whole."""
    told = "\0".join((topic, *name))
    return TableName(system_database, f"copy_{hashlib.sha256(told.encode()).hexdigest()[:32]}")
