"""Cuts raw packets from the leader into binlog events with their positions, and checks them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from typing import Protocol

from cdc_producer.decode.binlog_event import EXAMINE, KNOWN, UNREADABLE, BinlogEvent, not_known, unreadable, way_past
from cdc_producer.decode.payload import read_payload
from shared.binlog_format import ARTIFICIAL, CHECKSUM_SIZE, HEADER, HEADER_SIZE, EventType
from shared.errors import UnsupportedError
from shared.events import Position

NEVER_IN_A_FILE = (EventType.HEARTBEAT, EventType.HEARTBEAT_V2)
#: the CRC-32 of any bytes that end in their own CRC-32
MATCHING = 0x2144DF1C
#: stands for the type of an event whose bytes were altered, its type perhaps among them
DAMAGED = 0
FILE = re.compile(r".{1,500}\.\d{1,10}", re.ASCII | re.DOTALL)


class Framing(Protocol):
    """Knows the transaction in hand."""

    @property
    def at_edge(self) -> bool:
        """Tell whether there is none."""

    def leaves(self, event: BinlogEvent) -> bool:
        """Tell whether the event belongs to a transaction that is left out."""


class BinlogReader:
    """Cuts raw events, keeps the position and verifies every checksum."""

    def __init__(self, start: Position) -> None:
        self.position = start
        #: whether events end with a checksum
        self.checksums = False

    def read(self, raw: bytes, framing: Framing | None = None) -> Iterable[BinlogEvent]:
        """Return the events in one packet: one, or all those of a compressed transaction.

        raw: header, body, checksum. Of a transaction that `framing` leaves out nothing has to be readable. Raises
        UnsupportedError for a type not on the list, or when bytes were altered.
        """
        inside = framing is None or not framing.at_edge
        try:
            uncut = None if framing is None else self._uncut(raw, framing)
            return self._read(raw, inside) if uncut is None else (uncut,)
        except UNREADABLE as error:
            raise unreadable(raw[4] if len(raw) > 4 else 0, str(self.position), error, inside=inside) from error

    def _read(self, raw: bytes, inside: bool) -> Iterable[BinlogEvent]:
        timestamp, kind, _, size, end_low, flags = HEADER.unpack_from(raw)
        if size != len(raw):
            raise UnsupportedError(
                f"binlog event at {self.position} has {len(raw)} bytes, its header says {size}; {EXAMINE}"
            )
        body = self._body(raw, kind, inside)
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
            raise not_known(kind, f"{file}:{start}", inside=inside)
        if kind == EventType.TRANSACTION_PAYLOAD:
            return read_payload(body, file, start, end)
        return (BinlogEvent(kind, timestamp, flags, body, file, start, end, raw),)

    def _uncut(self, raw: bytes, framing: Framing) -> BinlogEvent | None:
        """The event as it is, when it cannot be read, or is a whole transaction, and nobody has to read it."""
        timestamp, kind, _, size, end_low, flags = HEADER.unpack_from(raw)
        file, start = self.position.file, self.position.offset
        end = start + size
        if size != len(raw) or flags & ARTIFICIAL or end & 0xFFFFFFFF != end_low:
            return None
        whole = not self.checksums or zlib.crc32(raw) == MATCHING
        if whole and kind in KNOWN and kind != EventType.TRANSACTION_PAYLOAD:
            return None
        event = BinlogEvent(kind if whole else DAMAGED, timestamp, flags, raw[HEADER_SIZE:], file, start, end)
        if not framing.leaves(event):
            return None
        self.position = Position(file, end)
        return event

    def _body(self, raw: bytes, kind: int, inside: bool) -> bytes:
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
                f" it; {EXAMINE}; {way_past(str(self.position), inside=inside)}"
            )
        return raw[HEADER_SIZE:-CHECKSUM_SIZE]

    def _rotate(self, body: bytes) -> None:
        name = body[8:].decode()
        if not FILE.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a binlog")
        self.position = Position(name, int.from_bytes(body[:8], "little"))
