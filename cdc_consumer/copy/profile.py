"""Reads the profile of cdc-copy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cdc_consumer.parity.profile import WINDOW, Limits, Report
from cdc_consumer.profile import Apply, ConsumerProfile, Follower
from shared.errors import ProfileError
from shared.profile import Database, Filters, TopicSettings
from shared.profile_table import ProfileTable, load

#: rows of a range at least and at most: less is mostly commits, more would be lost with one broken link
RANGE_ROWS = (100, 10_000_000)
#: where pages go when nothing else is said
REPORTS = Report()
#: ways to fill a follower
METHODS = ("rows", "clone")
HOST_PORT = re.compile(r"[^\s:,]+:\d{1,5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class CopySettings(ProfileTable):
    """Says how a follower is filled."""

    #: "rows": the filter's databases, row by row; "clone": all of a leader of the same version, by MySQL's CLONE
    method: str = "rows"
    #: for a clone: the leader's host:port as the follower reaches it; without it as [leader] says
    clone_from: str | None = None
    #: rows of one range, which is one transaction on the follower
    range_rows: int = 100_000
    #: whether a table without a key may be locked against writes for some milliseconds
    lock_keyless: bool = True
    #: whether statements that change definitions wait on the leader until the copy ends
    hold_ddl: bool = False
    #: whether the audit proves the copy when it has ended
    audit: bool = False

    def check(self, name: str) -> None:
        if self.method not in METHODS:
            raise ProfileError(f'{name}method must be "rows" or "clone", not {self.method!r:.60}')
        if self.clone_from is not None and not HOST_PORT.fullmatch(self.clone_from):
            raise ProfileError(f'{name}clone_from must look like "host:port", not {self.clone_from!r:.60}')
        least, most = RANGE_ROWS
        if not least <= self.range_rows <= most:
            raise ProfileError(f"{name}range_rows must be {least} to {most}, not {self.range_rows!r:.60}")


@dataclass(frozen=True, slots=True)
class CopyLimits(ProfileTable):
    """Limits what a copy may ask of the leader."""

    #: connections that read rows at the same time; as many write the follower
    connections: int = 2
    #: the copy pauses while the leader runs more threads than these
    leader_threads: int = 40
    #: rows read in a second, in all; without it as fast as the servers answer
    rows_per_second: int | None = None
    #: time of day in which rows are read, "22:00-06:00" in local time; without it always
    window: str | None = None
    #: seconds one statement may take on the leader
    statement_seconds: float = 600.0

    def check(self, name: str) -> None:
        if not 1 <= self.connections <= 64:
            raise ProfileError(f"{name}connections must be 1 to 64, not {self.connections!r:.60}")
        if self.window is not None and not WINDOW.fullmatch(self.window):
            raise ProfileError(f'{name}window must look like "22:00-06:00", not {self.window!r:.60}')
        self.paces().check(name)

    def paces(self) -> Limits:
        """Return the same as the limits of an audit, which know how to slow a reader down."""
        return Limits(
            leader_connections=self.connections, leader_threads=self.leader_threads,
            rows_per_second=self.rows_per_second, window=self.window, statement_seconds=self.statement_seconds,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CopyProfile(ProfileTable):
    """Holds all that cdc-copy is told."""

    leader: Database
    follower: Follower
    filters: Filters
    topic: TopicSettings
    copy: CopySettings = CopySettings()
    limits: CopyLimits = CopyLimits()
    report: Report = REPORTS

    def check(self, name: str) -> None:
        self.consumer().check(name)
        if self.topic.names is not None:
            raise ProfileError(
                "topic.names is not for a copy, which is of whole databases: a consumer of some topics needs a follower"
                " that was loaded by a dump"
            )
        if self.copy.method == "clone" and self.leader.unix_socket is not None and self.copy.clone_from is None:
            raise ProfileError("a clone is made over the network: give copy.clone_from the leader's host:port")

    def consumer(self) -> ConsumerProfile:
        """Return the profile of the consumer that goes on where the copy ends."""
        return ConsumerProfile(self.follower, self.filters, self.topic, Apply("sql"))


def load_copy(path: str | Path) -> CopyProfile:
    """Read the profile of a copy. Raises ProfileError."""
    return load(path, CopyProfile)
