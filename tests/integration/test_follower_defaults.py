"""Defaults of the follower that sessions of MySQL's own replication do not have."""

from __future__ import annotations

import pytest
from fix_replication import Replicate

from docker.local.mysql_servers import Server

DEFAULTS = {
    "autocommit": 0,
    "completion_type": 1,
    "transaction_read_only": 1,
    "max_execution_time": 1,
    "sql_big_selects": 0,
    "sql_select_limit": 1,
}


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("name", DEFAULTS)
def test_a_default_does_not_matter(
    replicate: Replicate, leader: Server, follower: Server, database: str, name: str, workers: int
) -> None:
    apply = {"workers": workers, "order": "independent"}
    replication = replicate(leader, follower, [database], consumer={"apply": apply})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT)", "CREATE TABLE g (id INT, b INT AS (id + 1) STORED)",
        "INSERT INTO t VALUES (1, 1), (2, 2)", "INSERT INTO g (id) VALUES (1), (2)", "CREATE TABLE c AS SELECT * FROM t",
        "UPDATE t SET a = 3", "DELETE FROM g WHERE id = 1", "ALTER TABLE t ADD KEY (a)",
    )  # fmt: skip
    ((before,),) = follower.execute(f"SELECT @@GLOBAL.{name}")
    follower.execute(f"SET GLOBAL {name} = {DEFAULTS[name]}")
    try:
        replication.replicate()
    finally:
        follower.execute(f"SET GLOBAL {name} = {before}")
    replication.same()
