"""Programs and servers are killed at random moments while a leader is being written; nothing is lost or repeated."""

from __future__ import annotations

import itertools
import re
import shutil
import time
from collections import Counter
from random import Random
from typing import Any

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate, Replication, assert_refused
from kit.helpers import assert_same_database, gtids_in_binlog, wait_until
from kit.programs import binlog_end
from kit.random_writer import RandomWriter
from kit.topic_audit import assert_whole

from docker.local.mysql_servers import FOLLOWER, LEADER, PLAIN, MySQLServer

#: a program that has said this has reached its server, and from then on never ends by itself; a producer that has found
#: its place (`leader `) is yet to ask for the binlog
REACHED = re.compile("INFO: (leader .*\n(?!cdc-producer: leader )|replaying )")
#: what it may end with before
UNREACHABLE = re.compile(
    r"cdc-(producer: (cannot use leader|leader)|consumer: (cannot connect to|the connection to)) .*\n\Z"
)
PLAIN_LEADER = ("--binlog-row-metadata=FULL", *PLAIN)
#: options of the leader and the follower, and what is killed, each as often as its number says
VARIANTS = {
    "gtids": (LEADER, FOLLOWER, {"producer": 4, "consumer": 5, "follower": 2, "leader": 2}),
    "plain": (PLAIN_LEADER, PLAIN, {"producer": 4, "consumer": 6, "follower": 3, "leader": 1}),
    "gtids on the leader alone": (LEADER, PLAIN, {"producer": 3, "consumer": 6, "follower": 2, "leader": 1}),
}


#: how transactions are applied
APPLY: dict[str, dict[str, Any]] = {
    "one": {},
    "leader": {"workers": 4, "order": "leader"},
    "independent": {"workers": 4, "order": "independent"},
}
RUNS = [
    *((variant, order) for variant in ("gtids", "plain") for order in APPLY),
    ("gtids on the leader alone", "one"),
]


#: of changes that a leader makes at least once
KINDS = ("commit", "rollback", "definition", "big")


class Killer:
    """Kills something at random moments and starts it again."""

    def __init__(self, replication: Replication, servers: dict[str, MySQLServer], seed: int) -> None:
        self.random = Random(seed)
        self.programs = {"producer": replication.producer, "consumer": replication.consumer}
        self.servers = servers
        self.killed: Counter[str] = Counter()
        #: what the programs had said before their present runs
        self._said = dict.fromkeys(self.programs, 0)

    def victims(self, shares: dict[str, int], count: int) -> list[str]:
        """Names in random order, each as often as its share of `count`, and at least once."""
        rest = [name for name, share in shares.items() for _ in range(share - 1)]
        self.random.shuffle(rest)
        names = list(itertools.islice(itertools.cycle([*shares, *rest]), count))
        self.random.shuffle(names)
        return names

    def kill(self, *names: str) -> None:
        """Wait for a random moment, kill all of these, and start them again."""
        moment = time.monotonic() + self.random.uniform(0.05, 1.5)
        wait_until(lambda: self._supervise() and time.monotonic() > moment, "the moment comes")
        for name in names:
            (self.servers.get(name) or self.programs[name]).kill()
        self.killed.update(names)
        # servers first: a program that is started refuses a server that is down
        for name in sorted(names, key=lambda name: name in self.programs):
            if name in self.servers:
                self.servers[name].start()
            else:
                self._start(name)

    def _start(self, name: str) -> None:
        self._said[name] = len(self.programs[name].stderr)
        self.programs[name].start()

    def _supervise(self) -> bool:
        """Start again what ended because its server was down when it began; anything else is a failure."""
        for name, program in self.programs.items():
            if not program.running:
                said = program.stderr[self._said[name] :]
                excused = program.status == 1 and UNREACHABLE.search(said) and not REACHED.search(said)
                assert excused, f"{name} ended with status {program.status}:\n{program.stderr[-3000:]}"
                self._start(name)
        return True


