"""A DECIMAL inside a JSON document keeps the precision it is stored with, which its text does not show."""

from __future__ import annotations

import pytest
from fix_replication import Replicate

from docker.local.mysql_servers import Server

#: what makes a DECIMAL of the same text and another number of digits
NUMBERS = [
    "9.99", "-9.99", "0.50", ".50", "5.", "0.", "-0.5", "123456789.5", "1234567890.5", "a", "b", "c", "d", "e", "a + 1",
    "SUM(a)", "a / 3", "CAST('9.99' AS DECIMAL(3,2))", "CAST('0.5' AS DECIMAL(10,2))", "CAST(7 AS DECIMAL(10,0))",
    "CAST('12345678901.5' AS DECIMAL(30,2))", "-d", "ROUND(a, 1)", "AVG(a)", "CAST('0' AS DECIMAL(65,30))", "e * -1",
    # kept in whole groups of nine digits, which is more than a column may have
    "CAST(REPEAT('9', 65) AS DECIMAL(65,0))", "-CAST(REPEAT('9', 64) AS DECIMAL(65,0))",
    "CAST(CONCAT(REPEAT('9', 35), '.5') AS DECIMAL(65,30))",
]  # fmt: skip


@pytest.mark.parametrize("rows", ["auto", "sql"])
@pytest.mark.parametrize("key", ["id INT PRIMARY KEY", "id INT"])
def test_decimals_keep_their_size(
    replicate: Replicate, leader: Server, follower: Server, database: str, key: str, rows: str
) -> None:
    replication = replicate(leader, follower, [database], consumer={"apply": {"rows": rows}})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(
        "CREATE TABLE s (a DECIMAL(10,2), b DECIMAL(5,0), c DECIMAL(30,30), d DECIMAL(65,30), e DECIMAL(14,2))",
        "INSERT INTO s VALUES (9.99, 5, 0.5, 1, 123456789012.34)", f"CREATE TABLE t ({key}, j JSON)",
        *(f"INSERT INTO t SELECT {number}, JSON_OBJECT('p', {sql}, 'q', JSON_ARRAY({sql})) FROM s"
          for number, sql in enumerate(NUMBERS)),
        "UPDATE t SET j = JSON_SET(j, '$.r', 1)", "DELETE FROM t WHERE id = 0",
    )  # fmt: skip
    replication.replicate()
    query = f"SELECT id, JSON_STORAGE_SIZE(j), CAST(j AS CHAR), JSON_TYPE(j->'$.p') FROM {database}.t ORDER BY id"
    assert follower.execute(query) == leader.execute(query)
