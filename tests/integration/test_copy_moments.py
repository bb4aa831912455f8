"""The moments on which a copy's proof stands, each brought about on purpose."""

from __future__ import annotations

import threading

import pytest
from fix_copy import Copies, Copying
from fix_mysql import StartServer
from kit.helpers import wait_until

from cdc_consumer.copy.moment import executed
from cdc_consumer.parity.servers.pair import LeaderConnection, Visible
from docker.local.mysql_servers import LEADER, PLAIN, Server
from shared.events import Position
from shared.profile import Database, DatabaseTls

#: by GTIDs on the leader
OPTIONS = {True: LEADER, False: ("--binlog-row-metadata=FULL", *PLAIN)}


def end(leader: Server) -> Position:
    """Where the leader writes next; what other tests ask does not answer while a commit hangs."""
    file, offset, *_ = leader.execute("SHOW BINARY LOG STATUS")[0]
    return Position(file, int(offset))


def ranges_left(copy: Copying) -> int | None:
    """How many ranges are not copied yet; None before there are any."""
    own = copy.replication.system_database
    if not copy.follower.execute(
        f"SHOW TABLES FROM {own} LIKE 'copy_range'" if exists(copy, own) else "SELECT 1 LIMIT 0"
    ):
        return None
    ((count, left),) = copy.follower.execute(f"SELECT COUNT(*), COUNT(*) - COUNT(copied) FROM {own}.copy_range")
    return int(left) if count else None


def exists(copy: Copying, database: str) -> bool:
    return bool(copy.follower.execute(f"SHOW DATABASES LIKE '{database}'"))


@pytest.mark.parametrize("gtids", [True, False], ids=["gtids", "plain"])
def test_a_commit_that_hangs_when_the_copy_begins(
    copies: Copies, own_server: StartServer, database: str, gtids: bool
) -> None:
    """It is in the binlog when the copy begins, and in no row that it reads."""
    leader = own_server(OPTIONS[gtids], 31)
    leader.execute(
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
        "SET GLOBAL rpl_semi_sync_source_timeout = 600000", f"CREATE DATABASE {database}",
        f"CREATE TABLE {database}.t (id INT PRIMARY KEY, note VARCHAR(20))",
        f"INSERT INTO {database}.t VALUES (1, 'old'), (2, 'gone')",
    )  # fmt: skip
    copy = copies(plain=not gtids, source=leader)
    wait_until(lambda: copy.replication.records(), "the topic begins", alive=[copy.replication.producer])
    before, statements = (
        end(leader),
        ["BEGIN", "UPDATE t SET note = 'new' WHERE id = 1", "DELETE FROM t WHERE id = 2", "COMMIT"],
    )
    leader.execute("SET GLOBAL rpl_semi_sync_source_enabled = 1")
    hangs = threading.Thread(target=leader.execute, args=statements, kwargs={"database": database}, daemon=True)
    hangs.start()
    wait_until(lambda: before < end(leader), "the transaction is in the binlog")
    # where all rows are copied, and nothing is taken from the topic yet
    copy.killed("moment:executed", "before", 1)
    assert ranges_left(copy) == 0
    assert copy.follower.value(f"SELECT note FROM {database}.t WHERE id = 1") == "old"
    assert hangs.is_alive()
    copy.program.start()
    leader.execute("SET GLOBAL rpl_semi_sync_source_enabled = 0")
    assert copy.program.wait() == 0, copy.program.stderr
    assert copy.follower.execute(f"SELECT * FROM {database}.t") == [(1, "new")]
    copy.follow()


class Busy(LeaderConnection):
    """A leader that commits one more transaction between two questions of the copy."""

    server: Server
    database: str

    def visible(self) -> Visible:
        found = super().visible()
        self.server.execute(f"INSERT INTO {self.database}.t VALUES (NULL)")
        return found


#: what became of tables before a copy, in the binlog file in which it begins
HISTORY = """
CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2); ALTER TABLE t ADD COLUMN c INT DEFAULT 5;
ALTER TABLE t ALTER c SET DEFAULT 7;
CREATE TABLE emptied (id INT PRIMARY KEY, v INT); INSERT INTO emptied VALUES (1,1), (2,2); TRUNCATE emptied;
INSERT INTO emptied VALUES (3,3);
CREATE TABLE anew (id INT PRIMARY KEY, v INT); INSERT INTO anew VALUES (1,1), (2,2); DROP TABLE anew;
CREATE TABLE anew (v VARCHAR(10), id INT PRIMARY KEY); INSERT INTO anew VALUES ('x', 3);
CREATE TABLE a (id INT PRIMARY KEY, v INT); INSERT INTO a VALUES (1,1), (2,2);
CREATE TABLE b (id INT PRIMARY KEY, v INT); INSERT INTO b VALUES (7,7); RENAME TABLE a TO z, b TO a, z TO b;
CREATE TABLE typed (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO typed VALUES (1,'12'), (2,'2024-01-01');
DELETE FROM typed WHERE id = 2; ALTER TABLE typed MODIFY v INT; UPDATE typed SET v = 14;
CREATE TABLE k (id INT PRIMARY KEY, v INT); INSERT INTO k VALUES (1,10), (2,20);
ALTER TABLE k DROP PRIMARY KEY, ADD PRIMARY KEY (v); UPDATE k SET v = v + 1;
CREATE TABLE parts (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (10), PARTITION q VALUES
LESS THAN MAXVALUE); INSERT INTO parts VALUES (1), (11); ALTER TABLE parts TRUNCATE PARTITION p;
CREATE TABLE swap (id INT PRIMARY KEY, a INT, b INT); INSERT INTO swap VALUES (1,1,2), (2,3,4);
ALTER TABLE swap RENAME COLUMN a TO b, RENAME COLUMN b TO a;
CREATE TABLE kinds (id INT PRIMARY KEY, a ENUM('x','y')); INSERT INTO kinds VALUES (1,1), (2,2);
ALTER TABLE kinds MODIFY a ENUM('y','x'); ALTER TABLE kinds MODIFY a VARCHAR(10);
CREATE TABLE n (id INT); INSERT INTO n VALUES (1), (1); TRUNCATE n; INSERT INTO n VALUES (2); ALTER TABLE n ADD c INT
"""