@pytest.mark.parametrize(("variant", "order"), RUNS)
def test_nothing_is_lost_or_repeated(
    variant: str, order: str, replicate: Replicate, own_server: StartServer, database: str, kills: int, seed: int
) -> None:
    leader_options, follower_options, weights = VARIANTS[variant]
    leader = own_server(leader_options, server_id=11)
    follower = own_server(follower_options, server_id=12)
    strange = follower.value("SELECT @@GLOBAL.gtid_executed")
    names = [database, f"{database}_two"]
    heartbeat = {"database": {"heartbeat_seconds": 0.5}}
    replication = replicate(leader, follower, names, producer=heartbeat, consumer={"apply": APPLY[order]})
    writer = RandomWriter(leader, names, f"{database}_outside", seed)
    writer.create()
    killer = Killer(replication, {"leader": leader, "follower": follower}, seed)

    replication.start()
    with writer:
        victims = killer.victims(weights, kills // len(RUNS))
        while victims:
            writer.check()
            # now and then two at once
            both = len(victims) > 1 and victims[0] != victims[1] and killer.random.random() < 0.25
            killer.kill(*[victims.pop(0) for _ in range(1 + both)])
        wait_until(lambda: all(writer.done[kind] for kind in KINDS), "every kind of change was made")
    killer.kill("producer", "consumer")
    replication.kill()
    # what a kill undoes is done again: with many kills the follower may be far behind
    replication.replicate(timeout=180 + kills)
    print(f"killed {dict(killer.killed)}; wrote {dict(writer.done)}; refused {dict(writer.expected)}")

    for name in names:
        assert_same_database(leader, follower, name)
    gtids = assert_whole(replication.records())
    assert all(gtids) if leader_options == LEADER else not any(gtids)
    if follower_options == FOLLOWER:
        published = ",".join(gtid for gtid in gtids if gtid)
        assert follower.value(f"SELECT GTID_SUBSET('{published}', @@GLOBAL.gtid_executed)") == 1
        if order != "independent":
            assert_risen(gtids_in_binlog(follower), [gtid for gtid in gtids if gtid])
        known = ",".join(filter(None, (published, strange)))
        assert follower.value(f"SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{known}')") == ""


def assert_risen(found: list[str], order: list[str]) -> None:
    """Fail unless what is of `order` stands in it, once each, in what was found."""
    place = {gtid: number for number, gtid in enumerate(order)}
    numbers = [place[gtid] for gtid in found if gtid in place]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("options", [LEADER, PLAIN_LEADER], ids=["gtids", "plain"])
def test_a_leader_that_was_rolled_back_is_refused(
    options: tuple[str, ...], replicate: Replicate, own_server: StartServer, database: str, kills: int, seed: int
) -> None:
    """Its data are those of an earlier moment, and it has gone on from there, as after a restored snapshot."""
    random = Random(seed)
    follower = own_server(FOLLOWER, server_id=22)
    for number in range(1 + kills // 200):
        leader = own_server(options, server_id=30 + number)
        name = f"{database}_{number}"
        heartbeat = {"database": {"heartbeat_seconds": 0.5}}
        replication = replicate(leader, follower, [name], name=name, producer=heartbeat)
        RandomWriter(leader, [name], f"{name}_outside", seed).create()
        replication.start()
        _roll_back(leader, replication, random)
        before = replication.records()
        assert_refused(replication.produce(), "load the follower anew")
        assert replication.records() == before


def _roll_back(leader: MySQLServer, replication: Replication, random: Random) -> None:
    """Give a leader back the data it had while both programs read it; it then writes as many binlogs as before."""
    data, copy = leader.folder / "data", leader.folder / "copy"
    _write(leader, replication, random)
    replication.catch_up()
    leader.stop()
    shutil.copytree(data, copy)
    leader.start()
    _write(leader, replication, random)
    replication.catch_up()
    flushes = random.randrange(3)
    for _ in range(flushes):
        leader.execute("FLUSH BINARY LOGS")
        end = binlog_end(leader).partition(":")[0]
        wait_until(lambda end=end: replication.last()[1]["bn_file"]["fileName"] == end, "a heartbeat ends the topic")
    replication.kill()
    leader.stop()
    shutil.rmtree(data)
    shutil.move(copy, data)
    leader.start()
    for _ in range(flushes + random.randrange(2)):
        _write(leader, replication, random)
        leader.execute("FLUSH BINARY LOGS")
    _write(leader, replication, random)


def _write(leader: MySQLServer, replication: Replication, random: Random) -> None:
    """Let a writer change the leader for a moment."""
    name = replication.database
    with RandomWriter(leader, [name], f"{name}_outside", random.randrange(1 << 32)) as writer:
        wait_until(lambda: sum(writer.done.values()) > 20, "the writer has written")
