"""Two servers with both programs between them, and what is planted in the follower's tables and must be found."""

from __future__ import annotations

from fix_parity import Audited
from fix_replication import Replication

#: rows of the large table; its ids are 1 to ROWS
ROWS = 30_000
#: rows of the small one
FEW = 40
TABLES = (
    "CREATE TABLE large (id INT PRIMARY KEY, note VARCHAR(40), n DOUBLE)",
    "CREATE TABLE small (id INT PRIMARY KEY, note VARCHAR(40), n DOUBLE)",
    "CREATE TABLE loose (id INT, note VARCHAR(40), n DOUBLE)",
)
#: what is planted in each table, and how it must be found
DAMAGE = (
    "UPDATE {} SET note = 'strange' WHERE id = 7",
    "DELETE FROM {} WHERE id = 11",
    "INSERT INTO {} VALUES (-5, '', 0)",
)
FOUND = {"7": "changed", "11": "missing", "-5": "extra"}


def fill(table: str, rows: int) -> str:
    return (
        f"INSERT INTO {table} WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})"
        f" SELECT /*+ SET_VAR(cte_max_recursion_depth = {rows}) */ i, CONCAT('row ', i), i / 3 FROM n"
    )


def replicated(replication: Replication, *, large: int = 0) -> Replication:
    """Fill the tables, bring them over, and damage the follower."""
    database = replication.database
    fills = [fill("small", FEW), fill("loose", FEW), *([fill("large", large)] if large else [])]
    replication.play(f"CREATE DATABASE IF NOT EXISTS {database}")
    replication.play(*TABLES, *fills)
    replication.start()
    replication.catch_up()
    names = ("small", "loose", "large") if large else ("small", "loose")
    damage = [statement.format(name) for name in names for statement in DAMAGE]
    replication.follower.execute("SET sql_log_bin = 0", *damage, database=database)
    return replication


def assert_found(audited: Audited, *tables: str) -> None:
    """Fail unless the damage of these tables was proven, and nothing else was said."""
    assert audited.status == 1, audited.err
    found = [(each.table.table, (each.leader or each.follower or {})["id"], each.kind) for each in audited.differences]
    # the changed row of a table without a key is two
    expected = [(table, id_, kind) for table in tables for id_, kind in FOUND.items()]
    expected += [("loose", "7", "missing"), ("loose", "7", "extra")] if "loose" in tables else []
    expected = [each for each in expected if each != ("loose", "7", "changed")]
    assert sorted(found) == sorted(expected)
    assert audited.run["undecided"] == []
    assert {table["verdict"] for table in audited.run["tables"] if table["table"] in tables} == {"different"}
