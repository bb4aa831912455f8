"""Rows by the leader's own binlog events: the same bytes as by SQL, and the row is named when it cannot be."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from fix_replication import Replicate, Replication, assert_refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.helpers import assert_same_database, tables_of
from kit.type_cases import CASES, JSONS, SESSION, Case

from cdc_consumer.binlog.changes import changes_in
from cdc_consumer.binlog.columns import layout_of
from cdc_consumer.binlog.layout import read_layout
from docker.local.mysql_servers import Server
from shared.topic import Record, open_reader, open_writer
from shared.topic.record import Sealed, seal

#: columns whose members' bytes cannot be told from a follower's information_schema
NO_LAYOUT = {"T18_enum_latin1", "T19_set_utf16"}
EVERY = (*CASES, JSONS)
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
    from pathlib import Path

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


# exactness


def test_the_layout_of_every_type(replication: Replication) -> None:
    """What is made of the follower's information_schema is what the leader says of an equal table."""
    for case in EVERY:
        replication.play(f"CREATE TABLE {case.id} (id INT, c {case.type}, n INT UNSIGNED NOT NULL)")
        replication.play(f"INSERT INTO {case.id} VALUES (1, NULL, 2)")
    replication.replicate()
    found = 0
    for changes in filter(None, map(changes_in, records(replication))):
        layout = layout_of(replication.follower.execute, replication.database, changes.table.decode())
        assert layout == (None if changes.table.decode() in NO_LAYOUT else read_layout(changes.layout))
        found += 1
    assert found == len(EVERY)


@pytest.mark.parametrize(
    "change",
    [
        "DROP COLUMN d", "ADD COLUMN z INT", "ADD COLUMN z INT AFTER id", "MODIFY n INT AFTER d", "RENAME COLUMN s TO s2",
        "MODIFY n INT UNSIGNED", "MODIFY n BIGINT", "MODIFY n INT NOT NULL", "MODIFY s VARCHAR(21)", "MODIFY s CHAR(20)",
        "MODIFY s VARCHAR(20) CHARACTER SET latin1", "MODIFY s VARCHAR(20) COLLATE utf8mb4_bin", "MODIFY s VARBINARY(80)",
        "MODIFY d DECIMAL(11,2)", "MODIFY d DECIMAL(10,3)", "MODIFY d DECIMAL(10,2) UNSIGNED", "MODIFY e ENUM('b','a')",
        "MODIFY e ENUM('a','b','c')", "MODIFY e ENUM('a','b') COLLATE utf8mb4_bin", "MODIFY e SET('a','b')",
        "MODIFY ts TIMESTAMP(4) NULL", "MODIFY ts DATETIME(3)", "MODIFY b MEDIUMBLOB", "MODIFY b TEXT", "MODIFY g GEOMETRY",
        "MODIFY v VECTOR(4)", "MODIFY bits BIT(10)", "DROP n, ADD n INT AS (id + 1) STORED AFTER s",
        "DROP n, ADD n INT AS (id + 1) VIRTUAL AFTER s",
    ],
)  # fmt: skip
def test_any_difference_is_seen(follower: Server, database: str, change: str) -> None:
    follower.execute(
        f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.t (id INT PRIMARY KEY, s VARCHAR(20), n INT, d DECIMAL(10,2), e ENUM('a','b'),"
        " ts TIMESTAMP(3) NULL, b BLOB, g POINT, v VECTOR(3), bits BIT(9))",
    )
    before = layout_of(follower.execute, database, "t")
    assert before is not None
    follower.execute(f"ALTER TABLE {database}.t {change}")
    assert layout_of(follower.execute, database, "t") != before


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[Case]]:
    """The definition of a table and its columns' types, between an `id` and a number."""
    columns = draw(st.lists(st.sampled_from([case for case in EVERY if case.id != "T31_json"]), min_size=1, max_size=9))
    columns += [JSONS] * draw(st.integers(0, 1))
    wanted = draw(st.sampled_from(["PRIMARY KEY (id)", "KEY (n)", "PRIMARY KEY (n, id)", "UNIQUE (id), KEY (n)"]))
    null = [draw(st.sampled_from(["", " NOT NULL"])) for _ in columns]
    parts = [f"c{index} {case.type.replace(' NULL', '')}{null[index] or ' NULL'}" for index, case in enumerate(columns)]
    return f"(id INT NOT NULL, {', '.join(parts)}, n INT NOT NULL, {wanted})", columns


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_both_ways_give_equal_bytes(
    replicate: Replicate, leader: Server, follower: Server, plain_follower: Server, data: st.DataObject
) -> None:
    """Any tables and rows; the other way writes them on a server that is not even in the same GTID mode."""
    database = f"test_both_{uuid.uuid4().hex[:12]}"  # of each run, also of one that repeats an example
    replication = replicate(leader, follower, [database], name=database)
    replication.play(f"CREATE DATABASE {database}")
    script = [SESSION]
    for number in range(4):
        definition, columns = data.draw(tables())
        script.append(f"CREATE TABLE t{number} {definition}")
        for identity in range(data.draw(st.integers(1, 8))):
            values = ", ".join(data.draw(st.sampled_from(case.values)) for case in columns)
            script.append(f"INSERT IGNORE INTO t{number} VALUES ({identity}, {values}, {identity % 3})")
        column, case = data.draw(st.sampled_from(list(enumerate(columns))))
        value = data.draw(st.sampled_from(case.values))
        script += [
            f"UPDATE t{number} SET c{column} = {value} WHERE n = 1", f"UPDATE t{number} SET n = n + 10 WHERE n < 2",
            f"DELETE FROM t{number} WHERE id = {data.draw(st.integers(0, 8))}",
        ]  # fmt: skip
    replication.play(*script)
    before = statements(follower)
    replication.replicate()
    assert statements(follower) > before
    other = by_sql(replicate, replication, plain_follower)
    result = other.consume()
    assert result.returncode == 0, result.stderr
    assert_same_database(leader, follower, database)
    assert_same_database(follower, plain_follower, database)
    for server in (leader, follower, plain_follower):
        server.execute(f"DROP DATABASE {database}", f"DROP DATABASE IF EXISTS {database}_cdc")


