"""Statements for many rows do what one a row does, and their counts tell whenever they cannot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
import pytest
from fix_replay import Stage
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.events import integer, string

from cdc_consumer.follower.row_statements import RowWriter
from cdc_consumer.follower.tables import FollowerTables
from cdc_consumer.sql import literals
from cdc_consumer.sql.session import ROWS
from docker.local.mysql_servers import Server
from shared.errors import DivergedError
from shared.events import Rows

COLUMNS = ("id", "name", "amount", "data")
DEFINITION = "id INT, name VARCHAR(20), amount DOUBLE, data JSON"
#: values that a comparison may take for one another
NAMES = [None, "a", "A", "a ", "á", "", "o'k"]
AMOUNTS = [None, 0.0, -0.0, 0.1, 1.0]
DOCUMENTS = [None, "1", "1.0", '"1"', '{"a": [1, null]}']

Image = tuple[Any, ...]


def wire(image: Image) -> list[Any]:
    number, name, amount, document = image
    return [
        integer(number), string(name), "Null" if amount is None else {"Double": amount},
        "Null" if document is None else {"Json": document},
    ]  # fmt: skip


def rows(kind: str, database: str, some: list[Any], columns: tuple[str, ...] = COLUMNS) -> Rows:
    return Rows(kind, database, "t", columns, some, (), (), True)


images = st.tuples(
    st.sampled_from([None, 0, 1, 2]), st.sampled_from(NAMES), st.sampled_from(AMOUNTS), st.sampled_from(DOCUMENTS)
)


@contextmanager
def session(server: Server, database: str) -> Iterator[Any]:
    """A transaction in the session that rows need, counting as the consumer's does."""
    with server.connect(database, client_flag=pymysql.constants.CLIENT.FOUND_ROWS) as connection:
        with connection.cursor() as cursor:
            for name, value in ROWS.items():
                cursor.execute(f"SET {name} = {value}")
            cursor.execute("BEGIN")
            yield cursor
        connection.commit()


def apply(server: Server, database: str, table: str, events: list[Rows], limit: int) -> int | None:
    """Change the table by these events; how many statements that took, None when a count has told a difference."""
    writer, into = RowWriter(limit), FollowerTables(server.execute).find(database, table)
    statements = [one for number, rows in enumerate(events) for one in writer.write(rows, into, number, number)]
    statements += writer.finish()
    with session(server, database) as cursor:
        for one in statements:
            if cursor.execute(literals.encode(one.sql)) != one.rows:
                cursor.execute("ROLLBACK")
                return None
    return len(statements)


def content(server: Server, database: str, table: str) -> Counter[Any]:
    sign = "LEFT(CAST(amount AS CHAR), 1) = '-'"
    columns = f"id, HEX(name), amount, {sign}, CAST(data AS CHAR), JSON_TYPE(data)"
    return Counter(server.execute(f"SELECT {columns} FROM {database}.{table}"))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(images, min_size=1, max_size=12), st.data())
