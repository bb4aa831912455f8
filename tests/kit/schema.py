"""Schemas of databases on both servers, and the SQL that makes one the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from cdc_consumer.parity.model import SchemaDifference
from cdc_consumer.parity.schema.alters import SESSION
from cdc_consumer.parity.schema.compare import compare_schemas, schema_mends
from cdc_consumer.parity.schema.read import Schema, read_schema
from docker.local.mysql_servers import Server
from shared.mysql import Connection, MySQLError

#: a foreign key may refer to the first columns of a key
RELAXED = "SET /*!80400 SESSION restrict_fk_on_non_standard_key = 0, */ SESSION sql_mode = ''"


@contextmanager
def connected(server: Server, **options: str) -> Iterator[Connection]:
    with closing(server.connect(charset="utf8mb4", **options)) as connection:
        yield connection


def schema_of(server: Server, *databases: str) -> Schema:
    with connected(server) as connection:
        return read_schema(connection, frozenset(databases))


def compare(leader: Server, follower: Server, *databases: str) -> list[SchemaDifference]:
    return compare_schemas(schema_of(leader, *databases), schema_of(follower, *databases))


def create(server: Server, database: str, *statements: str) -> None:
    server.execute(f"CREATE DATABASE IF NOT EXISTS {database}", f"USE {database}", *statements)


def repair(leader: Server, follower: Server, *databases: str) -> None:
    """Run what makes the follower's schema the leader's; what is left must be expected."""
    mends = schema_mends(schema_of(leader, *databases), schema_of(follower, *databases))
    statements = [SESSION, *(sql for mend in mends for sql in mend.sql)]
    try:
        follower.execute("DO 0", *statements, "SELECT 1")
    except MySQLError as error:
        raise AssertionError("\n".join([str(error), *statements])) from None
    left = [each.text for each in compare(leader, follower, *databases) if each.grade != "expected"]
    assert not left, "\n".join([*left, *statements])
