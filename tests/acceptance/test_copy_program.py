"""The copy as Spark runs it, and servers and programs that are killed while it runs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fix_copy import Copies
from fix_mysql import StartServer
from fix_parity import parity_of, require_java
from kit.helpers import wait_until
from kit.programs import ENVIRONMENT, ROOT
from kit.random_writer import RandomWriter

from docker.local.mysql_servers import LEADER, MySQLServer, Server

#: more than threads would copy without Spark
ROWS = 120_000
FILL = (
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(40), KEY (note))",
    "SET SESSION cte_max_recursion_depth = 1000000",
    f"INSERT INTO t (note) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})"
    " SELECT CONCAT('row ', i) FROM n",
    "ANALYZE TABLE t",
)


def test_on_spark(copies: Copies, leader: Server, database: str) -> None:
    require_java()
    leader.execute(f"CREATE DATABASE {database}")
    leader.execute(*FILL, database=database)
    copy = copies(copy={"range_rows": 10_000})
    job = ROOT / "cdc_consumer" / "copy" / "job.py"
    done = subprocess.run(
        [sys.executable, str(job), str(copy.profile)], capture_output=True, text=True, timeout=240, check=False,
        env=ENVIRONMENT,
    )  # fmt: skip
    assert done.returncode == 0 and "runs the tasks" in done.stderr, done.stderr
    leader.execute(f"UPDATE {database}.t SET note = 'after' WHERE id % 1000 = 0")
    copy.follow()
    copy.same_gtids()


@pytest.mark.parametrize("victim", ["leader", "follower", "producer"])
def test_somebody_else_is_killed(copies: Copies, own_server: StartServer, database: str, victim: str) -> None:
    """The copy goes on by itself when the server, or the producer, is there again."""
    leader = own_server(LEADER, 31)
    leader.execute(f"CREATE DATABASE {database}")
    leader.execute(*FILL, database=database)
    copy = copies(source=leader, copy={"range_rows": 500})
    copy.program.start()
    own = copy.replication.system_database
    marks = f"SELECT COUNT(copied) FROM {own}.copy_range"
    wait_until(lambda: "copying" in copy.program.stderr and copy.follower.value(marks) > 20, "it copies")
    leader.execute(f"UPDATE {database}.t SET note = 'meanwhile' WHERE id % 100 = 0")
    if victim == "producer":
        copy.replication.producer.kill()
        leader.execute(f"UPDATE {database}.t SET note = 'unseen' WHERE id % 100 = 1")
        copy.replication.producer.start()
    else:
        server = leader if victim == "leader" else copy.follower
        assert isinstance(server, MySQLServer)
        server.kill()
        server.start()
        leader.execute(f"UPDATE {database}.t SET note = 'again' WHERE id % 100 = 1")
    assert copy.program.wait(120) == 0, copy.program.stderr
    copy.follow()
    copy.same_gtids()


def test_random_changes_and_an_audit(copies: Copies, leader: Server, database: str, seed: int) -> None:
    """All sorts of rows, foreign keys that cascade and tables without a key, written at random; the audit finds nothing."""
    # its other database too: what the producer leaves out would be missing among the follower's GTIDs
    databases = [database, f"{database}_outside"]
    writer = RandomWriter(leader, [database], databases[1], seed, threads=2, definitions=False)
    writer.create()
    copy = copies(others=databases[1:])
    with writer:
        wait_until(lambda: sum(writer.done.values()) > 100, "it writes")
        copy.copy()
        copy.replication.consumer.start()
        wanted = sum(writer.done.values()) + 50
        wait_until(lambda: sum(writer.done.values()) > wanted, "it goes on", alive=[copy.replication.consumer])
    copy.replication.catch_up()
    copy.replication.same()
    copy.same_gtids()
    audited = parity_of(copy.replication, databases).audit()
    assert (audited.status, audited.differences) == (0, []), audited.out + audited.err