def test_a_table_without_an_index_is_exchanged_exactly(
    follower: Server, database: str, there: list[Image], data: st.DataObject
) -> None:
    """Beside one row a statement, with equal rows and rows that only seem to be; some rows are not there."""
    values = ", ".join(f"({','.join(literals.all_of(wire(image)))})" for image in there)
    follower.execute(f"CREATE DATABASE IF NOT EXISTS {database}")
    for table in ("one", "many"):
        place = f"{database}.{table}"
        follower.execute(
            f"CREATE TABLE IF NOT EXISTS {place} ({DEFINITION})", f"DELETE FROM {place}",
            f"INSERT INTO {place} VALUES {values}",
        )  # fmt: skip
    state, events = list(there), []
    for _ in range(data.draw(st.integers(1, 3))):
        gone = data.draw(st.permutations(range(len(state))).map(lambda order: order[: len(order) // 2 + 1]))
        if data.draw(st.booleans()):
            events.append(rows("Delete", database, [wire(state[place]) for place in gone]))
            state = [image for place, image in enumerate(state) if place not in gone]
        else:
            pairs = []
            for place in gone:
                after = data.draw(images)
                pairs.append((wire(state[place]), wire(after)))
                state[place] = after
            events.append(rows("Update", database, pairs))
        if not state:
            break
    if data.draw(st.integers(0, 3)) == 0:  # a row that neither has
        events[0].rows.append(events[0].rows[0])
    limit = data.draw(st.sampled_from([200, 1 << 20]))
    alone = apply(follower, database, "one", events, 0)
    many = apply(follower, database, "many", events, limit)
    if many is None:  # one row a statement decides
        many = apply(follower, database, "many", events, 0)
    assert (many is None) == (alone is None)
    assert content(follower, database, "one") == content(follower, database, "many")


def test_an_exchange_reads_the_table_twice(follower: Server, database: str) -> None:
    """However many rows it is about; equal ones among them, and those that come and go on the way."""
    follower.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t ({DEFINITION})")
    some = [wire((n // 2, "x", n / 7, None)) for n in range(150)]
    some += some[:30]
    assert apply(follower, database, "t", [rows("Add", database, some)], 1 << 20) == 1
    there = [(row, [row[0], string("y"), *row[2:]]) for row in some]
    back = [(after, before) for before, after in there]
    events = [rows("Update", database, there), rows("Update", database, back)]
    assert apply(follower, database, "t", events, 1 << 20) == 6
    assert apply(follower, database, "t", [rows("Delete", database, some)], 1 << 20) == 2
    assert content(follower, database, "t") == Counter()


# updates that meet their rows


@pytest.mark.parametrize(
    ("definition", "joined"),
    [
        ("id INT PRIMARY KEY, name VARCHAR(20)", True),
        ("id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), KEY (name)", True),
        ("id INT PRIMARY KEY, name VARCHAR(20), CHECK (id > 0)", True),
        ("id INT PRIMARY KEY, name VARCHAR(20) UNIQUE", False),
        ("id INT PRIMARY KEY, name VARCHAR(20), extra INT DEFAULT 3", False),
        ("id INT PRIMARY KEY, name VARCHAR(20), up INT AS (id + 1)", False),
        ("id INT PRIMARY KEY, name VARCHAR(20), FOREIGN KEY (id) REFERENCES p (id)", False),
    ],
)
def test_updates_are_one_statement_where_that_is_the_same(
    follower: Server, database: str, definition: str, joined: bool
) -> None:
    follower.execute(
        f"CREATE DATABASE {database}", f"CREATE TABLE {database}.p (id INT PRIMARY KEY)",
        f"INSERT INTO {database}.p VALUES (1), (2), (3)", f"CREATE TABLE {database}.t ({definition})",
        f"INSERT INTO {database}.t (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    )  # fmt: skip
    counter = f"SHOW CREATE TABLE {database}.t"
    before = follower.execute(counter)
    columns = ("id", "name", "up") if " AS " in definition else ("id", "name")

    def image(number: int, name: str) -> list[Any]:
        return [integer(number), string(name), integer(number + 1)][: len(columns)]

    change = [rows("Update", database, [(image(n, old), image(n, f"z{n}")) for n, old in enumerate("abc", 1)], columns)]
    assert apply(follower, database, "t", change, 1 << 20) == (1 if joined else 3)
    assert follower.execute(f"SELECT id, name FROM {database}.t ORDER BY id") == [(1, "z1"), (2, "z2"), (3, "z3")]
    assert follower.execute(counter) == before
    # again: the rows are equal now, and a missing one is no other case
    assert apply(follower, database, "t", change, 1 << 20) == (None if joined else 3)
    assert apply(follower, database, "t", change, 0) is not None
    follower.execute(f"DELETE FROM {database}.t WHERE id = 2")
    for limit in (0, 1 << 20):
        assert apply(follower, database, "t", change, limit) is None
    assert follower.execute(f"SELECT id, name FROM {database}.t ORDER BY id") == [(1, "z1"), (3, "z3")]


def test_an_update_that_misses_its_row_names_it(gtid_stage: Stage) -> None:
    """An equal row is what the leader has and passes; a missing one is named by table, key and sequence."""
    stage = gtid_stage
    stage.create()
    columns = ("id", "name")
    old = [[integer(n), string("old")] for n in range(50)]
    stage.log.add(stage.table, columns, *old)
    stage.replay()
    stage.server.execute("SET sql_log_bin = 0", f"UPDATE {stage.table} SET name = 'new' WHERE id = 7")
    stage.log.update(stage.table, columns, *((row, [row[0], string("new")]) for row in old))
    stage.replay()
    assert stage.rows(columns="COUNT(*), MIN(name), MAX(name)") == [(50, "new", "new")]
    stage.server.execute("SET sql_log_bin = 0", f"DELETE FROM {stage.table} WHERE id = 31")
    stage.log.update(stage.table, columns, *(([row[0], string("new")], row) for row in old))
    with pytest.raises(DivergedError, match=rf"Update of {stage.table} \(id=31\), sequence 4 .*0 of 1 rows"):
        stage.replay()
    assert stage.rows(columns="COUNT(*), MIN(name), MAX(name)") == [(49, "new", "new")]


def test_a_table_without_an_index_names_the_row_it_misses(gtid_stage: Stage) -> None:
    """Of equal rows some may stay; of a row that is not there nothing is done at all."""
    stage = gtid_stage
    stage.create("(id INT, name VARCHAR(20))")
    columns = ("id", "name")
    old = [[integer(n % 10), string("old")] for n in range(50)]
    stage.log.add(stage.table, columns, *old)
    stage.log.delete(stage.table, columns, *old[:25])
    stage.replay()
    assert stage.rows(columns="COUNT(*)") == [(25,)]
    stage.server.execute("SET sql_log_bin = 0", f"UPDATE {stage.table} SET name = 'Old' WHERE id = 7 LIMIT 1")
    stage.log.update(stage.table, columns, *((row, [row[0], string("new")]) for row in old[25:]))
    with pytest.raises(DivergedError, match=rf"Update of {stage.table} \(id=7, name='old'\), sequence 4"):
        stage.replay()
    assert stage.rows(columns="COUNT(*), MIN(name)") == [(25, "old")]
    stage.server.execute("SET sql_log_bin = 0", f"UPDATE {stage.table} SET name = 'old'")
    stage.replay()
    assert stage.rows(columns="COUNT(*), MIN(name)") == [(25, "new")]
