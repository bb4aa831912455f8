"""An audit asks the topics of the tables it looks at."""

from __future__ import annotations

import pytest
from fix_parity import parity_of
from fix_replication import Replicate, topic_name

from docker.local.mysql_servers import Server


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
