"""A topic written by hand, a follower, and the replay between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kit.events import EventLog, consumer_profile, integer, string

from cdc_consumer.replay import replay
from docker.local.mysql_servers import Server
from shared.profile import Filters

#: of the table most tests write
COLUMNS = ("id", "name")


def row(number: int | None, name: str | None = "x") -> list[Any]:
    """A row of that table."""
    return [integer(number), string(name)]


class Stage:
    def __init__(self, server: Server, log: EventLog, database: str) -> None:
        self.server = server
        self.log = log
        self.database = database
        #: the table most tests write
        self.table = f"{database}.t"
        self.system = f"{database}_cdc"
        self.filters: Filters | None = None

    @property
    def gtids(self) -> bool:
        return self.log.gtid is not None

    def create(self, definition: str = "(id INT PRIMARY KEY, name VARCHAR(20))", table: str = "t") -> None:
        """A table, and its database before the first one, as Queries in the topic."""
        if self.log.sequence < 0:
            self.log.ddl(f"CREATE DATABASE {self.database}", self.database)
        self.log.ddl(f"CREATE TABLE {table} {definition}", self.database)

    def replay(self, stop: Callable[[], bool] = lambda: False, **database: Any) -> None:
        """Run the consumer up to the end of the topic; `database` are keys of the profile's [database]."""
        profile = consumer_profile(self.server, self.log, self.system, self.filters, **database)
        replay(profile, stop, exit_at_end=True)

    def profile(self, folder: Path) -> Path:
        """Write the profile of a consumer that is run as a program."""
        path = folder / "p.toml"
        path.write_text(
            f'[database]\nhost = "{self.server.host}"\nport = {self.server.port}\nuser = "root"\n'
            f'system_database = "{self.system}"\n[filters]\nexclude_dbs = []\n'
            f'[topic]\nname = "{self.log.settings.name}"\npath = "{self.log.settings.path}"\n'
        )
        return path

    def rows(self, table: str = "t", columns: str = "*") -> list[tuple[Any, ...]]:
        return self.server.execute(f"SELECT {columns} FROM {self.database}.{table} ORDER BY 1")

    def position(self) -> tuple[int, int]:
        """topic offset and sequence"""
        ((offset, sequence),) = self.server.execute(f"SELECT topic_offset, sequence FROM {self.system}.position")
        return offset, sequence


@pytest.fixture(params=["gtids", "plain"])
def stage(request: pytest.FixtureRequest, tmp_path: Path, database: str) -> Iterator[Stage]:
    """With GTIDs on both sides, and on neither."""
    gtids = request.param == "gtids"
    server = request.getfixturevalue("follower" if gtids else "plain_follower")
    log = EventLog(tmp_path, gtids=gtids, seed=int(database[-8:], 16))
    yield Stage(server, log, database)
    log.close()


@pytest.fixture
def gtid_stage(follower: Server, tmp_path: Path, database: str) -> Iterator[Stage]:
    """With GTIDs on both sides, for what does not depend on them."""
    log = EventLog(tmp_path, seed=int(database[-8:], 16))
    yield Stage(follower, log, database)
    log.close()
