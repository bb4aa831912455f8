"""A native replica of the follower: it equals it in data, GTIDs and position, whichever way rows went."""

from __future__ import annotations

from typing import Any

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate
from kit.helpers import assert_same_database, gtids_in_binlog

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


#: tables that come with their rows, with none, and with more than a statement holds
FILLED = [
    "CREATE TABLE f AS SELECT * FROM t", "CREATE TABLE e (s VARCHAR(9) CHARACTER SET latin1 DEFAULT 'é', KEY (s)) AS SELECT id FROM t WHERE FALSE",
    "INSERT INTO e VALUES ('ü', 1)", "SET SESSION cte_max_recursion_depth = 20000",
    "CREATE TABLE m AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)"
    " SELECT i, REPEAT('x', 200) AS s FROM n", "DELETE FROM m WHERE i % 3 = 0", "DROP TABLE f", "CREATE TABLE f AS SELECT id FROM u",
    "CREATE TABLE r (k INT PRIMARY KEY) REPLACE AS SELECT id % 7 AS k, s FROM t", "ALTER DATABASE CHARACTER SET latin1", "CREATE TABLE d (s TEXT) AS SELECT 'ß' AS s",
]  # fmt: skip

APPLY: dict[str, dict[str, Any]] = {
    "one": {},
    "sql": {"rows": "sql"},
    "leader": {"workers": 4},
    "independent": {"workers": 4, "order": "independent"},
}


@pytest.mark.parametrize(
    ("apply", "earlier"),
    [("one", False), ("sql", False), ("one", True), ("leader", False), ("independent", False), ("independent", True)],
)
def test_it_equals_the_follower(
    replicate: Replicate, leader: Server, own_server: StartServer, database: str, apply: str, earlier: bool
) -> None:
    follower, replica = own_server(FOLLOWER, 21), own_server(FOLLOWER, 22)
    replication = replicate(leader, follower, [database], consumer={"apply": APPLY[apply]})
    replication.play(f"CREATE DATABASE {database}")
    replication.replicate()
    begin(replica, follower, replication.system_database, database, earlier)
    # rows by SQL cannot follow their table in one transaction
    replication.play(*SCRIPT, *(FILLED if apply != "sql" else []))
    replication.replicate()
    replication.same()
    left = follower.execute(f"SHOW TABLES IN {replication.system_database}")
    assert sorted(left) == [("intent",), ("left_out",), ("position",)]
    executed = follower.value("SELECT @@GLOBAL.gtid_executed")
    waited = replica.value(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 30)")
    errors = "SELECT LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker"
    assert waited == 0, replica.execute(errors)
    assert_same_database(follower, replica, database)
    assert replica.value("SELECT @@GLOBAL.gtid_executed") == executed
    own = f"{replication.system_database}.position"
    # what is written between transactions is kept out of the binlog, but no slot is
    whose = "worker > 0" if apply == "independent" else "TRUE"
    position = f"SELECT worker, topic_offset, sequence, gtid FROM {own} WHERE {whose}"
    assert replica.execute(position) == follower.execute(position)
    assert apply != "independent" or follower.execute(position), "nothing was applied side by side"
    sequence = f"SELECT sequence FROM {own} WHERE worker = 0"
    assert replica.value(sequence) <= follower.value(sequence)
    order = [event["transaction"]["gtid"] for event in replication.events()]
    found = [gtid for gtid in gtids_in_binlog(follower) if gtid in set(order)]
    assert sorted(found) == sorted(set(order))
    if apply != "independent":
        assert found == list(dict.fromkeys(order))


def test_a_table_takes_the_character_set_of_its_own_database(
    replicate: Replicate, leader: Server, follower: Server, database: str
) -> None:
    """Where that is another one on the follower, rows come as the texts they are, and not as the leader's bytes."""
    replication = replicate(leader, follower, [database])
    replication.play(f"CREATE DATABASE {database}")
    replication.replicate()
    follower.execute("SET sql_log_bin = 0", f"ALTER DATABASE {database} CHARACTER SET latin1")
    replication.play("CREATE TABLE c (s TEXT, e ENUM('ä', 'b')) AS SELECT 'ß' AS s, 'ä' AS e")
    replication.replicate()
    assert follower.execute(f"SELECT s, e FROM {database}.c") == [("ß", "ä")]
    default = f"SELECT DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{replication.system_database}'"
    assert follower.value(default) == "utf8mb4"
