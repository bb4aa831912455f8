"""Two servers with both programs between them and one row that differs, and an audit's connections to a leader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fix_replication import Replicate, Replication

from cdc_consumer.parity.servers.pair import LeaderConnection
from docker.local.mysql_servers import Server
from shared.profile import Database, DatabaseTls

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(20))"


@pytest.fixture
def running(replicate: Replicate, leader: Server, follower: Server, database: str) -> Replication:
    """Both programs, and one row that differs."""
    replication = replicate(leader, follower, [database], producer={"database": {"heartbeat_seconds": 0.1}})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(TABLE, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    replication.start()
    replication.catch_up()
    replication.follower.execute(
        "SET sql_log_bin = 0", "UPDATE t SET note = 'x' WHERE id = 1", database=replication.database
    )
    return replication


@pytest.fixture
def connect(leader: Server) -> Iterator[Callable[..., LeaderConnection]]:
    made: list[LeaderConnection] = []

    def make(server: Server = leader, **options: Any) -> LeaderConnection:
        made.append(LeaderConnection(address(server), **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def address(server: Server) -> Database:
    return Database(host=server.host, port=server.port, user="root", tls=DatabaseTls(mode="off"))
