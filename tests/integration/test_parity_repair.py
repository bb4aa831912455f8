"""The repair on real servers: the follower becomes the leader, undo brings back what was, and nobody else is touched."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.repair import HEADER, NO_EVENT, Pair, reading
from kit.type_cases import CASES, Case

from cdc_consumer.parity import canonical
from cdc_consumer.parity.model import Difference
from cdc_consumer.parity.repair import plan as plan_module
from cdc_consumer.parity.repair.files import write_files
from docker.local.mysql_servers import Server
from shared.mysql import rows


@pytest.fixture
def pair(leader: Server, follower: Server, database: str) -> Pair:
    return Pair(leader, follower, database)


#: every type; its values that take megabytes are left to the tests of literals
COLUMNS = [
    *(case for case in CASES if "LONG" not in case.type and "MEDIUM" not in case.type),
    Case("T31_json", "JSON", ["'null'", "'[1, 2.5]'", '\'{"a": "b;\\\\\\\\"}\'', "'1'", "'1.0'"]),
    Case("T4_neighbours", "FLOAT", ["16777216", "16777218", "0.1"]),
    Case("T5_neighbours", "DOUBLE", ["28806.56333333333", "28806.563333333334", "1e22", "1.2345678901234567e-30"]),
]


def wide_table(key: str) -> str:
    """c0, c1...: one column for each type, and some that are computed from others."""
    columns = ", ".join(f"c{number} {case.type}" for number, case in enumerate(COLUMNS))
    stored = "g1 BIGINT AS (id * 2) STORED, g2 VARCHAR(30) AS (CONCAT(id, '!')) VIRTUAL"
    moving = "seen TIMESTAMP(6) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(6)"
    return f"CREATE TABLE t (id INT NOT NULL, {columns}, {stored}, {moving}{key}) ROW_FORMAT=DYNAMIC"


def value(column: int, number: int) -> str:
    """SQL of one of a column's values; number 0 is NULL."""
    values = ["NULL", *COLUMNS[column].values]
    return values[number % len(values)]


def insert(id: int, numbers: list[int]) -> str:
    columns = ", ".join(f"c{column}" for column in range(len(COLUMNS)))
    values = ", ".join(value(column, number) for column, number in enumerate(numbers))
    return f"INSERT INTO t (id, {columns}) VALUES ({id}, {values})"


@pytest.mark.parametrize("key", [", PRIMARY KEY (id)", ""], ids=["key", "no key"])
def test_every_type_and_value(key: str, pair: Pair, tmp_path: Path) -> None:
    pair.create(wide_table(key))
    turns = range(max(len(case.values) for case in COLUMNS) + 1)
    same = [[turn] * len(COLUMNS) for turn in turns]
    theirs = [insert(turn, numbers) for turn, numbers in enumerate(same)]
    changed = [insert(turn, [number + 1 for number in numbers]) for turn, numbers in enumerate(same)]
    missing = [insert(100 + turn, numbers) for turn, numbers in enumerate(same)]
    extra = [insert(200 + turn, numbers) for turn, numbers in enumerate(same)]
    pair.write(theirs + missing, changed + extra)
    pair.assert_both_ways_repair(tmp_path)


def test_documents_that_are_equal_by_value(pair: Pair, tmp_path: Path) -> None:
    """Nor is the row ever one that the table's own check refuses."""
    check = "CONSTRAINT whole CHECK (c IS NOT NULL AND JSON_TYPE(JSON_EXTRACT(c, '$[0]')) IN ('INTEGER', 'DOUBLE'))"
    pair.create(f"CREATE TABLE t (id INT PRIMARY KEY, c JSON, n INT, {check})")
    texts = [("[1]", "[1.0]"), ('[0, {"a": 0.0}]', '[0, {"a": -0.0}]'), ("[2]", "[3]")]
    pair.write(
        *([f"INSERT INTO t VALUES ({id}, '{both[side]}', 1)" for id, both in enumerate(texts)] for side in (0, 1))
    )
    pair.assert_both_ways_repair(tmp_path)


ROWS = st.dictionaries(
    st.integers(0, 5), st.dictionaries(st.integers(0, len(COLUMNS) - 1), st.integers(0, 9), max_size=4), max_size=6
)


@pytest.mark.parametrize("key", [", PRIMARY KEY (id)", ""], ids=["key", "no key"])
def test_any_rows(key: str, pair: Pair, tmp_path: Path) -> None:
    pair.create(wide_table(key))

    @settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
    @given(ROWS, ROWS, st.integers(1, 3))
    def check(leader: dict[int, dict[int, int]], follower: dict[int, dict[int, int]], copies: int) -> None:
        scripts = []
        for side in (leader, follower):
            made = [insert(id, [odd.get(c, 1) for c in range(len(COLUMNS))]) for id, odd in side.items()]
            more = made[:1] * (copies - 1) if not key and side is follower else []
            scripts.append(["DELETE FROM t", *made, *more])
        pair.write(*scripts)
        pair.assert_both_ways_repair(tmp_path)

    check()


