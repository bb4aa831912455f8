"""Reading a schema: privileges, DDL meanwhile, many tables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

#: a foreign key may refer to the first columns of a key
from kit.schema import connected, create, schema_of

from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.schema import read
from cdc_consumer.parity.schema.read import read_schema, read_tables
from cdc_consumer.sql.literals import encode
from docker.local.mysql_servers import Server
from shared.errors import CdcError
from shared.filters import DatabaseFilter
from shared.mysql import Connection
from shared.profile import Filters


@pytest.fixture
def account(leader: Server, database: str) -> Iterator[str]:
    """An account without privileges, and tables, a trigger... for it to look at."""
    create(
        leader, database,
        "CREATE TABLE t (a int PRIMARY KEY, b int, KEY (b), CHECK (b > 0), FOREIGN KEY (b) REFERENCES t (a))",
        "CREATE VIEW v AS SELECT a FROM t",
        "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
        "CREATE PROCEDURE p() SELECT 1",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE DO DO 1",
        f"CREATE USER {database}",
        f"CREATE ROLE {database}_role",
        f"GRANT {database}_role TO {database}",
    )  # fmt: skip
    yield database
    leader.execute(f"DROP USER {database}", f"DROP ROLE {database}_role")


@contextmanager
def connected_as(server: Server, account: str) -> Iterator[Connection]:
    with connected(server, user=account) as connection, connection.cursor() as cursor:
        cursor.execute("SET ROLE ALL")
        yield connection


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["SELECT, SHOW VIEW, EVENT ON `{0}`.* TO {0}", "SHOW_ROUTINE ON *.* TO {0}_role"],
        ["SELECT, SHOW VIEW, TRIGGER ON `{0}%`.* TO {0}_role"],
        ["SELECT ON *.* TO {0}", "ALL ON `{0}`.`t` TO {0}"],
        ["SHOW_ROUTINE ON *.* TO {0}", "ALL ON `{0}\\_`.* TO {0}"],
    ],
)
def test_a_missing_privilege_is_refused(leader: Server, account: str, given: list[str]) -> None:
    """With the grants the error names everything is seen."""
    leader.execute("DO 0", *(f"GRANT {grant.format(account)}" for grant in given), "SELECT 1")
    with connected_as(leader, account) as connection, pytest.raises(CdcError) as caught:
        read_schema(connection, {account}, named=[account])
    leader.execute(*str(caught.value).partition("run on it: ")[2].split("; "), "SELECT 1")
    with connected_as(leader, account) as connection:
        schema = read_schema(connection, {account}, named=[account])
    assert schema == schema_of(leader, account)
    assert len(schema.objects) == 4


def test_databases_that_may_be_hidden_are_refused(leader: Server, account: str) -> None:
    leader.execute(f"GRANT ALL ON `{account}`.* TO {account}", f"GRANT SHOW_ROUTINE ON *.* TO {account}", "SELECT 1")
    with connected_as(leader, account) as connection:
        read_schema(connection, {account})
        with pytest.raises(CdcError, match=r"run on it: GRANT SHOW DATABASES ON \*\.\* TO"):
            read_schema(connection, DatabaseFilter(Filters(exclude_dbs=("other",))))


def test_tables_for_the_row_audit(leader: Server, database: str) -> None:
    create(
        leader, database,
        "SET sql_generate_invisible_primary_key = 1, show_gipk_in_create_table_and_information_schema = 0",
        "CREATE TABLE hidden (a int)",
        "CREATE TABLE t (b varchar(9) NOT NULL, a int NOT NULL, c int, d int AS (a + 1) STORED, e int AS (a + 2), PRIMARY KEY (a, b(3)),"
        " UNIQUE KEY whole (b, a), UNIQUE KEY nulls (c), UNIQUE KEY part (b(4)), UNIQUE KEY ex ((a + 1)), KEY other (a)) DEFAULT CHARSET latin1",
    )  # fmt: skip
    name, hidden = TableName(database, "t"), TableName(database, "hidden")
    with connected(leader) as connection:
        schema = read_schema(connection, {database})
        table = schema.tables[name]
        assert [column.name for column in table.columns] == ["b", "a", "c", "d", "e"]
        assert [column.generated for column in table.columns] == ["", "", "", "STORED", "VIRTUAL"]
        assert (table.columns[0].charset, table.columns[0].nullable, table.columns[2].nullable) == (
            "latin1",
            False,
            True,
        )
        assert (table.primary_key, table.unique_keys, table.engine) == (("a", "b"), (("b", "a"),), "InnoDB")
        assert schema.tables[hidden].primary_key == ("my_row_id",)
        assert read_tables(connection, [name, hidden, TableName(database, "none")]) == schema.tables
        assert read_tables(connection, []) == {}
        for change, noticed in (
            ("COMMENT 'x'", False),
            ("DROP KEY other", False),
            ("MODIFY c bigint", True),
            ("DROP KEY whole", True),
        ):
            before = read_tables(connection, [name])[name].fingerprint
            leader.execute(f"ALTER TABLE {name.sql} {change}")
            assert (read_tables(connection, [name])[name].fingerprint != before) is noticed, change


@pytest.mark.parametrize(
    "ddl", ["ALTER TABLE t ADD b int", "ALTER TABLE t ADD KEY (a)", "DROP TABLE t", "RENAME TABLE t TO v"]
)
def test_ddl_during_the_read(leader: Server, database: str, ddl: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No record is half before and half after it."""
    create(leader, database, "CREATE TABLE t (a int)")
    show_create, waiting = read._show_create, [ddl]

    def after_ddl(connection: Connection, kind: str, name: TableName) -> dict[str, object]:
        if waiting:
            create(leader, database, waiting.pop())
        return show_create(connection, kind, name)

    monkeypatch.setattr(read, "_show_create", after_ddl)
    found = schema_of(leader, database)
    assert not waiting
    assert found == schema_of(leader, database)


