"""Writes the position's own row as binlog events, so that it moves in the statement that changes the rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache

from cdc_consumer.binlog.changes import Changes, event
from cdc_consumer.binlog.layout import RowLayout, bits, number, text, write_layout
from cdc_consumer.sql.positions import Mark
from shared import binlog_format as types
from shared.binlog_format import FLAGS_SIZE, HEADER, HEADER_SIZE, ID_SIZE, EventType

#: an id that no table of a leader has: those are counted from 1 on
TABLE_ID = (0x7FFF_FFFF_FFFE).to_bytes(ID_SIZE, "little")
_EPOCH = datetime(1970, 1, 1)
#: bits of the columns by which the row is found: topic, worker, link
_FOUND_BY = (0b10_0000_0011).to_bytes(2, "little")


def _layout(collations: tuple[int, ...]) -> RowLayout:
    """Of the table `position`, whose columns `topic`, `leader_file` and `gtid` have these collations."""
    columns = [
        (b"topic", types.VARCHAR, (255 * 4).to_bytes(2, "little"), False),
        (b"worker", types.LONG, b"", False),
        (b"topic_offset", types.LONGLONG, b"", False),
        (b"sequence", types.LONGLONG, b"", False),
        (b"leader_file", types.VARCHAR, (512 * 4).to_bytes(2, "little"), False),
        (b"leader_offset", types.LONGLONG, b"", False),
        (b"gtid", types.VARCHAR, (100 * 4).to_bytes(2, "little"), True),
        (b"committed_at", types.DATETIME2, b"\6", True),
        (b"updated_at", types.TIMESTAMP2, b"\6", False),
        (b"link", types.LONGLONG, b"", False),
    ]
    return RowLayout(
        bytes(kind for _, kind, _, _ in columns),
        b"".join(metadata for _, _, metadata, _ in columns),
        bits([null for _, _, _, null in columns], 0x01),
        (True, False, False, True, False),  # worker, topic_offset, sequence, leader_offset, link
        collations,
        (),
        b"".join(text(name) for name, _, _, _ in columns),
        *(b"",) * 4,
    )


class PositionRow:
    """Moves one topic's and worker's row of the table `position` from one transaction to the next.

    The link to the one before is in the key: the row is not found, and nothing is applied, unless what came before was.
    Rows of workers other than 0 are slots: each tells of one transaction that ended before its turn.
    """

    def __init__(self, database: str, topic: str, worker: int, collations: tuple[int, ...]) -> None:
        self._topic, self._collations = topic, collations
        self._database, self._table = database.encode(), b"position"
        self.layout = _layout(collations)
        self._map = write_layout(self.layout)
        names = b"".join(text(name) + b"\0" for name in (self._database, self._table))
        self._size = number(len(self.layout.types))
        self._every = ((1 << len(self.layout.types)) - 1).to_bytes(2, "little")
        self._table_map = event(EventType.TABLE_MAP, TABLE_ID + bytes(FLAGS_SIZE) + names + self._map)
        self._row = _long_text(topic) + worker.to_bytes(4, "little")

    def of(self, worker: int) -> PositionRow:
        """Return the same for another worker."""
        return PositionRow(self._database.decode(), self._topic, worker, self._collations)

    def moved(
        self, link: int, mark: Mark, now: int, *, foreign_key_checks: bool = True, then: int | None = None
    ) -> Changes:
        """Return the change of the row to `mark`.

        `link` is the one it has, of the position the sequence of the transaction before; `then` is the one it gets, by
        default the sequence of `mark`. `now` is in microseconds since 1970.
        """
        images = b"".join((b"\0", self._row, _big(link), self._image(mark, now, then)))
        return self._changes("Update", EventType.UPDATE_ROWS, _FOUND_BY, images, foreign_key_checks)

    def added(self, mark: Mark, now: int, *, foreign_key_checks: bool = True, then: int | None = None) -> Changes:
        """Return the change that makes the row, where there is none."""
        return self._changes("Add", EventType.WRITE_ROWS, b"", self._image(mark, now, then), foreign_key_checks)

    def _image(self, mark: Mark, now: int, then: int | None) -> bytes:
        absent = (mark.gtid is None) << 6 | (mark.committed is None) << 7
        return b"".join(
            (
                absent.to_bytes(2, "little"), self._row, _big(mark.offset), _big(mark.sequence),
                _file(mark.file), mark.leader_offset.to_bytes(8, "little"),
                b"" if mark.gtid is None else _long_text(mark.gtid),
                b"" if mark.committed is None else _datetime(mark.committed),
                _timestamp(now), _big(mark.sequence if then is None else then),
            )
        )  # fmt: skip

    def _changes(self, kind: str, event_type: int, found_by: bytes, images: bytes, checks: bool) -> Changes:
        """Make the rows event; `found_by` are the bits of the columns in its before image, if it has one."""
        rest = b"".join((b"\2\0", self._size, found_by, self._every, images))
        size = HEADER_SIZE + ID_SIZE + FLAGS_SIZE + len(rest)
        head = HEADER.pack(0, event_type, 0, size, 0, 0) + TABLE_ID
        return Changes(kind, self._database, self._table, self._map, TABLE_ID, self._table_map, head, rest, checks)


def _big(value: int) -> bytes:
    return value.to_bytes(8, "little", signed=True)


def _long_text(value: str) -> bytes:
    """A VARCHAR whose length may need two bytes."""
    data = value.encode()
    return len(data).to_bytes(2, "little") + data


@lru_cache(maxsize=16)
def _file(value: str) -> bytes:
    return _long_text(value)


def _timestamp(microseconds: int) -> bytes:
    """A TIMESTAMP(6)."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    return seconds.to_bytes(4, "big") + fraction.to_bytes(3, "big")


def _datetime(microseconds: int) -> bytes:
    """A DATETIME(6) of this moment in UTC. Source: MySQL's my_time.cc, my_datetime_packed_to_binary."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    return _second(seconds) + fraction.to_bytes(3, "big")


@lru_cache(maxsize=64)
def _second(seconds: int) -> bytes:
    moment = _EPOCH + timedelta(seconds=seconds)
    day = (moment.year * 13 + moment.month) << 5 | moment.day
    packed = day << 17 | moment.hour << 12 | moment.minute << 6 | moment.second
    return (packed + 0x80_0000_0000).to_bytes(5, "big")
