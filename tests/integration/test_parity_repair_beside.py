"""The repair beside others: what moved meanwhile, what is locked, and what the follower cannot take is left and named."""

from __future__ import annotations

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kit.repair import HEADER, Pair, reading

from cdc_consumer.parity.repair import apply
from cdc_consumer.parity.repair import plan as plan_module
from cdc_consumer.parity.repair.apply import repair
from cdc_consumer.parity.repair.files import write_files
from cdc_consumer.parity.repair.plan import Plan
from cdc_consumer.sql.server_errors import BUSY
from docker.local.mysql_servers import Server
from shared.errors import FollowerError, FollowerLinkError
from shared.mysql import MySQLError, error_number, rows


@pytest.fixture
def pair(leader: Server, follower: Server, database: str) -> Pair:
    return Pair(leader, follower, database)


def test_a_row_that_moves_is_left_alone(pair: Pair, tmp_path: Path) -> None:
    pair.create("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9), UNIQUE (name))", "CREATE TABLE n (number INT)")
    pair.write(
        [
            "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (6, 'f')",
            "INSERT INTO n VALUES (1), (2)",
        ],
        ["INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'd'), (4, 'c'), (8, 'z')", "INSERT INTO n VALUES (2), (3), (4)"],
    )
    moves = [
        "UPDATE t SET name = 'moved1' WHERE id = 1", "UPDATE t SET name = 'moved4' WHERE id = 4",
        "INSERT INTO t VALUES (6, 'moved6')", "UPDATE t SET name = 'moved8' WHERE id = 8",
        "DELETE FROM n WHERE number = 3",
    ]  # fmt: skip
    with pair.plan() as plan:
        forward, _ = write_files(plan, tmp_path, HEADER)
        pair.write([], moves)
        result = pair.repair(plan)
        assert result.failed == 0 and result.repaired == 4, result.left
        # both swapped rows are left, because one of them moved
        assert sorted(one.key.get("id") or one.key["number"] for one in result.left) == ["1", "3", "3", "4", "6", "8"]
        expected = "[(1, 'moved1'), (2, 'b'), (3, 'd'), (4, 'moved4'), (5, 'e'), (6, 'moved6'), (8, 'moved8')]"
        assert repr(pair.follower.execute(f"SELECT * FROM {pair.database}.t ORDER BY id")) == expected
        assert pair.follower.execute(f"SELECT * FROM {pair.database}.n ORDER BY 1") == [(1,), (2,)]
        # again, by the files: everything is done or has moved
        pair.apply_file(forward)
        assert repr(pair.follower.execute(f"SELECT * FROM {pair.database}.t ORDER BY id")) == expected
        assert pair.repair(plan).repaired == 0


def test_a_row_of_which_there_are_other_copies_now(pair: Pair, tmp_path: Path) -> None:
    pair.create("CREATE TABLE t (number INT)")
    pair.write(["INSERT INTO t VALUES (7)"], ["INSERT INTO t VALUES (7), (7)"])
    with pair.plan() as plan:
        forward, _ = write_files(plan, tmp_path, HEADER)
        pair.write([], ["INSERT INTO t VALUES (7)"])
        assert pair.apply_file(forward).split()[-2:] == ["0", "1"]
        assert pair.repair(plan).moved == 1
        pair.write([], ["DELETE FROM t LIMIT 1"])
        assert pair.apply_file(forward).split()[-2:] == ["1", "0"]


