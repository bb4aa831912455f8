"""The tables that are remembered: all that are in use, nothing of those left out, and never too much."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator

import pytest

from cdc_producer.decode import table_decoders
from cdc_producer.decode.binlog_event import BinlogEvent
from cdc_producer.decode.rows_event import encode_rows
from cdc_producer.decode.table_decoders import TableDecoders
from cdc_producer.decode.table_map import Charset, read_table_map
from shared.binlog_format import EventType
from shared.filters import DatabaseFilter
from shared.profile import Filters

COLUMNS = b"\2\3\x0f" + b"\2\x90\1" + b"\0"  # INT, VARCHAR(100)
METADATA = b"\1\1\0" + b"\3\3\xfc\xff\0"


def table_map(database: str, number: int, column: str = "s") -> BinlogEvent:
    names = b"".join(bytes([len(name)]) + name.encode() + b"\0" for name in (database, f"t{number}"))
    columns = b"\1i" + bytes([len(column)]) + column.encode()
    body = bytes(8) + names + COLUMNS + METADATA + bytes([4, len(columns)]) + columns
    return BinlogEvent(EventType.TABLE_MAP, 0, 0, body, "b.1", 4, 5)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The events that were read whole."""
    found: list[str] = []

    def count(event: BinlogEvent, charsets: object) -> object:
        found.append(event.where())
        return read_table_map(event, charsets)

    monkeypatch.setattr(table_decoders, "read_table_map", count)
    yield found


def tables(most: int = table_decoders.MAX_REMEMBERED) -> TableDecoders:
    return TableDecoders("mysql-srv1", DatabaseFilter(Filters(include_dbs=("d",))), {255: Charset("utf8mb4", 4)}, most)


def test_ten_thousand_tables_in_turn_are_read_once_each(read: list[str]) -> None:
    found = tables()
    events = [table_map("d", number, f"s{number}") for number in range(10_000)]
    for _ in range(3):
        for event in events:
            assert found.table(event) is not None
    assert len(read) == len(events)


def test_tables_of_equal_columns_share_what_is_read(read: list[str]) -> None:
    found = tables()
    one, other = found.table(table_map("d", 1)), found.table(table_map("d", 2))
    assert one is not None
    assert other is not None
    assert one.uri != other.uri
    assert one.shape is other.shape
    assert len(read) == 1


def test_tables_of_equal_types_share_their_functions() -> None:
    found = tables()
    one, other = found.table(table_map("d", 1)), found.table(table_map("d", 2, "other"))
    assert one is not None
    assert other is not None
    assert one.shape.columns != other.shape.columns
    assert one.shape.images is other.shape.images


def test_nothing_is_kept_of_a_table_that_is_left_out(read: list[str]) -> None:
    found = tables()
    for number in range(100):
        assert found.table(table_map("x", number)) is None
    assert not read
    assert not found._tables


def test_what_is_remembered_is_bounded(read: list[str]) -> None:
    """And what is used again and again stays."""
    found = tables(most=100_000)
    often = table_map("d", 0)
    for number in range(1, 1000):
        found.table(often)
        found.table(table_map("d", number, f"s{number}"))
    assert len(read) == 1000
    assert len(found._tables) < 110


def test_tables_of_types_of_their_own_take_no_more_than_is_counted() -> None:
    """Tables of 8 columns, with a row inserted and a row updated in each."""
    found = tables()
    kinds = ((1, 1), (2, 2), (3, 4), (8, 8), (13, 1))  # TINYINT, SMALLINT, INT, BIGINT, YEAR and their bytes
    combinations = list(itertools.islice(itertools.product(kinds, repeat=8), 0, None, 1000))
    head, bits = bytes(8) + b"\2\0\x08", b"\xff"

    def use(number: int, columns: tuple[tuple[int, int], ...]) -> None:
        name = f"{number:04}".encode()
        names = b"".join(b"\5" + name + b"%d" % column for column in range(8))
        types = b"\x08" + bytes(kind for kind, _ in columns) + b"\0\0" + b"\1\1\0" + b"\4\x30" + names
        table = found.known(b"\0\0" + b"\1d\0\4" + name + b"\0" + types)
        assert table is not None
        image = b"\0" + bytes(sum(size for _, size in columns))
        encode_rows(EventType.WRITE_ROWS, table, head + bits + image)
        encode_rows(EventType.UPDATE_ROWS, table, head + 2 * bits + 2 * image)

    use(0, combinations[0])
    tracemalloc.start()
    try:
        for number, columns in enumerate(combinations, 1):
            use(number, columns)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found._images) == len(combinations) > 300
    assert taken < found.counted_bytes < 2 * taken
