"""schema-repair.sql as a person applies it: as it is nothing is lost, and with all of it the schemas are the same."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from kit.random_schemas import schemas
from kit.repair import apply_file
from kit.schema import RELAXED, compare, create, schema_of

from cdc_consumer.parity.repair.files import HELD, Header, write_schema_file
from cdc_consumer.parity.schema.compare import schema_mends
from docker.local.mysql_servers import Server
from shared.mysql import rows


def write(leader: Server, follower: Server, database: str, folder: Path) -> Path:
    mends = schema_mends(schema_of(leader, database), schema_of(follower, database))
    return write_schema_file(mends, folder, Header("run", "follower", hides_own_writes=True))


def apply_all(follower: Server, file: Path) -> None:
    """Also what is commented out."""
    lines = file.read_text("utf-8").split("\n")
    whole = file.with_name("whole.sql")
    whole.write_text("\n".join(line.removeprefix(HELD) for line in lines), "utf-8")
    apply_file(follower, whole)


def columns(server: Server, database: str) -> set[tuple[str, str]]:
    with server.connect() as connection:
        found = rows(
            connection,
            "SELECT TABLE_NAME, LOWER(COLUMN_NAME) FROM information_schema.COLUMNS JOIN information_schema.TABLES"
            f" USING (TABLE_SCHEMA, TABLE_NAME) WHERE TABLE_SCHEMA = '{database}' AND TABLE_TYPE = 'BASE TABLE'",
        )
    return {(table, column) for table, column in found}


def left(leader: Server, follower: Server, database: str) -> list[str]:
    return [each.text for each in compare(leader, follower, database) if each.grade != "expected"]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(theirs=schemas(), ours=schemas())
def test_nothing_is_lost_before_somebody_says_so(
    leader: Server, follower: Server, database: str, tmp_path: Path, theirs: list[str], ours: list[str]
) -> None:
    for server, statements in ((leader, theirs), (follower, ours)):
        server.execute(f"DROP DATABASE IF EXISTS {database}")
        create(server, database, RELAXED, *statements)
    before = columns(follower, database)
    file = write(leader, follower, database, tmp_path)
    apply_file(follower, file)
    assert before <= columns(follower, database)
    if HELD not in file.read_text("utf-8"):
        assert left(leader, follower, database) == []
    apply_all(follower, write(leader, follower, database, tmp_path))
    assert left(leader, follower, database) == []


def test_every_statement_stands_below_what_it_mends(
    leader: Server, follower: Server, database: str, tmp_path: Path
) -> None:
    create(
        leader, database, "CREATE TABLE t (id int PRIMARY KEY, a bigint, UNIQUE KEY u (a), v int)",
        "CREATE TABLE gone_view (id int)", "CREATE VIEW gone AS SELECT id FROM t",
        "CREATE VIEW above AS SELECT id FROM gone", "CREATE PROCEDURE p() BEGIN /* c;; */ SELECT 1; END",
    )  # fmt: skip
    create(
        follower, database, "CREATE TABLE t (id int PRIMARY KEY, a int, b int, v int AS (id))",
        "CREATE TABLE gone (id int)",
    )  # fmt: skip
    text = write(leader, follower, database, tmp_path).read_text("utf-8")
    blocks = {block.split("\n")[0]: block for block in text.split("\n\n") if database in block}
    held = {remark for remark, block in blocks.items() if f"\n{HELD}" in block}
    assert held == {
        f"-- table {database}.gone exists on the follower only",
        f"-- column {database}.t.a is int on the follower, not bigint",
        f"-- view {database}.gone is missing on the follower",
        f"-- view {database}.above is missing on the follower",
        f"-- column {database}.t.b exists on the follower only",
    }, text
    create(follower, database, "INSERT INTO t (id, a, b) VALUES (1, 2, 3)", "INSERT INTO gone VALUES (4)")
    apply_file(follower, tmp_path / "schema-repair.sql")
    apply_all(follower, write(leader, follower, database, tmp_path))
    assert left(leader, follower, database) == []
