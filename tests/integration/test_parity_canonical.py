"""The canonical text of rows: what differs in one bit must differ in its hash, and a literal must bring it back."""

from __future__ import annotations

from contextlib import closing

import pytest
from kit.type_cases import CASES, JSONS, SESSION, Case

from cdc_consumer.parity import canonical
from cdc_consumer.parity.literal import parse
from cdc_consumer.parity.model import Column, Shape, TableName
from cdc_consumer.parity.rows.selftest import check
from cdc_consumer.parity.schema.read import read_tables
from cdc_consumer.parity.servers.connection import ServerConnection
from cdc_consumer.sql.session import RELAXED_MODE, STRICT_MODE
from docker.local.mysql_servers import Server
from shared.mysql import rows
from shared.profile import Database, DatabaseTls


def shape_of(server: Server, database: str, table: str) -> Shape:
    name = TableName(database, table)
    with server.connect() as connection:
        record = read_tables(connection, [name])[name]
    columns = tuple(
        Column(column.name, column.type, column.data_type, column.charset, column.nullable, bool(column.generated))
        for column in record.columns
        if column.generated != "VIRTUAL"
    )
    return Shape(name, columns, record.primary_key)


@pytest.mark.parametrize("case", [*CASES, JSONS], ids=lambda case: case.id)
def test_every_value_has_a_hash_of_its_own_and_its_literal_restores_it(
    case: Case, leader: Server, follower: Server, database: str
) -> None:
    definition = f"CREATE TABLE {database}.t (id INT PRIMARY KEY, c {case.type})"
    values = [*case.values, "NULL"] if "NOT NULL" not in case.type.upper() else case.values
    for server in (leader, follower):
        server.execute(f"CREATE DATABASE {database}", definition)
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(SESSION)
        for number, value in enumerate(values):
            cursor.execute(f"INSERT INTO {database}.t VALUES ({number}, {value})")
    shape = shape_of(leader, database, "t")
    only = Shape(shape.name, shape.columns[1:], ())
    with leader.connect() as source:
        for statement in canonical.SESSION:
            rows(source, statement)
        exact = rows(source, f"SELECT DISTINCT {case.exact} FROM {database}.t")
        hashes = rows(source, f"SELECT DISTINCT {canonical.row_hash(only)} FROM {database}.t")
        assert len(hashes) == len(exact) and (None,) not in hashes
        literals = [canonical.literal(column) for column in shape.columns]
        written = rows(source, f"SELECT {', '.join(literals)} FROM {database}.t")
        assert all(parse(value).sql == value for row in written for value in row)
        digests = rows(source, f"SELECT {canonical.digest(shape)}, {canonical.multiset(shape)[10:]} FROM {database}.t")
    with follower.connect() as target:
        for statement in canonical.SESSION:
            rows(target, statement)
        for row in written:
            strict = RELAXED_MODE if case.type.startswith("ENUM") and row[1] == "0" else STRICT_MODE
            rows(target, f"SET SESSION sql_mode = {strict}")
            rows(target, f"INSERT INTO {database}.t VALUES ({', '.join(row)})")
        rows(target, "SET SESSION sql_mode = ''")
        again = rows(target, f"SELECT {canonical.digest(shape)}, {canonical.multiset(shape)[10:]} FROM {database}.t")
        if case is not JSONS:  # numbers that JSON's text does not tell apart come back as other ones
            assert again == digests
            assert rows(target, f"SELECT {', '.join(literals)} FROM {database}.t") == written


def test_rows_of_several_columns_have_hashes_of_their_own(leader: Server, database: str) -> None:
    values = {
        "DATE": ("NULL", "'2020-01-01'", "'2021-01-01'"),
        "TIME": ("NULL", "'01:00:00'", "'101:00:00'"),
        "VARCHAR(9)": ("NULL", "''", "'#'", "'#1'", "'1#'"),
        "BIGINT": ("NULL", "0", "1", "11"),
        "INT": ("NULL", "0", "1"),
    }
    for kind, some in values.items():
        table = f"{database}.`{kind}`"
        each = f"(VALUES {', '.join(f'ROW({value})' for value in some)})"
        leader.execute(
            f"CREATE DATABASE IF NOT EXISTS {database}",
            f"CREATE TABLE {table} (a {kind}, b {kind}, c {kind}, d VARCHAR(9) CHARACTER SET latin1)",
            f"INSERT INTO {table} SELECT * FROM {each} x, {each} y, {each} z, (VALUES ROW(NULL), ROW('#'), ROW('é')) t",
        )
        text = canonical.row_text(Shape(TableName(database, kind), shape_of(leader, database, kind).columns, ()))
        with leader.connect() as connection:
            for statement in canonical.SESSION:
                rows(connection, statement)
            ((count, different),) = rows(connection, f"SELECT COUNT(*), COUNT(DISTINCT {text}) FROM {table}")
        assert count == different == len(some) ** 3 * 3, kind


@pytest.mark.parametrize("null", ["NULL", "NOT NULL"])
def test_texts_of_all_character_sets_beside_each_other(leader: Server, database: str, null: str) -> None:
    """MySQL mixes no two of them but where all are bytes; altered values of the self-test go the same way."""
    charsets = sorted(name for (name, *_) in leader.execute("SHOW CHARACTER SET"))
    columns = ", ".join(f"`{name}` VARCHAR(9) CHARACTER SET {name} {null}" for name in charsets)
    table = f"{database}.t"
    values = [", ".join(["'a'"] * len(charsets)), ", ".join(["'b'"] * len(charsets))]
    leader.execute(
        f"CREATE DATABASE {database}", f"CREATE TABLE {table} (id INT PRIMARY KEY, {columns})",
        f"INSERT INTO {table} VALUES (1, {values[0]}), (2, {values[0]}), (3, {values[1]})",
    )  # fmt: skip
    shape = shape_of(leader, database, "t")
    reader = ServerConnection("leader", Database("root", leader.host, leader.port, tls=DatabaseTls("off")))
    with closing(reader):
        check(shape, reader)
        for column in (None, *(shape.column(name) for name in charsets)):
            columns_of = (shape.column("id"),) if column is None else (column,)
            one = canonical.row_hash(Shape(shape.name, columns_of, ()))
            assert len(set(reader.rows(f"SELECT {one} FROM {table}"))) == (3 if column is None else 2)


def test_each_of_64_members_counts(leader: Server, database: str) -> None:
    members = ", ".join(f"'m{number}'" for number in range(64))
    leader.execute(
        f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (s SET({members}))",
        f"INSERT INTO {database}.t VALUES ('m63'), ('m0,m63'), ('m0,m1,m63'), ('m62'), ('m62,m2')",
    )  # fmt: skip
    shape = shape_of(leader, database, "t")
    found = leader.execute(f"SELECT COUNT(DISTINCT {canonical.row_hash(shape)}) FROM {database}.t")
    assert found == [(5,)]