@pytest.mark.parametrize("database_anew", [False, True], ids=["tables", "database"])
def test_statements_in_the_file_in_which_the_copy_begins(
    copies: Copies, plain_leader: Server, database: str, database_anew: bool
) -> None:
    """Without GTIDs what surely shows is what stands before that file: the images of old tables come again."""
    history = [statement.strip() for statement in HISTORY.split(";")]
    plain_leader.execute("FLUSH BINARY LOGS", f"CREATE DATABASE {database}", f"USE {database}", *history)
    if database_anew:
        old = "CREATE TABLE t (id INT PRIMARY KEY, c INT DEFAULT 3)"
        again = [f"DROP DATABASE {database}", f"CREATE DATABASE {database}", f"USE {database}", old]
        plain_leader.execute(*again, "INSERT INTO t VALUES (5, 5)")
    copy = copies(plain=True, source=plain_leader)
    copy.copy()
    copy.follow()
    if not database_anew:
        plain_leader.execute(
            f"USE {database}",
            "INSERT INTO emptied VALUES (4,4)",
            "TRUNCATE emptied",
            "INSERT INTO emptied VALUES (5,5)",
        )
        copy.replication.catch_up()
        assert copy.replication.consumer.stop() == 0
        copy.copy("--tables", f"{database}.emptied,{database}.t,{database}.swap")
        copy.replication.same()


def test_gtids_are_those_of_the_position(leader: Server, database: str) -> None:
    """What was executed behind the position is in none, also where the position is the end of a file."""
    leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (id INT AUTO_INCREMENT PRIMARY KEY)")
    busy = Busy(Database("root", leader.host, leader.port, tls=DatabaseTls("off")))
    busy.server, busy.database = leader, database
    before = leader.value("SELECT @@GLOBAL.gtid_executed")
    position, gtids = executed(busy, gtids=True)
    assert gtids == "".join(before.split())
    assert position < end(leader)
    busy.close()


def test_keys_that_are_equal_to_the_table_alone(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}",
        "CREATE TABLE t (name VARCHAR(20) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, n INT)", "INSERT INTO t VALUES ('a', 1), ('b', 2)",
    )  # fmt: skip
    copy = copies()
    copy.killed("moment:executed", "before", 1)
    leader.execute(
        "UPDATE t SET name = 'A' WHERE name = 'a'", "UPDATE t SET name = 'B' WHERE name = 'b'",
        "UPDATE t SET name = 'á', n = 5 WHERE name = 'A'", database=database,
    )  # fmt: skip
    copy.copy()
    copy.follow()


def test_unique_values_that_change_places_between_ranges(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "CREATE TABLE t (id INT PRIMARY KEY, place INT, UNIQUE (place))",
        f"INSERT INTO t VALUES {', '.join(f'({n}, {n})' for n in range(1000))}", "ANALYZE TABLE t",
    )  # fmt: skip
    copy = copies(limits={"connections": 1})
    copy.killed("rows.task:_copy", "after", 1)
    copied = [number for (number,) in copy.follower.execute(f"SELECT id FROM {database}.t")]
    assert 0 < len(copied) < 900
    there, elsewhere = copied[0], next(number for number in range(1000) if number not in copied)
    leader.execute(
        f"UPDATE t SET place = -1 WHERE id = {there}", f"UPDATE t SET place = {there} WHERE id = {elsewhere}",
        f"UPDATE t SET place = {elsewhere} WHERE id = {there}", database=database,
    )  # fmt: skip
    copy.copy()
    copy.follow()


def test_a_large_transaction_is_mended_part_by_part(copies: Copies, leader: Server, database: str) -> None:
    """Nothing waits in memory for its end; killed between two parts, the copy goes on inside of it."""
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        f"INSERT INTO t VALUES {', '.join(f'({n}, {n})' for n in range(800))}",
    )  # fmt: skip
    copy = copies()
    copy.killed("moment:executed", "before", 1)
    parts = (f"UPDATE t SET id = id + 10000, n = -n WHERE id BETWEEN {n} AND {n + 99}" for n in range(0, 800, 100))
    leader.execute("BEGIN", *parts, "COMMIT", database=database)
    copy.killed("window:Window._write", "after", 5)
    assert copy.follower.value(f"SELECT COUNT(*) FROM {database}.t WHERE id >= 10000") == 500
    copy.copy()
    copy.follow()


def test_a_table_without_a_key_is_mended_part_by_part(copies: Copies, leader: Server, database: str) -> None:
    """Rows that come in one part go in another."""
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "CREATE TABLE t (n INT)",
        f"INSERT INTO t VALUES {', '.join(f'({n % 40})' for n in range(200))}",
    )  # fmt: skip
    copy = copies()
    copy.killed("moment:executed", "before", 1)
    changes = [f"INSERT INTO t SELECT n + 100 FROM t WHERE n < 40 LIMIT {n}" for n in (60, 70, 80)]
    changes += ["UPDATE t SET n = 7 WHERE n > 120", "DELETE FROM t WHERE n % 3 = 1 LIMIT 90", "UPDATE t SET n = n + 1"]
    leader.execute(*changes, database=database)
    copy.killed("window:Window._settle", "before", 4)
    copy.copy()
    copy.follow()
