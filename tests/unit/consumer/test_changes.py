"""Binlog events for the follower: what MySQL takes without a word is refused here, and what it ignores is never made."""

from __future__ import annotations

import contextlib
from base64 import b64decode
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.binlog.changes import Changes, changes_in, event
from cdc_consumer.binlog.layout import NoLayoutError, bits, number, read_layout, text, write_layout
from cdc_consumer.binlog.position_row import PositionRow
from cdc_consumer.binlog.statement import ChangesStatement
from cdc_consumer.sql.positions import Mark
from shared.binlog_format import CASCADES_LOGGED, HEADER, NO_FOREIGN_KEY_CHECKS, STATEMENT_END, EventType
from shared.errors import CdcError, EventError
from shared.topic import Record

MARK = Mark(7, 5, "binlog.000001", 99, None, None)


def record(
    table_id: int = 1, kind: int = EventType.WRITE_ROWS, flags: int = STATEMENT_END, width: int = 1, has: int = 1
) -> Record:
    """One INT column; `width` and `has` are those of the rows event."""
    names = text(b"d") + b"\0" + text(b"t") + b"\0"
    identity = table_id.to_bytes(6, "little")
    table_map = event(EventType.TABLE_MAP, identity + b"\1\0" + names + b"\1\3\0\0")
    columns = has.to_bytes(1, "little") * (2 if kind == EventType.UPDATE_ROWS else 1)
    rows = event(kind, identity + flags.to_bytes(2, "little") + b"\2\0" + number(width) + columns + b"\0\1\0\0\0")
    return Record(3, b"", table_map + rows)


def changes(table_id: int = 1, flags: int = STATEMENT_END) -> Changes:
    found = changes_in(record(table_id, flags=flags))
    assert found is not None
    return found


def events(sql: str) -> list[bytes]:
    """The binlog events of a BINLOG statement."""
    data = b64decode(sql.partition("'")[2].partition("'")[0], validate=True)
    found = []
    while data:
        size = HEADER.unpack_from(data)[3]
        found.append(data[:size])
        data = data[size:]
    return found


@pytest.mark.parametrize(
    ("kind", "width", "has"),
    [
        (EventType.WRITE_ROWS, 2, 3),
        (EventType.WRITE_ROWS, 1, 0),
        (EventType.UPDATE_ROWS, 1, 0),
        (EventType.WRITE_ROWS, 255, 1),
    ],
)
def test_rows_without_every_column_are_refused(kind: int, width: int, has: int) -> None:
    with pytest.raises(EventError, match="without the values of every column"):
        changes_in(record(kind=kind, width=width, has=has))


def test_without_binlog_events_there_are_no_changes() -> None:
    assert changes_in(Record(0, b"{}")) is None
    assert changes_in(Record(0, b"{}", event(2, b"QUERY"))) is None


@given(
    st.lists(
        st.tuples(st.integers(1, 3), st.sampled_from([0, NO_FOREIGN_KEY_CHECKS, CASCADES_LOGGED])),
        min_size=1,
        max_size=20,
    )
)
def test_every_row_has_its_table_map_before_it(made: Sequence[tuple[int, int]]) -> None:
    """And only the last binlog event ends a statement, and all of it looks at foreign keys or none."""
    whole: list[tuple[int, bool]] = []
    statement = ChangesStatement()
    position = PositionRow("cdc", "topic", 0, (46, 255, 255))

    def finish() -> None:
        statement.add(position.moved(4, MARK, 0, foreign_key_checks=statement.foreign_key_checks))
        found = events(statement.sql())
        kinds = [each[4] for each in found]
        first = min(index for index, kind in enumerate(kinds) if kind != EventType.TABLE_MAP)
        assert EventType.TABLE_MAP not in kinds[first:]
        active = {each[19:25] for each in found[:first]}
        assert len(active) == first
        flags = [int.from_bytes(each[25:27], "little") for each in found[first:]]
        assert [bool(flag & STATEMENT_END) for flag in flags] == [False] * (len(flags) - 1) + [True]
        assert len({flag & NO_FOREIGN_KEY_CHECKS for flag in flags}) == 1
        assert not any(flag & CASCADES_LOGGED for flag in flags)
        for each, flag in list(zip(found[first:], flags, strict=True))[:-1]:
            assert each[19:25] in active
            whole.append((int.from_bytes(each[19:25], "little"), not flag & NO_FOREIGN_KEY_CHECKS))

    for table_id, flags in made:
        one = changes(table_id, flags)
        if not statement.takes(one):
            finish()
            statement = ChangesStatement()
        statement.add(one)
    finish()
    assert whole == [(table_id, flags == 0) for table_id, flags in made]


def test_a_table_id_means_one_table() -> None:
    statement = ChangesStatement()
    statement.add(changes())
    other = record()
    names = other.binlog.replace(b"\1t\0", b"\1u\0", 1)
    found = changes_in(other._replace(binlog=names))
    assert found is not None and found.table == b"u"
    assert not statement.takes(found)


@given(st.binary(max_size=60))
def test_a_layout_is_read_or_refused(data: bytes) -> None:
    try:
        layout = read_layout(data)
    except NoLayoutError:
        return
    assert read_layout(write_layout(layout)) == layout


@given(st.lists(st.booleans(), max_size=20))
def test_bits(values: list[bool]) -> None:
    low, high = bits(values, 0x01), bits(values, 0x80)
    assert [bool(low[index // 8] >> index % 8 & 1) for index in range(len(values))] == values
    assert [bool(high[index // 8] >> (7 - index % 8) & 1) for index in range(len(values))] == values


@given(st.binary(max_size=120), st.booleans())
def test_any_bytes_are_changes_or_refused(data: bytes, checksums: bool) -> None:
    for binlog in (data, event(EventType.TABLE_MAP, data) + event(EventType.WRITE_ROWS, data)):
        with contextlib.suppress(CdcError):
            changes_in(Record(0, b"", binlog, checksums))
