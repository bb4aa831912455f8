"""Every column type and its odd values, through both programs, compared bit by bit. Ids are the catalogue's."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.helpers import assert_same_table
from kit.programs import run_program, write_profiles
from kit.type_cases import CASES, JSONS, SESSION

from docker.local.mysql_servers import Server


@pytest.mark.parametrize("keyed", [True, False], ids=["key", "no_key"])
@pytest.mark.parametrize("rows", ["auto", "sql"])
def test_every_value_arrives_exactly(
    leader: Server, follower: Server, database: str, tmp_path: Path, rows: str, keyed: bool
) -> None:
    """Insert, update from and to, and delete every value; all tables are equal on both sides."""
    profiles = write_profiles(tmp_path, leader, follower, include_dbs=[database], consumer={"apply": {"rows": rows}})
    write_all(leader, database, keyed)
    for module, profile in (("cdc_producer", profiles.producer), ("cdc_consumer", profiles.consumer)):
        done = run_program(module, profile, "--exit-at-end")
        assert done.returncode == 0, done.stderr
    for case in (*CASES, JSONS):
        assert_same_table(leader, follower, database, case.id)
        query = f"SELECT id, {case.exact} FROM {database}.{case.id} ORDER BY id"
        expected, found = leader.execute(query), follower.execute(query)
        assert found == expected
        assert len(expected) == 2 * (len(case.values) + 1)


def write_all(leader: Server, database: str, keyed: bool) -> None:
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(SESSION)
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"USE {database}")
        for case in (*CASES, JSONS):
            key = "PRIMARY KEY" if keyed else ""
            # the sign of a number behind the column is told in the same bits as the column's own
            cursor.execute(f"CREATE TABLE {case.id} (id INT {key}, c {case.type}, d INT)")
            # twins that are updated to and from every value, and deleted; and some whose value stays in an update
            for first in (0, 1000, 2000):
                rows = [f"({first + number}, {value}, -1)" for number, value in enumerate([*case.values, "NULL"])]
                cursor.execute(f"INSERT INTO {case.id} VALUES {', '.join(rows)}")
            cursor.execute(f"UPDATE {case.id} SET d = -2 WHERE id >= 1000")
            for number, value in enumerate([*case.values, "NULL"]):
                cursor.execute(f"UPDATE {case.id} SET c = {value} WHERE id DIV 1000 = 1 AND id <> {1000 + number}")
            cursor.execute(f"UPDATE {case.id} SET c = NULL WHERE id = 1000")
            cursor.execute(f"DELETE FROM {case.id} WHERE id DIV 1000 = 1")
