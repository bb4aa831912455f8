"""Every column type and its odd values, through both programs, compared bit by bit. Ids are the catalogue's."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.helpers import assert_same_table
from kit.programs import run_program, write_profiles
from kit.type_cases import CASES, JSONS, write_all

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