def test_what_one_way_does_not_take_goes_the_other(replication: Replication) -> None:
    """Tables with and without generated columns in one transaction, and both within one statement of the leader."""
    replication.play(
        f"CREATE TABLE a {TABLE}", "CREATE TABLE g (id INT PRIMARY KEY, up INT AS (id + 1) STORED, name VARCHAR(20))",
        "BEGIN", "INSERT INTO a VALUES (1, 'x'), (2, 'y')", "INSERT INTO g (id, name) VALUES (1, 'x'), (2, 'y')",
        "UPDATE a, g SET a.name = 'both', g.name = 'both' WHERE a.id = g.id AND a.id = 1", "DELETE FROM a WHERE id = 2",
        "COMMIT", "INSERT INTO a VALUES (3, 'z')", "INSERT INTO g (id) VALUES (4)", "INSERT INTO a VALUES (5, 'z')",
        "CREATE TABLE c AS SELECT * FROM a", "ALTER TABLE a ADD d INT DEFAULT 3", "INSERT INTO a VALUES (6, 'w', 4)",
    )  # fmt: skip
    before = statements(replication.follower)
    replication.replicate()
    replication.same()
    assert statements(replication.follower) > before + 4


def test_a_session_of_the_leader_without_foreign_keys(replication: Replication) -> None:
    """A child without its parent is taken where the leader did not look, in whatever order the rows come."""
    replication.play(
        f"CREATE TABLE p {TABLE}", "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "INSERT INTO p VALUES (1, 'a'), (2, 'b')", "INSERT INTO c VALUES (1, 1), (2, 2)", "DELETE FROM p WHERE id = 1",
        "BEGIN", "INSERT INTO p VALUES (3, 'c')", "SET foreign_key_checks = 0", "INSERT INTO c VALUES (9, 9)",
        "SET foreign_key_checks = 1", "INSERT INTO c VALUES (3, 3)", "COMMIT", "UPDATE p SET name = 'z'",
    )  # fmt: skip
    replication.replicate()
    replication.same()


