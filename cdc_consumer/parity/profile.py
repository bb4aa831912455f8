"""Reads the profile of cdc-parity."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path

from shared.errors import ProfileError
from shared.filters import SYSTEM_DATABASE, check_filters, check_system_database
from shared.profile import Database, Filters, TopicSettings
from shared.profile_table import ProfileTable, expand, load

#: two times of day
WINDOW = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])")
#: no limit is larger: MySQL counts milliseconds of a statement in 32 bits
LARGEST_LIMIT = 1_000_000_000
LONGEST_SECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class AuditedFollower(Database):
    """Says where the follower is that is compared."""

    #: the system's own database there; never compared
    system_database: str = SYSTEM_DATABASE

    def check(self, name: str) -> None:
        Database.check(self, name)
        check_system_database(self.system_database, f"{name}system_database")


@dataclass(frozen=True, slots=True)
class Report(ProfileTable):
    """Says where the audit writes what it found."""

    #: a folder; each run makes a folder of its own in it
    path: str = "~/mysql-cdc/reports"

    def check(self, name: str) -> None:
        expand(self.path, f"{name}path")


@dataclass(frozen=True, slots=True)
class Limits(ProfileTable):
    """Limits what the audit may ask of the two servers."""

    #: connections that read rows at the same time
    leader_connections: int = 8
    follower_connections: int = 8
    #: the audit pauses while the leader runs more threads than these
    leader_threads: int = 40
    #: the audit pauses while the follower is further behind; seconds
    lag_seconds: float = 60.0
    #: rows compared in a second, in all; without it as fast as the servers answer
    rows_per_second: int | None = None
    #: time of day in which rows are read, "22:00-06:00" in local time; without it always
    window: str | None = None
    #: seconds the follower may take to reach a position of the leader before its rows count as undecided
    fence_seconds: float = 60.0
    #: seconds one statement may take
    statement_seconds: float = 600.0

    def check(self, name: str) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, str | None):
                continue
            most = LONGEST_SECONDS if field.name.endswith("_seconds") else LARGEST_LIMIT
            if not 0 < value <= most:
                raise ProfileError(f"{name}{field.name} must be positive and at most {most}, not {value!r:.60}")
        if self.window is not None and not WINDOW.fullmatch(self.window):
            raise ProfileError(f'{name}window must look like "22:00-06:00", not {self.window!r:.60}')


@dataclass(frozen=True, slots=True)
class ParityProfile(ProfileTable):
    """Holds all that cdc-parity is told."""

    leader: Database
    follower: AuditedFollower
    filters: Filters
    report: Report = Report()
    limits: Limits = Limits()
    #: where the events travel; without it a difference is only proven while the leader writes nothing
    topic: TopicSettings | None = None

    def check(self, name: str) -> None:
        check_filters(self.filters, self.follower.system_database)
        if self.topic is not None:
            self.topic.check_read_only("topic.")


def load_parity(path: str | Path) -> ParityProfile:
    """Read the profile of an audit. Raises ProfileError."""
    return load(path, ParityProfile)
