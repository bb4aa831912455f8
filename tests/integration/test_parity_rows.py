"""Differences planted in rows: each is found with its kind and columns, and nothing more is."""

from __future__ import annotations

import pytest
from fix_parity import Parity, Rows
from kit.type_cases import CASES, JSONS

from cdc_consumer.parity.rows.plan import SIZES

CHANGED = ("changed", "c")


# values


def test_a_changed_value_of_every_type(parity: Parity) -> None:
    """In the first rows of each table the sides agree; in the others the follower has the next value."""
    cases = {f"t{number}": case for number, case in enumerate([*CASES, JSONS])}
    both, leader, follower = [], [], []
    for table, case in cases.items():
        values = [*case.values, "NULL"]
        both.append(f"CREATE TABLE {table} (id INT PRIMARY KEY, c {case.type} NULL)")
        for id, (value, following) in enumerate(zip(values, [*values[1:], values[0]], strict=True)):
            both.append(f"INSERT INTO {table} VALUES ({id}, {value})")
            leader.append(f"INSERT INTO {table} VALUES ({100 + id}, {value})")
            follower.append(f"INSERT INTO {table} VALUES ({100 + id}, {following})")
    parity.write(both, leader, follower)
    planted: dict[str, Rows] = {}
    for table, case in cases.items():
        exact = f"SELECT id, {case.exact} FROM {table}"
        theirs, ours = (
            dict(server.execute(exact, database=parity.database)) for server in (parity.leader, parity.follower)
        )
        # some types store two of the values alike
        planted[table] = {(str(id),): CHANGED for id in theirs if theirs[id] != ours[id]}
        assert planted[table]
    parity.assert_found(planted)


#: name -> type, the leader's value, the follower's
NEIGHBOURS = {
    "one_ulp": ("DOUBLE", "0.1", "0.10000000000000002"),
    "last_ulp": ("DOUBLE", "1.7976931348623157e308", "1.7976931348623155e308"),
    "smallest": ("DOUBLE", "5e-324", "0"),
    "negative_zero": ("DOUBLE", "0e0", "-0e0"),
    "floats": ("FLOAT", "16777216", "16777215"),
    "near_floats": ("FLOAT", "0.1", "0.10000001"),
    "float_zero": ("FLOAT", "0e0", "-0e0"),
    "null_empty": ("VARCHAR(9)", "NULL", "''"),
    "null_zero": ("INT", "NULL", "0"),
    "null_blob": ("BLOB", "NULL", "''"),
    "null_json": ("JSON", "NULL", "'null'"),
    "trailing_space": ("VARCHAR(9)", "'a'", "'a '"),
    "trailing_space_text": ("TEXT CHARACTER SET latin1", "'a'", "'a '"),
    "trailing_zero_byte": ("VARBINARY(9)", "'a'", "x'6100'"),
    "upper_case": ("VARCHAR(9)", "'a'", "'A'"),
    "accent": ("VARCHAR(9)", "'resume'", "'résumé'"),
    "composed": ("VARCHAR(9)", "'é'", "_utf8mb4 x'65CC81'"),
    "sharp_s": ("VARCHAR(9) COLLATE utf8mb4_general_ci", "'s'", "'ß'"),
    "invisible": ("VARCHAR(9)", "'a'", "_utf8mb4 x'61E2808B'"),
    "emoji": ("VARCHAR(9) COLLATE utf8mb4_general_ci", "'😀'", "'😁'"),
    "one_bit": ("BIT(64)", "18446744073709551615", "18446744073709551614"),
    "biggest": ("BIGINT UNSIGNED", "18446744073709551615", "18446744073709551614"),
    "last_digit": ("DECIMAL(65,30)", "1e-30", "2e-30"),
    "microsecond": ("DATETIME(6)", "'2024-01-01 00:00:00.000001'", "'2024-01-01'"),
    "an_hour": ("TIMESTAMP", "'2024-10-27 00:30:00'", "'2024-10-27 01:30:00'"),
    "negative_time": ("TIME(6)", "'-00:00:00.000001'", "'00:00:00.000001'"),
    "zero_date": ("DATE", "'0000-00-00'", "NULL"),
    "year_zero": ("YEAR", "0", "2000"),
    "enum_error": ("ENUM('', 'a')", "0", "1"),
    "set_empty_member": ("SET('a', '')", "1", "3"),
    "json_double": ("JSON", "'1'", "'1.0'"),
    "json_text": ("JSON", "'1'", "'\"1\"'"),
    "json_null": ("JSON", "'[null]'", "'[\"null\"]'"),
    "json_ulp": ("JSON", "'[0.1]'", "'[0.10000000000000002]'"),
    "json_deep": ("JSON", "CONCAT(REPEAT('[', 99), '[1]', REPEAT(']', 99))", "CONCAT(REPEAT('[', 99), '[2]', REPEAT(']', 99))"),
    "srid": ("POINT", "ST_GeomFromText('POINT(1 2)', 0)", "ST_GeomFromText('POINT(1 2)', 4326)"),
    "vector": ("VECTOR(2)", "TO_VECTOR('[0,1]')", "TO_VECTOR('[-0,1]')"),
    "long_tail": ("LONGTEXT", "CONCAT(REPEAT('a', 300000), 'b')", "CONCAT(REPEAT('a', 300000), 'c')"),
}  # fmt: skip


