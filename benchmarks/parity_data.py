"""The table the audits compare: equal on both servers, but for rows of which is known how they differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from docker.local.mysql_servers import Server

DATABASE = "audit"
TABLE = "orders"
#: rows of one statement
STATEMENT_ROWS = 1000
#: rows that get each kind of difference once
SET_ROWS = 2_000_000
#: about 200 bytes a row; `flags` is the last, so that an equal change of two rows is at the same distance from the end
COLUMNS = """
    id BIGINT NOT NULL PRIMARY KEY, quantity INT NOT NULL, state ENUM('new','paid','sent','returned') NOT NULL,
    amount DECIMAL(12,2) NOT NULL, rate DOUBLE NOT NULL, name VARCHAR(80) CHARACTER SET utf8mb4 NOT NULL,
    note VARCHAR(200) CHARACTER SET utf8mb4 NULL, ordered DATETIME NOT NULL, changed TIMESTAMP(6) NOT NULL,
    flags TINYINT NOT NULL"""
#: the values of row n: every name has letters beyond ASCII, every seventh note is NULL
VALUES = """
    {n}, {n} * 7919 % 1000003 - 500000, 1 + {n} % 4, {n} * 31 % 100000000 / 100, {n} / 7e0,
    CONCAT('Müller & Søn № ', {n}, REPEAT('.', {n} % 20)),
    IF({n} % 7, CONCAT('leave it with the neighbour, house number ', {n}, REPEAT(' and ring', {n} % 9)), NULL),
    '2020-01-01' + INTERVAL {n} * 37 % 100000000 SECOND,
    FROM_UNIXTIME(1600000000 + {n} % 90000000 + {n} % 1000000 / 1e6), {n} % 100"""
SETUP = (
    "SET sql_log_bin = 0",
    f"CREATE DATABASE {DATABASE}",
    f"USE {DATABASE}",
    f"CREATE TABLE {TABLE} ({COLUMNS})",
    "CREATE TEMPORARY TABLE number (n INT PRIMARY KEY)",
    f"""INSERT INTO number WITH RECURSIVE up (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM up
        WHERE n < {STATEMENT_ROWS - 1}) SELECT * FROM up""",
)
#: the column that holds NULL on one side and a text on the other
UNDER_NULL = "note"


class Kind(NamedTuple):
    """One way to differ: SQL for the leader and for the follower, where {id} is the row's; "" for nothing."""

    name: str
    leader: str
    follower: str
    #: how many rows next to each other differ so
    rows: int = 1


_UPDATE = f"UPDATE {TABLE} SET {{}} WHERE id = {{{{id}}}}".format
_DELETE = f"DELETE FROM {TABLE} WHERE id = {{id}}"
KINDS = (
    Kind("amount", "", _UPDATE("amount = amount + 0.01")),
    Kind("missing", "", _DELETE),
    Kind("extra", _DELETE, ""),
    Kind("NULL and ''", _UPDATE("note = NULL"), _UPDATE("note = ''")),
    Kind("one ulp", _UPDATE("rate = 28806.56333333333"), _UPDATE("rate = 28806.563333333335")),
    Kind("pair", _UPDATE("flags = 11"), _UPDATE("flags = 12"), rows=2),
)


def column_names() -> list[str]:
    return re.findall(r"(\w+) [A-Z]+[ (].*?NULL", COLUMNS)


def fill(servers: Sequence[Server], rows: int) -> None:
    """Create the table on all servers at the same time, with the same rows, past their binlogs."""
    with ThreadPoolExecutor(len(servers)) as pool:
        list(pool.map(partial(_fill, rows), servers))


def _fill(rows: int, server: Server) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in SETUP:
            cursor.execute(statement)
        for start in range(1, rows + 1, STATEMENT_ROWS):
            values = VALUES.format(n=f"({start} + n)")
            size = min(STATEMENT_ROWS, rows + 1 - start)
            cursor.execute(f"INSERT INTO {TABLE} SELECT {values} FROM number WHERE n < {size}")
        cursor.execute(f"ANALYZE TABLE {TABLE}")


def plant(leader: Server, follower: Server, rows: int) -> dict[int, Kind]:
    """Make rows differ; returns the kind of each by its id.

    The pairs lie far behind all others, where nothing else makes a checksum over them differ.
    """
    sets = max(1, rows // SET_ROWS)
    single = [kind for kind in KINDS if kind.rows == 1]
    several = [kind for kind in KINDS if kind.rows > 1]
    planted: dict[int, Kind] = {}
    for kinds, low, high in ((single, 0.0, 0.6), (several, 0.75, 1.0)):
        places = len(kinds) * sets
        for place in range(places):
            kind = kinds[place % len(kinds)]
            first = 1 + int(rows * (low + (high - low) * (place + 0.5) / places))
            planted |= {first + offset: kind for offset in range(kind.rows)}
    for server, side in ((leader, "leader"), (follower, "follower")):
        changes = [getattr(kind, side).format(id=number) for number, kind in planted.items()]
        server.execute("SET sql_log_bin = 0", *filter(None, changes), database=DATABASE)
    return planted
