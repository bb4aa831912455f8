"""Topics of their own for tables: a follower of all of them is that of one ordered topic, and one of some has whole transactions."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from fix_replication import Replicate, Replication, assert_refused, topic_name, topic_records
from kit.helpers import tables_of
from kit.tutorial import DATABASE, STATEMENTS

from docker.local.mysql_servers import Server
from shared.topic.cli import main


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
