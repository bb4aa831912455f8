"""What the topic tells about rows, compared with the plain reading of the same events."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fix_history import ID, KEYS, NAMES, OTHER, SHAPES, TABLE, literals, position, reading, row
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.events import EventLog, integer

from cdc_consumer.parity.model import Column, Shape, TableName
from cdc_consumer.parity.witness import history
from cdc_consumer.parity.witness.answers import UNKNOWN
from cdc_consumer.parity.witness.history import LAST_EVENTS, Key
from shared.errors import HistoryError
from shared.events import Position
from shared.topic import embedded
from shared.topic import walk as topic_walk

TABLES = st.sampled_from([TABLE, OTHER])
NUMBERS = st.integers(0, 3)
OPERATIONS = st.one_of(
    st.tuples(st.just("Add"), TABLES, NUMBERS),
    st.tuples(st.just("Delete"), TABLES, NUMBERS),
    st.tuples(st.just("Update"), TABLES, NUMBERS, NUMBERS),
)
STEPS = st.lists(
    st.one_of(
        st.lists(OPERATIONS, min_size=1, max_size=3), st.just("heartbeat"), st.just("rotate"), st.just("repeat"),
        st.tuples(st.just("ddl"), st.sampled_from(["db", "db2"])),
    ),
    max_size=12,
)  # fmt: skip


class Told(NamedTuple):
    """What one event did to one row: an image, None for gone, UNKNOWN after a statement."""

    start: Position
    table: TableName
    key: Key
    image: Any


def write(log: EventLog, steps: list[Any]) -> tuple[list[Position], list[Told]]:
    """All edges between transactions, and all that happened."""
    edges, told = [position(log)], []
    log.heartbeat()
    edges.append(position(log))
    for number, step in enumerate(steps):
        if step == "heartbeat":
            log.heartbeat()
        elif step == "rotate":
            log._file, log._offset = f"binlog.{int(log._file[-6:]) + 1:06d}", 4
        elif step == "repeat":
            log.append(*log.records()[-2:])
        elif step[0] == "ddl":
            start = position(log)
            log.ddl("ALTER", step[1])
            told += [Told(start, table, key, UNKNOWN) for table in SHAPES for key in KEYS if table.database == step[1]]
        else:
            with log.transaction():
                for kind, table, old, *more in step:
                    new = row((more or [old])[0], f"v{number}")
                    images = {"Add": new, "Delete": row(old), "Update": (row(old), new)}
                    start = position(log)
                    log.rows(kind, str(table), NAMES, [images[kind]], types=("int", "varchar(9)"))
                    if kind != "Add":
                        told.append(Told(start, table, (str(old),), None))
                    if kind != "Delete":
                        told.append(
                            Told(start, table, (new[0]["SignedInteger"].__str__(),), dict(zip(NAMES, new, strict=True)))
                        )
        edges.append(position(log))
    log.heartbeat()
    return edges, told


@settings(deadline=None, max_examples=100)
@given(STEPS, st.data())
def test_the_topic_tells_what_happened(steps: list[Any], data: st.DataObject) -> None:
    wanted = {TABLE: KEYS, OTHER: KEYS[:2]}
    with tempfile.TemporaryDirectory() as folder:
        log = EventLog(Path(folder))
        edges, told = write(log, steps)
        places = st.integers(1, len(edges) - 1)
        first, last = sorted((data.draw(places), data.draw(places)))
        after, until = edges[first], edges[last]
        with pytest.MonkeyPatch.context() as patch, reading(log) as found:
            patch.setattr(embedded, "READ_RECORDS", 2)
            patch.setattr(history, "FIRST_RECORDS", 3)
            patch.setattr(topic_walk, "NEAR_RECORDS", 1)
            touched = found.touched(wanted, after, until, 1.0)
            images = found.images_at(wanted, until)
            traces = found.last_events(wanted, until, 10_000)
        log.close()
    before = [each for each in told if each.start < until]
    for table, keys in wanted.items():
        assert touched.keys[table] == {
            each.key for each in told if after <= each.start < until and each.table == table and each.key in keys
        }
        for key in keys:
            history_of = [each for each in before if each.table == table and each.key == key]
            assert images[table][key] == (history_of[-1].image if history_of else UNKNOWN)
            starts = {str(each.start): each.image for each in history_of if each.image is not UNKNOWN}
            traced = traces.of(table, key)
            assert [trace.event.position for trace in traced] == list(starts)[-LAST_EVENTS:]
            for trace in traced:
                image = starts[trace.event.position]
                assert trace.after == (None if image is None else literals(int(key[0]), image["name"]["String"]))
    assert traces.complete


def test_a_repeat_does_not_bring_later_events_forward(log: EventLog) -> None:
    log.add("db.t", NAMES, row(1, "first"))
    log.heartbeat()
    until = position(log)
    log._file, log._offset = "binlog.000002", 4
    log.add("db.t", NAMES, row(1, "second"))
    log.append(*log.records()[-2:])
    with reading(log) as found:
        image = dict(zip(NAMES, row(1, "first"), strict=True))
        assert found.images_at({TABLE: KEYS}, until)[TABLE][("1",)] == image
        assert len(found.last_events({TABLE: KEYS}, until, 100).of(TABLE, ("1",))) == 1


def test_the_members_of_an_enum_are_those_of_the_event(log: EventLog) -> None:
    """It was altered since: the number 2 was another name."""
    kind = Column("name", "enum('a','new','b')", "enum", "utf8mb4", False, False)
    shapes = {TABLE: Shape(TABLE, (ID, kind), ("name",))}
    log.heartbeat()
    edge = position(log)
    log.add("db.t", NAMES, [integer(1), {"Enum": 2}], types=("int", "enum('a','b')"))
    keys = [(f"_utf8mb4 x'{name.encode().hex()}'",) for name in ("a", "new", "b")]
    with reading(log, shapes) as found:
        assert found.touched({TABLE: keys}, edge, position(log), 1.0).keys == {TABLE: {keys[2]}}


def test_keys_since_a_sequence(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.add("db.t", NAMES, row(0))
    log.add("db.t", NAMES, row(1), row(2))
    log.update("db2.t", NAMES, (row(3), row(4)))
    log.add("elsewhere.t", NAMES, row(5))
    log.ddl("DROP", "db", ["db", "db3"])
    log.heartbeat()
    with reading(log) as found:
        since = found.keys_since(1)
        assert since.keys == {TABLE: {("1",), ("2",)}, OTHER: {("3",), ("4",)}}
        assert (since.ddl, since.untold) == ({"db", "db3"}, set())
        assert found.keys_since(5).keys == {}
        with pytest.raises(HistoryError, match="does not hold sequence 6"):
            found.keys_since(6)
        monkeypatch.setattr(history, "MOST_KEYS", 3)
        with pytest.raises(HistoryError, match="over 3 rows were written since sequence 1"):
            found.keys_since(1)


def test_finding_a_position_reads_a_logarithm_of_the_topic(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "READ_RECORDS", 8)
    for number in range(600):
        log.add("db.t", NAMES, row(number))
    heads = []
    monkeypatch.setattr(topic_walk, "entry", lambda record, read=topic_walk.entry: heads.append(record) or read(record))
    with reading(log) as found:
        image = dict(zip(NAMES, row(599), strict=True))
        assert found.images_at({TABLE: [("599",)]}, position(log)) == {TABLE: {("599",): image}}
        heads.clear()
        assert found.touched({TABLE: [("598",)]}, Position("binlog.000001", 4 + 59_800), position(log), 1.0).keys == {
            TABLE: {("598",)}
        }
    assert len(heads) < 150


def test_a_statement_that_names_the_database_in_capitals(tmp_path: Path) -> None:
    """A server that keeps all names in lower case may write them so."""
    log = EventLog(tmp_path)
    log.heartbeat()
    before = position(log)
    log.ddl("TRUNCATE", TABLE.database.upper())
    log.heartbeat()
    with reading(log) as found:
        assert found.touched({TABLE: KEYS}, before, position(log), 1.0).keys[TABLE] == set(KEYS)
        assert any(TABLE.database in written.databases for written in found.written(found.begin(before)))