SWAPS = {
    "swapped": ("(1, 'a'), (2, 'b')", "(1, 'b'), (2, 'a')"),
    "circle": ("(1, 'a'), (2, 'b'), (3, 'c')", "(1, 'c'), (2, 'A'), (3, 'B')"),
    "shifted": ("(1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')", "(2, 'a'), (3, 'b'), (4, 'c'), (5, 'd')"),
    "taken by an extra row": ("(1, 'a')", "(1, 'x'), (9, 'A')"),
    "taken by a changed row": ("(1, 'x'), (9, 'a')", "(1, 'A')"),
    "same in the collation": ("(1, 'a'), (2, NULL)", "(1, 'A'), (2, 'ä')"),
}


@pytest.mark.parametrize("wanted, found", SWAPS.values(), ids=SWAPS)
@pytest.mark.parametrize("key", ["PRIMARY KEY (id), UNIQUE (name)", "UNIQUE (name)"], ids=["key", "no key"])
def test_rows_that_take_unique_values_from_each_other(
    key: str, wanted: str, found: str, pair: Pair, tmp_path: Path
) -> None:
    pair.create(f"CREATE TABLE t (id INT NOT NULL, name VARCHAR(20) COLLATE utf8mb4_0900_as_ci, {key})")
    pair.write([f"INSERT INTO t VALUES {wanted}"], [f"INSERT INTO t VALUES {found}"])
    pair.assert_both_ways_repair(tmp_path)


HIDDEN = {
    "virtual": "g VARCHAR(20) AS (CONCAT('x', v)) VIRTUAL, UNIQUE (g)",
    "virtual of virtual": "f INT AS (n + 1) VIRTUAL, g INT AS (f * 2) VIRTUAL, UNIQUE (g, id2)",
    "expression": "UNIQUE ((LOWER(v)))",
    "prefix": "UNIQUE (v(2))",
}


@pytest.mark.parametrize("definition", HIDDEN.values(), ids=HIDDEN)
def test_rows_that_take_unique_values_nobody_can_ask_for(definition: str, pair: Pair, tmp_path: Path) -> None:
    pair.create(f"CREATE TABLE t (id INT PRIMARY KEY, id2 INT DEFAULT 7, v VARCHAR(20), n INT, {definition})")
    leader, follower = "(1, 'Ab', 1), (2, 'Cd', 2), (3, 'e', 3), (4, 'f', 4)", "(1, 'CD', 2), (2, 'aB', 1), (3, 'f', 4)"
    pair.write([f"INSERT INTO t (id, v, n) VALUES {leader}"], [f"INSERT INTO t (id, v, n) VALUES {follower}"])
    pair.assert_both_ways_repair(tmp_path)


def test_more_rows_that_may_take_such_values_than_one_transaction_holds(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "MOST_HIDDEN", 2)
    pair.create("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), UNIQUE (v(2)))")
    leader, follower = "(1, 'a'), (2, 'b'), (3, 'c')", "(1, 'x'), (2, 'y'), (3, 'z')"
    pair.write([f"INSERT INTO t VALUES {leader}"], [f"INSERT INTO t VALUES {follower}"])
    pair.assert_both_ways_repair(tmp_path)


def test_keys_that_compare_equal(pair: Pair, tmp_path: Path) -> None:
    pair.create("CREATE TABLE t (name VARCHAR(20) PRIMARY KEY, number INT)")
    leader, follower = "('a', 1), ('é', 2), ('x', 3)", "('A', 1), ('E', 2), ('y', 3)"
    pair.write([f"INSERT INTO t VALUES {leader}"], [f"INSERT INTO t VALUES {follower}"])
    with pair.plan() as plan:
        chunks = list(plan.chunks())
        # the extra y first, then the twins each in one piece, then the missing x
        assert [[len(unit) for unit in chunk.units] for chunk in chunks] == [[1], [2, 2], [1]]
    pair.assert_both_ways_repair(tmp_path)


