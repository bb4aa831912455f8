"""Rows by the leader's own binlog events: the same bytes as by SQL."""

from __future__ import annotations

import uuid

import pytest
from fix_replication import Replicate, Replication, assert_refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.helpers import assert_same_database
from kit.type_cases import CASES, JSONS, SESSION, Case
from kit.written_topic import by_sql, records, statements

from cdc_consumer.binlog.changes import changes_in
from cdc_consumer.binlog.columns import layout_of
from cdc_consumer.binlog.layout import read_layout
from docker.local.mysql_servers import Server

#: columns whose members' bytes cannot be told from a follower's information_schema
NO_LAYOUT = {"T18_enum_latin1", "T19_set_utf16"}


EVERY = (*CASES, JSONS)


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
    wanted = draw(st.sampled_from(["PRIMARY KEY (id)", "KEY (n)", "PRIMARY KEY (n, id)", "UNIQUE (id), KEY (n)", ""]))
    null = [draw(st.sampled_from(["", " NOT NULL"])) for _ in columns]
    parts = [f"c{index} {case.type.replace(' NULL', '')}{null[index] or ' NULL'}" for index, case in enumerate(columns)]
    return f"(id INT NOT NULL, {', '.join(parts)}, n INT NOT NULL{wanted and f', {wanted}'})", columns


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_both_ways_give_equal_bytes(
    replicate: Replicate, leader: Server, follower: Server, plain_follower: Server, data: st.DataObject
) -> None:
    """Any tables and rows, by one session or several; the other way writes them on a server that is not even in the same GTID mode."""
    database = f"test_both_{uuid.uuid4().hex[:12]}"  # of each run, also of one that repeats an example
    side_by_side = [{}, {"workers": 4}, {"workers": 3, "order": "independent"}]
    apply = data.draw(st.sampled_from(side_by_side))
    replication = replicate(leader, follower, [database], name=database, consumer={"apply": apply})
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
    assert "looking closer" not in result.stderr
    assert_same_database(leader, follower, database)
    assert_same_database(follower, plain_follower, database)
    for server in (leader, follower, plain_follower):
        server.execute(f"DROP DATABASE {database}", f"DROP DATABASE IF EXISTS {database}_cdc")


@pytest.mark.parametrize("rows", ["auto", "sql"])
def test_a_document_that_no_sql_can_write(
    replicate: Replicate, leader: Server, follower: Server, database: str, rows: str
) -> None:
    replication = replicate(leader, follower, [database], consumer={"apply": {"rows": rows}})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON, l TINYBLOB)",
        "INSERT INTO t VALUES (1, NULL, x'00FF')", "UPDATE t SET j = JSON_ARRAY(l)",
    )  # fmt: skip
    assert replication.produce().returncode == 0
    if rows == "sql":
        assert_refused(replication.consume(), "which no SQL literal can express")
    else:
        assert replication.consume().returncode == 0
        replication.same()


@pytest.mark.parametrize("rows", ["auto", "sql"])
def test_documents_that_are_equal_by_value(
    replicate: Replicate, leader: Server, follower: Server, database: str, rows: str
) -> None:
    """MySQL's UPDATE writes nothing of them; what the leader has written is another document all the same."""
    replication = replicate(leader, follower, [database], consumer={"apply": {"rows": rows}})
    replication.play(f"CREATE DATABASE {database}")
    columns = {"t": "PRIMARY KEY (id)", "u": "KEY (id)", "g": "n INT AS (id + 1) STORED, PRIMARY KEY (id)"}
    for table, more in columns.items():
        into = f"{table} (id, c)"
        replication.play(
            f"CREATE TABLE {table} (id INT, c JSON NOT NULL, {more})",
            f"INSERT INTO {into} VALUES (1, '[1]'), (2, '{{\"a\": 0.0}}'), (3, JSON_ARRAY(1.10)), (4, '[]'), (5, '[]')",
        )
        for number, value in (1, "'[1.0]'"), (2, "JSON_OBJECT('a', -0e0)"), (3, "'[1.1]'"), (4, "'{}'"), (5, "'[]'"):
            if table == "u":
                replication.play(
                    f"UPDATE u SET c = '7' WHERE id = {number}", f"UPDATE u SET c = {value} WHERE id = {number}"
                )
            else:
                replication.play(f"REPLACE INTO {into} VALUES ({number}, {value})")
    # where the document in between would be refused, none is needed
    replication.play("CREATE TABLE k (id INT PRIMARY KEY, c JSON CHECK (JSON_LENGTH(c) > 0))")
    replication.play("INSERT INTO k VALUES (1, '[1]')", "UPDATE k SET c = '[2]'")
    replication.replicate()
    for table in (*columns, "k"):
        query = f"SELECT id, CAST(c AS CHAR), JSON_STORAGE_SIZE(c) FROM {database}.{table} ORDER BY id"
        assert follower.execute(query) == leader.execute(query)