def test_a_check_that_moves_during_the_read(leader: Server, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in one table or in the other: a copy could not make both."""
    create(leader, database, "CREATE TABLE a (n int, CONSTRAINT ck CHECK (n > 0))", "CREATE TABLE b (n int)")
    show_create, waiting = (
        read._show_create,
        ["ALTER TABLE b ADD CONSTRAINT ck CHECK (n > 0)", "ALTER TABLE a DROP CHECK ck"],
    )

    def before_ddl(connection: Connection, kind: str, name: TableName) -> dict[str, object]:
        shown = show_create(connection, kind, name)
        while waiting:
            create(leader, database, waiting.pop())
        return shown

    monkeypatch.setattr(read, "_show_create", before_ddl)
    found = schema_of(leader, database)
    assert not waiting
    assert found == schema_of(leader, database)


def test_a_schema_that_never_rests(leader: Server, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create(leader, database, "CREATE TABLE t (a int)")
    show_create, names = read._show_create, iter("bcdefgh")

    def after_ddl(connection: Connection, kind: str, name: TableName) -> dict[str, object]:
        create(leader, database, f"ALTER TABLE t ADD {next(names)} int")
        return show_create(connection, kind, name)

    monkeypatch.setattr(read, "_show_create", after_ddl)
    with pytest.raises(CdcError, match="altered during each of 5 attempts"):
        schema_of(leader, database)


def test_many_tables_are_read_at_once(leader: Server, database: str) -> None:
    create(
        leader,
        database,
        *(f"CREATE TABLE t{index} (id int PRIMARY KEY, a varchar(9), KEY (a))" for index in range(50)),
    )
    schema_of(leader, database)
    started = time.monotonic()
    assert len(schema_of(leader, database).tables) == 50
    assert time.monotonic() - started < 20


# random schemas


def test_a_view_with_bytes_that_are_no_utf8(leader: Server, database: str) -> None:
    create(leader, database, "CREATE VIEW v AS SELECT _latin1 x'e9' AS three")
    with connected(leader) as connection:
        found = read_schema(connection, [database]).objects["VIEW", TableName(database, "v")]
    assert b"_latin1'\xe9'" in encode(found.definition)
