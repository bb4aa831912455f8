"""What an audit is asked to do, and what keeps it from doing so: one clear sentence and the right exit status."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from fix_parity import THREE_TABLES, Parity, parity_of
from fix_replication import Replication
from kit.programs import run_program

from cdc_consumer.parity.differences import FILE
from cdc_consumer.parity.servers.pair import LeaderConnection
from cdc_consumer.parity.suspects import settle
from shared.events import Position

# which tables


@pytest.mark.parametrize(
    ("patterns", "tables"),
    [
        (["{db}.a"], ["a"]), (["{db}.?"], ["a", "b"]), (["*.other"], ["other"]), (["{db}.a", "*.o*"], ["a", "other"]),
        (["*"], ["a", "b", "other"]),
    ],
)  # fmt: skip
def test_tables(patterns: Sequence[str], tables: Sequence[str], damaged: Parity, database: str) -> None:
    damaged.follower.execute("ALTER TABLE b ADD KEY (v)", database=database)
    result = damaged.audit(*(f"--tables={pattern.format(db=database)}" for pattern in patterns))
    assert [table["table"] for table in result.run["tables"]] == tables
    assert {table for table, _ in result.kinds()} == set(tables)
    assert {each["parent"] for each in result.schema} == {"b"} & set(tables)
    assert "tables" in result.run["run"]["options"]


def test_tables_that_are_not_there(damaged: Parity, database: str) -> None:
    damaged.audit("--tables=*.a", "--tables=nosuch").assert_refused(2, "nosuch", "database.table")


def test_a_database_that_is_not_there(damaged: Parity, database: str) -> None:
    damaged.change(filters={"include_dbs": [database, "nosuch"]})
    damaged.audit().assert_refused(2, "nosuch")


def test_excluded_databases(damaged: Parity, database: str) -> None:
    others = [name for (name,) in damaged.leader.execute("SHOW DATABASES") if name != database]
    others += [name for (name,) in damaged.follower.execute("SHOW DATABASES") if name != database]
    damaged.change(filters={"include_dbs": None, "exclude_dbs": sorted(set(others))})
    assert damaged.audit().kinds() == {("a", "changed"), ("b", "missing"), ("other", "copies")}
    damaged.change(filters={"exclude_dbs": [*sorted(set(others)), database]})
    damaged.audit().assert_refused(2, "filters.exclude_dbs")


@pytest.mark.parametrize(
    ("filters", "told"),
    [
        ({"include_tables": ["{db}.a", "{db}.nope*"]}, "include_tables names {db}.nope*"),
        ({"exclude_tables": ["{db}.a", "*.b", "*.oth*"]}, "exclude_tables leaves no table"),
    ],
)
def test_patterns_that_leave_nothing(filters: dict[str, list[str]], told: str, damaged: Parity, database: str) -> None:
    named = {key: [pattern.format(db=database) for pattern in patterns] for key, patterns in filters.items()}
    damaged.change(filters=named)
    damaged.audit().assert_refused(2, f"filters.{told.format(db=database)}")


def test_a_pattern_may_be_of_a_view(parity: Parity, database: str) -> None:
    parity.write(["CREATE VIEW v AS SELECT 1 AS a"])
    parity.change(filters={"include_tables": [f"{database}.v"]})
    assert parity.audit().status == 0


def test_an_empty_database_is_equal(parity: Parity) -> None:
    result = parity.audit()
    assert result.status == 0 and "No row was compared: neither server has a table in the filters." in result.out


# which rows


def test_where(damaged: Parity, database: str) -> None:
    result = damaged.audit("--where=v >= 3", f"--tables={database}.a")
    # the row is in it on the leader only, and is one row all the same
    assert result.rows("a") == {("4",): ("changed", "v", "name")}
    assert result.table("a")["rows"] == {"leader": 2, "follower": 1}
    assert result.run["run"]["options"]["where"] == "v >= 3"
    assert damaged.audit("--where=v BETWEEN 2 AND 3 OR v = 2", f"--tables={database}.?").status == 0
    assert damaged.audit("--where=v = 2").kinds() == {("other", "copies")}


@pytest.mark.parametrize(
    "where", ["nosuch = 1", "v >", "v = 1) OR (1", "name = 'one'", "v = 1 -- ", "RAND () < 0.5", "v < @a"]
)
def test_a_where_that_is_none(where: str, damaged: Parity) -> None:
    result = damaged.audit(f"--where={where}")
    if where == "v = 1) OR (1":  # is one, of all rows
        assert result.status == 1
    else:
        result.assert_refused(2, "--where")


def test_since(replication: Replication, database: str) -> None:
    """Only what events from a sequence on have written; tables whose rows the topic does not tell are read whole."""
    replication.play(*THREE_TABLES)
    replication.replicate()
    after = replication.sequence() + 1
    for id in (1, 2, 4):
        replication.follower.execute(f"UPDATE a SET name = 'stranger' WHERE id = {id}", database=database)
    replication.play("UPDATE b SET v = 7 WHERE id = 3", "UPDATE a SET v = 9 WHERE id = 3")
    replication.replicate()
    replication.follower.execute("UPDATE a SET name = 'stranger' WHERE id = 3", database=database)
    parity = parity_of(replication, [database])
    result = parity.audit(f"--since={after}")
    assert result.rows("a") == {("3",): ("changed", "name")}, result.err
    assert result.run["run"]["options"] == {"since": str(after)}
    assert result.differences[0].stage == "applied wrongly, or changed on the follower afterwards"
    assert set(parity.audit("--since=0").rows("a")) == {("1",), ("2",), ("3",), ("4",)}
    assert parity.audit(f"--since={replication.sequence() + 1}").status == 0


@pytest.mark.parametrize("values", [True, False])
def test_what_was_left_out_by_decision_is_shown(
    replication: Replication, database: str, tmp_path: Path, values: bool
) -> None:
    """Also where nothing differs because of it."""
    replication.play("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)")
    replication.replicate()
    parity = parity_of(replication, [database])
    assert parity.audit().run["left_out"] == []
    replication.follower.execute("SET sql_log_bin = 0", f"INSERT INTO {database}.t VALUES (2, 7)")
    replication.play("INSERT INTO t VALUES (2, 2)")
    assert replication.produce().returncode == 0
    (tmp_path / "instead.sql").write_text(f"UPDATE {database}.t SET v = 2 WHERE id = 2")
    decided = ("--reason", "<was there>", "--instead", str(tmp_path / "instead.sql"))
    sequence = str(replication.sequence() + 1)
    skipped = run_program("cdc_consumer", replication.profiles.consumer, "--exit-at-end", "--skip", sequence, *decided)
    assert skipped.returncode == 0, skipped.stderr
    audited = parity.audit(*([] if values else ["--no-values"]))
    (told,) = audited.run["left_out"]
    assert (str(told["first"]), told["reason"], told["side"]) == (sequence, "<was there>", "follower")
    assert ("SET v = 2" in told["instead"]) == values
    assert (audited.status, audited.differences) == (0, []), audited.err
    assert "1 transaction left out by decision" in audited.out and "<was there>" in audited.out
    assert audited.folder is not None
    page = (audited.folder / "report.html").read_text()
    assert "Left out by decision" in page and "&lt;was there&gt;" in page


def test_since_needs_a_topic(damaged: Parity) -> None:
    damaged.audit("--since=3").assert_refused(4, "--since", "[topic]")


# how


@pytest.mark.parametrize(
    "arguments", [["--since=-1"], ["--since=x"], ["--repair", "--no-values"], ["--nonsense"], ["--cores=two"], ["--cores=0"], ["another"]]
)  # fmt: skip
def test_wrong_options(arguments: list[str], parity: Parity) -> None:
    result = parity.audit(*arguments)
    assert result.status == 2 and "usage: cdc-parity" in result.err and result.folder is None


def test_without_values_no_value_is_written(damaged: Parity, database: str) -> None:
    result = damaged.audit("--no-values")
    assert result.status == 1 and result.folder is not None
    secret = b"secret".hex()
    files = sorted(path.name for path in result.folder.iterdir())
    assert "repair.sql" not in files and "undo.sql" not in files
    for path in result.folder.iterdir():
        if "sqlite" not in path.name:
            text = path.read_text()
            assert "secret" not in text and secret not in text.lower(), path
    assert result.rows("a") == {("4",): ("changed", "v", "name")}
    assert all(each.leader_hash or each.follower_hash for each in result.differences)


def test_repair_makes_the_follower_equal(damaged: Parity) -> None:
    result = damaged.audit("--repair")
    assert result.status == 0 and result.differences == [], result.err
    assert damaged.audit().status == 0


# it stops, and goes on


def test_nobody_else_reads_what_rows_hold(damaged: Parity) -> None:
    """Whatever the umask: the folder keeps them out, and so does each file when it is copied elsewhere."""
    before = os.umask(0)
    try:
        folder = damaged.audit("--repair").folder
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert folder is not None
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder.parent, folder, *folder.iterdir())}
    assert {FILE, "audit.sqlite", "repair.sql", "undo.sql", "report.html", "run.json", "schema.json"} <= modes.keys()
    assert {name for name, mode in modes.items() if mode & 0o077} == set(), modes
    folder.chmod(0o755)
    damaged.audit(f"--resume={folder.name}")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("calls", [1, 2, 5, 9, 14])
def test_a_run_that_was_stopped_is_resumed(calls: int, damaged: Parity, database: str) -> None:
    numbers = ", ".join(f"({number}, {number})" for number in range(10, 60))
    for server in (damaged.leader, damaged.follower):
        server.execute(f"INSERT INTO b VALUES {numbers}", "ANALYZE TABLE b", database=database)
    damaged.follower.execute("UPDATE b SET v = 0 WHERE id IN (11, 30, 59)", database=database)
    whole = damaged.audit()
    left = iter(range(calls))
    damaged.stopped = lambda: next(left, None) is None
    result = damaged.audit()
    assert result.status == 130 and result.folder is not None, result.err
    assert result.run["run"]["interrupted"]
    damaged.stopped = lambda: False
    again = damaged.resume(result)
    assert again.status == 1 and again.folder == result.folder
    assert {table["table"]: table["digest"] for table in again.run["tables"]} == {
        table["table"]: table["digest"] for table in whole.run["tables"]
    }
    assert again.rows("b") == whole.rows("b")
    assert sorted(str(each.key) for each in again.differences) == sorted(str(each.key) for each in whole.differences)


def test_a_run_that_compared_something_else_is_not_resumed(damaged: Parity, database: str) -> None:
    result = damaged.audit()
    damaged.resume(result, "--where=v > 1").assert_refused(4, "--resume")
    for server in (damaged.leader, damaged.follower):
        server.execute("ALTER TABLE b ADD w INT", database=database)
    damaged.resume(result).assert_refused(4, "--resume")
    damaged.audit("--resume=nosuch").assert_refused(4, "nosuch")


def test_rows_are_read_at_the_time_of_day_that_was_set(damaged: Parity) -> None:
    now = datetime.now()
    begin, end = now + timedelta(hours=2), now + timedelta(hours=3)
    damaged.change(limits={"window": f"{begin:%H:%M}-{end:%H:%M}"})
    calls = iter(range(8))
    damaged.stopped = lambda: next(calls, None) is None
    result = damaged.audit()
    assert result.status == 130 and result.run["totals"]["rows"]["leader"] == 0
    damaged.change(limits={"window": f"{now - timedelta(hours=1):%H:%M}-{end:%H:%M}"})
    damaged.stopped = lambda: False
    assert damaged.resume(result).status == 1


# what cannot be told


def test_a_follower_that_does_not_move_leaves_it_undecided(damaged: Parity) -> None:
    damaged.change(limits={"fence_seconds": 0.2})
    damaged.keep_position("binlog.000001:4")
    result = damaged.audit()
    assert result.status == 3 and result.differences == []
    assert {(each["table"], "did not reach" in each["reason"]) for each in result.run["undecided"]} == {
        ("a", True), ("b", True), ("other", True),
    }  # fmt: skip
    assert "binlog.000001:4" in result.run["undecided"][0]["reason"]
    assert "consumer" in result.out


def test_a_busy_leader_without_a_topic_leaves_it_undecided(damaged: Parity, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something else is written between any two looks at the leader, and the follower keeps up."""
    table = f"{damaged.database}_busy.t"
    damaged.leader.execute(f"CREATE DATABASE {damaged.database}_busy", f"CREATE TABLE {table} (id INT)")
    position = LeaderConnection.position

    def look(leader: LeaderConnection) -> Position:
        found = position(leader)
        damaged.leader.execute(f"INSERT INTO {table} VALUES (1)")
        damaged.be_current()
        return found

    monkeypatch.setattr(LeaderConnection, "position", look)
    monkeypatch.setattr(settle, "REST", 0.0)
    result = damaged.audit()
    assert result.status == 3 and result.differences == [], result.err
    assert {each["reason"] for each in result.run["undecided"]} == {f"{settle.BUSY}, and {settle.NO_TOPIC}"}
    assert {table["verdict"] for table in result.run["tables"]} == {"undecided"}
