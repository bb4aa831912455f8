"""Each transaction runs once, whatever dies around a statement and whoever else has run it."""

from __future__ import annotations

from typing import Any

import pytest
from fix_replay import COLUMNS, Stage, row
from kit.events import integer

from cdc_consumer.follower.own_tables import OwnTables
from cdc_consumer.follower.worker import Worker
from shared.errors import DivergedError, EventError, FollowerError
from shared.filters import DatabaseFilter
from shared.profile import Filters


def execute_elsewhere(stage: Stage) -> None:
    """Let the follower have executed the log's last transaction by other means, with nothing in it."""
    stage.server.execute(f"SET gtid_next = '{stage.log.gtid}'", "BEGIN", "COMMIT", "SET gtid_next = 'AUTOMATIC'")


class CrashError(Exception):
    """Ends the consumer like SIGKILL: nothing more is sent."""


def crash_at(monkeypatch: pytest.MonkeyPatch, method: str, call: int = 1) -> None:
    """The next consumer ends before the `call`-th call of a method of its Worker, or of its OwnTables."""
    owner: Any = Worker if hasattr(Worker, method) else OwnTables
    real = getattr(owner, method)
    calls = 0

    def crashing(self: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= call:
            self._pipe.broken = True
            raise CrashError
        return real(self, *arguments, **named)

    monkeypatch.setattr(owner, method, crashing)


#: statements that fail, or do harm, when they run twice
ONCE = [
    "ALTER TABLE t ADD c INT",
    "RENAME TABLE t TO x, u TO t, x TO u",
    "DROP TABLE t",
    "CREATE TABLE w (id INT)",
    "CREATE INDEX i ON t (name)",
    "DROP TABLE t, e",
    "CREATE PROCEDURE p() SELECT 1",
    "CREATE VIEW v AS SELECT 1",
    "ALTER TABLE p EXCHANGE PARTITION a WITH TABLE e",
    "DROP DATABASE {database}",
    # the definition is the same before and after
    "ALTER TABLE c CHANGE a b INT, CHANGE b a INT AFTER id",
    "ALTER TABLE c DROP COLUMN a, CHANGE b a INT, ADD COLUMN b INT",
    "ALTER TABLE c DROP COLUMN a, RENAME COLUMN b TO a, ADD COLUMN b INT, ALGORITHM = INSTANT",
]


@pytest.mark.parametrize("sql", ONCE)
@pytest.mark.parametrize("crash", ["before", "after"])
def test_a_crash_around_a_statement(stage: Stage, sql: str, crash: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs exactly once, whether the last session ended before or after it."""
    sql = sql.format(database=stage.database)
    stage.create()
    stage.create(table="u")
    stage.create("(id INT) PARTITION BY LIST (id) (PARTITION a VALUES IN (1))", "p")
    stage.create("(id INT)", "e")
    stage.create("(id INT, a INT, b INT)", "c")
    stage.log.add(stage.table, COLUMNS, row(1, "in t"))
    stage.log.add(f"{stage.database}.p", ["id"], [integer(1)])
    stage.log.add(f"{stage.database}.c", ["id", "a", "b"], [integer(1), integer(10), integer(20)])
    stage.replay()
    stage.log.ddl(sql, stage.database)
    with monkeypatch.context() as patch:
        crash_at(patch, "run" if crash == "before" else "advance")
        with pytest.raises(CrashError):
            stage.replay()
    assert stage.position()[1] == 8
    stage.replay()
    assert stage.position()[1] == 9
    if "RENAME TABLE" in sql:
        assert stage.rows("u") == [(1, "in t")]
    elif "EXCHANGE" in sql:
        assert stage.rows("e") == [(1,)]
        assert stage.rows("p") == []
    elif "ALTER TABLE c" in sql:
        assert stage.rows("c", "a, b") == [(20, None if "DROP" in sql else 10)]


@pytest.mark.parametrize("sql", ["CREATE INDEX i ON t (name)", "DROP TABLE t", "ALTER TABLE t ADD c INT"])
def test_what_others_do_is_not_taken_for_the_statement(stage: Stage, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another table of the same database is altered and rebuilt after a crash before the statement."""
    stage.create()
    stage.create(table="u")
    stage.replay()
    stage.log.ddl(sql, stage.database)
    with monkeypatch.context() as patch:
        crash_at(patch, "run")
        with pytest.raises(CrashError):
            stage.replay()
    stage.server.execute(f"OPTIMIZE TABLE {stage.database}.u", f"ALTER TABLE {stage.database}.u ADD c INT")
    stage.replay()
    tables = stage.server.execute(f"SHOW TABLES FROM {stage.database}")
    if "DROP" in sql:
        assert tables == [("u",)]
    else:
        created = stage.server.execute(f"SHOW CREATE TABLE {stage.table}")[0][1]
        assert "KEY `i`" in created or "`c` int" in created


def test_a_statement_costs_the_same_among_many_tables(stage: Stage) -> None:
    stage.create()
    for number in range(30):
        stage.create(table=f"t{number}")
    before = stage.server.execute("SHOW GLOBAL STATUS LIKE 'Com_show_create_table'")[0][1]
    stage.replay()
    after = stage.server.execute("SHOW GLOBAL STATUS LIKE 'Com_show_create_table'")[0][1]
    assert int(after) - int(before) <= 31


def test_a_statement_that_failed_runs_after_the_repair(stage: Stage) -> None:
    """What somebody repairs by hand must not be taken for the effect of the statement."""
    stage.create()
    stage.replay()
    stage.server.execute(f"CREATE TABLE {stage.database}.n (wrong INT)")
    stage.log.ddl("CREATE TABLE n (id INT)", stage.database)
    with pytest.raises(FollowerError, match="already exists"):
        stage.replay()
    stage.server.execute(f"DROP TABLE {stage.database}.n")
    stage.replay()
    assert stage.rows("n", "id") == []
    assert stage.position() == (2, 2)


@pytest.mark.parametrize("crash", [None, "begin", "commit"])
def test_create_table_select(stage: Stage, crash: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.create()
    stage.replay()
    with stage.log.transaction():
        stage.log.query("CREATE TABLE `n` (\n  `id` int NOT NULL,\n  `name` varchar(20)\n) START TRANSACTION",
                        stage.database)  # fmt: skip
        stage.log.rows("Add", f"{stage.database}.n", COLUMNS, [row(1, "a"), row(2, "b")])
        stage.log.rows("Add", f"{stage.database}.n", COLUMNS, [row(3, "c")])
    if crash is not None:
        with monkeypatch.context() as patch:
            crash_at(patch, crash)
            with pytest.raises(CrashError):
                stage.replay()
        assert stage.rows("n") == []
        assert stage.position() == (1, 1)
    stage.replay()
    stage.replay()
    assert stage.rows("n") == [(1, "a"), (2, "b"), (3, "c")]
    assert stage.position() == (4, 4)


def test_create_table_select_into_rows(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    with stage.log.transaction():
        stage.log.query("CREATE TABLE IF NOT EXISTS `t` (`id` int, `name` int) START TRANSACTION", stage.database)
        stage.log.rows("Add", stage.table, COLUMNS, [row(1, "a")])
    with pytest.raises(DivergedError, match="exists on the follower and holds rows"):
        stage.replay()


def test_another_statement_inside_a_transaction(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create()
    with stage.log.transaction(end=False):
        stage.log.query("CREATE TABLE n (id INT)", stage.database)
    with pytest.raises(EventError, match="does not end its transaction"):
        stage.replay()


@pytest.mark.parametrize("events", ["rows", "query", "create select"])
def test_what_the_follower_has_executed_by_other_means(gtid_stage: Stage, events: str) -> None:
    """A copy of the leader, or native replication: only the position moves."""
    stage = gtid_stage
    stage.create()
    stage.replay()
    with stage.log.transaction():
        if events == "query":
            stage.log.query("CREATE TABLE n (id INT)", stage.database)
        elif events == "create select":
            stage.log.query("CREATE TABLE `n` (`id` int, `name` int) START TRANSACTION", stage.database)
            stage.log.rows("Add", f"{stage.database}.n", COLUMNS, [row(7, "a")])
        else:
            stage.log.rows("Add", stage.table, COLUMNS, [row(7, "a")])
            stage.log.rows("Delete", stage.table, COLUMNS, [row(8, "never there")])
    execute_elsewhere(stage)
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    stage.replay()
    assert stage.rows() == [(1, "a")]
    assert stage.position()[1] == stage.log.sequence


@pytest.mark.parametrize("kind", ["Add", "Update", "Delete"])
def test_what_is_executed_by_others_meanwhile(gtid_stage: Stage, kind: str) -> None:
    """Not at the start, where the consumer asks, but later: the rows that do not match make it ask again."""
    stage = gtid_stage
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    image = row(5, "x")
    with stage.log.transaction():
        stage.log.rows(kind, stage.table, COLUMNS, [(image, image)] if kind == "Update" else [image])
    execute_elsewhere(stage)
    stage.log.add(stage.table, COLUMNS, row(2, "b"))
    stage.replay()
    assert stage.rows() == [(1, "a"), (2, "b")]
    assert stage.position() == (4, 4)


def test_the_filter_of_own_tables() -> None:
    assert "c_cdc" not in DatabaseFilter(Filters(exclude_dbs=()), "c_cdc")


def test_many_transactions_executed_by_other_means(gtid_stage: Stage) -> None:
    """A follower loaded from a copy of the leader, with a topic that began before it."""
    stage = gtid_stage
    stage.create()
    stage.replay()
    for number in range(50):
        stage.log.add(stage.table, COLUMNS, row(number, "in the copy"))
        execute_elsewhere(stage)
    stage.replay()
    assert stage.rows() == []
    assert stage.position() == (51, 51)
    stage.log.add(stage.table, COLUMNS, row(1, "new"))
    stage.replay()
    assert stage.rows() == [(1, "new")]


def test_a_transaction_without_end_after_executed_ones(gtid_stage: Stage) -> None:
    """The position that still waits for those is not written into the transaction that has begun."""
    stage = gtid_stage
    stage.create()
    stage.replay()
    for number in range(3):
        stage.log.add(stage.table, COLUMNS, row(number, "in the copy"))
        execute_elsewhere(stage)
    with stage.log.transaction(end=False):
        stage.log.rows("Add", stage.table, COLUMNS, [row(7, "no end")])
    stage.replay()
    assert stage.rows() == []
