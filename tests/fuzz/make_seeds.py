"""Makes the seeds: PYTHONPATH=.:tests python tests/fuzz/make_seeds.py. Starts a MySQL and keeps what it and the producer write."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from kit.programs import binlog_end, write_profiles
from kit.type_cases import CASES, JSONS, SESSION, Case

from cdc_producer.connection import ReplicationConnection
from cdc_producer.decode.binlog import BinlogReader
from cdc_producer.decode.binlog_event import BinlogEvent
from cdc_producer.decode.table_map import TableMapColumn, read_table_map
from cdc_producer.leader import LeaderConsole, LeaderFacts
from cdc_producer.profile import load_producer
from docker.local.mysql_servers import LEADER, MySQLServer, start_server
from fuzz.blocks import SEEDS, pack, save_seeds
from fuzz.leader_targets import captured
from shared import binlog_format as t
from shared.binlog_format import HEADER, HEADER_SIZE, EventType
from shared.events import Position

#: inputs longer than this (bytes) are altered too slowly to be of use
LARGEST = 6000
ROWS = (EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS)
BEGINS = (EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED)

#: what else a binlog holds, besides rows of every type
STATEMENTS = (
    "SET autocommit = 0", "INSERT INTO d.many VALUES (1, 'one', '2024-01-02 03:04:05')", "SAVEPOINT s",
    "INSERT INTO d.many VALUES (2, NULL, NULL)", "UPDATE d.many SET s = 'two', i = i + 10", "COMMIT", "SET autocommit = 1",
    "SET foreign_key_checks = 0", "DELETE FROM d.many WHERE i = 11", "SET foreign_key_checks = 1",
    "CREATE TABLE d.filled SELECT * FROM d.many", "ALTER TABLE d.filled ADD COLUMN (j JSON, k INT DEFAULT 5, PRIMARY KEY (i))",
    "UPDATE d.filled, d.many SET filled.k = 6, many.s = 'x'", "CREATE VIEW d.v AS SELECT * FROM d.many", "DROP VIEW d.v",
    "SET sql_mode = 'ANSI_QUOTES'", 'CREATE TABLE "d"."é" ("a b" INT)', "SET sql_mode = DEFAULT",
    "CREATE PROCEDURE d.p () SELECT 1",
    "CREATE TRIGGER d.g BEFORE INSERT ON d.many FOR EACH ROW SET NEW.s = UPPER(NEW.s)", "DROP TRIGGER d.g",
    "SET time_zone = '+05:30', lc_time_names = 'de_DE', auto_increment_increment = 3, collation_connection = latin1_swedish_ci",
    "CREATE TABLE d.zone (t TIMESTAMP DEFAULT '2024-01-01 00:00:00')", "INSERT INTO d.zone VALUES (NOW())", "CREATE DATABASE e", "DROP TABLE d.zone, d.filled",
    "RENAME TABLE d.many TO e.moved, d.`é` TO e.kept", "ALTER DATABASE e CHARACTER SET latin1", "DROP DATABASE e",
    "CREATE USER u", "GRANT SELECT ON d.* TO u", "ANALYZE TABLE d.T30_year", "FLUSH TABLES",
    "SET gtid_next = 'AUTOMATIC:tag'", "INSERT INTO d.T30_year VALUES (77, 2000, 0)", "SET gtid_next = 'AUTOMATIC'",
    "CREATE DATABASE x", "CREATE TABLE x.x (i INT)", "XA START 'x'", "INSERT INTO x.x VALUES (1)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'",
    "SET binlog_rows_query_log_events = ON", "INSERT INTO d.T30_year VALUES (79, 2000, 0)",
    "SET binlog_transaction_compression = ON", "INSERT INTO d.T30_year VALUES (80, 2000, 0), (81, 2001, 1)",
    "UPDATE d.T31_json SET c = JSON_SET(c, '$.z', REPEAT('ab', 300))", "DELETE FROM d.T6_char",
    "FLUSH BINARY LOGS", "INSERT INTO d.T30_year VALUES (90, 1999, 0)",
)  # fmt: skip
#: one row of very many types at once
WIDE = (
    "CREATE TABLE d.wide (id BIGINT PRIMARY KEY, a TINYINT, b SMALLINT UNSIGNED, c MEDIUMINT, e DECIMAL(20,6), f FLOAT,"
    " g DOUBLE, h BIT(12), i DATE, k TIME(3), l DATETIME(6), m TIMESTAMP(2) NULL, n YEAR, o CHAR(9), p VARCHAR(300),"
    " q VARBINARY(20), r BLOB, s MEDIUMTEXT, t ENUM('x','y'), u SET('x','y','z'), v JSON, w POINT SRID 0, x VECTOR(3))",
    "INSERT INTO d.wide VALUES (1, -1, 2, -3, 4.5, 1.5, 2.25, b'101', '2024-02-03', '-01:02:03.004', '2024-02-03 04:05:06.007',"
    " '2024-02-03 04:05:06.78', 2024, 'char', 'varchar', x'00FF', x'0102', 'text', 'y', 'x,z', '{\"a\": [1, 2.5, null]}',"
    " ST_GeomFromText('POINT(1 2)'), TO_VECTOR('[1,2,3]')), (2" + ", NULL" * 22 + ")",
    "UPDATE d.wide SET a = 5, p = REPEAT('é', 40), v = '[true, {\"b\": \"c\"}]'",
)


def small(case: Case) -> list[str]:
    """The values of a case that make short inputs."""
    long = re.compile(r"REPEAT\(.*, \d{4,}\)|information_schema")
    return [value for value in case.values if not long.search(value)]


def write(server: MySQLServer) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in (SESSION, "CREATE DATABASE d", "CREATE TABLE d.many (i INT, s VARCHAR(20), t DATETIME)"):
            cursor.execute(statement)
        for case in (*CASES, JSONS):
            cursor.execute(f"CREATE TABLE d.{case.id} (id INT PRIMARY KEY, c {case.type}, d INT)")
            rows = [f"({number}, {value}, 0)" for number, value in enumerate([*small(case), "NULL"])]
            cursor.execute(f"INSERT INTO d.{case.id} VALUES {', '.join(rows)}")
            cursor.execute(f"UPDATE d.{case.id} SET d = 1")
            cursor.execute(f"DELETE FROM d.{case.id} WHERE id = 0")
        for statement in (*WIDE, *STATEMENTS):
            cursor.execute(statement)


def packets(server: MySQLServer, folder: Path, start: str) -> tuple[list[bytes], LeaderFacts]:
    """All that the leader sends from `start` to its end."""
    profile = load_producer(write_profiles(folder, server, server, start=start).producer)
    with closing(LeaderConsole(profile.database)) as console:
        facts = console.check(77, "cdc00000-0000-0000-0000-000000000077")
    file, _, offset = start.partition(":")
    reader = BinlogReader(Position(file, int(offset)))
    connection = ReplicationConnection(
        profile.database, 77, "cdc00000-0000-0000-0000-000000000077", Position(file, int(offset))
    )
    found: list[bytes] = []
    with closing(connection):
        while reader.position < facts.end:
            for raw in connection.events():
                found.append(raw)
                list(reader.read(raw))
    return found, facts


def transactions(raw: list[bytes]) -> Iterator[list[bytes]]:
    """The packets of one transaction each; what stands between two is left out."""
    current: list[bytes] = []
    for packet in raw:
        if packet[4] in BEGINS and current:
            yield current
            current = []
        current.append(packet)
    yield current


def jsons(columns: tuple[TableMapColumn, ...], kind: int, body: bytes) -> Iterator[bytes]:
    """The JSON values of the rows of (INT, JSON, INT), found by their place."""
    if [column.type for column in columns] != [t.LONG, t.JSON, t.LONG]:
        return
    position = 8 + int.from_bytes(body[8:10], "little") + (3 if kind == EventType.UPDATE_ROWS else 2)
    while position < len(body):
        nulls, position = body[position], position + 1
        position += 0 if nulls & 1 else 4
        if not nulls & 2:
            size = int.from_bytes(body[position : position + 4], "little")
            yield body[position + 4 : position + 4 + size]
            position += 4 + size
        position += 0 if nulls & 4 else 4


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="mysql-cdc-seeds-") as name:
        folder = Path(name)
        with start_server(folder / "leader", server_id=1, options=LEADER) as server:
            start = binlog_end(server)
            write(server)
            raw, facts = packets(server, folder, start)
    charsets = {str(number): [charset.name, charset.max_length] for number, charset in facts.charsets.items()}
    text = json.dumps({"charsets": charsets}, separators=(",", ":"))
    (SEEDS / "leader.json").write_text(text + "\n")
    keep(raw, facts, start)


def keep(raw: list[bytes], facts: LeaderFacts, start: str) -> None:
    """Store the seeds of each target that reads what a leader or a producer wrote."""
    file, _, offset = start.partition(":")
    position = Position(file, int(offset))
    events = [pack((packet[4], packet[HEADER_SIZE:-4]) for packet in packets) for packets in transactions(raw)]
    payloads = [
        packet[HEADER_SIZE:-4] for packet in raw if HEADER.unpack_from(packet)[1] == EventType.TRANSACTION_PAYLOAD
    ]
    reader = BinlogReader(position)
    outgoing, capture = captured(facts, position)
    rows: list[bytes] = []
    values: list[bytes] = []
    inside: list[bytes] = []
    table_maps: dict[bytes, BinlogEvent] = {}
    for packet in raw:
        cut = list(reader.read(packet))
        if packet[4] == EventType.TRANSACTION_PAYLOAD:
            inside.append(b"\1" + pack((event.type, event.body) for event in cut))
        for event in cut:
            if event.type == EventType.TABLE_MAP:
                table_maps[event.body[:6]] = event
            elif event.type in ROWS and event.body[:6] in table_maps:
                table_map = table_maps[event.body[:6]]
                rows.append(pack(((0, table_map.body), (event.type, event.body))))
                values += jsons(read_table_map(table_map, facts.charsets).columns, event.type, event.body)
            capture.feed(event)
    records = outgoing.values()
    save_seeds("events", (seed for seed in events if len(seed) <= LARGEST))
    save_seeds("rows", (seed for seed in rows if len(seed) <= LARGEST))
    save_seeds("json", (seed for seed in values if len(seed) <= LARGEST))
    save_seeds("payloads", [*(b"\0" + body for body in payloads), *inside])
    save_seeds("records", (record for record in records if len(record) <= LARGEST))
    for name in ("events", "rows", "json", "payloads", "records"):
        print(name, (SEEDS / f"{name}.xz").stat().st_size)


if __name__ == "__main__":
    main()
