"""Where an empty topic begins, and what the leader no longer has."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_mysql import StartServer
from kit.programs import Profiles, binlog_end, run_program, write_profiles

from cdc_producer.profile import load_producer
from docker.local.mysql_servers import LEADER, Server
from shared.decode import decode
from shared.events import Query
from shared.topic import open_reader


def published(profiles: Profiles) -> list[str]:
    """The statements in the topic."""
    reader = open_reader(load_producer(profiles.producer).topic)
    events = [decode(record.value, "here") for record in reader.read(0)]
    return [event.operation.sql.decode().split()[-1] for event in events if isinstance(event.operation, Query)]


def create_databases(leader: Server, database: str, *numbers: int) -> None:
    for number in numbers:
        leader.execute(f"CREATE DATABASE {database}{number}")


def run(profiles: Profiles) -> None:
    done = run_program("cdc_producer", profiles.producer, "--exit-at-end")
    assert done.returncode == 0, done.stderr


def refused(profiles: Profiles, status: int = 1) -> str:
    done = run_program("cdc_producer", profiles.producer, "--exit-at-end")
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def names(database: str, *numbers: int) -> list[str]:
    return [f"{database}{number}" for number in numbers]


def test_a_gtid_set_leaves_out_what_it_contains(leader: Server, database: str, tmp_path: Path) -> None:
    """Also inside a file, with tags, after rotations, and what could not be carried."""
    create_databases(leader, database, 1, 2)
    leader.execute(
        "SET SESSION binlog_row_value_options = PARTIAL_JSON", "CREATE TABLE t (id INT PRIMARY KEY, j JSON)",
        """INSERT INTO t VALUES (1, '{"a": 1}')""", "UPDATE t SET j = JSON_SET(j, '$.a', 2)",
        f"CREATE DATABASE {database}_outside", f"CREATE TABLE {database}_outside.t (id INT)",
        f"DROP TABLE t, {database}_outside.t", database=f"{database}1",
    )  # fmt: skip
    leader.execute("SET gtid_next = 'AUTOMATIC:loaded'", f"CREATE DATABASE {database}3", "SET gtid_next = 'AUTOMATIC'")
    loaded = str(leader.value("SELECT @@GLOBAL.gtid_executed"))
    create_databases(leader, database, 4)
    leader.execute("FLUSH BINARY LOGS")
    leader.execute("SET gtid_next = 'AUTOMATIC:loaded'", f"CREATE DATABASE {database}5", "SET gtid_next = 'AUTOMATIC'")
    profiles = write_profiles(tmp_path, leader, leader, include_dbs=names(database, 1, 2, 3, 4, 5), start=loaded)
    run(profiles)
    assert published(profiles) == names(database, 4, 5)
    create_databases(leader, database, 6)
    run(profiles)
    assert published(profiles) == names(database, 4, 5)


def test_latest_is_remembered(leader: Server, database: str, tmp_path: Path) -> None:
    """What the leader commits while the producer of an empty topic rests is not lost."""
    create_databases(leader, database, 1)
    profiles = write_profiles(tmp_path, leader, leader, include_dbs=names(database, 1, 2, 3), start="latest")
    run(profiles)
    create_databases(leader, database, 2)
    run(profiles)
    create_databases(leader, database, 3)
    run(profiles)
    assert published(profiles) == names(database, 2, 3)


def test_a_position(leader: Server, database: str, tmp_path: Path) -> None:
    create_databases(leader, database, 1)
    start = binlog_end(leader)
    create_databases(leader, database, 2)
    profiles = write_profiles(tmp_path, leader, leader, include_dbs=names(database, 1, 2), start=start)
    run(profiles)
    assert published(profiles) == names(database, 2)


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("binlog.999999:4", "does not have binlog.999999"),
        ("00000000-0000-0000-0000-000000000001:1-5", "which leader"),
        ("binlog.{file}:99999999999", "after the end of the leader's binlog"),
    ],
)
def test_a_start_that_is_not_there_is_refused(
    leader: Server, database: str, tmp_path: Path, start: str, says: str
) -> None:
    file = binlog_end(leader).split(":")[0].rpartition(".")[2]
    profiles = write_profiles(tmp_path, leader, leader, include_dbs=[database], start=start.replace("{file}", file))
    assert says in refused(profiles)


def test_a_start_that_says_nothing_is_refused(leader: Server, database: str, tmp_path: Path) -> None:
    profiles = write_profiles(tmp_path, leader, leader, include_dbs=[database], start="yesterday")
    assert 'must be "earliest", "latest", "copy", a GTID set or "file:offset"' in refused(profiles, status=2)


def test_purged_binlogs_are_named(own_server: StartServer, database: str, tmp_path: Path) -> None:
    """At the start of an empty topic, and when the topic continues before them."""
    leader = own_server(options=LEADER, server_id=21)
    create_databases(leader, database, 1)
    early = write_profiles(tmp_path / "early", leader, leader, include_dbs=names(database, 1), start="earliest")
    run(early)
    assert published(early) == names(database, 1)
    leader.execute("FLUSH BINARY LOGS")
    create_databases(leader, database, 2)
    last = binlog_end(leader).split(":")[0]
    leader.execute(f"PURGE BINARY LOGS TO '{last}'")
    before = (tmp_path / "early" / "topics" / "events.topic").read_bytes()
    assert "cannot give its binlog from where the topic ends" in refused(early)
    assert (tmp_path / "early" / "topics" / "events.topic").read_bytes() == before
    late = write_profiles(tmp_path / "late", leader, leader, include_dbs=names(database, 2), start="earliest")
    assert f"oldest binlog of leader {leader.host}:{leader.port} is {last}" in refused(late)
    outside = write_profiles(
        tmp_path / "set",
        leader,
        leader,
        include_dbs=names(database, 2),
        start=f"{leader.value('SELECT @@server_uuid')}:99",
    )
    assert "has purged" in refused(outside)
    oldest = write_profiles(tmp_path / "oldest", leader, leader, include_dbs=names(database, 2), start=f"{last}:4")
    run(oldest)
    assert published(oldest) == names(database, 2)
