"""Binlog events: raw packets from the leader, checked and cut into header and body, one type at a time.

Only event types on a list are let through; any other stops the producer, because skipping what is not understood is how
changes get lost.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import BinaryIO, NamedTuple

import zstandard

from shared.errors import UnsupportedError
from shared.events import Position


class EventType:
    """The binlog event types that this producer reads. Source: MySQL's binlog_event.h, Log_event_type.

    Plain numbers, because comparing members of an Enum took a tenth of the time of a short transaction.
    """

    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    TABLE_MAP = 19
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42


#: types that stop the producer, with the reason a user understands
REFUSED = {
    17: "LOAD DATA as a statement (binlog_format=STATEMENT)",
    18: "LOAD DATA as a statement (binlog_format=STATEMENT)",
    23: "rows in the format before MySQL 5.6 (log_bin_use_v1_row_events)",
    24: "rows in the format before MySQL 5.6 (log_bin_use_v1_row_events)",
    25: "rows in the format before MySQL 5.6 (log_bin_use_v1_row_events)",
    26: "an incident: the leader itself lost changes",
}

HEADER = Struct("<IBIIIH")  # timestamp, type, server_id, size, end offset (low 32 bits), flags
HEADER_SIZE = 19
CHECKSUM_SIZE = 4
NEVER_IN_A_FILE = (EventType.HEARTBEAT, EventType.HEARTBEAT_V2)
#: header flag of an event the leader makes up for this connection; it is in no file
ARTIFICIAL = 0x20
KNOWN = frozenset(value for name, value in vars(EventType).items() if name.isupper())


class BinlogEvent(NamedTuple):
    type: int
    #: seconds since 1970
    timestamp: int
    flags: int
    #: what follows the header, without checksum
    body: bytes
    file: str
    #: offset where the event starts and ends; all events of a compressed transaction have those of its payload
    start: int
    end: int
    #: as the leader sent it: header, body and checksum; without checksum when the leader makes none, or inside a
    #: compressed transaction
    raw: bytes = b""

    @property
    def checksummed(self) -> bool:
        """Whether `raw` ends with a checksum."""
        return len(self.raw) > HEADER_SIZE + len(self.body)

    def where(self) -> str:
        """For messages."""
        return str(Position(self.file, self.start))


class BinlogReader:
    """Cuts raw events, keeps the position and verifies every checksum."""

    def __init__(self, start: Position) -> None:
        self.position = start
        self._checksums = False

    def read(self, raw: bytes) -> Iterable[BinlogEvent]:
        """The events in one packet: one, or all those of a compressed transaction.

        raw: header, body, checksum. Raises UnsupportedError for a type not on the list, or when bytes were altered.
        """
        timestamp, kind, _, size, end_low, flags = HEADER.unpack_from(raw)
        if size != len(raw):
            raise UnsupportedError(f"binlog event at {self.position} has {len(raw)} bytes, its header says {size}")
        body = self._body(raw, kind)
        artificial = flags & ARTIFICIAL or not end_low or kind in NEVER_IN_A_FILE
        if artificial and kind == EventType.ROTATE:
            self._rotate(body)
        file, start = self.position.file, self.position.offset
        end = start if artificial else start + size
        if not artificial:
            # The header has 32 bits for the offset; a transaction can make a file larger than that.
            if end & 0xFFFFFFFF != end_low:
                raise UnsupportedError(f"binlog event at {self.position} ends at {end}, its header says {end_low}")
            self.position = Position(file, end)
            if kind == EventType.ROTATE:
                self._rotate(body)
        if kind not in KNOWN:
            what = REFUSED.get(kind, "which this version does not know")
            raise UnsupportedError(f"binlog event of type {kind} at {file}:{start}: {what}; it cannot be replicated")
        if kind == EventType.TRANSACTION_PAYLOAD:
            return _payload(body, file, start, end)
        return (BinlogEvent(kind, timestamp, flags, body, file, start, end, raw),)

    def _body(self, raw: bytes, kind: int) -> bytes:
        if kind == EventType.FORMAT_DESCRIPTION:
            # The algorithm is a property of each file, told by the byte before its description's own checksum.
            self._checksums = raw[-CHECKSUM_SIZE - 1] == 1
            return raw[HEADER_SIZE:-CHECKSUM_SIZE]
        matches = zlib.crc32(raw[:-CHECKSUM_SIZE]) == int.from_bytes(raw[-CHECKSUM_SIZE:], "little")
        if kind == EventType.ROTATE:
            # The first one comes before the description, so only trying tells.
            return raw[HEADER_SIZE:-CHECKSUM_SIZE] if matches else raw[HEADER_SIZE:]
        if not self._checksums:
            return raw[HEADER_SIZE:]
        if not matches:
            raise UnsupportedError(
                f"binlog event at {self.position} does not match its checksum: the leader's file or the link altered it"
            )
        return raw[HEADER_SIZE:-CHECKSUM_SIZE]

    def _rotate(self, body: bytes) -> None:
        self.position = Position(body[8:].decode(), int.from_bytes(body[:8], "little"))


def _payload(body: bytes, file: str, start: int, end: int) -> Iterator[BinlogEvent]:
    """The events inside a compressed transaction, decompressed a piece at a time.

    body: fields (type, length, value), all length-encoded integers, ended by type 0; then the compressed events.
    Source: MySQL's codecs/binary.cpp, Transaction_payload.
    """
    position, compression = 0, 255
    while True:
        field, position = length_encoded(body, position)
        if field == 0:
            break
        length, position = length_encoded(body, position)
        if field == 2:
            compression, _ = length_encoded(body, position)
        position += length
    packed = memoryview(body)[position:]
    if compression == 0:
        source: BinaryIO = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
    elif compression == 255:
        source = io.BytesIO(packed)
    else:
        raise UnsupportedError(f"transaction at {file}:{start} has unknown compression {compression}")
    while header := source.read(HEADER_SIZE):
        timestamp, kind, _, size, _, flags = HEADER.unpack(header)
        inner = source.read(size - HEADER_SIZE)
        if len(inner) != size - HEADER_SIZE:
            raise UnsupportedError(f"compressed transaction at {file}:{start} is cut short")
        if kind not in KNOWN:
            what = REFUSED.get(kind, "which this version does not know")
            raise UnsupportedError(f"binlog event of type {kind} at {file}:{start}: {what}; it cannot be replicated")
        yield BinlogEvent(kind, timestamp, flags, inner, file, start, end, header + inner)


def length_encoded(data: bytes, position: int) -> tuple[int, int]:
    """MySQL's length-encoded integer at `position`, and the position after it."""
    first = data[position]
    if first < 251:
        return first, position + 1
    size = {252: 2, 253: 3, 254: 8}.get(first)
    if size is None:
        raise UnsupportedError(f"a binlog event has {first} where a length begins")
    end = position + 1 + size
    return int.from_bytes(data[position + 1 : end], "little"), end
