"""Reads the profile of cdc-producer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cdc_producer.decode.gtids import GtidSet
from shared.errors import ProfileError
from shared.events import Position
from shared.filters import check_filters
from shared.profile import Database, Filters, TopicSettings
from shared.profile_table import ProfileTable, load

#: values of `start` that are neither a position nor a GTID set
EARLIEST, LATEST, COPY = "earliest", "latest", "copy"


@dataclass(frozen=True, slots=True)
class Leader(Database):
    """Says where the leader is, and how the producer reads it."""

    #: where an empty topic begins: "earliest", "latest", "copy", a GTID set, or "file:offset"
    start: str = EARLIEST
    #: the id this producer registers with; derived from the resource name and topic when absent
    server_id: int | None = None
    #: seconds between the leader's signs of life; a link silent for three of them is dead
    heartbeat_seconds: float = 5.0

    def check(self, name: str) -> None:
        Database.check(self, name)
        try:
            self.place()
        except ValueError:
            raise ProfileError(
                f'{name}start must be "earliest", "latest", "copy", a GTID set or "file:offset", not {self.start!r:.60}'
            ) from None
        if self.server_id is not None and not 0 < self.server_id < 1 << 32:
            raise ProfileError(f"{name}server_id must be 1 to 4294967295, not {self.server_id!r:.60}")
        if not 0.1 <= self.heartbeat_seconds <= 3600:
            raise ProfileError(f"{name}heartbeat_seconds must be 0.1 to 3600, not {self.heartbeat_seconds}")

    def place(self) -> Position | GtidSet | str:
        """Return what `start` says: a position, a GTID set, EARLIEST, LATEST or COPY. Raises ValueError for others."""
        if self.start in (EARLIEST, LATEST, COPY):
            return self.start
        # no GTID set holds a dot, and every binlog's name does
        return Position.parse(self.start) if "." in self.start else GtidSet(self.start)


@dataclass(frozen=True, slots=True)
class ProducerProfile(ProfileTable):
    """Holds all that cdc-producer is told."""

    #: the leader's name in every event
    mysql_resource_name: str
    database: Leader
    filters: Filters
    topic: TopicSettings
    #: whether the leader's binlog events go into the topic beside the JSON
    raw: bool = True

    def check(self, name: str) -> None:
        check_filters(self.filters)
        if self.topic.names is not None:
            raise ProfileError("topic.names is for a consumer's profile: it says which topics are read")


def load_producer(path: str | Path) -> ProducerProfile:
    """Read a producer profile. Raises ProfileError."""
    return load(path, ProducerProfile)
