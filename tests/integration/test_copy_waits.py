"""What a copy waits for and lets wait: limits of its own, locks of others, statements that change definitions."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import ExitStack

from fix_copy import Copies
from kit.faults import holding
from kit.helpers import wait_until
from kit.programs import Program

from docker.local.mysql_servers import Server

#: statements that may not change a definition now
WAITING = (
    "SELECT COUNT(*) FROM performance_schema.metadata_locks"
    " WHERE object_type = 'BACKUP LOCK' AND lock_status = 'PENDING'"
)


def goes_on(program: Program) -> bool:
    """Let it go on if it stands still, now or a moment later; tell whether it has ended."""
    if program.running:
        os.kill(program.pid, signal.SIGCONT)
    return not program.running


def test_limits_and_settings(copies: Copies, leader: Server, database: str) -> None:
    """Statements that change definitions wait when they are told to, rows are read as slowly as is allowed."""
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE left_out (id INT)",
        f"INSERT INTO t VALUES {', '.join(f'({number})' for number in range(500))}", "ANALYZE TABLE t",
    )  # fmt: skip
    copy = copies(
        copy={"range_rows": 100, "hold_ddl": True}, limits={"rows_per_second": 100, "connections": 1},
        filters={"include_dbs": [database], "exclude_tables": [f"{database}.left_out"]},
    )  # fmt: skip
    began = time.monotonic()
    alter = f"ALTER TABLE {database}.t ADD COLUMN n INT DEFAULT 3"
    statement = threading.Thread(target=leader.execute, args=(alter,), daemon=True)
    program = copy.program.start(until="cdc_consumer.copy.rows.task:_copy", calls=2)
    with ExitStack() as stack:
        stack.callback(program.kill)
        wait_until(lambda: "copying" in program.stderr, "it copies", alive=[program])
        statement.start()
        wait_until(lambda: leader.value(WAITING), "the statement waits", alive=[program])
        wait_until(lambda: goes_on(program), "it ends")
    assert program.status == 0, program.stderr
    statement.join()
    assert time.monotonic() - began > 2, "it read faster than it may"
    assert copy.follower.execute(f"SHOW TABLES FROM {database}") == [("t",)]
    assert copy.follower.value(f"SELECT COUNT(*) FROM {database}.t") == 500


def test_a_request_to_stop_ends_a_wait_between_rows(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "CREATE TABLE t (id INT PRIMARY KEY)",
        f"INSERT INTO t VALUES {', '.join(f'({number})' for number in range(1000))}", "ANALYZE TABLE t",
    )  # fmt: skip
    copy = copies(limits={"rows_per_second": 1, "connections": 1})
    copy.program.start()
    wait_until(lambda: "copying" in copy.program.stderr, "it copies", alive=[copy.program])
    assert copy.program.stop() == 1, copy.program.stderr
    assert "asked to stop, and the copy is not whole" in copy.program.stderr


def test_a_table_without_a_key_that_is_locked_by_others(copies: Copies, plain_leader: Server, database: str) -> None:
    plain_leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT)")
    copy = copies(plain=True, source=plain_leader)
    with holding(plain_leader, f"INSERT INTO {database}.t VALUES (1), (1)"):
        plain_leader.execute(f"INSERT INTO {database}.t VALUES (2)")
        copy.program.start()
        wait_until(lambda: "trying again" in copy.program.stderr, "it waits for the lock", alive=[copy.program])
    assert copy.program.wait() == 0, copy.program.stderr
    copy.follow()
