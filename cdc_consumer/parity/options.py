"""Holds what one run of the audit was asked to do, besides its profile."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Holds the options of the command line."""

    #: "db.table" with * and ?; () for all
    tables: tuple[str, ...] = ()
    #: SQL that narrows the rows of every table, "" for all
    where: str = ""
    #: only rows that events from this sequence on have written; None for all
    since: int | None = None
    #: name or folder of a run to go on with
    resume: str | None = None
    #: make the follower equal, and look again
    repair: bool = False
    #: write values of rows into the report, not only their hashes
    values: bool = True
    #: also write the differences as a Parquet file
    parquet: bool = False
    #: cores of this machine that Spark uses; None for all
    cores: int | None = None
    #: what the filters name may be missing on both servers, as a copy has told before it began
    unmet: bool = False

    def shown(self) -> dict[str, str]:
        """Return those that narrowed the run."""
        told = {"tables": ", ".join(self.tables), "where": self.where}
        told["since"] = "" if self.since is None else str(self.since)
        return {name: text for name, text in told.items() if text}
