"""Reads the profile of cdc-consumer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cdc_consumer.follower.lock import MOST_WORKERS
from shared.errors import ProfileError
from shared.filters import SYSTEM_DATABASE, check_filters, check_system_database
from shared.profile import Database, Filters, TopicSettings
from shared.profile_table import ProfileTable, load


@dataclass(frozen=True, slots=True)
class Follower(Database):
    """Says where the follower is, and how the consumer writes it."""

    #: the system's own database on the follower; never replicated
    system_database: str = SYSTEM_DATABASE
    #: seconds a statement waits for a lock before the transaction is tried again
    lock_wait_seconds: int = 30

    def check(self, name: str) -> None:
        Database.check(self, name)
        check_system_database(self.system_database, f"{name}system_database")
        if not 1 <= self.lock_wait_seconds <= 3600:
            raise ProfileError(f"{name}lock_wait_seconds must be 1 to 3600, not {self.lock_wait_seconds!r:.60}")


#: how rows may be applied, and in which order transactions may be committed
ROWS, ORDERS = ("auto", "sql"), ("leader", "independent")


@dataclass(frozen=True, slots=True)
class Apply(ProfileTable):
    """Says how the follower is changed."""

    #: "auto": by the leader's own binlog events where the table is proven to fit, else by SQL; "sql": by SQL always
    rows: str = "auto"
    #: sessions that apply transactions side by side, as far as the leader's clock allows
    workers: int = 4
    #: "leader": they commit in the leader's order; "independent": each when it is done
    order: str = "leader"
    #: whether transactions run under the leader's GTIDs, where both servers have them; of several consumers of one
    #: follower none may
    gtids: bool = True

    def check(self, name: str) -> None:
        if self.rows not in ROWS:
            raise ProfileError(f'{name}rows must be "auto" or "sql", not {self.rows!r}')
        if not 1 <= self.workers <= MOST_WORKERS:
            raise ProfileError(f"{name}workers must be 1 to {MOST_WORKERS}, not {self.workers!r:.60}")
        if self.order not in ORDERS:
            raise ProfileError(f'{name}order must be "leader" or "independent", not {self.order!r}')


@dataclass(frozen=True, slots=True)
class ConsumerProfile(ProfileTable):
    """Holds all that cdc-consumer is told."""

    database: Follower
    filters: Filters
    topic: TopicSettings
    apply: Apply = Apply()

    @property
    def lock_name(self) -> str:
        """Return what keeps other consumers of this topic away from the follower."""
        return f"{self.database.system_database}.{self.topic.identity}"

    def check(self, name: str) -> None:
        check_filters(self.filters, self.database.system_database)
        self.topic.check_read_only("topic.")


def load_consumer(path: str | Path) -> ConsumerProfile:
    """Read a consumer profile. Raises ProfileError."""
    return load(path, ConsumerProfile)
