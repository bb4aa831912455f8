"""Continuing after any record of the topic gives exactly the records that would have followed it."""

from __future__ import annotations

import uuid
from contextlib import closing
from pathlib import Path

from kit.helpers import wait_until
from kit.programs import Program, binlog_end, run_program, write_profiles
from kit.topic import ListTopic

from cdc_producer.capture import Capture
from cdc_producer.connection import ReplicationConnection
from cdc_producer.decode.binlog import BinlogReader
from cdc_producer.decode.processes import Decoders
from cdc_producer.decode.table_decoders import TableDecoders
from cdc_producer.leader import LeaderConsole
from cdc_producer.outgoing import Outgoing
from cdc_producer.profile import Leader, load_producer
from cdc_producer.resume import Resume, from_record
from docker.local.mysql_servers import Server
from shared.events import Position
from shared.filters import DatabaseFilter
from shared.profile import Filters
from shared.topic import Record, open_reader

SERVER_ID = 4_000_000_001
SERVER_UUID = str(uuid.uuid5(uuid.NAMESPACE_URL, "test_resume"))

SCRIPT = [
    "CREATE DATABASE $", "CREATE DATABASE $x", "CREATE TABLE $.a (id INT PRIMARY KEY AUTO_INCREMENT, c CHAR(200))",
    "CREATE TABLE $.b (c INT)", "CREATE TABLE $x.c (c INT)", "CREATE TABLE $.numbers (n INT)",
    "INSERT INTO $.numbers VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9)",
    # many row events in one transaction, of included and excluded tables
    "BEGIN", "INSERT INTO $.a (c) SELECT UUID() FROM $.numbers x, $.numbers y, $.numbers z", "INSERT INTO $x.c VALUES (1)",
    "UPDATE $.a SET c = 'updated'", "INSERT INTO $.b VALUES (1), (1)", "DELETE FROM $.b LIMIT 1", "INSERT INTO $x.c VALUES (2)",
    "COMMIT", "INSERT INTO $x.c VALUES (3)", "ALTER TABLE $.b ADD d INT", "FLUSH BINARY LOGS",
    "SET SESSION binlog_transaction_compression = ON", "INSERT INTO $.a (c) SELECT UUID() FROM $.numbers x, $.numbers y",
    "BEGIN", "INSERT INTO $.b VALUES (2, 2)", "DELETE FROM $.a WHERE id % 2 = 0", "COMMIT",
    "SET SESSION binlog_transaction_compression = OFF", "CREATE TABLE $.filled AS SELECT * FROM $.b",
    "INSERT INTO $x.c VALUES (4)", "DROP TABLE $.a", "INSERT INTO $x.c VALUES (5)",
]  # fmt: skip


def capture(leader: Server, database: str, resume: Resume) -> list[bytes]:
    """All records from there to the leader's end."""
    profile = Leader(user="root", host=leader.host, port=leader.port)
    console = LeaderConsole(profile)
    facts = console.check(SERVER_ID, SERVER_UUID)
    console.close()
    databases, topic = DatabaseFilter(Filters(include_dbs=(database,))), ListTopic()
    tables = TableDecoders("mysql-srv1", databases, facts.charsets)
    outgoing = Outgoing(topic, Decoders(tables, 0))
    captured = Capture("mysql-srv1", databases, facts, tables, resume, outgoing)
    connection = ReplicationConnection(profile, SERVER_ID, SERVER_UUID, resume.position)
    reader = BinlogReader(resume.position)
    with closing(connection), outgoing:
        while captured.edge < facts.end:
            for raw in connection.events():
                for event in reader.read(raw):
                    captured.feed(event)
        outgoing.finish()
    return topic.values


def test_resume_after_every_record(leader: Server, database: str) -> None:
    file, _, offset = binlog_end(leader).rpartition(":")
    start = Position(file, int(offset))
    with leader.connect() as connection, connection.cursor() as cursor:
        for statement in SCRIPT:
            cursor.execute(statement.replace("$", database))
    records = capture(leader, database, Resume(start))
    assert len(records) > 20
    for index, value in enumerate(records):
        resume = from_record(Record(index, value))
        assert resume.sequence == index
        assert capture(leader, database, resume) == records[index + 1 :]


def test_stopping_inside_a_large_transaction_continues_there(leader: Server, database: str, tmp_path: Path) -> None:
    """The whole program, killed while a transaction of many events is on its way."""
    profiles = write_profiles(tmp_path, leader, leader, include_dbs=[database])
    leader.execute(
        f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (id INT PRIMARY KEY AUTO_INCREMENT, c CHAR(255))",
        "SET SESSION cte_max_recursion_depth = 1000000",
        f"INSERT INTO {database}.t (c) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)"
        " SELECT REPEAT('x', 255) FROM n",
    )  # fmt: skip
    settings = load_producer(profiles.producer).topic
    producer = Program("cdc_producer", profiles.producer)
    killed_at = []
    for _ in range(3):
        producer.start()
        before = killed_at[-1] if killed_at else 2

        def grown(before: int = before) -> int:
            path = Path(settings.path) / f"{settings.name}.topic"
            end = open_reader(settings).next_offset() if path.exists() else 0
            return end if end > before + 50 else 0

        killed_at.append(wait_until(grown, "the topic grows"))
        producer.kill()
    done = run_program("cdc_producer", profiles.producer, "--exit-at-end")
    assert done.returncode == 0, done.stderr
    reader = open_reader(settings)
    records = []
    while some := reader.read(0):
        records += [record for record in some if b'"operation":"Heartbeat"' not in record.value]
    whole = capture(leader, database, from_record(records[0]))
    assert [record.value for record in records[1:]] == whole[: len(records) - 1]
    assert sum(record.value.count(b'{"cols":') for record in records) == 200_000