def test_neighbouring_values(parity: Parity) -> None:
    tables = {f"n_{name}": case for name, case in NEIGHBOURS.items()}
    parity.write(
        [sql for table, (kind, *values) in tables.items() for sql in (
            f"CREATE TABLE {table} (id INT PRIMARY KEY, c {kind} NULL)",
            *(f"INSERT INTO {table} VALUES ({number}, {value})" for number, value in enumerate(values)),
        )],
        [f"INSERT INTO {table} VALUES (7, {value})" for table, (_, value, _) in tables.items()],
        [f"INSERT INTO {table} VALUES (7, {value})" for table, (_, _, value) in tables.items()],
    )  # fmt: skip
    parity.assert_found({table: {("7",): CHANGED} for table in tables})


def test_numbers_in_json_that_have_the_same_text(parity: Parity) -> None:
    """The decimal 1.5 and the double 1.5: proven different though no literal tells them apart."""
    twins = ("JSON_ARRAY(1.5)", "'[1.5]'")
    both = [
        "CREATE TABLE t (id INT PRIMARY KEY, c JSON)",
        *(f"INSERT INTO t VALUES ({n}, {v})" for n, v in enumerate(twins)),
    ]
    parity.write(both, [f"INSERT INTO t VALUES (7, {twins[0]})"], [f"INSERT INTO t VALUES (7, {twins[1]})"])
    result = parity.assert_found({"t": {("7",): ("changed",)}})
    assert "JSON" in result.differences[0].cause


def test_values_that_are_stored_otherwise_and_are_equal(parity: Parity) -> None:
    pairs = [
        ("JSON", """'{"a": 1, "b": 2}'""", """'{"b":2,"a":1}'"""),
        ("JSON", "'[1.50]'", "'[15e-1]'"),
        ("DECIMAL(10,3)", "1.5", "'1.500'"),
        ("DOUBLE", "1e16", "10000000000000000"),
        ("DATETIME(3)", "'2024-01-01'", "'2024-01-01 00:00:00.0004'"),
        ("CHAR(5)", "'a'", "'a  '"),
        ("BINARY(3)", "'a'", "x'610000'"),
    ]
    parity.write(
        [f"CREATE TABLE t{number} (id INT PRIMARY KEY, c {kind})" for number, (kind, *_) in enumerate(pairs)],
        [f"INSERT INTO t{number} VALUES (1, {value})" for number, (_, value, _) in enumerate(pairs)],
        [
            *(f"INSERT INTO t{number} VALUES (1, {value})" for number, (_, _, value) in enumerate(pairs)),
            # a JSON updated in place keeps its old room
            """UPDATE t0 SET c = '{"a": 1, "b": "a long text"}'""", "UPDATE t0 SET c = JSON_SET(c, '$.b', 2)",
        ],
    )  # fmt: skip
    parity.assert_found({})


# rows

ROWS = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(20), d DOUBLE)"
FILL = "INSERT INTO t SELECT n, n, CONCAT('row ', n), n / 3 FROM (WITH RECURSIVE n AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM n WHERE n < 60) SELECT n FROM n) AS n"


