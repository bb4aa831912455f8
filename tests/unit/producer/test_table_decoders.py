"""The tables that are remembered: all that are in use, nothing of those left out, and never too much."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdc_producer.decode import table_decoders
from cdc_producer.decode.binlog_event import BinlogEvent
from cdc_producer.decode.table_decoders import TableDecoders
from cdc_producer.decode.table_map import Charset, read_table_map
from shared.binlog_format import EventType

COLUMNS = b"\2\3\x0f" + b"\2\x90\1" + b"\0"  # INT, VARCHAR(100)
METADATA = b"\1\1\0" + b"\3\3\xfc\xff\0" + b"\4\4\1i\1s"


def table_map(database: str, number: int) -> BinlogEvent:
    names = b"".join(bytes([len(name)]) + name.encode() + b"\0" for name in (database, f"t{number}"))
    return BinlogEvent(EventType.TABLE_MAP, 0, 0, bytes(8) + names + COLUMNS + METADATA, "b.1", 4, 5)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The events that were read whole."""
    found: list[str] = []

    def count(event: BinlogEvent, charsets: object) -> object:
        found.append(event.where())
        return read_table_map(event, charsets)  # type: ignore[arg-type]

    monkeypatch.setattr(table_decoders, "read_table_map", count)
    yield found


def tables() -> TableDecoders:
    return TableDecoders("mysql-srv1", frozenset({"d"}), {255: Charset("utf8mb4", 4)})


def test_ten_thousand_tables_in_turn_are_read_once_each(read: list[str]) -> None:
    found = tables()
    events = [table_map("d", number) for number in range(10_000)]
    for _ in range(3):
        for event in events:
            assert found.table(event) is not None
    assert len(read) == len(events)


def test_tables_of_equal_columns_share_their_decoder() -> None:
    found = tables()
    one, other = found.table(table_map("d", 1)), found.table(table_map("d", 2))
    assert one is not None
    assert other is not None
    assert one is not other
    assert one.images is other.images


def test_nothing_is_kept_of_a_table_that_is_left_out(read: list[str]) -> None:
    found = tables()
    for number in range(100):
        assert found.table(table_map("x", number)) is None
    assert not read
    assert not found._tables


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch, read: list[str]) -> None:
    """And what is used again and again stays."""
    monkeypatch.setattr(table_decoders, "MAX_REMEMBERED", 100_000)
    found = tables()
    often = table_map("d", 0)
    for number in range(1, 1000):
        found.table(often)
        found.table(table_map("d", number))
    assert len(read) == 1000
    assert len(found._tables) + len(found._before) < 120
