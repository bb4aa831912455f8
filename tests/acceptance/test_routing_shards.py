"""Several producers of one leader, each with a filter and a topic of its own, and their consumers on one follower."""

from __future__ import annotations

from typing import Any

import pytest
from fix_replication import Replicate, Replication, assert_refused
from kit.helpers import assert_same_database, tables_of, wait_until
from kit.programs import binlog_end

from docker.local.mysql_servers import Server


def shards(
    replicate: Replicate, leader: Server, follower: Server, database: str, **apply: Any
) -> tuple[list[str], list[Replication]]:
    """Two producers with a database and a topic each, and their consumers on one follower."""
    names = [database, f"{database}_two"]
    made = []
    for name in names:
        leader.execute(f"CREATE DATABASE {name}")
    for number, name in enumerate(names):
        topic = {"topic": {"name": f"shard-{database.replace('_', '-')}-{number}"}}
        made.append(
            replicate(
                leader, follower, [name], name=f"shard{number}", producer=topic, consumer={**topic, "apply": apply},
                system_database=f"{database}_cdc", start=binlog_end(leader),
            )
        )  # fmt: skip
    return names, made


@pytest.mark.parametrize("workers", [1, 3])
def test_two_shards_on_one_follower(
    replicate: Replicate, leader: Server, follower: Server, database: str, workers: int
) -> None:
    names, made = shards(replicate, leader, follower, database, gtids=False, workers=workers)
    for name in names:
        follower.execute(f"CREATE DATABASE {name}")
        leader.execute(f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT)")
    for one in made:
        one.start()
    for number in range(30):
        leader.execute("BEGIN", *(f"INSERT INTO {name}.t VALUES ({number}, 0)" for name in names), "COMMIT")
        leader.execute(f"UPDATE {names[number % 2]}.t SET n = n + 1")
    leader.execute(*(f"ALTER TABLE {name}.t ADD COLUMN m INT DEFAULT 7" for name in names))
    leader.execute("BEGIN", *(f"DELETE FROM {name}.t WHERE id < 5" for name in names), "COMMIT")
    for name, one in zip(names, made, strict=True):
        applied = f"SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{name}'"
        wait_until(
            lambda applied=applied: follower.execute(applied), "the follower has the table", alive=(one.consumer,)
        )
        one.kill()
        one.replicate()
    for name in names:
        assert_same_database(leader, follower, name)
        assert follower.execute(f"SELECT COUNT(*) FROM {name}.t") == [(25,)]
    assert "another transaction here" in made[0].consumer.stderr


def test_a_second_consumer_under_the_leaders_gtids_is_refused(
    replicate: Replicate, leader: Server, follower: Server, database: str
) -> None:
    names, made = shards(replicate, leader, follower, database)
    for name in names:
        follower.execute(f"CREATE DATABASE {name}")
        leader.execute(f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT)")
    leader.execute("BEGIN", *(f"INSERT INTO {name}.t VALUES (1, 0)" for name in names), "COMMIT")
    made[0].replicate()
    assert made[1].produce().returncode == 0
    assert_refused(made[1].consume(), "gtids = false", f"shard-{database.replace('_', '-')}-0")
    assert tables_of(follower, names[1]) == []
