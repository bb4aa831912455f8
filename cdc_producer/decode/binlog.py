"""Cuts raw packets from the leader into binlog events with their positions, and checks them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable

from cdc_producer.decode.binlog_event import EXAMINE, KNOWN, UNREADABLE, BinlogEvent, not_known, unreadable
from cdc_producer.decode.payload import read_payload
from shared.binlog_format import ARTIFICIAL, CHECKSUM_SIZE, HEADER, HEADER_SIZE, EventType
from shared.errors import UnsupportedError
from shared.events import Position

NEVER_IN_A_FILE = (EventType.HEARTBEAT, EventType.HEARTBEAT_V2)
#: the CRC-32 of any bytes that end in their own CRC-32
MATCHING = 0x2144DF1C
FILE = re.compile(r".{1,500}\.\d{1,10}", re.ASCII | re.DOTALL)


class BinlogReader:
    """Cuts raw events, keeps the position and verifies every checksum."""

    def __init__(self, start: Position) -> None:
        self.position = start
        #: whether events end with a checksum
        self.checksums = False

    def read(self, raw: bytes) -> Iterable[BinlogEvent]:
        """Return the events in one packet: one, or all those of a compressed transaction.

        raw: header, body, checksum. Raises UnsupportedError for a type not on the list, or when bytes were altered.
        """
        try:
            return self._read(raw)
        except UNREADABLE as error:
            raise unreadable(raw[4] if len(raw) > 4 else 0, str(self.position), error) from error

    def _read(self, raw: bytes) -> Iterable[BinlogEvent]:
        timestamp, kind, _, size, end_low, flags = HEADER.unpack_from(raw)
        if size != len(raw):
            raise UnsupportedError(
                f"binlog event at {self.position} has {len(raw)} bytes, its header says {size}; {EXAMINE}"
            )
        body = self._body(raw, kind)
        artificial = flags & ARTIFICIAL or not end_low or kind in NEVER_IN_A_FILE
        if artificial and kind == EventType.ROTATE:
            self._rotate(body)
        file, start = self.position.file, self.position.offset
        end = start if artificial else start + size
        if not artificial:
            # The header has 32 bits for the offset; a transaction can make a file larger than that.
            if end & 0xFFFFFFFF != end_low:
                raise UnsupportedError(
                    f"binlog event at {self.position} ends at {end}, its header says {end_low}; {EXAMINE}"
                )
            self.position = Position(file, end)
            if kind == EventType.ROTATE:
                self._rotate(body)
        if kind not in KNOWN:
            raise not_known(kind, f"{file}:{start}")
        if kind == EventType.TRANSACTION_PAYLOAD:
            return read_payload(body, file, start, end)
        return (BinlogEvent(kind, timestamp, flags, body, file, start, end, raw),)

    def _body(self, raw: bytes, kind: int) -> bytes:
        matches = zlib.crc32(raw) == MATCHING
        if kind == EventType.FORMAT_DESCRIPTION:
            # The algorithm is a property of each file, told by the byte before its description's own checksum.
            algorithm = raw[-CHECKSUM_SIZE - 1]
            if algorithm > 1:
                raise ValueError(f"unknown checksum algorithm {algorithm}")
            self.checksums = algorithm == 1
            matches = matches or not self.checksums
        elif kind == EventType.ROTATE and not matches:
            # The first one comes before the description, so only trying tells.
            return raw[HEADER_SIZE:]
        elif not self.checksums and kind != EventType.ROTATE:
            return raw[HEADER_SIZE:]
        if not matches:
            raise UnsupportedError(
                f"binlog event at {self.position} does not match its checksum: the leader's file or the link altered"
                f" it; {EXAMINE}"
            )
        return raw[HEADER_SIZE:-CHECKSUM_SIZE]

    def _rotate(self, body: bytes) -> None:
        name = body[8:].decode()
        if not FILE.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a binlog")
        self.position = Position(name, int.from_bytes(body[:8], "little"))
