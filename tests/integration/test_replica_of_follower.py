"""A native replica of the follower: it equals it in data, GTIDs and position, whichever way rows went."""

from __future__ import annotations

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate
from kit.helpers import assert_same_database

from docker.local.mysql_servers import FOLLOWER, Server

SCRIPT = [
    "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(30))", "CREATE TABLE n (id INT, g INT AS (id + 1) STORED)",
    *(f"INSERT INTO t VALUES ({number}, 'a')" for number in range(20)), "INSERT INTO n (id) SELECT id FROM t",
    "ALTER TABLE t ADD c INT DEFAULT 1", "UPDATE t SET s = 'b' WHERE id % 2", "DELETE FROM n WHERE id < 5", "CREATE TABLE u LIKE t",
    "BEGIN", "INSERT INTO t VALUES (1000, 'z', 2)", "DELETE FROM n WHERE id = 7", "COMMIT", "DELETE FROM t WHERE id = 3",
]  # fmt: skip


def begin(replica: Server, follower: Server, system: str, database: str, earlier: bool) -> None:
    """Make it what a copy of the follower is; with `earlier` its own tables are those of an earlier version."""
    definitions = [follower.execute(f"SHOW CREATE TABLE {system}.{table}")[0][1] for table in ("position", "intent")]
    definitions[0] = definitions[0].replace("CREATE TABLE ", f"CREATE TABLE {system}.", 1)
    definitions[1] = definitions[1].replace("CREATE TABLE ", f"CREATE TABLE {system}.", 1)
    row = ", ".join(
        "NULL" if value is None else f"'{value}'" for value in follower.execute(f"TABLE {system}.position")[0]
    )
    older = [f"ALTER TABLE {system}.position DROP PRIMARY KEY, DROP link, ADD PRIMARY KEY (topic, worker)"]
    replica.execute(
        "SET sql_log_bin = 0", f"CREATE DATABASE {system}", f"CREATE DATABASE {database}", *definitions,
        f"INSERT INTO {system}.position VALUES ({row})", *(older if earlier else []),
    )  # fmt: skip
    replica.execute(
        f"SET GLOBAL gtid_purged = '{follower.value('SELECT @@GLOBAL.gtid_executed')}'",
        f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{follower.host}', SOURCE_PORT = {follower.port},"
        " SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1",
        "START REPLICA",
    )


@pytest.mark.parametrize(("rows", "earlier"), [("auto", False), ("sql", False), ("auto", True)])
def test_it_equals_the_follower(
    replicate: Replicate, leader: Server, own_server: StartServer, database: str, rows: str, earlier: bool
) -> None:
    follower, replica = own_server(FOLLOWER, 21), own_server(FOLLOWER, 22)
    replication = replicate(leader, follower, [database], consumer={"apply": {"rows": rows}})
    replication.play(f"CREATE DATABASE {database}")
    replication.replicate()
    begin(replica, follower, replication.system_database, database, earlier)
    replication.play(*SCRIPT)
    replication.replicate()
    replication.same()
    executed = follower.value("SELECT @@GLOBAL.gtid_executed")
    waited = replica.value(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 30)")
    errors = "SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker"
    assert waited == 0, replica.execute(errors)
    assert_same_database(follower, replica, database)
    assert replica.value("SELECT @@GLOBAL.gtid_executed") == executed
    position = f"SELECT topic_offset, sequence, gtid FROM {replication.system_database}.position"
    assert replica.execute(position) == follower.execute(position)