def test_a_row_that_moves_after_the_rehearsal(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.create("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9))")
    pair.write(["INSERT INTO t VALUES (1, 'a'), (2, 'b')"], ["INSERT INTO t VALUES (1, 'x'), (2, 'y')"])
    attempt = apply._Repair._attempt
    attempts = []

    def moving(self: Any, target: Any, units: Any, commit: bool) -> Any:
        attempts.append(commit)
        if commit:
            pair.write([], ["UPDATE t SET name = 'moved' WHERE id = 1"])
        left = attempt(self, target, units, commit)
        assert pair.follower.value(f"SELECT name FROM {pair.database}.t WHERE id = 2") == (
            "b" if commit and not left else "y"
        )
        return left

    monkeypatch.setattr(apply._Repair, "_attempt", moving)
    with pair.plan() as plan:
        result = pair.repair(plan)
    assert (result.repaired, result.moved, result.failed) == (1, 1, 0)
    assert attempts == [False, True, True]
    assert pair.follower.execute(f"SELECT name FROM {pair.database}.t") == [("moved",), ("b",)]


def test_a_locked_row_is_waited_for_or_left(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.create("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(9))")
    pair.write(["INSERT INTO t VALUES (1, 'a')"], ["INSERT INTO t VALUES (1, 'x')"])
    with pair.follower.connect(pair.database) as other, pair.plan() as plan:
        rows(other, "START TRANSACTION")
        rows(other, "SELECT * FROM t FOR UPDATE")
        with monkeypatch.context() as patch:
            patch.setattr(apply, "TRIES", 1)
            (left,) = pair.repair(plan).left
            assert (left.key, left.fate) == ({"id": "1"}, "failed") and "locked" in left.reason
        # free after the first try
        monkeypatch.setattr(apply.time, "sleep", lambda seconds: rows(other, "COMMIT"))
        assert pair.repair(plan).repaired == 1


def test_beside_a_writer(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """No write of another session is lost, and every row that none wrote becomes the leader's."""
    monkeypatch.setattr(plan_module, "CHUNK_ROWS", 40)
    number = 400
    pair.create("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))")
    values = [", ".join(f"({id}, '{name}{id}')" for id in range(number)) for name in ("leader", "follower")]
    pair.write(*([f"INSERT INTO t VALUES {value}"] for value in values))
    written: dict[int, str] = {}
    done = threading.Event()

    def write() -> None:
        chosen = random.Random(4)
        with closing(pair.follower.connect(pair.database)) as connection:
            while not done.is_set():
                ids = chosen.sample(range(number), 2)
                try:
                    rows(connection, "START TRANSACTION")
                    for id in ids:
                        rows(connection, f"UPDATE t SET name = 'writer{len(written)}' WHERE id = {id}")
                    rows(connection, "COMMIT")
                except MySQLError as error:
                    assert error_number(error) in BUSY, error
                    rows(connection, "ROLLBACK")
                else:
                    written.update(dict.fromkeys(ids, f"writer{len(written)}"))
                time.sleep(0.002)

    with pair.plan() as plan, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        result = pair.repair(plan)
        done.set()
        writing.result()
    expected = {id: written.get(id, f"leader{id}") for id in range(number)}
    assert dict(pair.follower.execute(f"SELECT * FROM {pair.database}.t")) == expected
    assert result.failed == 0 and result.repaired + result.moved == number
    assert 0 < result.moved <= len(written)


def test_what_cannot_be_made_the_leaders_is_named_and_left(pair: Pair, tmp_path: Path) -> None:
    """One row in each table that the follower cannot take, beside one that it can."""
    pair.create(
        "CREATE TABLE json_types (id INT PRIMARY KEY, doc JSON)",
        "CREATE TABLE computed (id INT PRIMARY KEY, a INT, g INT AS (a + 1) STORED)",
        "CREATE TABLE checked (id INT PRIMARY KEY, a INT)",
        "CREATE TABLE checked_copies (id INT, a INT)",
        "CREATE TABLE expression (id INT PRIMARY KEY, a INT, UNIQUE ((a + 0)))",
        "CREATE TABLE added (id INT PRIMARY KEY, a INT, UNIQUE ((a + 0)))",
    )
    pair.follower.execute(
        "ALTER TABLE computed MODIFY g INT AS (a + IF(id = 1, 1, 2)) STORED",
        "ALTER TABLE checked ADD CHECK (a < 5)",
        "ALTER TABLE added ADD note INT",
        "ALTER TABLE checked_copies ADD CHECK (a < 5)",
        database=pair.database,
    )
    pair.write(
        ["INSERT INTO json_types VALUES (1, '1.5'), (2, JSON_ARRAY(1.5))", "INSERT INTO computed (id, a) VALUES (1, 1), (2, 1)",
         "INSERT INTO checked VALUES (1, 1), (2, 9)", "INSERT INTO checked_copies VALUES (1, 1), (2, 9), (3, 3)",
         "INSERT INTO expression VALUES (1, 1), (2, 2), (3, 3)", "INSERT INTO added VALUES (1, 1), (2, 2), (3, 3)"],
        ["INSERT INTO json_types VALUES (1, '2.5'), (2, '[1.5]')", "INSERT INTO computed (id, a) VALUES (1, 5)",
         "INSERT INTO checked VALUES (1, 2)", "INSERT INTO expression VALUES (1, 2), (2, 1), (3, 4)", "INSERT INTO added (id, a) VALUES (1, 2), (2, 1), (3, 4)"],
    )  # fmt: skip
    with pair.plan() as plan:
        result = pair.repair(plan)
    said = {f"{one.table.table} {one.key['id']}": one.reason for one in result.left}
    assert said.pop("json_types 2") == "the text of doc does not tell the types of the numbers in it"
    assert said.pop("computed 2") == "the follower does not store g as the leader does"
    assert "checked_chk_1" in said.pop("checked 2") and "checked_copies_chk_1" in said.pop("checked_copies 2")
    assert "Duplicate entry" in said.pop("added 1") and "Duplicate entry" in said.pop("added 2")
    assert not said and (result.repaired, result.moved, result.failed) == (9, 0, 6)
    assert len(pair.differences()) == 6


def test_tables_that_are_not_written(pair: Pair, tmp_path: Path) -> None:
    names = ["isam\n;`", "triggered", "circle", "fine"]
    columns = "(id INT PRIMARY KEY, name INT UNIQUE)"
    pair.create(*(f"CREATE TABLE `{name.replace('`', '``')}` {columns}" for name in names))
    pair.follower.execute(
        "ALTER TABLE `isam\n;``` ENGINE = MyISAM",
        "CREATE TRIGGER trigger_of_mine BEFORE INSERT ON triggered FOR EACH ROW SET @seen = 1",
        "ALTER TABLE circle ADD note VARCHAR(9) DEFAULT 'none'",
        database=pair.database,
    )
    quoted = [f"`{name.replace('`', '``')}`" for name in names]
    pair.write(
        [f"INSERT INTO {name} VALUES (1, 1), (2, 2)" for name in quoted],
        [f"INSERT INTO {name} (id, name) VALUES (1, 2), (2, 1)" for name in quoted],
    )
    with pair.plan() as plan:
        refused = {table.table: (number, reason) for (table, reason), number in plan.refused.items()}
        forward, undo = write_files(plan, tmp_path, HEADER)
        for file in (forward, undo, forward):
            pair.apply_file(file)
    assert refused["isam\n;`"] == (2, "it is stored by MyISAM, where nothing can be rolled back")
    assert refused["triggered"] == (2, "it has the trigger trigger_of_mine, which would change other rows")
    assert refused["circle"][0] == 2 and refused["circle"][1].endswith("would lose note")
    assert len(refused) == 3 and {one.table.table for one in pair.differences()} == set(refused)
    with pair.plan() as plan:
        assert pair.repair(plan).refused == plan.refused and len(plan) == 0
    with Plan(reading(pair.follower), pair.differences(), pair.shapes, pair.database) as plan:
        assert {reason for _, reason in plan.refused} == {"it belongs to the system itself"}


def test_a_lost_link(pair: Pair) -> None:
    pair.create("CREATE TABLE t (id INT PRIMARY KEY)")
    pair.write(["INSERT INTO t VALUES (1)"], [])
    with pair.plan() as plan, closing(pair.follower.connect(charset="utf8mb4")) as connection:
        kill = f"KILL {connection.thread_id()}"
        with pytest.raises(FollowerLinkError, match="connection to the follower is lost"):
            repair(connection, plan, hides_own_writes=True, between=lambda: pair.follower.execute(kill))
        assert pair.repair(plan).repaired == 1


def test_a_follower_that_is_read_only(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops the repair; it is no fault of a row."""

    def refuse(*_: Any) -> int:
        raise MySQLError(1290, "The MySQL server is running with the --super-read-only option")

    pair.create("CREATE TABLE t (id INT PRIMARY KEY)")
    pair.write(["INSERT INTO t VALUES (1)"], [])
    monkeypatch.setattr(apply._Repair, "_write", refuse)
    with pair.plan() as plan, pytest.raises(FollowerError, match="the follower is read-only"):
        pair.repair(plan)