def test_parents_and_children(pair: Pair, tmp_path: Path) -> None:
    """With actions that would delete or change rows nobody named, and a circle."""
    pair.create(
        "CREATE TABLE a_child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES b_parent (id) ON DELETE CASCADE)",
        "CREATE TABLE b_parent (id INT PRIMARY KEY, name VARCHAR(9), boss INT, FOREIGN KEY (boss) REFERENCES b_parent (id) ON DELETE CASCADE)",
        "CREATE TABLE c_one (id INT PRIMARY KEY, other INT, FOREIGN KEY (other) REFERENCES d_two (id) ON DELETE SET NULL)",
        "CREATE TABLE d_two (id INT PRIMARY KEY, other INT, FOREIGN KEY (other) REFERENCES c_one (id))",
    )
    pair.write(
        ["INSERT INTO b_parent VALUES (1, 'a', NULL), (2, 'b', 1)", "INSERT INTO a_child VALUES (1, 1), (2, 2)",
         "INSERT INTO c_one VALUES (1, 1)", "INSERT INTO d_two VALUES (1, 1)"],
        ["INSERT INTO b_parent VALUES (1, 'x', NULL), (3, 'c', 1)", "INSERT INTO a_child VALUES (1, 3), (3, 3)",
         "INSERT INTO c_one VALUES (1, 2)", "INSERT INTO d_two VALUES (2, 1)"],
    )  # fmt: skip
    with pair.plan() as plan:
        order = [name.table for name in plan.tables]
        assert order.index("b_parent") < order.index("a_child")
    pair.assert_both_ways_repair(tmp_path)


def test_names_that_a_client_might_misread(pair: Pair, tmp_path: Path) -> None:
    name, column = "t `;\n\ndelimiter //\n\\q -- ' /* é", "c\\`;'\"\n# \\. x"
    quoted, quoted_column = (text.replace("`", "``") for text in (name, column))
    pair.create(f"CREATE TABLE `{quoted}` (id INT PRIMARY KEY, `{quoted_column}` TEXT)")
    odd = "x'5c27223b0a00ff0d0a2f2a20'"
    pair.write(
        [f"INSERT INTO `{quoted}` VALUES (1, CONVERT({odd} USING latin1)), (2, '')"],
        [f"INSERT INTO `{quoted}` VALUES (1, NULL), (3, ';')"],
    )
    pair.assert_both_ways_repair(tmp_path)


def test_a_key_the_audit_does_not_use(pair: Pair, tmp_path: Path) -> None:
    """The consumer finds rows by it, so that none of them may be away between two transactions."""
    pair.create("CREATE TABLE t (size ENUM('s', 'm', 'l') PRIMARY KEY, number INT)")
    ((name, shape),) = pair.shapes.items()
    pair.shapes[name] = replace(shape, key=())
    pair.write(["INSERT INTO t VALUES ('s', 1), ('m', 2)"], ["INSERT INTO t VALUES ('s', 3), ('m', 4), ('l', 5)"])
    with pair.plan() as plan:
        assert [len(chunk.changes) for chunk in plan.chunks()] == [1, 4]
    pair.assert_both_ways_repair(tmp_path)


def test_nothing_is_written_to_the_followers_binlog(pair: Pair, tmp_path: Path) -> None:
    pair.create("CREATE TABLE t (id INT PRIMARY KEY)")
    pair.write(["INSERT INTO t VALUES (1)"], ["INSERT INTO t VALUES (2)"])
    executed = pair.follower.value("SELECT @@GLOBAL.gtid_executed")
    pair.assert_both_ways_repair(tmp_path)
    assert pair.follower.value("SELECT @@GLOBAL.gtid_executed") == executed


def test_many_rows_in_little_memory_and_short_transactions(pair: Pair, tmp_path: Path) -> None:
    pair.create("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(2000))")
    number, length = 4_000, 2_000
    numbers = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {number})"
    series = f"INSERT INTO t {numbers} SELECT i, REPEAT('x', {length}) FROM n"
    pair.leader.execute("SET cte_max_recursion_depth = 1000000", series, database=pair.database)
    (shape,) = pair.shapes.values()

    def missing() -> Iterator[Difference]:
        with closing(reading(pair.leader)) as connection:
            digest = rows(connection, f"SELECT {canonical.row_hash(shape)} FROM {shape.name.sql} ORDER BY id")
        for id, (found,) in enumerate(digest, 1):
            row = {"id": str(id), "name": f"_utf8mb4 x'{'78' * length}'"}
            yield Difference(shape.name, "missing", {"id": str(id)}, row, None, found, None, NO_EVENT)

    tracemalloc.start()
    try:
        with pair.plan(missing()) as plan:
            assert len(plan) == number
            repair, _ = write_files(plan, tmp_path, HEADER)
            assert max(len(chunk.changes) for chunk in plan.chunks()) == 500
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # of a transaction, written and read; all rows would be four times as much
    assert peak < number * length
    assert repair.stat().st_size > number * length * 2
    pair.apply_file(repair)
    assert pair.state(pair.follower) == pair.state(pair.leader)
