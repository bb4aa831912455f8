"""Topics of their own for tables: a follower of all of them is that of one ordered topic, also after kills."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import Any

import pytest
from fix_mysql import StartServer
from fix_parity import parity_of
from fix_replication import Replicate, Replication, assert_refused
from kit.helpers import assert_same_database, tables_of, wait_until
from kit.programs import binlog_end
from kit.random_writer import RandomWriter
from kit.topic import CLUSTER
from kit.tutorial import DATABASE, STATEMENTS

from docker.local.mysql_servers import FOLLOWER, LEADER, Server
from shared.topic import Record, open_one_reader
from shared.topic.cli import main
from shared.topic.walk import forwards

EACH = {"topic.routes": {'"*.*"': "{database}_{table}"}}


def topic_records(replication: Replication, name: str) -> list[Record]:
    """What one topic holds by itself."""
    with closing(open_one_reader(replication.topic, name)) as reader:
        return list(forwards(reader, name))


def topic_name(replication: Replication, name: str) -> str:
    """A name of this test's own: topics of a cluster are everybody's."""
    return name if CLUSTER is None else f"{replication.topic.name}-{name}"


@pytest.fixture
def flvdb(replicate: Replicate, leader: Server, follower: Server) -> Iterator[Replication]:
    _drop(leader, follower)
    replication = replicate(leader, follower, [DATABASE])
    # once more, now that the topic has its name
    routes = {"topic.routes": {'"*.*"': topic_name(replication, "{database}_{table}")}}
    yield replicate(leader, follower, [DATABASE], producer={**routes, "topic": {"name": replication.topic.name}},
                    consumer={"topic": {"name": replication.topic.name}})  # fmt: skip
    _drop(leader, follower)


def _drop(leader: Server, follower: Server) -> None:
    for server in (leader, follower):
        server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"DROP DATABASE IF EXISTS {DATABASE}_cdc")


def test_the_tutorial_with_a_topic_for_each_table(
    flvdb: Replication, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    flvdb.start()
    for statement in STATEMENTS:
        flvdb.play(statement)
        flvdb.catch_up()
        flvdb.same()
    flvdb.stop()
    assert [event["sequence"] for event in flvdb.events()] == list(range(9))
    pet = [json.loads(record.value) for record in topic_records(flvdb, topic_name(flvdb, "flvdb-pet"))]
    assert [event["sequence"] for event in pet] == list(range(1, 9))
    assert [event["route"]["follows"] for event in pet] == [-1, *range(1, 8)]
    assert pet[0]["tables"] == [[DATABASE, "pet"]]
    journal = [json.loads(record.value) for record in topic_records(flvdb, flvdb.topic.name)]
    assert [event["operation"] for event in journal if event["operation"] != "Heartbeat"] == [{"Query": STATEMENTS[0]}]
    assert main([str(flvdb.profiles.consumer), "--cut"]) == 0
    printed = capsysbinary.readouterr().out.splitlines()
    assert [json.loads(line)["sequence"] for line in printed] == list(range(9))


def test_a_follower_of_some_topics_has_their_tables_and_whole_transactions(
    replicate: Replicate, leader: Server, follower: Server, database: str
) -> None:
    first = replicate(leader, follower, [database])
    name = first.topic.name
    routes = {'"*.a"': topic_name(first, "a"), '"*.b*"': topic_name(first, "b"), '"*.c"': topic_name(first, "c")}
    some = [topic_name(first, "a"), topic_name(first, "b")]
    replication = replicate(
        leader, follower, [database], producer={"topic": {"name": name}, "topic.routes": routes},
        consumer={"topic": {"name": name, "names": some}},
    )  # fmt: skip
    replication.play(f"CREATE DATABASE {database}")
    for table in ("a", "b", "b2", "c", "other"):
        replication.play(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT)")
    replication.start()
    for number in range(20):
        replication.play(
            "BEGIN",
            *(f"INSERT INTO {table} VALUES ({number}, 0)" for table in ("a", "c", "b", "other", "b2")),
            f"UPDATE {'c' if number % 2 else 'a'} SET n = n + 1",
            "COMMIT",
        )
    replication.play("ALTER TABLE a ADD COLUMN m INT", "DROP TABLE b2", "RENAME TABLE b TO b3")
    replication.play("INSERT INTO other VALUES (99, 99)")
    replication.catch_up()
    replication.stop()
    assert tables_of(follower, database) == ["a", "b3"]
    for table in ("a", "b3"):
        query = f"SELECT * FROM {database}.{table} ORDER BY id"
        assert follower.execute(query) == leader.execute(query)
    # once more: it goes on where it was
    replication.play("INSERT INTO b3 VALUES (100, 1)", "INSERT INTO c VALUES (100, 1)")
    replication.replicate()
    assert follower.execute(f"SELECT COUNT(*) FROM {database}.b3") == [(21,)]
    # under the same GTIDs other names would find every transaction executed
    other = replicate(leader, follower, [database], consumer={"topic": {"name": name, "names": some[:1]}})
    assert_refused(other.consume(), "gtids = false", name)


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


def test_other_names_under_the_leaders_gtids_are_refused(
    replicate: Replicate, leader: Server, follower: Server, database: str
) -> None:
    """Of a transaction in topics of both, the part of those that are new would be passed over as executed."""
    first = replicate(leader, follower, [database])
    name, topics = first.topic.name, [topic_name(first, "a"), topic_name(first, "b")]

    def reading(**names: list[str]) -> Replication:
        routes = {f'"*.{table}"': topic for table, topic in zip("ab", topics, strict=True)}
        return replicate(
            leader, follower, [database], producer={"topic": {"name": name}, "topic.routes": routes},
            consumer={"topic": {"name": name, **names}},
        )  # fmt: skip

    one = reading(names=topics[:1])
    one.play(f"CREATE DATABASE {database}")
    one.play("CREATE TABLE a (id INT)", "CREATE TABLE b (id INT)")
    one.play("BEGIN", "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)", "COMMIT", "INSERT INTO b VALUES (2)")
    one.replicate()
    for other in (reading(names=topics), reading()):
        assert_refused(other.consume(), "gtids = false", f"WHERE topic = '{name}/{topics[0]}'")
    assert tables_of(follower, database) == ["a"]


def test_a_topic_gets_routes_while_it_is_followed(
    replicate: Replicate, leader: Server, follower: Server, database: str
) -> None:
    replication = replicate(leader, follower, [database])
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY)")
    replication.start()
    replication.play("INSERT INTO a VALUES (1)")
    replication.catch_up()
    assert replication.producer.stop() == 0
    profile = replication.profiles.producer
    plain = profile.read_text()
    profile.write_text(f'{plain}[topic.routes]\n"*.a" = "{topic_name(replication, "a")}"\n')
    replication.producer.start()
    replication.play(
        "BEGIN", "INSERT INTO a VALUES (2)", "INSERT INTO b VALUES (2)", "INSERT INTO a VALUES (3)", "COMMIT"
    )
    replication.catch_up()
    replication.same()
    replication.stop()
    assert [event["sequence"] for event in replication.events()] == list(range(7))
    profile.write_text(plain)
    assert_refused(replication.produce(), "was written with routes", "[topic.routes]")


@pytest.mark.parametrize("some", [False, True], ids=["all topics", "some topics"])
def test_the_audit_asks_the_topics_of_a_row(
    replicate: Replicate, leader: Server, follower: Server, database: str, some: bool
) -> None:
    first = replicate(leader, follower, [database])
    routes = {'"*.a"': topic_name(first, "a"), '"*.b"': topic_name(first, "b")}
    names = {"names": [topic_name(first, "a")]} if some else {}
    chosen = {"include_tables": ["*.a"]} if some else {}
    topic = {"name": first.topic.name}
    replication = replicate(
        leader, follower, [database], producer={"topic": topic, "topic.routes": routes},
        consumer={"topic": {**topic, **names}, "filters": chosen},
    )  # fmt: skip
    replication.play(f"CREATE DATABASE {database}")
    replication.play(*(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT)" for table in ("a", "b")))
    replication.play("BEGIN", *(f"INSERT INTO {table} VALUES (1, 1), (2, 2)" for table in ("a", "b")), "COMMIT")
    replication.play("UPDATE b SET n = 3 WHERE id = 1", "UPDATE a SET n = 3 WHERE id = 1")
    replication.replicate()
    follower.execute("UPDATE a SET n = 9 WHERE id = 1", database=database)
    replication.start()  # its heartbeats bring the follower to the leader's end
    parity = parity_of(replication, [database])
    parity.change(topic=names, filters=chosen)
    audited = parity.audit()
    assert audited.status == 1, audited.err
    assert audited.rows("a") == {("1",): ("changed", "n")}
    (found,) = audited.differences
    assert [event.sequence for event in found.evidence.events][-1] == 6
