"""Literals made from real events are the ones the server makes of the same rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from fix_replication import Replication
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from kit.programs import binlog_end
from kit.type_cases import CASES, JSONS, write_all
from kit.value_kinds import KINDS, Kind

from cdc_consumer.parity import canonical
from cdc_consumer.parity.model import Column, Shape, TableName
from cdc_consumer.parity.witness.history import History, Key
from cdc_consumer.parity.witness.row_keys import RowReader
from cdc_consumer.sql import literals
from cdc_consumer.sql.session import RowMode, Session, row_settings
from docker.local.mysql_servers import Server
from shared.decode import decode
from shared.events import Position, Rows

#: types whose text cannot always be told
SOMETIMES = {"json", "float", "double"}


def shape_of(server: Server, database: str, table: str) -> Shape:
    columns = server.execute(
        "SELECT COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, CHARACTER_SET_NAME FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = '{database}' AND TABLE_NAME = '{table}' ORDER BY ORDINAL_POSITION"
    )
    found = tuple(Column(name, kind, data, charset, True, False) for name, kind, data, charset in columns)
    return Shape(TableName(database, table), found, ("id",))


def rows_on(server: Server, shape: Shape) -> dict[str, tuple[str, ...]]:
    """The server's own literals of all rows, by the one of their id."""
    columns = ", ".join(map(canonical.literal, shape.columns))
    with server.connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        for statement in canonical.SESSION:
            cursor.execute(statement)
        cursor.execute(f"SELECT {columns} FROM {shape.name.sql}")
        return {row[0]: row for row in cursor.fetchall()}


def added(replication: Replication, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, tuple[str | None, ...], Any]]:
    """Table, literals and image of every row that was added."""
    readers = {table: RowReader(shape) for table, shape in shapes.items()}
    for number, value in enumerate(replication.records()):
        rows = decode(value, f"record {number}").operation
        if isinstance(rows, Rows) and rows.kind == "Add" and rows.table in readers:
            for image in rows.rows:
                yield rows.table, readers[rows.table].row(rows, image), image


def test_every_type_has_the_servers_literals(replication: Replication, leader: Server, database: str) -> None:
    leader.execute(f"DROP DATABASE {database}")
    write_all(leader, database, keyed=True)
    replication.produce()
    shapes = {case.id: shape_of(leader, database, case.id) for case in (*CASES, JSONS)}
    expected = {table: rows_on(leader, shape) for table, shape in shapes.items()}
    compared, untold = 0, set()
    for table, row, image in added(replication, shapes):
        if row[0] in expected[table] and len(row[0] or "") < 4:  # those from 1000 on are updated
            wanted = expected[table][row[0]]
            assert all(own in (None, text) for own, text in zip(row, wanted, strict=True)), (table, row, wanted, image)
            compared += 1
            if None in row:
                untold.add(table)
    assert compared == sum(len(case.values) + 1 for case in (*CASES, JSONS))
    # members that the event does not name, and numbers laid out with the column's decimals
    assert untold == {"T31_json", "T18_enum_latin1", "T19_set_utf16", "T4_float7_4"}


def values_of(kind: Kind) -> list[Any]:
    """Some hundred random values."""
    found: list[Any] = []

    @settings(max_examples=20, deadline=None, database=None, phases=[Phase.generate])
    @given(st.lists(kind.values, min_size=3, max_size=12))
    def collect(values: list[Any]) -> None:
        found.extend(values)

    collect()
    return found


def test_random_values_have_the_servers_literals(replication: Replication, leader: Server, database: str) -> None:
    tables = {f"t{number}": kind for number, kind in enumerate(KINDS)}
    with leader.connect(charset="utf8mb4", database=database) as connection, connection.cursor() as cursor:
        for change in Session({}).change(row_settings(RowMode())):
            cursor.execute(change)
        for table, kind in tables.items():
            cursor.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, c {kind.type})")
            rows = ",".join(literals.row([{"SignedInteger": id_}, value]) for id_, value in enumerate(values_of(kind)))
            connection.query(literals.encode(f"INSERT INTO {table} VALUES {rows}"))
        connection.commit()
    replication.produce()
    shapes = {table: shape_of(leader, database, table) for table in tables}
    expected = {table: rows_on(leader, shape) for table, shape in shapes.items()}
    found = {(table, row[0]): (row, image) for table, row, image in added(replication, shapes)}
    for table, rows in expected.items():
        kind = shapes[table].columns[1].data_type
        for key, wanted in rows.items():
            row, image = found[table, key]
            assert all(own in (None, text) for own, text in zip(row, wanted, strict=True)), (kind, row, wanted, image)
            assert None not in row or kind in SOMETIMES, (kind, image)


def test_the_topic_tells_the_last_image(replication: Replication, leader: Server, database: str) -> None:
    """Against real transactions, binlog files and the producer's own records."""
    replication.play(
        "CREATE TABLE t (name VARCHAR(20) PRIMARY KEY, n INT)", "INSERT INTO t VALUES ('a', 0), ('b', 0), ('c', 0)"
    )
    before = position(binlog_end(leader))
    replication.play("UPDATE t SET n = 1 WHERE name = 'a'", "UPDATE t SET name = 'B' WHERE name = 'b'")
    middle = position(binlog_end(leader))
    replication.play("FLUSH BINARY LOGS", "DELETE FROM t WHERE name = 'c'", "INSERT INTO t VALUES ('é', 2)")
    end = position(binlog_end(leader))
    replication.produce()
    shape = replace(shape_of(leader, database, "t"), key=("name",))
    keys = {name: (f"_utf8mb4 x'{name.encode().hex()}'",) for name in "abBcé"}
    wanted = {shape.name: list(keys.values())}

    def names(found: Collection[Key]) -> set[str]:
        return {name for name, key in keys.items() if key in found}

    with History(replication.topic, {shape.name: shape}) as history:
        assert names(history.touched(wanted, before, middle, 5.0).keys[shape.name]) == {"a", "b", "B"}
        assert names(history.touched(wanted, middle, end, 5.0).keys[shape.name]) == {"c", "é"}
        assert history.touched(wanted, end, end, 5.0).keys == {shape.name: set()}
        images = history.images_at(wanted, end)[shape.name]
        assert images[keys["b"]] is images[keys["c"]] is None
        assert images[keys["é"]] == {"name": {"String": "é"}, "n": {"SignedInteger": 2}}
        earlier = history.images_at({shape.name: [keys["c"]]}, middle)[shape.name]
        assert earlier == {keys["c"]: {"name": {"String": "c"}, "n": {"SignedInteger": 0}}}
        traces = history.last_events(wanted, end, 1000)
        assert traces.complete
        assert [trace.after and trace.after[1] for trace in traces.of(shape.name, keys["a"])] == ["0", "1"]
        assert [trace.event.operation for trace in traces.of(shape.name, keys["c"])] == ["Add", "Delete"]
        # CREATE TABLE changed no row
        assert not traces.statements


def position(text: str) -> Position:
    file, _, offset = text.partition(":")
    return Position(file, int(offset))
