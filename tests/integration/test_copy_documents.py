"""JSON documents whose text says less than they hold: copied with the types, and the sizes, of their inner values."""

from __future__ import annotations

import random

from fix_copy import Copies
from kit.helpers import assert_same_database

from docker.local.mysql_servers import Server

#: of a table t, type and stored size of each value in the array j
VALUES = (
    "SELECT id, n, JSON_TYPE(v), JSON_STORAGE_SIZE(v), CAST(v AS CHAR) FROM {}.t,"
    " JSON_TABLE(j, '$[*]' COLUMNS (n FOR ORDINALITY, v JSON PATH '$')) AS inner_values ORDER BY id, n"
)


def numbers(precision: int, scale: int) -> list[str]:
    """SQL of DECIMALs of these digits: zero, the least, the greatest and some between, as casts, literals and columns."""
    whole, one = precision - scale, "0." + "1".rjust(scale, "0") if scale else "1"
    texts = ["0", one, f"-{one}", "9" * whole + "." + "9" * scale, "-0.4", "0.6", f"{'7' * ((whole + 1) // 2)}.5"]
    kind = f"DECIMAL({precision},{scale})"
    casts = [f"CAST({text} AS {kind})" for text in texts] + [f"CAST('{text}' AS {kind})" for text in texts]
    column = "(SELECT v FROM JSON_TABLE('[\"{}\"]', '$[*]' COLUMNS (v {} PATH '$')) AS t)"
    literals = [one, f"-{one}", f"-.{'5' * scale}" if scale else "-5."]
    return [*casts, *literals, *(column.format(text, kind) for text in texts)]


def test_decimals_of_all_digits(copies: Copies, leader: Server, database: str, seed: int) -> None:
    shapes = [(precision, scale) for precision in range(1, 66) for scale in range(min(precision, 30) + 1)]
    # all of them take half a minute
    shapes = random.Random(seed).sample(shapes, 60)
    leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (id INT PRIMARY KEY, j JSON)")
    for start in range(0, len(shapes), 30):
        found = [sql for shape in shapes[start : start + 30] for sql in numbers(*shape)]
        leader.execute(
            "SET sql_mode = ''", f"INSERT INTO t SELECT {start}, JSON_ARRAY({', '.join(found)})", database=database
        )
    copy = copies()
    copy.copy()
    ours, theirs = (server.execute(VALUES.format(database)) for server in (copy.follower, leader))
    assert len(theirs) > 1000 and ours == theirs


def test_a_document_with_more_values_than_a_query_has_columns(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "CREATE TABLE t (id INT PRIMARY KEY, `path` JSON, n DECIMAL(10, 2))",
        "INSERT INTO t VALUES (1, NULL, 0.5)", "SET SESSION cte_max_recursion_depth = 6000",
        "UPDATE t SET `path` = (WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 6000) SELECT JSON_ARRAYAGG(i / 4) FROM c)",
    )  # fmt: skip
    copy = copies()
    copy.copy()
    assert_same_database(leader, copy.follower, database)


def test_beside_a_document_whose_text_says_all(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "CREATE TABLE t (id INT PRIMARY KEY, j JSON, k JSON)",
        "INSERT INTO t SELECT 1, '[1]', JSON_ARRAY(1.10)",
        "INSERT INTO t SELECT 2, CAST('null' AS JSON), CAST(DATE '2024-01-01' AS JSON)",
    )  # fmt: skip
    copy = copies()
    copy.copy()
    assert_same_database(leader, copy.follower, database)


def test_values_of_columns(copies: Copies, leader: Server, database: str) -> None:
    """Bytes keep the type of the column they come from; those of a TINYBLOB, which nothing else makes, are refused."""
    columns = "at TIMESTAMP(6), bits BIT(10), a BINARY(3), b VARBINARY(3), c BLOB, d MEDIUMBLOB, e LONGBLOB"
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", f"CREATE TABLE s (id INT PRIMARY KEY, {columns}, f TINYBLOB)",
        "INSERT INTO s VALUES (1, '2024-01-01 01:02:03.456789', 777, x'00ff', x'00ff', x'00ff', x'00ff', x'00ff', x'00ff'),"
        " (2, '2024-01-01', 0, '', '', '', REPEAT(x'fe', 70000), '', '')",
        "CREATE TABLE t (id INT PRIMARY KEY, j JSON)", "INSERT INTO t SELECT id, JSON_ARRAY(at, bits, a, b, c, d, e) FROM s",
    )  # fmt: skip
    copy = copies()
    copy.copy()
    assert copy.follower.execute(VALUES.format(database)) == leader.execute(VALUES.format(database))
    leader.execute(f"INSERT INTO {database}.t SELECT 3, JSON_ARRAY(f) FROM {database}.s WHERE id = 1")
    copy.refused(f"{database}.t", "TINYBLOB", "`id` IN (3)", arguments=["--replace"])


def test_many_rows_beside_others(copies: Copies, leader: Server, database: str) -> None:
    """Two documents a row, of several sizes, some NULL, and a key that compares otherwise than its bytes."""
    leader.execute(
        f"CREATE DATABASE {database}", f"USE {database}", "SET cte_max_recursion_depth = 5000",
        "CREATE TABLE t (a VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, b DECIMAL(9, 2), j JSON, k JSON, s INT AS (b * 2) STORED, PRIMARY KEY (a, b))",
        "INSERT INTO t (a, b, j, k) WITH RECURSIVE c (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 1200)"
        " SELECT CONCAT('Ä', MOD(i, 7)), i / 4, IF(MOD(i, 5), JSON_OBJECT('price', CAST(i / 4 AS DECIMAL(10, 3)), 'at', TIMESTAMP '2024-01-01 00:00:00', 'n', i), '[1]'),"
        " CASE MOD(i, 3) WHEN 0 THEN NULL WHEN 1 THEN JSON_ARRAY(REPEAT('x', MOD(i, 500) * 50), DATE '2024-01-01') ELSE CAST('null' AS JSON) END FROM c",
    )  # fmt: skip
    copy = copies(copy={"range_rows": 5000})
    copy.copy()
    assert_same_database(leader, copy.follower, database)
    stored = f"SELECT a, b, JSON_STORAGE_SIZE(j), JSON_TYPE(j->'$.price'), JSON_TYPE(j->'$.at'), JSON_STORAGE_SIZE(k), JSON_TYPE(k->'$[1]') FROM {database}.t ORDER BY a, b"
    assert copy.follower.execute(stored) == leader.execute(stored)
