"""Tables that are not the same on both sides, and odd ones: what can be compared of them is."""

from __future__ import annotations

import pytest
from fix_parity import Parity, Rows

CHANGED = ("changed", "c")


# tables that are not the same


def test_keys_that_compare_equal_are_two_rows(parity: Parity) -> None:
    parity.write(
        ["CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, v INT)", "INSERT INTO t VALUES ('b', 1)"],
        ["INSERT INTO t VALUES ('a', 2), ('é', 3)"], ["INSERT INTO t VALUES ('A', 2), ('E', 3)"],
    )  # fmt: skip
    literal = {text: (f"_utf8mb4 x'{text.encode().hex()}'",) for text in "aAéE"}
    planted: Rows = {
        literal["a"]: ("missing",),
        literal["é"]: ("missing",),
        literal["A"]: ("extra",),
        literal["E"]: ("extra",),
    }
    parity.assert_found({"t": planted})


@pytest.mark.parametrize(
    ("theirs", "ours", "planted", "about"),
    [
        # the values are brought to one form: only the altered row differs
        ("id INT PRIMARY KEY, c INT", "id INT PRIMARY KEY, c BIGINT", {"3": CHANGED}, ("column", "c")),
        ("id INT PRIMARY KEY, c VARCHAR(9)", "id INT PRIMARY KEY, c VARCHAR(9) CHARACTER SET latin1", {"3": CHANGED}, ("column", "c")),
        ("id INT PRIMARY KEY, c VARCHAR(9)", "id INT PRIMARY KEY, c VARCHAR(20)", {"3": CHANGED}, ("column", "c")),
        ("id INT PRIMARY KEY, c VARCHAR(9)", "id INT PRIMARY KEY, c TEXT CHARACTER SET utf16", {"3": CHANGED}, ("column", "c")),
        ("id INT PRIMARY KEY, c DECIMAL(9,2)", "id INT PRIMARY KEY, c DECIMAL(12,2)", {"3": CHANGED}, ("column", "c")),
        ("id INT PRIMARY KEY, c ENUM('1', '2', '9')", "id INT PRIMARY KEY, c ENUM('9', '1', '2')", {"3": CHANGED}, ("column", "c")),
        ("id INT PRIMARY KEY, c INT", "c INT, id INT PRIMARY KEY", {"3": CHANGED}, ("table", "")),
        ("id INT PRIMARY KEY, c INT", "id INT PRIMARY KEY, c INT, more INT", {"3": CHANGED}, ("column", "more")),
        ("id INT PRIMARY KEY, c INT, more INT", "id INT PRIMARY KEY, c INT", {"3": CHANGED}, ("column", "more")),
        ("id INT PRIMARY KEY, c INT", "id BIGINT PRIMARY KEY, c INT", None, ("column", "id")),
        ("id INT PRIMARY KEY, c INT", "id INT, c INT", None, ("key", "PRIMARY")),
        ("id INT NOT NULL, c INT, PRIMARY KEY (id)", "id INT NOT NULL, c INT, UNIQUE (id)", {"3": CHANGED}, ("key", "PRIMARY")),
    ],
)  # fmt: skip
def test_rows_of_tables_that_are_defined_differently(
    theirs: str, ours: str, planted: dict[str, tuple[str, ...]] | None, about: tuple[str, str], parity: Parity
) -> None:
    rows = "INSERT INTO t (id, c) VALUES (1, '1'), (2, '2'), (3, '{}')"
    for server, definition, value in ((parity.leader, theirs, "1"), (parity.follower, ours, "9")):
        server.execute(f"CREATE TABLE t ({definition})", rows.format(value), database=parity.database)
    result = parity.audit()
    assert result.status == 1, result.err
    if planted is None:  # compared as copies
        assert sorted((each.kind, each.copies) for each in result.differences) == [
            ("extra", (0, 1)),
            ("missing", (1, 0)),
        ]
    else:
        assert result.found() == {"t": {(id,): kind for id, kind in planted.items()}}
    assert about in {(each["object"], each["name"]) for each in result.schema}, result.schema


