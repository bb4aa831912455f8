"""Several followers of one leader and one topic: copied at the same time, and one much later."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from fix_copy import Copies, Copying
from fix_mysql import StartServer
from fix_replication import Replicate
from kit.helpers import wait_until
from kit.swapper import Swapper, fill
from kit.topic import shared_table

from docker.local.mysql_servers import FOLLOWER, Server


def forget(copy: Copying, before: int) -> None:
    """Remove records from the topic, as its retention does."""
    path = Path(copy.replication.topic.path) / f"{copy.replication.topic.name}.topic"
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DELETE FROM batches WHERE first + count <= ?", (before,))


def test_two_at_once_and_one_much_later(
    copies: Copies,
    replicate: Replicate,
    own_server: StartServer,
    leader: Server,
    database: str,
    seed: int,
    topic_file: None,
) -> None:
    leader.execute(f"CREATE DATABASE {database}")
    fill(leader, database)
    one = copies(copy={"range_rows": 5000})
    topic = {"topic": shared_table(one.replication.topic)}
    beside = replicate(
        leader, own_server([*FOLLOWER, "--local-infile=ON"], 13), [database], name="beside", consumer=topic
    )
    beside.producer = one.replication.producer
    other = Copying(beside, [database], topic=topic["topic"], copy={"range_rows": 5000})
    with Swapper(leader, database, seed) as writer:
        for copy in (one, other):
            copy.program.start()
        for copy in (one, other):
            assert copy.program.wait(120) == 0, copy.program.stderr
            copy.replication.consumer.start()
        writer.go_on(50, one.replication.consumer, other.replication.consumer)
    for copy in (one, other):
        copy.replication.catch_up(60)
        copy.replication.same()
        copy.same_gtids()
    # months later: what the first copies were made of is in the topic no more
    assert other.replication.consumer.stop() == 0
    end, _ = one.replication.last()
    leader.execute("FLUSH BINARY LOGS", f"INSERT INTO {database}.loose VALUES (3, 'later')")
    wait_until(lambda: one.replication.last()[0] > end, "the topic goes on")
    forget(one, end)
    other.copy("--replace")
    other.follow()
    other.same_gtids()
    one.replication.catch_up(60)
    one.replication.same()
