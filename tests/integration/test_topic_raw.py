"""The leader's binlog events beside the JSON: verbatim, exactly those of the operation, and enough to apply it."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from fix_replication import Replicate, Replication
from kit.helpers import assert_same_table
from kit.type_cases import CASES, JSONS, SESSION

from cdc_producer.connection import ReplicationConnection
from cdc_producer.profile import Leader
from docker.local.mysql_servers import Server
from shared.events import Position
from shared.topic import Record, open_reader
from shared.topic.record import binlog_events

QUERY, FORMAT_DESCRIPTION, TABLE_MAP = 2, 15, 19
ROWS = {"Add": 30, "Update": 31, "Delete": 32}
#: where a binlog event's type, size and end offset are, and a rows event's flags; the one that ends a statement
TYPE, SIZE, END, FLAGS = 4, slice(9, 13), slice(13, 17), 25
STATEMENT_END = 1

SCRIPT = [
    "CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, c CHAR(200))", "CREATE TABLE b (c INT)", "INSERT INTO b VALUES (1), (2), (3)",
    # many rows events behind one table map
    "INSERT INTO a (c) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT UUID() FROM n",
    "BEGIN", "UPDATE a, b SET a.c = 'both', b.c = b.c + 10 WHERE a.id = b.c", "DELETE FROM a WHERE id > 100", "COMMIT",
    "CREATE TABLE filled AS SELECT * FROM b", "ALTER TABLE b ADD d INT",
]  # fmt: skip


@pytest.fixture(params=["", "SET SESSION binlog_transaction_compression = ON"], ids=["plain", "compressed"])
def session(request: pytest.FixtureRequest) -> Any:
    return request.param


def records(replication: Replication) -> Iterator[tuple[dict[str, Any], Record]]:
    """The operations, with their records."""
    with closing(open_reader(replication.topic)) as reader:
        while found := reader.read(0.0):
            yield from (
                (event, record) for record in found if (event := json.loads(record.value))["operation"] != "Heartbeat"
            )


def test_they_are_the_leaders(replication: Replication, leader: Server, session: str) -> None:
    """Their types are the operation's, their checksums the leader's, and they are where the leader says they are."""
    replication.play(*filter(None, [session]), *SCRIPT)
    assert replication.produce().returncode == 0
    places = {}
    several, without = 0, []
    for event, record in records(replication):
        file = event["bn_file"]["fileName"]
        if file not in places:
            # from here on, since statements of other tests in that file need not be UTF-8
            found = leader.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {event['transaction']['begin']}")
            places[file] = {(start, end): kind for _, start, kind, _, end, _ in found}
        (operation,) = event["operation"]
        events = binlog_events(record)
        expected = [QUERY] if operation == "Query" else [TABLE_MAP, ROWS[operation]]
        assert [each[TYPE] for each in events] == expected
        without += [operation] * (not record.checksums)
        for each in events if record.checksums else []:
            assert zlib.crc32(each[:-4]) == int.from_bytes(each[-4:], "little")
            end = int.from_bytes(each[END], "little")
            kind = places[file][end - int.from_bytes(each[SIZE], "little"), end]
            assert kind == {QUERY: "Query", TABLE_MAP: "Table_map"}.get(each[TYPE], kind)
        several += len(events)
        if operation == "Query":
            assert event["operation"]["Query"].encode() in events[0]
        else:
            # the table map is of the operation's table, and is the map of its rows
            assert event["uri"].rpartition("/")[2].encode() + b"\0" in events[0]
            assert events[0][19:25] == events[1][19:25]
    assert several > 20
    # inside a compressed transaction there are none
    assert set(without) == (set(ROWS) if session else set())


def test_without_them(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    replication = replicate(leader, follower, [database])
    profile = replication.profiles.producer
    profile.write_text("raw = false\n" + profile.read_text())
    replication.play(f"CREATE DATABASE {database}")
    replication.play(*SCRIPT)
    assert replication.produce().returncode == 0
    assert {record.binlog for _, record in records(replication)} == {b""}
    assert replication.consume().returncode == 0
    replication.same()


def test_they_are_enough_to_apply_rows_of_every_type(
    replication: Replication, leader: Server, follower: Server, database: str, session: str
) -> None:
    """MySQL's own BINLOG statement takes them, and makes the rows of all types what they are on the leader."""
    cases = [*CASES, JSONS]
    tables = [f"CREATE TABLE {case.id} (id INT PRIMARY KEY, c {case.type}, d INT)" for case in cases]
    writes = [SESSION, *filter(None, [session])]
    for case in cases:
        values = [f"({number}, {value}, -1)" for number, value in enumerate([*case.values, "NULL"])]
        writes += [
            f"INSERT INTO {case.id} VALUES {', '.join(values)}", f"INSERT INTO {case.id} SELECT id + 1000, c, 1 FROM {case.id}",
            f"UPDATE {case.id} SET c = NULL, d = d + 1 WHERE id >= 1000", f"DELETE FROM {case.id} WHERE id = 1000",
        ]  # fmt: skip
    replication.play(*tables)
    replication.play(*writes)
    assert replication.produce().returncode == 0
    follower.execute(f"CREATE DATABASE {database}")
    follower.execute(*tables, database=database)
    description = format_description(leader)
    with follower.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"BINLOG '{base64.b64encode(description).decode()}'")
        cursor.execute("SET gtid_next = 'AUTOMATIC'")
        for event, record in records(replication):
            if "Query" in event["operation"]:
                continue
            table_map, rows = (plain(each, record.checksums) for each in binlog_events(record))
            rows[FLAGS] |= STATEMENT_END
            cursor.execute(f"BINLOG '{base64.b64encode(checked(table_map) + checked(rows)).decode()}'")
    for case in cases:
        assert_same_table(leader, follower, database, case.id)


def format_description(leader: Server) -> bytes:
    """The binlog event that says how the leader writes the others."""
    profile = Leader(user="root", host=leader.host, port=leader.port)
    file, offset = leader.execute("SHOW BINARY LOG STATUS")[0][:2]
    uuid = "cdc00000-0000-0000-0000-00000000ffff"
    with closing(ReplicationConnection(profile, 4_000_000_999, uuid, Position(file, offset))) as connection:
        while True:
            for raw in connection.events():
                if raw[TYPE] == FORMAT_DESCRIPTION:
                    return bytes(raw)


def plain(event: bytes, checksum: bool) -> bytearray:
    return bytearray(event[:-4] if checksum else event)


def checked(event: bytearray) -> bytes:
    """The event with its size and checksum."""
    event[SIZE] = (len(event) + 4).to_bytes(4, "little")
    return bytes(event) + zlib.crc32(event).to_bytes(4, "little")