def test_a_schema_that_differs_is_a_difference_without_a_row(parity: Parity) -> None:
    for server, kind in ((parity.leader, "INT"), (parity.follower, "BIGINT")):
        server.execute(
            f"CREATE TABLE t (id INT PRIMARY KEY, c {kind})", "INSERT INTO t VALUES (1, 1)", database=parity.database
        )
    result = parity.audit()
    assert (result.status, result.differences, result.table("t")["verdict"]) == (1, [], "equal")
    assert result.folder is not None
    repair = (result.folder / "schema-repair.sql").read_text("utf-8")
    assert f"\nALTER TABLE `{parity.database}`.`t` CHANGE COLUMN `c` `c` int DEFAULT NULL;\n" in repair


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_table_on_one_side_only(side: str, parity: Parity) -> None:
    parity.write(["CREATE TABLE t (id INT PRIMARY KEY)"])
    getattr(parity, side).execute("CREATE TABLE alone (id INT PRIMARY KEY)", database=parity.database)
    result = parity.audit()
    assert result.status == 1 and not result.differences
    assert result.table("alone")["verdict"] == "skipped"
    assert side in result.table("alone")["reason"]
    ((grade, parent),) = {(each["grade"], each["parent"]) for each in result.schema}
    assert (grade, parent) in (("breaking", "alone"), ("integrity", "alone"), ("behaviour", "alone"))


# columns and names


def test_columns_that_nobody_writes_or_sees(parity: Parity) -> None:
    """Stored generated and invisible columns are compared, virtual ones are not; a hidden key is a key."""
    parity.write(
        [
            "CREATE TABLE g (id INT PRIMARY KEY, a INT, s INT AS (a + 1) STORED, v INT AS (a + 2) VIRTUAL, KEY (v))",
            "INSERT INTO g (id, a) VALUES (1, 1), (2, 2)",
            "CREATE TABLE i (id INT PRIMARY KEY, a INT INVISIBLE)",
            "INSERT INTO i (id, a) VALUES (1, 1), (2, 2)",
            "CREATE TABLE e (id INT PRIMARY KEY, a JSON, KEY ((CAST(a->'$.n' AS UNSIGNED))))",
            """INSERT INTO e VALUES (1, '{"n": 1}'), (2, '{"n": 2}')""",
            "SET SESSION sql_generate_invisible_primary_key = ON",
            "CREATE TABLE h (a INT)",
            "INSERT INTO h (a) VALUES (7), (8), (8)",
        ],
        [],
        [
            "UPDATE g SET a = 5 WHERE id = 2", "UPDATE i SET a = 5 WHERE id = 2", """UPDATE e SET a = '{"n": 3}' WHERE id = 2""",
            "DELETE FROM h WHERE my_row_id = 3", "INSERT INTO h (my_row_id, a) VALUES (9, 8)",
        ],
    )  # fmt: skip
    result = parity.assert_found(
        {
            "g": {("2",): ("changed", "a", "s")}, "i": {("2",): ("changed", "a")}, "e": {("2",): ("changed", "a")},
            "h": {("3",): ("missing",), ("9",): ("extra",)},
        },
    )  # fmt: skip
    assert [each["column"] for each in result.table("g")["excluded"]] == ["v"]
    assert not result.schema


ODD_NAMES = [
    "back`tick",
    "quo'te\"s",
    "a b",
    "日本語",
    "per%cent %s",
    "semi;colon",
    "select",
    "back\\slash",
    "dot.dot",
    "#hash--",
]


def test_odd_names_of_tables_and_columns(parity: Parity) -> None:
    both, follower = [], []
    for name in ODD_NAMES:
        sql = "`" + name.replace("`", "``") + "`"
        both += [
            f"CREATE TABLE {sql} ({sql} INT PRIMARY KEY, `c {name.replace('`', '``')}` INT)",
            f"INSERT INTO {sql} VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
        ]
        follower += [
            f"UPDATE {sql} SET `c {name.replace('`', '``')}` = 0 WHERE {sql} = 2",
            f"DELETE FROM {sql} WHERE {sql} = 3",
        ]
    parity.write(both, [], follower)
    parity.assert_found({name: {("2",): ("changed", f"c {name}"), ("3",): ("missing",)} for name in ODD_NAMES})


def test_partitions_and_foreign_keys_change_nothing(parity: Parity) -> None:
    parity.write(
        [
            "CREATE TABLE p (id INT, y INT, v INT, PRIMARY KEY (y, id)) PARTITION BY RANGE (y) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)",
            "INSERT INTO p VALUES (1, 1, 1), (2, 5, 1), (1, 11, 1), (2, 40, 1), (3, 40, 1)",
            "CREATE TABLE parent (id INT PRIMARY KEY)", "INSERT INTO parent VALUES (1), (2)",
            "CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id))",
            "INSERT INTO child VALUES (1, 1), (2, 2)",
        ],
        [],
        ["UPDATE p SET v = 2 WHERE id = 2 AND y = 40", "DELETE FROM child WHERE id = 2", "DELETE FROM parent WHERE id = 2"],
    )  # fmt: skip
    parity.assert_found(
        {"p": {("40", "2"): ("changed", "v")}, "child": {("2",): ("missing",)}, "parent": {("2",): ("missing",)}},
    )
