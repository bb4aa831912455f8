"""Both programs killed while tables have topics of their own: the follower is that of one ordered topic."""

from __future__ import annotations

import json
import time
from random import Random

from fix_mysql import StartServer
from fix_replication import Replicate, topic_records
from kit.helpers import assert_same_database, wait_until
from kit.random_writer import RandomWriter

from docker.local.mysql_servers import FOLLOWER, LEADER


def test_kills_leave_what_one_ordered_topic_leaves(
    replicate: Replicate, own_server: StartServer, database: str, kills: int, seed: int
) -> None:
    """The random writer with DDL and renames between routed tables; one follower of many topics, one of a single one."""
    leader = own_server(LEADER, server_id=51)
    routed, ordered = own_server(FOLLOWER, server_id=52), own_server(FOLLOWER, server_id=53)
    names = [database, f"{database}_two"]
    beat = {"database": {"heartbeat_seconds": 0.5}}
    plain = replicate(leader, ordered, names, name="plain", producer={**beat, "topic": {"name": f"plain-{seed}"}},
                      consumer={"topic": {"name": f"plain-{seed}"}})  # fmt: skip
    prefix = f"r{seed}"
    routes = {
        '"*.s*"': f"{prefix}-{{database}}_{{table}}", f'"{database}.*"': f"{prefix}-{{table}}",
        '"*.child"': f"{prefix}-family",
    }  # fmt: skip
    many = replicate(
        leader, routed, names, name="many",
        producer={**beat, "topic": {"name": prefix, "control": f"{prefix}-control"}, "topic.routes": routes},
        consumer={"topic": {"name": prefix}, "apply": {"workers": 1 + seed % 3}},
    )  # fmt: skip
    writer = RandomWriter(leader, names, f"{database}_outside", seed)
    writer.create()
    random = Random(seed)
    many.start()
    with writer:
        for _ in range(max(6, kills // 3)):
            moment = time.monotonic() + random.uniform(0.1, 1.5)
            wait_until(lambda moment=moment: time.monotonic() > moment, "the moment comes")
            for program in (many.producer, many.consumer):
                assert program.running, program.stderr[-3000:]
            victim = random.choice((many.producer, many.producer, many.consumer))
            victim.kill()
            victim.start()
        wait_until(lambda: writer.done["commit"] and writer.done["definition"], "both kinds of change were made")
    many.kill()
    many.replicate(timeout=180 + kills)
    plain.replicate(timeout=180 + kills)
    for name in names:
        assert_same_database(leader, routed, name)
        assert_same_database(ordered, routed, name)
    one, all_topics = plain.events(), many.events()
    assert [event["sequence"] for event in all_topics] == list(range(len(all_topics)))
    assert [_bare(event) for event in all_topics] == [_bare(event) for event in one]
    control = [json.loads(record.value) for record in topic_records(many, f"{prefix}-control")]
    told = [event for event in control if "Heartbeat" not in event["operation"]["Control"]]
    assert {kind for event in told for kind in event["operation"]["Control"]} >= {"Gtid"}
    places = [(event["bn_file"]["fileName"], event["bn_file"]["offset"]) for event in told]
    assert places == sorted(set(places))


def _bare(event: dict[str, object]) -> dict[str, object]:
    """An event without what only routing tells."""
    return {key: value for key, value in event.items() if key not in ("route", "tables")}
