"""A consumer that is behind is killed again and again, and its follower too, while several sessions apply."""

from __future__ import annotations

import itertools
import threading
from random import Random

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate
from kit.helpers import assert_same_database, gtids_in_binlog, wait_until
from kit.write_at_once import write_at_once

from docker.local.mysql_servers import FOLLOWER, LEADER, PLAIN

PLAIN_LEADER = ("--binlog-row-metadata=FULL", *PLAIN)
TABLES = (
    "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(400))", "CREATE TABLE n (id INT PRIMARY KEY, n INT)",
    "INSERT INTO n VALUES (0, 0), (1, 0), (2, 0)",
)  # fmt: skip

#: turns of the writers, each of some hundred transactions, for each kill: more than are applied until then
TURNS = 2
#: events at most that it applies before it is killed
SOME = 500


@pytest.mark.parametrize("order", ["leader", "independent"])
@pytest.mark.parametrize(
    ("leader_options", "follower_options"), [(LEADER, FOLLOWER), (PLAIN_LEADER, PLAIN)], ids=["gtids", "plain"]
)
def test_each_transaction_is_applied_once(
    order: str, leader_options: tuple[str, ...], follower_options: tuple[str, ...], replicate: Replicate,
    own_server: StartServer, database: str, kills: int, seed: int,
) -> None:  # fmt: skip
    leader, follower = own_server(leader_options, 41), own_server(follower_options, 42)
    replication = replicate(leader, follower, [database], consumer={"apply": {"workers": 4, "order": order}})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(*TABLES)
    replication.replicate()
    replication.producer.start()
    random, stopped, turns = Random(seed), threading.Event(), threading.Semaphore(0)

    def write() -> None:
        for turn in itertools.count():
            turns.acquire()
            if stopped.is_set():
                return
            write_at_once(leader, database, seed + turn, range(4 * turn, 4 * turn + 4))

    writer = threading.Thread(target=write)
    writer.start()
    own = f"{replication.system_database}.position"
    ahead = f"SELECT COUNT(*) FROM {own} WHERE worker > 0 AND sequence > (SELECT sequence FROM {own} WHERE worker = 0)"
    gaps = 0
    try:
        for _ in range(max(3, kills // 10)):
            turns.release(TURNS)
            said = len(replication.consumer.stderr)
            replication.consumer.start()
            wait_until(
                lambda said=said: "replaying" in replication.consumer.stderr[said:], "it applies",
                alive=[replication.consumer],
            )  # fmt: skip
            wanted = replication.sequence() + random.randrange(SOME)
            wait_until(lambda wanted=wanted: replication.sequence() > wanted, "it has applied some", pause=0.002)
            if random.random() < 0.3:
                follower.kill()
                follower.start()
            replication.consumer.kill()
            gaps += follower.value(ahead) > 0
    finally:
        stopped.set()
        turns.release()
        writer.join()
    replication.kill()
    print(f"{gaps} kills left gaps, and {replication.sequence()} events were applied")
    replication.replicate(timeout=180 + kills)
    assert_same_database(leader, follower, database)
    assert follower.value(ahead) == 0
    if order == "leader":
        assert gaps == 0
    if order == "leader" and follower_options == FOLLOWER:
        order_of = {event["transaction"]["gtid"]: number for number, event in enumerate(replication.events())}
        numbers = [order_of[gtid] for gtid in gtids_in_binlog(follower) if gtid in order_of]
        assert numbers == sorted(set(numbers))
