"""Tables chosen by patterns: those alone reach the follower, and a statement on both sides of the filter stops."""

from __future__ import annotations

from typing import Any

import pytest
from fix_replication import Replicate, assert_refused
from kit.helpers import tables_of
from kit.programs import run_program

from docker.local.mysql_servers import Server

FILTERS = {"include_tables": ["*.keep*"], "exclude_tables": ["*.keep_not"]}


def chosen(database: str, side: str) -> dict[str, dict[str, object]]:
    """The table [filters] of the `side`, "producer" or "consumer", that chooses tables."""
    return {side: {"filters": FILTERS}}


@pytest.mark.parametrize("side", ["producer", "consumer"])
def test_only_the_chosen_tables_reach_the_follower(
    replicate: Replicate, leader: Server, follower: Server, database: str, side: str
) -> None:
    replication = replicate(leader, follower, [database], **chosen(database, side))
    replication.play(f"CREATE DATABASE {database}")
    for table in ("keep", "keep_two", "keep_not", "other"):
        replication.play(f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT)", f"INSERT INTO {table} VALUES (1, 1)")
    replication.play(
        "BEGIN", "INSERT INTO other VALUES (2, 2)", "INSERT INTO keep VALUES (2, 2)", "DELETE FROM keep_not", "COMMIT"
    )
    replication.play("CREATE INDEX i ON other (n)", "CREATE INDEX i ON keep (n)", "ALTER TABLE keep_not ADD m INT")
    replication.play("RENAME TABLE keep TO keep_three", "RENAME TABLE other TO others", "DROP TABLE keep_not")
    replication.play("CREATE VIEW keep_view AS SELECT id FROM keep_two", "CREATE VIEW v AS SELECT id FROM others")
    replication.replicate()
    assert tables_of(follower, database) == ["keep_three", "keep_two", "keep_view"]
    for table in ("keep_three", "keep_two"):
        query = f"SELECT * FROM {database}.{table} ORDER BY id"
        assert follower.execute(query) == leader.execute(query)


@pytest.mark.parametrize("side", ["producer", "consumer"])
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "RENAME TABLE keep TO gone, other TO keep, gone TO other",
            ("writes {d}.keep, which the filter includes, and {d}.gone, {d}.other, which it does not",),
        ),
        ("DROP TABLE keep, other", ("keep", "other")),
        ("ALTER TABLE keep RENAME gone", ("{d}.keep", "{d}.gone")),
        ("DROP DATABASE {d}", ("drops tables that the filter leaves out",)),
    ],
)
def test_a_statement_on_both_sides_stops(
    replicate: Replicate, leader: Server, follower: Server, database: str, side: str, statement: str,
    words: tuple[str, ...],
) -> None:  # fmt: skip
    replication = replicate(leader, follower, [database], **chosen(database, side))
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE keep (id INT PRIMARY KEY)", "CREATE TABLE other (id INT)")
    replication.replicate()
    replication.play(statement.format(d=database))
    result = replication.produce()
    if side == "consumer":
        assert result.returncode == 0, result.stderr
        result = replication.consume()
    assert_refused(result, *(word.format(d=database) for word in words), "--skip")


def test_a_foreign_key_to_a_table_left_out_stops(
    replicate: Replicate, leader: Server, follower: Server, database: str
) -> None:
    replication = replicate(leader, follower, [database], **chosen(database, "consumer"))
    replication.play(f"CREATE DATABASE {database}")
    replication.play(
        "CREATE TABLE other (id INT PRIMARY KEY)", "CREATE TABLE keep (id INT, FOREIGN KEY (id) REFERENCES other (id))"
    )
    assert replication.produce().returncode == 0
    assert_refused(replication.consume(), f"{database}.other", "foreign key", "--skip")


@pytest.mark.parametrize("apply", [{}, {"rows": "sql"}, {"workers": 3}, {"workers": 3, "order": "independent"}])
def test_what_is_whole_before_a_stop_is_committed(
    replicate: Replicate, plain_leader: Server, plain_follower: Server, database: str, apply: dict[str, Any]
) -> None:
    """So a decision can name the sequence at which it stops, whatever waited for more of its kind."""
    own = {**chosen(database, "consumer")["consumer"], "apply": apply}
    replication = replicate(plain_leader, plain_follower, [database], consumer=own)
    replication.play(f"CREATE DATABASE {database}")
    replication.play("CREATE TABLE keep (id INT PRIMARY KEY)", "CREATE TABLE other (id INT)")
    replication.play("INSERT INTO keep VALUES (1)", "INSERT INTO keep VALUES (2)", "INSERT INTO other VALUES (1)")
    replication.play("CREATE VIEW v AS SELECT 1 AS a", "DROP TABLE keep, other")
    assert replication.produce().returncode == 0
    assert_refused(replication.consume(), "sequence 7")
    assert plain_follower.execute(f"SELECT id FROM {database}.keep") == [(1,), (2,)]
    decision = ("--skip", "7", "--reason", "a test")
    result = run_program("cdc_consumer", replication.profiles.consumer, "--exit-at-end", *decision)
    assert result.returncode == 0, result.stderr