@pytest.mark.parametrize(
    ("statements", "planted"),
    [
        (["DELETE FROM t WHERE id = 31"], {31: ("missing",)}),
        (["DELETE FROM t WHERE id IN (1, 60)"], {1: ("missing",), 60: ("missing",)}),
        (["INSERT INTO t (id) VALUES (-5), (0), (61), (2147483647)"], {-5: ("extra",), 0: ("extra",), 61: ("extra",), 2147483647: ("extra",)}),
        (["UPDATE t SET a = 0, d = d + 1 WHERE id = 20"], {20: ("changed", "a", "d")}),
        # a CRC of both rows cancels out
        (["UPDATE t SET a = a ^ 64 WHERE id IN (10, 11)"], {10: ("changed", "a"), 11: ("changed", "a")}),
        (
            ["UPDATE t SET id = 1000 WHERE id = 10", "UPDATE t SET id = 10 WHERE id = 11", "UPDATE t SET id = 11 WHERE id = 1000"],
            {10: ("changed", "a", "b", "d"), 11: ("changed", "a", "b", "d")},
        ),
        (["UPDATE t SET id = 99 WHERE id = 1"], {1: ("missing",), 99: ("extra",)}),
        # one and the same row in place of another
        (["DELETE FROM t WHERE id = 5", "INSERT INTO t SELECT 5, a, b, d FROM t WHERE id = 6"], {5: ("changed", "a", "b", "d")}),
        (["UPDATE t SET b = CONCAT(b, '#'), d = NULL"], dict.fromkeys(range(1, 61), ("changed", "b", "d"))),
        (["DELETE FROM t WHERE id > 40"], dict.fromkeys(range(41, 61), ("missing",))),
        (["DELETE FROM t WHERE id < 20"], dict.fromkeys(range(1, 20), ("missing",))),
        (["TRUNCATE t"], dict.fromkeys(range(1, 61), ("missing",))),
    ],
)  # fmt: skip
def test_rows_lost_added_and_altered(
    statements: list[str], planted: dict[int, tuple[str, ...]], parity: Parity
) -> None:
    parity.write([ROWS, FILL, "ANALYZE TABLE t"], [], statements)
    parity.assert_found({"t": {(str(id),): kind for id, kind in planted.items()}})
    # and the other way round: what the follower has lost, the leader has too much
    twin = {"missing": "extra", "extra": "missing"}
    parity.write(["TRUNCATE t", FILL], statements)
    parity.assert_found({"t": {(str(id),): (twin.get(kind[0], kind[0]), *kind[1:]) for id, kind in planted.items()}})


def test_a_lost_block(parity: Parity) -> None:
    """20,000 of 60,000 rows, with the sizes that are used in earnest."""
    digits = "SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9"
    number = "1 + a.n + 10 * b.n + 100 * c.n + 1000 * d.n + 10000 * e.n"
    cross = " JOIN ".join(f"({digits}) AS {name}" for name in "abcd")
    fill = f"INSERT INTO t SELECT {number}, 1, 'x', 0 FROM {cross} JOIN (SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5) AS e"
    parity.write([ROWS, fill], [], ["DELETE FROM t WHERE id > 40000", "ANALYZE TABLE t"])
    result = parity.audit(sizes=SIZES)
    assert result.status == 1, result.err
    table = result.table("t")
    assert table["rows"] == {"leader": 60_000, "follower": 40_000}
    assert table["different"] == {"missing": 20_000, "extra": 0, "changed": 0, "copies": 0}
    assert {int(id) for (id,) in result.rows("t")} == set(range(40_001, 60_001))
    assert table["leaves"] >= 8


# tables without a key


def test_copies_of_rows_without_a_key(parity: Parity) -> None:
    parity.write(
        ["CREATE TABLE t (a INT, b VARCHAR(20))", "INSERT INTO t VALUES (1, 'x'), (1, 'x'), (2, 'y'), (NULL, NULL), (NULL, NULL), (4, 'A')"],
        ["INSERT INTO t VALUES (1, 'x'), (3, 'only here')", "UPDATE t SET b = 'a' WHERE a = 4"],
        ["INSERT INTO t VALUES (NULL, NULL), (5, 'only there'), (5, 'only there')"],
    )  # fmt: skip
    result = parity.audit()
    one, null, here, there = (
        "_utf8mb4 x'78'",
        "NULL",
        f"_utf8mb4 x'{b'only here'.hex()}'",
        f"_utf8mb4 x'{b'only there'.hex()}'",
    )
    assert {tuple((each.leader or each.follower or {}).values()): (each.kind, each.copies) for each in result.differences} == {
        ("1", one): ("copies", (3, 2)), (null, null): ("copies", (2, 3)), ("3", here): ("missing", (1, 0)),
        ("5", there): ("extra", (0, 2)), ("4", "_utf8mb4 x'61'"): ("missing", (1, 0)), ("4", "_utf8mb4 x'41'"): ("extra", (0, 1)),
    }  # fmt: skip
    assert result.table("t")["rows"] == {"leader": 8, "follower": 9}
    assert len(result.differences) == 6 and result.status == 1


def test_a_key_that_the_sides_order_differently_is_none(parity: Parity) -> None:
    """'a' and 'A' are two keys on one side and would be one on the other."""
    for server, collation in ((parity.leader, "utf8mb4_bin"), (parity.follower, "utf8mb4_0900_ai_ci")):
        server.execute(
            f"CREATE TABLE t (k VARCHAR(9) COLLATE {collation} PRIMARY KEY, v INT)",
            "INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 3)",
            database=parity.database,
        )
    parity.write([], ["UPDATE t SET v = 4 WHERE k = 'b'", "INSERT INTO t VALUES ('A', 1)"])
    result = parity.audit()
    assert result.table("t")["split"] == "no key"
    assert sorted((each.kind, each.copies) for each in result.differences) == [
        ("extra", (0, 1)), ("missing", (1, 0)), ("missing", (1, 0)),
    ]  # fmt: skip
    assert [each["object"] for each in result.schema if each["grade"] in ("breaking", "integrity")]
