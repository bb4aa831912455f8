"""An audit beside all else: it writes nothing, needs little memory, and its repair leaves the consumer alone."""

from __future__ import annotations

import time

from fix_damaged_pair import TABLES, assert_found, fill, replicated
from fix_parity import parity_of
from fix_replication import Replication
from kit.programs import binlog_end
from kit.spark_processes import megabytes, workers

#: rows of the large table on the leader alone
MISSING = 30_000


def test_a_repair_beside_the_consumer(replication: Replication) -> None:
    replicated(replication)
    parity = parity_of(replication, [replication.database])
    repaired = parity.audit("--repair")
    assert repaired.status == 0, repaired.out
    assert repaired.run["run"]["repair"] == "7 rows repaired"
    replication.play("UPDATE small SET n = n + 1", "DELETE FROM loose LIMIT 20")
    replication.catch_up()
    replication.same()
    assert parity.audit().status == 0


def test_an_audit_writes_nothing(replication: Replication) -> None:
    replicated(replication)
    state = "SELECT @@GLOBAL.gtid_executed"
    before = [(binlog_end(server), server.value(state)) for server in (replication.leader, replication.follower)]
    audited = parity_of(replication, [replication.database]).audit()
    assert_found(audited, "small", "loose")
    assert {each.evidence.proof for each in audited.differences} == {"idle"}
    assert [
        (binlog_end(server), server.value(state)) for server in (replication.leader, replication.follower)
    ] == before


def test_memory_stays_flat_where_everything_differs(replication: Replication, audits: int) -> None:
    """Most megabytes of the driver and of one worker while all rows are missing."""
    replication.play(TABLES[0])
    replication.start()
    replication.catch_up()
    replication.leader.execute(
        "SET sql_log_bin = 0", fill("large", MISSING * min(audits, 10)), database=replication.database
    )
    program = parity_of(replication, [replication.database]).start("--cores", "2", "--tables", "*.large")
    most: dict[str, int] = {"driver": 0, "worker": 0}
    while program.running:
        most["driver"] = max(most["driver"], megabytes(program.pid))
        most["worker"] = max([most["worker"], *map(megabytes, workers(program))])
        time.sleep(0.2)
    print(most)
    assert program.status == 1, program.stderr
    assert max(most.values()) < 250, most
