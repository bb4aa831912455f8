"""Reads short transactions at once: the five binlog events of one that changes one table.

Most transactions are a GTID, BEGIN, a table map, one rows event and an XID. Whatever is not exactly that, or is not as
it should be, is left to the reader of single events, which knows what to say of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple

from cdc_producer.decode.binlog import MATCHING, BinlogReader
from cdc_producer.decode.binlog_event import UNREADABLE, BinlogEvent
from cdc_producer.decode.gtids import read_transaction
from cdc_producer.decode.query_event import rows_session
from cdc_producer.decode.rows_event import NAMES, encode_rows
from cdc_producer.decode.table_decoders import TableDecoder, TableDecoders
from shared.binlog_format import ARTIFICIAL, HEADER_SIZE, EventType
from shared.errors import UnsupportedError
from shared.events import Position, Transaction

#: binlog events of a short transaction, and the index in it of its rows
EVENTS, ROWS_INDEX = 5, 3
#: bytes of the largest rows event that is read here; larger ones are for the processes that help
LARGEST_ROWS = 4 << 10
#: in a header: size, end offset (low 32 bits), flags
PLACE, PLACE_AT = Struct("<IIH"), 9
#: in a QUERY event: length of the database's name; error; length of the variables
QUERY, QUERY_AT = Struct("<BHH"), HEADER_SIZE + 8
BEGIN = b"\0BEGIN"


class Short(NamedTuple):
    """Holds a transaction that changes one table."""

    transaction: Transaction
    #: what its BEGIN tells of the session
    session: Mapping[str, Any]
    #: None when the table is left out; then there is no JSON
    table: TableDecoder | None
    #: of its one operation, as `encode_rows` makes it
    json: bytes
    #: where its rows event starts, and where it ends itself
    rows: Position
    end: Position
    #: table map and rows event
    source: tuple[bytes, bytes]


def read_short(packets: Sequence[bytes], first: int, reader: BinlogReader, tables: TableDecoders) -> Short | None:
    """Read the transaction that begins with packet `first`; None when it is no short one, and nothing was done.

    The reader is not moved; its position is that of the first packet.
    """
    if len(packets) < first + EVENTS or not reader.checksums:
        return None
    gtid, begin, table_map, rows, xid = five = packets[first : first + EVENTS]
    kind = rows[4]
    if (
        begin[4] != EventType.QUERY or table_map[4] != EventType.TABLE_MAP or kind not in NAMES
        or xid[4] != EventType.XID or len(rows) > LARGEST_ROWS
    ):  # fmt: skip
        return None
    end = start = reader.position.offset
    for raw in five:
        if zlib.crc32(raw) != MATCHING:
            return None
        size, end_low, flags = PLACE.unpack_from(raw, PLACE_AT)
        end += size
        if size != len(raw) or end_low != end & 0xFFFFFFFF or flags & ARTIFICIAL:
            return None
    name, _, variables = QUERY.unpack_from(begin, QUERY_AT)
    if QUERY_AT + QUERY.size + variables + name != len(begin) - 4 - len(BEGIN) or begin[-10:-4] != BEGIN:
        return None
    if table_map[19:25] != rows[19:25]:
        return None
    try:
        transaction = read_transaction(gtid[4], gtid[HEADER_SIZE:-4], start)
        session = rows_session(begin[HEADER_SIZE:-4])
        table = tables.table(BinlogEvent(EventType.TABLE_MAP, 0, 0, table_map[HEADER_SIZE:-4], "", 0, 0))
        json = b"" if table is None else encode_rows(kind, table, rows[HEADER_SIZE:-4])
    except (UnsupportedError, *UNREADABLE):
        return None
    file = reader.position.file
    places = Position(file, end - len(xid) - len(rows)), Position(file, end)
    return Short(transaction, session, table, json, *places, (table_map, rows))
