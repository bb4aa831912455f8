"""What a topic holds, and a topic that is written anew with something changed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from fix_replication import Replicate, Replication

from docker.local.mysql_servers import Server
from shared.topic import Record, open_reader, open_writer
from shared.topic.record import Sealed, seal

TABLE = "(id INT PRIMARY KEY, name VARCHAR(20))"


def statements(server: Server) -> int:
    """BINLOG statements that this server has run."""
    digest = "performance_schema.events_statements_summary_global_by_event_name"
    return int(server.value(f"SELECT COUNT_STAR FROM {digest} WHERE EVENT_NAME = 'statement/sql/binlog'"))


def records(replication: Replication) -> list[Record]:
    found: list[Record] = []
    with closing(open_reader(replication.topic)) as reader:
        while some := reader.read(0.0):
            found += some
    return found


def rewrite(replication: Replication, change: Callable[[Record], Sealed]) -> None:
    """Make the topic anew, with each record as `change` says."""
    values = [change(record) for record in records(replication)]
    with open_topic_anew(replication) as writer:
        writer.append(values)


def open_topic_anew(replication: Replication) -> Any:
    for file in Path(replication.topic.path).glob(f"{replication.topic.name}.*"):
        file.unlink()
    return closing(open_writer(replication.topic))


def by_sql(replicate: Replicate, replication: Replication, follower: Server) -> Replication:
    """Another follower of the same topic, whose rows go by SQL."""
    topic = {"topic": {"path": replication.topic.path}}
    return replicate(
        replication.leader,
        follower,
        [replication.database],
        name="by_sql",
        consumer={**topic, "apply": {"rows": "sql"}},
    )


def lines(record: Record, **changed: Any) -> Sealed:
    """The record with other contents, sealed anew."""
    record = record._replace(**changed)
    return seal(record.value, [record.binlog], record.checksums)
