"""What the topic cannot tell about rows: it is said, or taken for anything that may have been."""

from __future__ import annotations

import pytest
from fix_history import ID, KEYS, NAMES, TABLE, position, reading, row
from kit.events import EventLog, integer

from cdc_consumer.parity.model import Column, Shape
from cdc_consumer.parity.witness.answers import UNKNOWN
from shared.errors import EventError, HistoryError
from shared.events import Position


def test_a_topic_that_begins_later_is_no_witness(log: EventLog) -> None:
    before = position(log)
    log.heartbeat()
    edge = position(log)
    log.add("db.t", NAMES, row(1))
    with reading(log) as found:
        assert found.touched({TABLE: KEYS}, edge, position(log), 1.0).keys == {TABLE: {("1",)}}
        with pytest.raises(HistoryError, match=f"does not reach back to {before}"):
            found.touched({TABLE: KEYS}, before, position(log), 1.0)


def test_a_topic_that_has_not_come_far_enough_is_no_witness(log: EventLog) -> None:
    log.heartbeat()
    edge = position(log)
    log.add("db.t", NAMES, row(1))
    until = Position("binlog.000001", position(log).offset + 1)
    with reading(log) as found, pytest.raises(HistoryError, match=r"no record came at offset 2 within 0\.05 s"):
        found.touched({TABLE: KEYS}, edge, until, 0.05)


@pytest.mark.parametrize("heartbeat", [False, True])
def test_a_lost_event_is_noticed(log: EventLog, heartbeat: bool) -> None:
    """Also the first one after the position asked for, and also when nothing follows but a Heartbeat."""
    log.add("db.t", NAMES, row(1))
    edge = position(log)
    log.sequence += 1
    if heartbeat:
        log.heartbeat()
    else:
        log.add("db.t", NAMES, row(2))
    lost = rf"lost the events between sequence 0 and {log.sequence} \(offset 1\)"
    with reading(log) as found, pytest.raises(HistoryError, match=lost):
        found.require_leader(lambda sql: [("u",)])  # which does not judge the topic
        found.touched({TABLE: KEYS}, edge, position(log), 1.0)


def test_the_oldest_records_are_gone(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.heartbeat()
    edges = [position(log)]
    for number in range(4):
        log.add("db.t", NAMES, row(number))
        edges.append(position(log))
    log._writer._db.execute("DELETE FROM batches WHERE first < 3")
    with reading(log) as found:
        assert found.touched({TABLE: KEYS}, edges[3], edges[4], 1.0).keys == {TABLE: {("3",)}}
        with pytest.raises(HistoryError, match="does not reach back"):
            found.touched({TABLE: KEYS}, edges[1], edges[4], 1.0)
        assert not found.last_events({TABLE: KEYS}, edges[4], 100).complete
        with pytest.raises(HistoryError, match="does not hold sequence 1"):
            found.keys_since(1)
        assert found.keys_since(2).keys == {TABLE: {("2",), ("3",)}}


def test_a_column_whose_literal_cannot_be_told_may_be_any(log: EventLog) -> None:
    document = Column("name", "json", "json", None, True, False)
    shapes = {TABLE: Shape(TABLE, (ID, document), ("id", "name"))}
    log.heartbeat()
    edge = position(log)
    log.add("db.t", NAMES, [integer(1), {"Json": "[1]"}])
    keys = [("1", "CAST(CONVERT(x'31' USING utf8mb4) AS JSON)"), ("1", "NULL"), ("2", "NULL")]
    with reading(log, shapes) as found:
        assert found.touched({TABLE: keys}, edge, position(log), 1.0).keys == {TABLE: set(keys[:2])}
        assert found.images_at({TABLE: keys}, position(log)) == {TABLE: dict.fromkeys(keys, UNKNOWN)}
        since = found.keys_since(0)
        assert (since.keys, since.untold) == ({}, {TABLE})


def test_a_renamed_column_may_be_any(log: EventLog) -> None:
    log.heartbeat()
    edge = position(log)
    log.add("db.t", ("former", "name"), row(1))
    with reading(log) as found:
        assert found.touched({TABLE: KEYS}, edge, position(log), 1.0).keys == {TABLE: set(KEYS)}


def test_a_record_that_is_no_event(log: EventLog) -> None:
    log.append(b'{"uri": "flv://x"}')
    with reading(log) as found, pytest.raises(EventError, match="topic offset 0 is not an event"):
        found.keys_since(0)
