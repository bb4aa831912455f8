"""Records that contradict themselves, and rows for what is no table, are not applied."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fix_replication import Replicate, Replication, assert_refused
from kit.written_topic import TABLE, lines, rewrite

from docker.local.mysql_servers import Server
from shared.topic import Record
from shared.topic.record import Sealed


def alter(record: Record, old: bytes, new: bytes) -> Sealed:
    return lines(record, value=record.value.replace(old, new))


def damage(record: Record) -> Sealed:
    """Another byte in the last row."""
    place = len(record.binlog) - 6
    return lines(record, binlog=record.binlog[:place] + bytes((record.binlog[place] ^ 1,)) + record.binlog[place + 1 :])


def swap_maps(record: Record) -> Sealed:
    """Another table id in the rows event, without the checksums that would tell."""
    data = bytearray(record.binlog)
    size = int.from_bytes(data[9:13], "little")
    data[size + 19] ^= 1
    return lines(record, binlog=strip(bytes(data)), checksums=False)


def strip(binlog: bytes) -> bytes:
    """The binlog events without their checksums."""
    parts = []
    while binlog:
        size = int.from_bytes(binlog[9:13], "little")
        parts.append(binlog[:9] + (size - 4).to_bytes(4, "little") + binlog[13 : size - 4])
        binlog = binlog[size:]
    return b"".join(parts)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (damage, "does not match the leader's own checksum"),
        (swap_maps, "rows that do not belong to the table map"),
        (lambda record: lines(record, binlog=record.binlog * 2), "binlog events of type 19, 30, 19, 30"),
        (lambda record: alter(record, b'"Add"', b'"Delete"'), "tells of Delete in"),
        (lambda record: alter(record, b'/t"', b'/u"'), "its binlog events of Add in"),
    ],
    ids=["checksum", "table map", "two of them", "kind", "table"],
)
def test_a_record_that_contradicts_itself_stops(replication: Replication, change: Any, words: str) -> None:
    replication.play(f"CREATE TABLE t {TABLE}", f"CREATE TABLE u {TABLE}", "INSERT INTO t VALUES (1, 'a')")
    assert replication.produce().returncode == 0
    rewrite(replication, lambda record: change(record) if b'"Add"' in record.value else lines(record))
    assert_refused(replication.consume(), words)
    assert replication.follower.value(f"SELECT COUNT(*) FROM {replication.database}.t") == 0


FORGED: dict[str, tuple[bytes, Any]] = {
    "kind": (b'"Add"', lambda record: alter(record, b'"Add"', b'"Delete"')),
    "table": (b'"Add"', lambda record: alter(record, b'/t"', b'/u"')),
    "types": (b'"Add"', lambda record: lines(record, binlog=record.binlog * 2)),
    "statement": (b'"Query"', lambda record: alter(record, b"CREATE TABLE u", b"CREATE TABLE v")),
}


@pytest.mark.parametrize("case", FORGED)
def test_the_way_of_sql_too_refuses_a_record_that_contradicts_itself(
    replicate: Replicate, leader: Server, follower: Server, database: str, case: str
) -> None:
    replication = replicate(leader, follower, [database], consumer={"apply": {"rows": "sql"}})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(f"CREATE TABLE t {TABLE}", f"CREATE TABLE u {TABLE}", "INSERT INTO t VALUES (1, 'a')")
    assert replication.produce().returncode == 0
    kind, change = FORGED[case]
    rewrite(
        replication,
        lambda record: (
            change(record) if kind in record.value and b"CREATE TABLE t" not in record.value else lines(record)
        ),
    )
    assert_refused(replication.consume(), "its binlog events of something else", "cdc-consumer --skip")
    assert replication.follower.value(f"SELECT COUNT(*) FROM {database}.t") == 0


@pytest.mark.parametrize("apply", [{}, {"workers": 3}, {"workers": 3, "order": "independent"}])
def test_what_stands_before_a_record_that_stops_is_committed(
    replicate: Replicate, plain_leader: Server, plain_follower: Server, database: str, apply: dict[str, Any]
) -> None:
    """So that a decision can be about that record's transaction."""
    replication = replicate(plain_leader, plain_follower, [database], consumer={"apply": apply})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(f"CREATE TABLE t {TABLE}", *(f"INSERT INTO t VALUES ({number}, 'a')" for number in range(4)))
    assert replication.produce().returncode == 0
    rewrite(
        replication,
        lambda record: (
            alter(record, b'"Add"', b'"Delete"') if b'{"SignedInteger":2}' in record.value else lines(record)
        ),
    )
    assert_refused(replication.consume(), "its binlog events of Add", "cdc-consumer --skip")
    assert plain_follower.execute(f"SELECT id FROM {database}.t ORDER BY id") == [(0,), (1,)]


def test_a_view_is_given_no_rows(replication: Replication) -> None:
    """Neither as binlog events nor as SQL: they would be written to a table that nobody named."""
    replication.play(f"CREATE TABLE t {TABLE}")
    replication.replicate()
    replication.follower.execute(
        "SET sql_log_bin = 0", "RENAME TABLE t TO behind", "CREATE VIEW t AS SELECT * FROM behind",
        database=replication.database,
    )  # fmt: skip
    replication.play("INSERT INTO t VALUES (1, 'a')")
    assert replication.produce().returncode == 0
    assert_refused(replication.consume(), "of the follower is a VIEW")
    assert replication.follower.value(f"SELECT COUNT(*) FROM {replication.database}.behind") == 0


def test_rows_that_the_follower_passed_over_stop(replication: Replication) -> None:
    """The event tells of two rows, and the session counts one."""
    replication.play(f"CREATE TABLE t {TABLE}", "INSERT INTO t VALUES (1, 'a')")
    assert replication.produce().returncode == 0

    def twice(record: Record) -> Sealed:
        if b'"Add"' not in record.value:
            return lines(record)
        event = json.loads(record.value)
        event["operation"]["Add"]["rows"] *= 2
        return lines(record, value=json.dumps(event, separators=(",", ":")).encode())

    rewrite(replication, twice)
    assert_refused(replication.consume(), "did not apply all rows")
