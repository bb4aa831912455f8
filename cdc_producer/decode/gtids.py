"""GTIDs: the binlog event that begins a transaction, and sets of them as MySQL writes them."""

from __future__ import annotations

import re
from struct import Struct
from uuid import UUID

from cdc_producer.decode.binlog import BinlogEvent, EventType
from shared.errors import UnsupportedError
from shared.events import Transaction

FIXED = Struct("<B16sqBqq")  # flags, uuid, number, 2, last_committed, sequence_number
#: top bit of the commit time: the time on the server where the transaction began follows
HAS_ORIGINAL_TIME = 1 << 55
#: largest number of a GTID
MAX_NUMBER = (1 << 63) - 1


def read_transaction(event: BinlogEvent) -> Transaction:
    """The transaction that a GTID, ANONYMOUS_GTID or GTID_TAGGED event begins."""
    if event.type == EventType.GTID_TAGGED:
        return _tagged(event)
    _, uuid, number, _, committed, sequence = FIXED.unpack_from(event.body)
    at = FIXED.size
    time = int.from_bytes(event.body[at : at + 7], "little") & (HAS_ORIGINAL_TIME - 1)
    gtid = None if event.type == EventType.ANONYMOUS_GTID else f"{UUID(bytes=uuid)}:{number}"
    return Transaction(gtid, event.start, time, (committed, sequence))


def _tagged(event: BinlogEvent) -> Transaction:
    """MySQL's own serialization: a version, the size, then (field id, value) pairs in rising order of id.

    Source: MySQL's libs/mysql/serialization and Gtid_event::define_fields, read beside the bytes of a 9.7 leader.
    """
    body = event.body
    version, position = _varlen(body, 0)
    if version != 1:
        raise UnsupportedError(f"tagged GTID at {event.where()} has unknown format {version}")
    _, position = _varlen(body, position)  # size
    _, position = _varlen(body, position)  # the last field that must be understood
    fields: dict[int, int] = {}
    uuid, tag = b"", ""
    while position < len(body):
        field, position = _varlen(body, position)
        if field == 1:
            octets = []
            for _ in range(16):
                octet, position = _varlen(body, position)
                octets.append(octet)
            uuid = bytes(octets)
        elif field == 3:
            length, position = _varlen(body, position)
            tag = body[position : position + length].decode()
            position += length
        else:
            fields[field], position = _varlen(body, position)
    # Signed numbers carry their sign in the lowest bit; none of these is negative.
    number, committed, sequence = (fields[field] >> 1 for field in (2, 4, 5))
    gtid = f"{UUID(bytes=uuid)}:{tag}:{number}" if tag else f"{UUID(bytes=uuid)}:{number}"
    return Transaction(gtid, event.start, fields[6], (committed, sequence))


def _varlen(data: bytes, position: int) -> tuple[int, int]:
    """An integer whose first byte ends in as many ones as bytes follow."""
    ones = 0
    while ones < 8 and data[position] >> ones & 1:
        ones += 1
    end = position + ones + 1
    return int.from_bytes(data[position:end], "little") >> (ones + 1), end


class GtidSet:
    """A set of GTIDs: uuid[:tag] -> closed intervals."""

    PATTERN = re.compile(
        r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:([a-z_][a-z0-9_]{0,31}|\d+(-\d+)?))+", re.IGNORECASE | re.ASCII
    )

    def __init__(self, text: str) -> None:
        """Read MySQL's notation. Raises ValueError."""
        self._intervals: dict[str, list[tuple[int, int]]] = {}
        for part in "".join(text.split()).split(","):
            if not self.PATTERN.fullmatch(part):
                raise ValueError(f"not a GTID set: {text}")
            owner, *items = part.lower().split(":")
            source = owner
            for item in items:
                if item[0].isdigit():
                    first, _, last = item.partition("-")
                    interval = int(first), int(last or first)
                    if not 1 <= interval[0] <= interval[1] <= MAX_NUMBER:
                        raise ValueError(f"not an interval of GTIDs: {item}")
                    self._intervals.setdefault(source, []).append(interval)
                else:
                    source = f"{owner}:{item}"

    def __contains__(self, gtid: str) -> bool:
        source, _, number = gtid.rpartition(":")
        return any(first <= int(number) <= last for first, last in self._intervals.get(source, ()))
