"""Reads runs of short transactions at once: five binlog events each, of which one changes one table.

Most transactions are a GTID, BEGIN, a table map, one rows event and an XID. `ShortRun.begin` checks the frames of all
binlog events of such a run and tells where it ends; the JSON is made here, or by a process that helps. Whatever is not
exactly that, or is not as it should be, is left to the reader of single events, which knows what to say of it.
"""

from __future__ import annotations

import pickle
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from struct import Struct

from cdc_producer.decode.binlog import MATCHING
from cdc_producer.decode.binlog_event import UNREADABLE
from cdc_producer.decode.gtids import is_transaction, read_transaction
from cdc_producer.decode.query_event import is_begin, rows_session
from cdc_producer.decode.rows_event import NAMES, encode_rows
from cdc_producer.decode.table_decoders import TableDecoders
from shared.binlog_format import ARTIFICIAL, HEADER_SIZE, EventType
from shared.errors import LeaderError, UnsupportedError
from shared.events import Draft, Position, Transaction
from shared.topic import Sealed
from shared.topic.record import frame, seal, unframe

#: binlog events of a short transaction, and the index in it of its rows
EVENTS, ROWS_INDEX = 5, 3
#: binlog events of the longest run, and of the shortest that is worth another process
LONGEST, WORTH_HANDING_OVER = 200 * EVENTS, 50 * EVENTS
#: bytes of the largest binlog event that is read here; larger rows are for the processes that help
LARGEST = 4 << 10
#: in a header: size, end offset (low 32 bits), flags
PLACE, PLACE_AT = Struct("<IIH"), 9
#: of a QUERY event: what is behind the session's thread and the seconds it took
QUERY = slice(HEADER_SIZE + 8, -4)
#: where the table id stands in a table map and in its rows, and where what `TableDecoders` knows a table by begins
TABLE_ID, TABLE_SOURCE = slice(HEADER_SIZE, HEADER_SIZE + 6), slice(HEADER_SIZE + 6, -4)
BODY = slice(HEADER_SIZE, -4)
#: CRC-32 of what another process answers
CHECKSUM = Struct("<I")

#: makes the records of a run from binlog event to binlog event: those before an error, and the error
OneByOne = Callable[["ShortRun"], tuple[list[Sealed], LeaderError | None]]


def _any(*kinds: int) -> bytes:
    return b"[" + b"".join(re.escape(bytes((kind,))) for kind in kinds) + b"]"


