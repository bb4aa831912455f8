"""Random pairs of schemas: the SQL makes one the other."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from kit.random_schemas import schemas

#: a foreign key may refer to the first columns of a key
from kit.schema import RELAXED, compare, create, repair

from docker.local.mysql_servers import Server


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(theirs=schemas(), ours=schemas())
def test_random_schemas(leader: Server, follower: Server, database: str, theirs: list[str], ours: list[str]) -> None:
    """Any schema becomes any other."""
    for server, statements in ((leader, theirs), (follower, ours)):
        server.execute(f"DROP DATABASE IF EXISTS {database}")
        create(server, database, RELAXED, *statements)
    if theirs == ours:
        assert compare(leader, follower, database) == []
    repair(leader, follower, database)
