"""What somebody does to the follower while it is filled."""

from __future__ import annotations

import re

from fix_copy import Copies, Copying
from kit.faults import holding
from kit.helpers import assert_same_database, wait_until

from docker.local.mysql_servers import Server

#: dies when tables are made, and no row is there yet
BEFORE_ROWS = ("rows.task:_copy", "before", 1)


def one_table(copies: Copies, leader: Server, database: str) -> Copying:
    leader.execute(
        f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (id INT PRIMARY KEY)", f"INSERT INTO {database}.t VALUES (1), (2), (3)"
    )  # fmt: skip
    return copies()


def refusing(copy: Copying, signal: str) -> None:
    """Let every row that comes be refused; `signal` says how."""
    trigger = f"CREATE TRIGGER refuses BEFORE INSERT ON t FOR EACH ROW SIGNAL {signal}"
    copy.follower.execute("SET sql_log_bin = 0", trigger, database=copy.database)


def taking(copy: Copying) -> None:
    copy.follower.execute("SET sql_log_bin = 0", "DROP TRIGGER refuses", database=copy.database)


def test_a_lock_that_is_held_there(copies: Copies, leader: Server, database: str) -> None:
    """The server gives up waiting for it, and the copy does not."""
    copy = one_table(copies, leader, database)
    text, count = re.subn(r"\[follower\]\n", "[follower]\nlock_wait_seconds = 1\n", copy.profile.read_text())
    assert count == 1
    copy.profile.write_text(text)
    copy.killed(*BEFORE_ROWS)
    with holding(copy.follower, "SET sql_log_bin = 0", f"INSERT INTO {database}.t VALUES (2)"):
        copy.program.start()
        wait_until(lambda: "Lock wait timeout exceeded" in copy.program.stderr, "it waits", alive=[copy.program])
    assert copy.program.wait() == 0, copy.program.stderr
    copy.follow()


def test_a_transaction_that_it_ends_is_repeated(copies: Copies, leader: Server, database: str) -> None:
    copy = one_table(copies, leader, database)
    copy.killed(*BEFORE_ROWS)
    refusing(copy, "SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock'")
    copy.program.start()
    wait_until(lambda: "which is repeated: Deadlock" in copy.program.stderr, "it repeats", alive=[copy.program])
    taking(copy)
    assert copy.program.wait() == 0, copy.program.stderr
    copy.follow()


def test_what_it_refuses_is_said_of_it(copies: Copies, leader: Server, database: str) -> None:
    copy = one_table(copies, leader, database)
    copy.killed(*BEFORE_ROWS)
    refusing(copy, "SQLSTATE '45000' SET MESSAGE_TEXT = 'never'")
    copy.refused(f"{database}.t: the follower ", "never (1644)")
    taking(copy)
    copy.copy()
    copy.follow()


def test_rows_that_somebody_removes(copies: Copies, leader: Server, database: str) -> None:
    """Between a kill and the next run: of tables whose rows are there already, and that would not be read again."""
    names = ("emptied", "gone", "kept", "loose")
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}",
        *(f"CREATE TABLE {name} (id INT {'NOT NULL' if name == 'loose' else 'PRIMARY KEY'})" for name in names),
        *(f"INSERT INTO {name} VALUES (1), (2), (3)" for name in names),
    )  # fmt: skip
    copy = copies()
    copy.killed("moment:executed", "before", 1)
    copy.follower.execute(
        "SET sql_log_bin = 0",
        "TRUNCATE emptied",
        "DROP TABLE gone",
        "DELETE FROM loose WHERE id = 2",
        database=database,
    )
    told = copy.run()
    assert told.returncode == 0, told.stderr
    assert f"{database}.emptied has 0 rows on the follower, and 3 were copied" in told.stderr
    assert f"{database}.loose has 2 rows" in told.stderr and f"{database}.kept has" not in told.stderr
    copy.follow()


def test_a_state_that_somebody_alters(copies: Copies, leader: Server, database: str) -> None:
    copy = one_table(copies, leader, database)
    system = copy.replication.system_database
    copy.killed(*BEFORE_ROWS)
    for low in ("{", '["1", "2"]'):
        copy.follower.execute("SET sql_log_bin = 0", f"UPDATE copy_range SET low = '{low}'", database=system)
        copy.refused("`copy_range` on the follower is not as cdc-copy wrote it", "--replace")
    copy.killed("finish:finish", "before", 1, arguments=["--replace"])
    copy.follower.execute("SET sql_log_bin = 0", "UPDATE copy SET gtids = NULL", database=system)
    copy.refused("`copy` on the follower is not as cdc-copy wrote it", "--replace")
    copy.copy("--replace")
    copy.follow()


def test_small_packets(copies: Copies, leader: Server, database: str) -> None:
    """Of INSERTs, with a key and without one: as many rows at once as the follower takes, and a row too long is named."""
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "SET SESSION cte_max_recursion_depth = 3000",
        "CREATE TABLE t (id INT PRIMARY KEY, b TEXT)", "CREATE TABLE u (id INT, b TEXT)",
        "INSERT INTO t WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 3000)"
        " SELECT i, REPEAT('b', IF(i % 1000, i % 400, 30000)) FROM c",
        "INSERT INTO u SELECT * FROM t",
    )  # fmt: skip
    copy = copies(options=["--max-allowed-packet=65536"], copy={"range_rows": 100_000})
    copy.follower.execute("SET GLOBAL local_infile = OFF")
    copy.copy()
    assert_same_database(leader, copy.follower, database)
    leader.execute(f"INSERT INTO {database}.u VALUES (4000, REPEAT('b', 33000))")
    copy.refused(f"a row of {database}.u is longer, as text, than a packet of the follower", arguments=["--replace"])