def test_other_databases_stay_outside(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    other = f"{database}_other"
    replication = replicate(leader, follower, [database, other], consumer={"filters": {"include_dbs": [database]}})
    replication.play(f"CREATE DATABASE {database}", f"CREATE DATABASE {other}")
    replication.play(f"CREATE TABLE t {TABLE}", f"CREATE TABLE {other}.t {TABLE}")
    replication.play("BEGIN", "INSERT INTO t VALUES (1, 'a')", f"INSERT INTO {other}.t VALUES (1, 'a')", "COMMIT")
    replication.play(f"INSERT INTO {other}.t VALUES (2, 'b')")
    replication.replicate()
    replication.same()
    assert tables_of(follower, other) == []
    assert replication.sequence() == len(replication.events()) - 1


# errors


def spoil(kind: str, number: int) -> tuple[str, str]:
    """A statement on the follower after which the row of this number cannot be applied, and one that mends it."""
    return {
        "missing": (f"DELETE FROM t WHERE id = {number}", f"INSERT INTO t VALUES ({number}, 'old')"),
        "double": (f"INSERT INTO t VALUES ({number + 100}, 'mine')", f"DELETE FROM t WHERE id = {number + 100}"),
        "parent": (f"DELETE FROM p WHERE id = {number}", f"INSERT INTO p VALUES ({number})"),
    }[kind]


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize(
    ("kind", "write", "words"),
    [
        ("missing", "UPDATE t SET name = 'new' WHERE id = {}", "Update of {}.t (id={}), sequence"),
        ("double", "INSERT INTO t VALUES (100 + {}, 'new')", "Duplicate entry '10{}' for key 't.PRIMARY'"),
        ("missing", "DELETE FROM t WHERE id = {}", "Delete of {}.t (id={}), sequence"),
    ],
)
def test_the_row_is_named(replication: Replication, kind: str, write: str, words: str, place: str) -> None:
    """Wherever it stands among transactions that follow each other in one breath, all before it are committed."""
    replication.play(f"CREATE TABLE t {TABLE}", *(f"INSERT INTO t VALUES ({n}, 'old')" for n in range(9)))
    replication.replicate()
    base = replication.sequence()
    replication.play(*(write.format(n) for n in range(9)))
    assert replication.produce().returncode == 0
    number = {"first": 0, "middle": 4, "last": 8}[place]
    before, after = spoil(kind, number)
    replication.follower.execute("SET sql_log_bin = 0", before, database=replication.database)
    named = words.format(*([replication.database, number] if words.startswith(("Update", "Delete")) else [number]))
    assert_refused(replication.consume(), named, f"sequence {base + number + 1}")
    assert replication.sequence() == base + number
    replication.follower.execute("SET sql_log_bin = 0", after, database=replication.database)
    result = replication.consume()
    assert result.returncode == 0, result.stderr
    replication.same()


def test_a_transaction_that_somebody_else_ran(replication: Replication) -> None:
    """MySQL passes over a GTID it has, position and all; the transaction is found to be done, and the next follow."""
    replication.play(f"CREATE TABLE t {TABLE}")
    replication.replicate()
    replication.play(*(f"INSERT INTO t VALUES ({n}, 'a')" for n in range(6)))
    assert replication.produce().returncode == 0
    gtids = [event["transaction"]["gtid"] for event in replication.events()][-6:]
    for number in (0, 3, 5):
        replication.follower.execute(
            f"SET gtid_next = '{gtids[number]}'", f"INSERT INTO t VALUES ({number}, 'a')", "SET gtid_next = 'AUTOMATIC'",
            database=replication.database,
        )  # fmt: skip
    result = replication.consume()
    assert result.returncode == 0, result.stderr
    replication.same()
    assert replication.sequence() == len(replication.events()) - 1


def test_a_transaction_larger_than_a_statement(replication: Replication) -> None:
    replication.play(
        f"CREATE TABLE t {TABLE.replace('20', '600')}", "SET SESSION cte_max_recursion_depth = 100000",
        "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)"
        " SELECT i, REPEAT('x', i % 600) FROM n",
        "BEGIN", "UPDATE t SET name = CONCAT('y', name) WHERE LENGTH(name) < 600", "DELETE FROM t WHERE id % 3 = 0", "COMMIT",
    )  # fmt: skip
    assert replication.produce().returncode == 0
    before = statements(replication.follower)
    assert replication.consume().returncode == 0
    assert statements(replication.follower) - before > 10
    replication.same()


# what is not believed


def lines(record: Record, **changed: Any) -> Sealed:
    """The record with other contents, sealed anew."""
    record = record._replace(**changed)
    return seal(record.value, [record.binlog], record.checksums)


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


def test_sql_alone(replicate: Replicate, leader: Server, follower: Server, database: str) -> None:
    replication = replicate(leader, follower, [database], consumer={"apply": {"rows": "sql"}})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(f"CREATE TABLE t {TABLE}", "INSERT INTO t VALUES (1, 'a')")
    before = statements(follower)
    replication.replicate()
    replication.same()
    assert statements(follower) == before


def test_a_position_of_an_earlier_version(replication: Replication) -> None:
    """Its key is changed; where its columns are others rows go by SQL, and the log says so."""
    follower, database = replication.follower, replication.database
    replication.play(f"CREATE TABLE t {TABLE}", "INSERT INTO t VALUES (1, 'a')")
    replication.replicate()
    own = f"{database}_cdc.position"
    follower.execute(
        "SET sql_log_bin = 0",
        f"ALTER TABLE {own} DROP PRIMARY KEY, DROP link, ADD PRIMARY KEY (topic, worker), ADD x INT",
    )
    replication.play("INSERT INTO t VALUES (2, 'a')")
    assert replication.produce().returncode == 0
    before = statements(follower)
    result = replication.consume()
    assert result.returncode == 0 and "rows go by SQL" in result.stderr
    assert statements(follower) == before + 1  # the trial
    follower.execute("SET sql_log_bin = 0", f"ALTER TABLE {own} DROP x")
    replication.play("INSERT INTO t VALUES (3, 'a')")
    replication.replicate()
    replication.same()
    assert statements(follower) == before + 3
