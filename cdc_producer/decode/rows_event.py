"""Turns a rows event, which has the images of many rows, into the JSON of one operation."""

from __future__ import annotations

import zlib
from functools import lru_cache

from cdc_producer.decode.binlog_event import UNREADABLE, BinlogEvent, unreadable, way_past
from cdc_producer.decode.cursor import length_encoded
from cdc_producer.decode.table_decoders import TableDecoder
from shared.binlog_format import CASCADES_LOGGED, NO_FOREIGN_KEY_CHECKS, EventType
from shared.errors import UnsupportedError

#: by the event's type: name of the operation, what stands before its first row, and between two rows
NAMES = {
    EventType.WRITE_ROWS: ("Add", '{"cols":', '},{"cols":'),
    EventType.UPDATE_ROWS: ("Update", '{"before_cols":', '},{"before_cols":'),
    EventType.DELETE_ROWS: ("Delete", '{"cols":', '},{"cols":'),
}


class Operation:
    """One operation's JSON, from after bn_file to before `transaction`; it is None while it is being made."""

    __slots__ = ("json", "size", "source")

    def __init__(self, json: bytes | memoryview | None, size: int = 0) -> None:
        self.json = json
        #: bytes of the binlog event that wait with it
        self.size = size
        #: the binlog events that go with it into the topic
        self.source: tuple[BinlogEvent, ...] = ()

    def raise_if_failed(self) -> None:
        """Raise the UnsupportedError for which there will never be a JSON."""


class RowsOperation(Operation):
    """The operation of a rows event: `encode` makes its JSON here, `settle` takes it from a process that made it."""

    __slots__ = ("_error", "event", "table")

    def __init__(self, event: BinlogEvent, table: TableDecoder) -> None:
        super().__init__(None, len(event.body))
        self.event = event
        self.table = table
        self._error: UnsupportedError | None = None

    def encode(self) -> None:
        """Make the JSON, or the error that `raise_if_failed` raises."""
        try:
            self.json = encode_rows(self.event.type, self.table, self.event.body)
        except UnsupportedError as error:
            self._error = UnsupportedError(
                f"rows of {self.table.uri} at {self.event.where()}: {error}; {way_past(self.event.where())}"
            )
        except UNREADABLE as error:
            self._error = unreadable(self.event.type, self.event.where(), error)
            self._error.__cause__ = error

    def settle(self, json: bytes | memoryview, checksum: int) -> None:
        """Take the JSON that another process made, if it is what has this CRC-32; else make it here."""
        if zlib.crc32(json) == checksum:
            self.json = json
        else:
            self.encode()

    def raise_if_failed(self) -> None:
        if self._error is not None:
            raise self._error


def encode_rows(kind: int, table: TableDecoder, body: bytes) -> bytes:
    """The JSON of a rows event's operation; `kind` is the event's type.

    Raises UnsupportedError, and what UNREADABLE lists when the bytes are no rows of this table.

    Source: MySQL's rows_event.h, Rows_event.
    """
    extra = int.from_bytes(body[8:10], "little")  # this length includes itself
    if extra < 2:
        raise ValueError(f"{extra} bytes of extra data")
    update = kind == EventType.UPDATE_ROWS
    shape = table.shape
    first = 8 + extra + (shape.two_bitmaps if update else shape.one_bitmap)
    opening, between, closing = _around(kind, shape.width, body[6], body[8 + extra : first])
    images = shape.images
    rows = images.read_pairs(body, first, ',"after_cols":') if update else images.read(body, first)
    if not rows:
        raise UnsupportedError("it holds no row: the binlog is damaged")
    # what surrounds the rows goes to the first and the last of them, so that they are joined once
    rows[0] = f"{shape.columns}{opening}{rows[0]}"
    rows[-1] += f"}}]}}}}{shape.facts}{closing}"
    return between.join(rows).encode("latin-1")


@lru_cache(maxsize=1024)
def _around(kind: int, columns: int, flags: int, head: bytes) -> tuple[str, str, str]:
    """What stands in the JSON before the rows, between two of them and at the end.

    `head` says how many columns a row has, and in a bitmap which of them the images hold; most events of a table have
    the same. Raises what `encode_rows` raises.
    """
    width, position = length_encoded(head, 0)
    if width != columns:
        raise UnsupportedError(f"a row has {width} columns, its table map {columns}: the binlog is damaged")
    # a bit for each column; before and after an update may differ
    size, every = (width + 7) // 8, (1 << width) - 1
    if kind == EventType.UPDATE_ROWS:
        size, every = 2 * size, every << 8 * size | every
    if position + size != len(head):
        raise ValueError("it ends before its rows")
    if int.from_bytes(head[position:], "little") & every != every:
        raise UnsupportedError(
            "a row image is not FULL: its session, or the leader, has binlog_row_image other than FULL: set it to FULL"
            " in both"
        )
    name, opening, between = NAMES[kind]
    checks = ',"foreign_key_checks":0' if flags & (NO_FOREIGN_KEY_CHECKS | CASCADES_LOGGED) else ""
    return f'{{"{name}":{{"rows":[{opening}', between, checks