_SHORTS = re.compile(
    b"(?:" + _any(EventType.GTID, EventType.ANONYMOUS_GTID) + _any(EventType.QUERY) + _any(EventType.TABLE_MAP)
    + _any(*NAMES) + _any(EventType.XID) + b"){1,%d}" % (LONGEST // EVENTS), re.DOTALL
)  # fmt: skip


def types_of(packets: Sequence[bytes]) -> bytes:
    """Return the type of each binlog event, 0 for one that is no part of a short transaction."""
    return bytes([packet[4] if HEADER_SIZE <= len(packet) <= LARGEST else 0 for packet in packets])


def end_of_run(types: bytes, first: int) -> int:
    """Tell behind which packet the run that begins with packet `first` ends, by the types alone; `first` for none."""
    found = _SHORTS.match(types, first)
    return first if found is None else found.end()


class ShortRun:
    """Holds a run of short transactions that are framed as they should be, and their records once these are made."""

    __slots__ = (
        "_again", "_error", "_raw", "_tables", "end", "last", "packets", "records", "sequence", "size", "start",
        "told", "total",
    )  # fmt: skip

    def __init__(
        self, packets: Sequence[bytes], start: Position, sequence: int, tables: TableDecoders, raw: bool,
        again: OneByOne,
    ) -> None:  # fmt: skip
        """The run begins at `start`, behind the event `sequence`; `raw` says whether binlog events go with the JSON."""
        self.packets = packets
        self.start = start
        self.sequence = sequence
        self._tables = tables
        self._raw = raw
        self._again = again
        #: None while they are being made
        self.records: list[Sealed] | None = None
        self._error: LeaderError | None = None
        #: number of records there will be
        self.total = 0
        self.size = sum(map(len, packets))
        self.end = Position(start.file, start.offset + self.size)

    def begin(self) -> bool:
        """Check all that can be checked without the tables; False when something is not as it should be.

        Afterwards `total`, `last` (the last transaction) and `told` (where the last record's transaction ends, None
        without records) are known.
        """
        packets, included = self.packets, self._tables.included
        if not framed(packets, self.start.offset):
            return False
        told = 0
        try:
            for number, (gtid, begin, table_map, rows, _) in enumerate(transactions(packets), 1):
                if not is_begin(begin[QUERY]) or table_map[TABLE_ID] != rows[TABLE_ID]:
                    return False
                if included(table_map[TABLE_SOURCE]):
                    self.total += 1
                    told = number
                elif not is_transaction(gtid):
                    return False
            gtid, begin_at = packets[-EVENTS], self.end.offset - sum(map(len, packets[-EVENTS:]))
            self.last: Transaction = read_transaction(gtid[4], gtid[BODY], begin_at)
        except UNREADABLE:
            return False
        self.told = None
        if told:
            self.told = Position(self.start.file, self.start.offset + sum(map(len, packets[: told * EVENTS])))
        return True

    def encode(self) -> None:
        """Make the records here, or the error that `raise_if_failed` raises."""
        try:
            self.records = encode_run(self._tables, self.packets, self.start, self.sequence, self._raw)
        except (UnsupportedError, *UNREADABLE):
            self.records, self._error = self._again(self)
            if self._error is None:
                raise AssertionError(f"two readings of the transactions at {self.start} differ") from None

    def message(self) -> bytes:
        """Tell another process what to do."""
        return pickle.dumps((answer, self.packets, self.start, self.sequence, self._raw))

    def settle(self, answered: memoryview) -> None:
        """Take what `answer` gave in another process; make it here when that is not what it gave, or nothing."""
        records = None
        if len(answered) > CHECKSUM.size and zlib.crc32(answered[CHECKSUM.size :]) == CHECKSUM.unpack_from(answered)[0]:
            records = unframe(bytes(answered), CHECKSUM.size)
        if records is not None and len(records) == self.total:
            self.records = records
        else:
            self.encode()

    def take(self) -> list[Sealed] | None:
        """Return the records, once; None while they are being made."""
        records = self.records
        if records is not None:
            self.records = []
        return records

    def raise_if_failed(self) -> None:
        """Raise the LeaderError that comes behind the records."""
        if self._error is not None:
            raise self._error


def framed(packets: Sequence[bytes], offset: int) -> bool:
    """Tell whether binlog events from `offset` on have the sizes, ends and checksums that they say they have."""
    crc32, place = zlib.crc32, PLACE.unpack_from
    for packet in packets:
        size, end_low, flags = place(packet, PLACE_AT)
        offset += size
        if (
            crc32(packet) != MATCHING or size != len(packet) or end_low != offset & 0xFFFFFFFF
            or flags & ARTIFICIAL
        ):  # fmt: skip
            return False
    return True


def transactions(packets: Sequence[bytes]) -> Iterator[tuple[bytes, ...]]:
    """Cut a run: GTID, BEGIN, table map, rows and XID of each transaction."""
    return zip(*(packets[number::EVENTS] for number in range(EVENTS)), strict=True)


def answer(
    tables: TableDecoders, packets: Sequence[bytes], start: Position, sequence: int, raw: bool
) -> Sequence[bytes]:
    """Return the framed records of a run with a CRC-32 before them; nothing when something cannot be read."""
    try:
        framed = b"".join(frame(encode_run(tables, packets, start, sequence, raw)))
    except (UnsupportedError, *UNREADABLE):
        return ()
    return CHECKSUM.pack(zlib.crc32(framed)), framed


def encode_run(
    tables: TableDecoders, packets: Sequence[bytes], start: Position, sequence: int, raw: bool
) -> list[Sealed]:
    """Make the records of a run that `ShortRun.begin` found to be one.

    Raises UnsupportedError, and what UNREADABLE lists.
    """
    records = []
    file, end = start.file, start.offset
    for gtid, begin, table_map, rows, xid in transactions(packets):
        begin_at = end
        rows_at = begin_at + len(gtid) + len(begin) + len(table_map)
        end = rows_at + len(rows) + len(xid)
        table = tables.known(table_map[TABLE_SOURCE])
        if table is None:
            continue
        transaction = read_transaction(gtid[4], gtid[BODY], begin_at)
        json = encode_rows(rows[4], table, rows[BODY])
        sequence += 1
        draft = Draft(table.uri, Position(file, rows_at), transaction, ROWS_INDEX, rows_session(begin[BODY]))
        records.append(seal(draft.encode(json, sequence, end), (table_map, rows) if raw else (), checksums=raw))
    return records
