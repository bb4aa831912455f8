"""Tables, and databases, copied into a follower that has all else: as they were at its own position."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from fix_copy import Copies, Copying
from kit.helpers import assert_same_database, wait_until
from kit.swapper import Swapper, fill

from docker.local.mysql_servers import Server

#: more than a leader is changed before
FIRST = 100_000
ALL = ("swap", "cased", "pairs", "wide", "loose")


@pytest.fixture(params=["gtids", "plain"])
def behind(request: pytest.FixtureRequest, copies: Copies, database: str, seed: int) -> Copying:
    """A follower that was copied, whose consumer has stopped, and a leader that has gone on since."""
    plain = request.param == "plain"
    leader = request.getfixturevalue("plain_leader" if plain else "leader")
    leader.execute(f"CREATE DATABASE {database}")
    fill(leader, database)
    leader.execute("ALTER TABLE pairs ADD CONSTRAINT belongs FOREIGN KEY (a) REFERENCES swap (id)", database=database)
    copy = copies(plain=plain, source=leader, copy={"range_rows": 5000})
    copy.copy()
    with Swapper(leader, database, seed) as writer:
        writer.go_on(50)
        copy.replication.consumer.start()
        copy.replication.catch_up()
        assert copy.replication.consumer.stop() == 0
        writer.go_on(150)
    return copy


def damage(copy: Copying, tables: Sequence[str]) -> None:
    """Alter rows on the follower so that the consumer would stop, or drop the table."""
    for number, table in enumerate(tables):
        copy.follower.execute("SET sql_log_bin = 0, foreign_key_checks = 0", f"DROP TABLE {table}" if number % 2 else f"DELETE FROM {table}", database=copy.database)  # fmt: skip


def test_tables_are_as_they_were_at_the_position(behind: Copying, seed: int) -> None:
    tables = random.Random(seed).sample(ALL, 4)
    before = contents(behind.follower, behind.database)
    damage(behind, tables)
    with Swapper(behind.leader, behind.database, seed, first=FIRST):
        behind.copy("--tables", ",".join(f"{behind.database}.{table}" for table in tables))
    assert contents(behind.follower, behind.database) == before
    keys = behind.follower.execute(f"SHOW CREATE TABLE {behind.database}.pairs")[0][1]
    assert "belongs" in keys
    behind.follow()
    behind.same_gtids()


def contents(server: Server, database: str) -> dict[str, list[tuple[object, ...]]]:
    return {table: sorted(server.execute(f"SELECT * FROM {database}.{table}"), key=repr) for table in ALL}


POINTS = (
    ("state:CopyState.begin", "after", 1), ("rows.task:_copy", "after", 2), ("window:Window.revert", "before", 1),
    ("window:Window._write", "after", 2), ("window:Window.settle_copies", "after", 2), ("finish:_run", "before", 2),
    ("finish:_run", "after", 3), ("state:CopyState.step_done", "after", 2), ("finish:_run", "after", 2), ("state:CopyState.done", "before", 1),
)  # fmt: skip


def test_killed_at_every_point(behind: Copying, seed: int) -> None:
    before = contents(behind.follower, behind.database)
    damage(behind, ALL)
    option = ("--tables", ",".join(f"{behind.database}.{table}" for table in ALL))
    for number, point in enumerate(POINTS):
        behind.killed(*point, arguments=option)
        if number % 4 == 0:
            # so many and no more, however long the kills take: the consumer has to follow
            with Swapper(behind.leader, behind.database, seed, first=FIRST * (number + 1)) as writer:
                writer.go_on(30)
            refused = behind.replication.consume()
            assert refused.returncode == 1 and "has not ended" in refused.stderr, refused.stderr
            behind.refused("has not ended", f"--tables {behind.database}.cased,")
    behind.copy(*option)
    assert contents(behind.follower, behind.database) == before
    behind.follow()
    behind.same_gtids()


def test_what_cannot_be_copied_beside_is_refused(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.t (a INT PRIMARY KEY)",
        f"INSERT INTO {database}.t VALUES (1)",
    )
    copy = copies()
    only = ("--tables", f"{database}.t")
    copy.refused("has applied nothing", arguments=only)
    copy.copy()
    copy.refused("--tables names", "does not have", arguments=("--tables", f"{database}.none"))
    leader.execute(f"INSERT INTO {database}.t VALUES (2)", f"ALTER TABLE {database}.t ADD COLUMN b INT")
    copy.refused("was altered on the leader behind the follower's position", "nothing was changed", arguments=only)
    copy.replication.consumer.start()
    copy.replication.catch_up()
    copy.refused("another consumer", arguments=only)
    assert copy.replication.consumer.stop() == 0
    copy.follower.execute("SET sql_log_bin = 0", f"DELETE FROM {database}.t WHERE a = 1")
    copy.copy(*only)
    assert_same_database(leader, copy.follower, database)
    copy.follow()


def test_a_database_is_added(copies: Copies, leader: Server, database: str, seed: int) -> None:
    """The producer takes it first, the consumer passes that as it is, the copy comes, and the consumer takes it, too."""
    other = f"{database}_other"
    leader.execute(f"CREATE DATABASE {database}", f"CREATE DATABASE {other}")
    fill(leader, database)
    fill(leader, other)
    leader.execute(f"CREATE VIEW {other}.seen AS SELECT * FROM {other}.swap")
    copy = copies(copy={"range_rows": 5000})
    copy.copy()
    replication, add = copy.replication, ("--add", other)
    include(copy.profile, [database, other])
    leader.execute(f"INSERT INTO {database}.loose VALUES (1, 'x')")
    consume(copy)
    copy.refused("does not tell that its producer publishes", "include_dbs of cdc-producer's profile", arguments=add)
    assert replication.producer.stop() == 0
    include(replication.profiles.producer, [database, other])
    replication.producer.start()
    heard = len(replication.records())
    leader.execute("CREATE DATABASE IF NOT EXISTS test_outside", f"INSERT INTO {other}.loose VALUES (1, 'x')")
    wait_until(
        lambda: any(b'"Heartbeat"' in value and other.encode() in value for value in replication.records()[heard:]),
        "a heartbeat",
    )
    copy.refused("the follower stands at", "start cdc-consumer as it is", arguments=add)
    leader.execute(f"INSERT INTO {database}.loose VALUES (2, 'x')")
    consume(copy)
    with Swapper(leader, other, seed, first=FIRST) as writer:
        writer.go_on(20)
        copy.killed("finish:_run", "after", 3, arguments=add)
        writer.go_on(20)
        copy.copy(*add)
    refused = replication.consume()
    assert refused.returncode == 1 and f"database {other} was added" in refused.stderr, refused.stderr
    include(replication.profiles.consumer, [database, other])
    copy.follow()
    assert_same_database(leader, copy.follower, other)
    assert copy.follower.value(f"SELECT COUNT(*) FROM {other}.seen") == 400


def include(profile: Path, databases: Sequence[str]) -> None:
    text, count = re.subn(r"include_dbs = .*", f"include_dbs = {json.dumps(list(databases))}", profile.read_text())
    assert count == 1
    profile.write_text(text)


def consume(copy: Copying) -> None:
    """Let the consumer catch up, and stop it."""
    copy.replication.consumer.start()
    copy.replication.catch_up()
    assert copy.replication.consumer.stop() == 0
