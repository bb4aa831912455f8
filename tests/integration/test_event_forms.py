"""Every form a change takes in the binlog: replicated exactly, or stopped with its reason. Ids are the catalogue's."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from kit.helpers import assert_same_database
from kit.programs import binlog_end, run_program, write_profiles

from docker.local.mysql_servers import Server


class Script(NamedTuple):
    id: str
    #: statements; `$` is a database of the script's own, which the filter includes, `$x` one it does not
    statements: list[str]


EQUAL = [
    Script("R4_compressed", [
        "CREATE TABLE $.t (id INT PRIMARY KEY, c TEXT)",
        "SET SESSION binlog_transaction_compression = ON",
        "INSERT INTO $.t VALUES (1, 'one'), (2, REPEAT('two', 10000))",
        "BEGIN", "UPDATE $.t SET c = 'three' WHERE id = 1", "DELETE FROM $.t WHERE id = 2", "INSERT INTO $.t VALUES (4, '')",
        "COMMIT",
    ]),
    Script("R5_rows_query", [
        "SET SESSION binlog_rows_query_log_events = ON", "CREATE TABLE $.t (id INT PRIMARY KEY)", "INSERT INTO $.t VALUES (1)",
    ]),
    Script("R9_multi_table", [
        "CREATE TABLE $.a (id INT PRIMARY KEY, v INT)", "CREATE TABLE $.b (id INT PRIMARY KEY, v INT)",
        "INSERT INTO $.a VALUES (1, 1), (2, 2)", "INSERT INTO $.b VALUES (1, 1), (2, 2), (3, 3)",
        "USE $", "UPDATE a, b SET a.v = 9, b.v = 8 WHERE a.id = b.id", "DELETE a, b FROM a JOIN b USING (id) WHERE a.id = 1",
    ]),
    Script("R10_many_row_events", [
        "CREATE TABLE $.t (id INT PRIMARY KEY AUTO_INCREMENT, c CHAR(100))",
        "INSERT INTO $.t (c) SELECT UUID() FROM information_schema.COLLATIONS a, information_schema.CHARACTER_SETS b",
        "UPDATE $.t SET id = id + 100000", "DELETE FROM $.t WHERE id % 3 = 0",
    ]),
    Script("R11_cascade", [
        "CREATE TABLE $.p (id INT PRIMARY KEY)",
        "CREATE TABLE $.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES $.p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO $.p VALUES (1), (2), (3)", "INSERT INTO $.c VALUES (1, 1), (2, 1), (3, 2), (4, 3)",
        "DELETE FROM $.p WHERE id = 1", "UPDATE $.p SET id = 20 WHERE id = 2", "REPLACE INTO $.p VALUES (3)",
        "SET SESSION foreign_key_checks = 0", "INSERT INTO $.c VALUES (9, 99)",
    ]),
    Script("R14_replace_and_duplicates", [
        "CREATE TABLE $.t (id INT PRIMARY KEY, u INT UNIQUE, v INT)", "INSERT INTO $.t VALUES (1, 1, 1), (2, 2, 2)",
        "REPLACE INTO $.t VALUES (1, 2, 3)", "INSERT INTO $.t VALUES (1, 5, 5) ON DUPLICATE KEY UPDATE v = v + 1",
        "INSERT IGNORE INTO $.t VALUES (1, 7, 7), (8, 8, 8)",
    ]),
    Script("R15_create_select", [
        "CREATE TABLE $.a (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO $.a VALUES (1, 'x'), (2, 'y')",
        "CREATE TABLE $.b AS SELECT id, v, id * 2 AS w FROM $.a", "CREATE TABLE $.e AS SELECT * FROM $.a WHERE FALSE",
        "CREATE TABLE $.k (PRIMARY KEY (id)) SELECT * FROM $.a", "SET NAMES gbk", "CREATE TABLE $.`注` AS SELECT 1 AS `释`",
    ]),
    Script("Q1_mixed_text", ["SET NAMES gbk", "CREATE VIEW $.v AS SELECT '注' AS 释"]),
    Script("R16_table_operations", [
        "CREATE TABLE $.a (id INT PRIMARY KEY)", "CREATE TABLE $.b (id INT PRIMARY KEY)",
        "INSERT INTO $.a VALUES (1)", "INSERT INTO $.b VALUES (2), (3)",
        "RENAME TABLE $.a TO $.swap, $.b TO $.a, $.swap TO $.b", "INSERT INTO $.a VALUES (4)", "TRUNCATE TABLE $.b",
        "ALTER TABLE $.b RENAME TO $.d", "DROP TABLE IF EXISTS $.nothing",
    ]),
    Script("R16_partitions", [
        "CREATE TABLE $.t (id INT PRIMARY KEY) PARTITION BY RANGE (id)"
        " (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20), PARTITION p2 VALUES LESS THAN MAXVALUE)",
        "CREATE TABLE $.x (id INT PRIMARY KEY)", "INSERT INTO $.t VALUES (1), (11), (21), (31)", "INSERT INTO $.x VALUES (12)",
        "UPDATE $.t SET id = 15 WHERE id = 1",
        "ALTER TABLE $.t EXCHANGE PARTITION p1 WITH TABLE $.x", "ALTER TABLE $.t TRUNCATE PARTITION p2",
        "ALTER TABLE $.t REORGANIZE PARTITION p0 INTO (PARTITION n0 VALUES LESS THAN (5), PARTITION n1 VALUES LESS THAN (10))",
        "ALTER TABLE $.t DROP PARTITION n1", "INSERT INTO $.t VALUES (2), (22)",
    ]),
    Script("R18_savepoint", [
        "CREATE TABLE $.t (id INT PRIMARY KEY)", "BEGIN", "INSERT INTO $.t VALUES (1)", "SAVEPOINT s",
        "INSERT INTO $.t VALUES (2)", "ROLLBACK TO s", "INSERT INTO $.t VALUES (3)", "SAVEPOINT z", "COMMIT",
    ]),
    Script("R20_temporary", [
        "CREATE TABLE $.t (id INT PRIMARY KEY)", "CREATE TEMPORARY TABLE $.t (id INT)", "INSERT INTO $.t VALUES (7)",
        "DROP TEMPORARY TABLE $.t", "INSERT INTO $.t VALUES (1)",
    ]),
    Script("R24_empty_transaction", [
        "CREATE TABLE $.t (id INT PRIMARY KEY)", "BEGIN", "INSERT INTO $.t VALUES (1)", "DELETE FROM $.t", "COMMIT",
        "CREATE TABLE IF NOT EXISTS $.t (id INT)", "INSERT INTO $.t VALUES (2)",
    ]),
    Script("R25_stored_objects", [
        "USE $", "CREATE TABLE t (id INT PRIMARY KEY, v INT)",
        "CREATE VIEW v AS SELECT id FROM t WHERE v <> 'a\\nb'", "CREATE OR REPLACE VIEW v AS SELECT v FROM t",
        "CREATE PROCEDURE p1(IN a INT) BEGIN INSERT INTO t VALUES (a, 1); SELECT 1; END",
        "CREATE FUNCTION f1(a INT) RETURNS INT DETERMINISTIC RETURN a + 1",
        "CALL p1(5)", "INSERT INTO t VALUES (6, f1(6))", "ALTER PROCEDURE p1 COMMENT 'x'", "DROP FUNCTION f1",
    ]),
    Script("R26_trigger", [
        "CREATE TABLE $.t (id INT PRIMARY KEY, v INT)", "CREATE TABLE $.log (id INT AUTO_INCREMENT PRIMARY KEY, t INT)",
        "CREATE TRIGGER $.before_t BEFORE INSERT ON $.t FOR EACH ROW SET NEW.v = NEW.v + 1",
        "CREATE TRIGGER $.after_t AFTER INSERT ON $.t FOR EACH ROW INSERT INTO log (t) VALUES (NEW.id)",
        "INSERT INTO $.t VALUES (1, 5), (2, 6)", "DROP TRIGGER $.before_t", "INSERT INTO $.t VALUES (3, 5)",
    ]),
    Script("R27_accounts", [
        "CREATE USER IF NOT EXISTS '$_user'@'localhost' IDENTIFIED BY 'secret'", "GRANT SELECT ON $.* TO '$_user'@'localhost'",
        "DROP USER '$_user'@'localhost'", "FLUSH PRIVILEGES", "CREATE TABLE $.t (id INT PRIMARY KEY)",
    ]),
    Script("R28_maintenance", [
        "CREATE TABLE $.t (id INT PRIMARY KEY)", "INSERT INTO $.t VALUES (1)", "ANALYZE TABLE $.t", "OPTIMIZE TABLE $.t",
        "FLUSH TABLES $.t",
    ]),
    Script("R29_databases", [
        "CREATE DATABASE $_db CHARACTER SET latin1", "USE $_db", "CREATE TABLE t (c VARCHAR(9))", "ALTER DATABASE CHARACTER SET utf8mb4",
        "CREATE TABLE u (c VARCHAR(9))", "INSERT INTO t VALUES ('é')",
    ]),
    Script("R30_no_use", ["CREATE TABLE $.`a``b.c` (`select` INT PRIMARY KEY, `名` INT)", "INSERT INTO $.`a``b.c` VALUES (1, 2)"]),
    Script("R30_other_use", ["USE $x", "CREATE TABLE $.t (id INT PRIMARY KEY)", "INSERT INTO $.t VALUES (1)", "CREATE TABLE u (id INT)"]),
    Script("R30_foreign_parts", [
        "USE $", "CREATE TABLE $x.t (id INT PRIMARY KEY)", "INSERT INTO $x.t VALUES (1)", "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t SELECT * FROM $x.t", "ALTER TABLE $x.t ADD c INT", "DROP TABLE $x.t",
    ]),
    Script("R31_drop_many", ["CREATE TABLE $.a (id INT)", "CREATE TABLE $.b (id INT)", "USE $", "DROP TABLE a, b"]),
    Script("R33_ddl_in_transaction", [
        "CREATE TABLE $.t (id INT PRIMARY KEY)", "BEGIN", "INSERT INTO $.t VALUES (1)", "CREATE TABLE $.u (id INT)",
        "INSERT INTO $.t VALUES (2)", "COMMIT",
    ]),
    Script("R35_large_event", [
        "CREATE TABLE $.t (id INT PRIMARY KEY, c LONGBLOB)", "INSERT INTO $.t VALUES (1, REPEAT(x'00FF', 9000000))",
        "UPDATE $.t SET id = 2",
    ]),
    Script("T44_generated", [
        "CREATE TABLE $.t (id INT PRIMARY KEY, a INT, b INT AS (a + 1) VIRTUAL, c INT AS (a * 2) STORED, d INT INVISIBLE DEFAULT 5)",
        "INSERT INTO $.t (id, a) VALUES (1, 2)", "UPDATE $.t SET a = 7, d = 6",
    ]),
    Script("T44_generated_no_key", [
        "CREATE TABLE $.t (a INT, b INT AS (a + 1) STORED)", "INSERT INTO $.t (a) VALUES (1), (1), (2)", "UPDATE $.t SET a = 3 LIMIT 1",
        "DELETE FROM $.t WHERE a = 1",
    ]),
    Script("T46_generated_key", [
        "SET SESSION sql_generate_invisible_primary_key = ON", "CREATE TABLE $.t (a INT)", "INSERT INTO $.t VALUES (1), (1), (2)",
        "DELETE FROM $.t LIMIT 1",
    ]),
    Script("T47_functional_index", [
        "CREATE TABLE $.t (id INT PRIMARY KEY, a VARCHAR(9), j JSON, KEY ((LOWER(a))), KEY ((CAST(j->'$$.a' AS UNSIGNED ARRAY))))",
        "INSERT INTO $.t VALUES (1, 'X', '{\"a\": [1, 2]}')", "UPDATE $.t SET a = 'y'",
    ]),
    Script("T48_prefix_key", [
        "CREATE TABLE $.t (a VARCHAR(50), b INT, c INT, PRIMARY KEY (a(10), b))", "INSERT INTO $.t VALUES ('abcdefghijklm', 1, 1)",
        "UPDATE $.t SET c = 2",
    ]),
    Script("A6_zero_auto_increment", [
        "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", "CREATE TABLE $.t (id INT AUTO_INCREMENT PRIMARY KEY)",
        "INSERT INTO $.t VALUES (0), (5)",
    ]),
    Script("A7_unique_swap", [
        "CREATE TABLE $.t (id INT PRIMARY KEY, u INT UNIQUE)", "INSERT INTO $.t VALUES (1, 1), (2, 2), (3, 3)",
        "UPDATE $.t SET u = u + 10 ORDER BY id", "UPDATE $.t SET id = id + 1 ORDER BY id DESC",
    ]),
    Script("A10_on_update_now", [
        "CREATE TABLE $.t (id INT PRIMARY KEY, v INT, ts TIMESTAMP(6) DEFAULT NOW(6) ON UPDATE NOW(6))",
        "INSERT INTO $.t (id, v) VALUES (1, 1)", "UPDATE $.t SET v = 2", "UPDATE $.t SET v = 3, ts = ts",
    ]),
    Script("Q_sql_mode", [
        "SET SESSION sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", "USE $",
        """CREATE TABLE "am" ("a" VARCHAR(10) DEFAULT 'x\\', d DATE DEFAULT '0000-00-00')""", "INSERT INTO am VALUES ('1', '2024-01-01')",
    ]),
    Script("Q_charset", [
        "SET NAMES gbk", "CREATE TABLE $.t (id INT PRIMARY KEY, c VARCHAR(9) DEFAULT '注' COMMENT '释')", "INSERT INTO $.t (id) VALUES (1)",
    ]),
    Script("Q_time_zone", [
        "SET SESSION time_zone = '+05:30'", "CREATE TABLE $.t (id INT PRIMARY KEY, ts TIMESTAMP DEFAULT '2024-01-01 00:00:00')",
        "INSERT INTO $.t (id) VALUES (1)",
    ]),
    Script("Q_timestamp", [
        "CREATE TABLE $.t (id INT PRIMARY KEY)", "INSERT INTO $.t VALUES (1), (2)", "ALTER TABLE $.t ADD ts DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)",
    ]),
    Script("Q_foreign_key_checks", [
        "SET SESSION foreign_key_checks = 0",
        "CREATE TABLE $.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES $.missing (id))", "INSERT INTO $.c VALUES (1, 1)",
    ]),
]  # fmt: skip

#: needs GTIDs on the leader
TAGGED = Script("R22_tagged", [
    "CREATE TABLE $.t (id INT PRIMARY KEY)", "SET gtid_next = 'AUTOMATIC:some_tag'", "INSERT INTO $.t VALUES (1)",
    "INSERT INTO $.t VALUES (2)", "CREATE TABLE $.u (id INT)", "SET gtid_next = 'AUTOMATIC'", "INSERT INTO $.t VALUES (3)",
])  # fmt: skip

#: id, statements, what the producer's error says
STOPPED = [
    ("R1_minimal_image", ["SET SESSION binlog_row_image = MINIMAL", "UPDATE $.t SET v = 1"], "binlog_row_image"),
    ("R2_partial_json", ["SET SESSION binlog_row_value_options = PARTIAL_JSON", "UPDATE $.t SET j = JSON_SET(j, '$$.a', 2)"], "PARTIAL_JSON"),
    ("R17_xa", ["XA START 'x'", "INSERT INTO $.t (id) VALUES (2)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'"], "XA transaction"),
    ("R21_statement", ["SET SESSION binlog_format = STATEMENT", "INSERT INTO $.t (id) VALUES (2)"], "binlog_format"),
    ("R31_straddle_drop", ["CREATE TABLE $x.t (id INT)", "DROP TABLE $.t, $x.t"], "which the filter includes"),
    ("R32_straddle_rename", ["RENAME TABLE $.t TO $x.t"], "which the filter includes"),
]  # fmt: skip


def run_script(leader: Server, database: str, script: list[str]) -> None:
    """Run in a session of its own; `$` and `$x` are created first."""
    charset = "gbk" if any("NAMES gbk" in statement for statement in script) else "utf8mb4"
    with leader.connect() as connection, connection.cursor() as cursor:
        for statement in [f"CREATE DATABASE {database}", f"CREATE DATABASE {database}x", *script]:
            text = statement.replace("$$", "\0").replace("$", database).replace("\0", "$")
            if statement.startswith("SET NAMES"):
                connection.set_character_set(charset)
            cursor.execute(text)


def replicate(folder: Path, leader: Server, follower: Server, databases: list[str], start: str | None = None) -> None:
    profiles = write_profiles(
        folder, leader, follower, include_dbs=databases, start=start, system_database=f"{databases[0]}cdc"
    )
    for module, profile in (("cdc_producer", profiles.producer), ("cdc_consumer", profiles.consumer)):
        done = run_program(module, profile, "--exit-at-end")
        assert done.returncode == 0, done.stderr


def test_every_form_arrives(leader: Server, follower: Server, database: str, tmp_path: Path) -> None:
    check_equal(leader, follower, database, tmp_path, [*EQUAL, TAGGED])
    executed = "SELECT @@GLOBAL.gtid_executed"
    missing = leader.value(f"SELECT GTID_SUBTRACT(({executed}), '{follower.value(executed)}')")
    assert isinstance(missing, str)


def test_every_form_arrives_without_gtids(
    plain_leader: Server, plain_follower: Server, database: str, tmp_path: Path
) -> None:
    check_equal(plain_leader, plain_follower, database, tmp_path, EQUAL)


def check_equal(leader: Server, follower: Server, database: str, folder: Path, scripts: list[Script]) -> None:
    """Run all scripts, then both programs once, then compare all databases."""
    start = binlog_end(leader)
    names = {script.id: f"{database}_{number}" for number, script in enumerate(scripts)}
    for script in scripts:
        run_script(leader, names[script.id], script.statements)
    own = [name for (name,) in leader.execute(f"SHOW DATABASES LIKE '{database}%'") if not name.endswith("x")]
    replicate(folder, leader, follower, own, start)
    for name in own:
        assert_same_database(leader, follower, name)
    assert not follower.execute(f"SHOW DATABASES LIKE '{database}%x'")


@pytest.mark.parametrize(("script", "says"), [case[1:] for case in STOPPED], ids=[case[0] for case in STOPPED])
def test_what_cannot_be_carried_stops(
    leader: Server, follower: Server, database: str, tmp_path: Path, script: list[str], says: str
) -> None:
    """One line that names it, and nothing of that transaction in the topic."""
    profiles = write_profiles(tmp_path, leader, follower, include_dbs=[database])
    table = ["CREATE TABLE $.t (id INT PRIMARY KEY, v INT, j JSON)", "INSERT INTO $.t VALUES (1, 0, '{\"a\": 1}')"]
    run_script(leader, database, [*table, *script])
    producer = run_program("cdc_producer", profiles.producer, "--exit-at-end")
    assert producer.returncode == 1
    *_, last = producer.stderr.splitlines()
    assert last.startswith("cdc-producer: ") and says in last
    assert "Traceback" not in producer.stderr
    consumer = run_program("cdc_consumer", profiles.consumer, "--exit-at-end")
    assert consumer.returncode == 0, consumer.stderr
    assert follower.execute(f"SELECT id, v FROM {database}.t") == [(1, 0)]


def test_R19_tables_without_transactions_stop_at_the_follower(
    leader: Server, follower: Server, database: str, tmp_path: Path
) -> None:
    """They cannot be written together with the position, so a crash could repeat a row."""
    profiles = write_profiles(tmp_path, leader, follower, include_dbs=[database])
    table = "CREATE TABLE $.t (id INT PRIMARY KEY) ENGINE=MyISAM"
    run_script(leader, database, [table, "INSERT INTO $.t VALUES (1), (2)", "DELETE FROM $.t WHERE id = 1"])
    assert run_program("cdc_producer", profiles.producer, "--exit-at-end").returncode == 0
    refused = run_program("cdc_consumer", profiles.consumer, "--exit-at-end")
    assert refused.returncode == 1
    assert "MyISAM" in refused.stderr.splitlines()[-1]
    follower.execute(f"ALTER TABLE {database}.t ENGINE=InnoDB")
    assert run_program("cdc_consumer", profiles.consumer, "--exit-at-end").returncode == 0
    assert follower.execute(f"SELECT * FROM {database}.t") == [(2,)]


def test_R21_statements_on_databases_outside_the_filter_pass(
    leader: Server, follower: Server, database: str, tmp_path: Path
) -> None:
    """With all that goes before them: insert ids, seeds, user variables."""
    profiles = write_profiles(tmp_path, leader, follower, include_dbs=[database])
    script = [
        "CREATE TABLE $.t (id INT PRIMARY KEY)", "CREATE TABLE $x.t (id INT AUTO_INCREMENT PRIMARY KEY, v DOUBLE)", "SET @v = 5",
        "SET SESSION binlog_format = STATEMENT", "INSERT INTO $x.t (v) VALUES (@v), (RAND())", "USE $", "UPDATE $x.t SET v = @v",
        "SET SESSION binlog_format = ROW", "INSERT INTO $.t VALUES (1)",
    ]  # fmt: skip
    run_script(leader, database, script)
    for module, profile in (("cdc_producer", profiles.producer), ("cdc_consumer", profiles.consumer)):
        done = run_program(module, profile, "--exit-at-end")
        assert done.returncode == 0, done.stderr
    assert_same_database(leader, follower, database)
