"""Every kind of value written to a real server: the same bytes are read back, and found again without a key."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.value_kinds import KINDS, Kind, Value, b64

from cdc_consumer.sql import literals
from cdc_consumer.sql.predicates import exactly
from cdc_consumer.sql.session import RowMode, Session, row_settings
from docker.local.mysql_servers import Server
from shared.mysql import Connection


@pytest.fixture
def session(follower: Server, database: str) -> Iterator[Connection]:
    connection = follower.connect(charset="utf8mb4")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"USE {database}")
        for change in Session({}).change(row_settings(RowMode())):
            cursor.execute(change)
    yield connection
    connection.close()


def same(found: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return bool(found == expected and math.copysign(1, found) == math.copysign(1, expected))
    return bool(expected == found)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type[:40])
def test_what_is_written_is_read_and_found(kind: Kind, session: Connection) -> None:
    cursor = session.cursor()
    cursor.execute(f"CREATE TABLE t (id INT PRIMARY KEY, c {kind.type})")

    @settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.one_of(st.just("Null"), kind.values), min_size=1, max_size=12))
    def check(values: Sequence[Value]) -> None:
        cursor.execute("DELETE FROM t")
        rows = ",".join(literals.row([{"SignedInteger": index}, value]) for index, value in enumerate(values))
        session.query(literals.encode(f"INSERT INTO t (id, c) VALUES {rows}"))
        cursor.execute(f"SELECT {kind.read} FROM t ORDER BY id")
        found = [row[0] for row in cursor.fetchall()]
        expected = [None if value == "Null" else kind.expect(value) for value in values]
        assert all(map(same, found, expected)), (values, found)
        for value, read in zip(values, found, strict=True):
            cursor.execute(literals.encode(f"SELECT {kind.read} FROM t WHERE {exactly('c', value)}"))
            alike = [row[0] for row in cursor.fetchall()]
            assert len(alike) == sum(same(other, read) for other in found), (values, value, alike)
            assert all(same(other, read) for other in alike), (values, value, alike)

    check()


KEYS = [
    kind for kind in KINDS
    if kind.type.split("(")[0].split()[0] in {
        "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "BINARY", "VARBINARY", "BIT", "YEAR",
        "DATE", "DATETIME", "TIME", "TIMESTAMP",
    }
]  # fmt: skip


@pytest.mark.parametrize("kind", KEYS, ids=lambda kind: kind.type[:40])
def test_a_key_is_found(kind: Kind, session: Connection) -> None:
    """Keys that compare equal cannot both exist; of those that exist, a list finds its members and no other."""
    cursor = session.cursor()
    cursor.execute(f"CREATE TABLE t (c {kind.type} PRIMARY KEY, id INT)")

    @settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
    @given(
        st.lists(
            st.tuples(kind.values, st.booleans()), min_size=1, max_size=12, unique_by=lambda pair: kind.expect(pair[0])
        )
    )
    def check(values: Sequence[tuple[Value, bool]]) -> None:
        cursor.execute("DELETE FROM t")
        rows = ",".join(literals.row([value, {"SignedInteger": int(listed)}]) for value, listed in values)
        session.query(literals.encode(f"INSERT INTO t (c, id) VALUES {rows}"))
        listed = [literals.literal(value) for value, listed in values if listed]
        if listed:
            session.query(literals.encode(f"DELETE FROM t WHERE c IN ({','.join(listed)})"))
        cursor.execute("SELECT COUNT(*), COALESCE(SUM(id), 0) FROM t")
        assert cursor.fetchone() == (len(values) - len(listed), 0)
        for value, listed_ in values:
            session.query(literals.encode(f"UPDATE t SET id = 2 WHERE c = {literals.literal(value)}"))
            assert session.affected_rows() == (0 if listed_ else 1), value

    check()


def test_a_blob_of_many_bytes(session: Connection) -> None:
    value = bytes(range(256)) * 4096
    cursor = session.cursor()
    cursor.execute("CREATE TABLE t (c LONGBLOB)")
    session.query(literals.encode(f"INSERT INTO t VALUES ({literals.blob(b64(value))})"))
    cursor.execute("SELECT c FROM t")
    assert cursor.fetchone() == (value,)
