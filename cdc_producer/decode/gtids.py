"""Reads GTIDs: the binlog event that begins a transaction, and sets of them as MySQL writes them."""

from __future__ import annotations

import re
from functools import lru_cache
from struct import Struct
from uuid import UUID

from cdc_producer.decode.cursor import Cursor
from shared.binlog_format import CHECKSUM_SIZE, HEADER_SIZE, EventType
from shared.events import Transaction
from shared.values import LATEST_TIME

FIXED = Struct("<B16sqBqq7s")  # flags, uuid, number, 2, last_committed, sequence_number, time of the commit
#: kind, and of the body: number, last_committed, sequence_number, time with what follows it
NUMBERS, SMALLEST = Struct("<4xB14x17xqxqqQ"), HEADER_SIZE + FIXED.size + CHECKSUM_SIZE
TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
#: of the commit time all but its top bit: the time on the server where the transaction began follows
TIME = (1 << 55) - 1
#: largest number of a GTID
MAX_NUMBER = (1 << 63) - 1


def read_transaction(kind: int, body: bytes, begin: int) -> Transaction:
    """Read the transaction that a GTID, ANONYMOUS_GTID or GTID_TAGGED event at offset `begin` opens.

    Raises what UNREADABLE lists.
    """
    if kind == EventType.GTID_TAGGED:
        return _tagged(body, begin)
    _, uuid, number, _, committed, sequence, time = FIXED.unpack_from(body)
    source = None if kind == EventType.ANONYMOUS_GTID else _uuid_text(uuid)
    return _transaction(source, number, begin, int.from_bytes(time, "little") & TIME, committed, sequence)


def is_transaction(raw: bytes) -> bool:
    """Tell whether `read_transaction` could read the body of a GTID or ANONYMOUS_GTID event that ends in a checksum.

    raw: header, body, checksum.
    """
    if len(raw) < SMALLEST:
        return False
    kind, number, committed, sequence, time = NUMBERS.unpack_from(raw)
    named: bool = number > 0 or kind == EventType.ANONYMOUS_GTID
    return named and min(committed, sequence) >= 0 and time & TIME <= LATEST_TIME


@lru_cache(maxsize=64)
def _uuid_text(uuid: bytes) -> str:
    return str(UUID(bytes=uuid))


def _transaction(source: str | None, number: int, begin: int, time: int, committed: int, sequence: int) -> Transaction:
    """`source` is what stands before the GTID's number, None without a GTID; `time` in microseconds since 1970."""
    if (source is not None and number < 1) or committed < 0 or sequence < 0 or time > LATEST_TIME:
        raise ValueError(f"impossible numbers {number}, {committed}, {sequence}, {time}")
    gtid = None if source is None else f"{source}:{number}"
    return Transaction(gtid, begin, time, (committed, sequence))


def _tagged(body: bytes, begin: int) -> Transaction:
    """MySQL's own serialization: a version, the size, then (field id, value) pairs in rising order of id.

    Source: MySQL's libs/mysql/serialization and Gtid_event::define_fields, read beside the bytes of a 9.7 leader.
    """
    cursor = Cursor(body)
    version = _varlen(cursor)
    if version != 1:
        raise ValueError(f"unknown format {version}")
    _varlen(cursor)  # size
    _varlen(cursor)  # the last field that must be understood
    fields: dict[int, int] = {}
    uuid, tag = b"", ""
    while cursor:
        field = _varlen(cursor)
        if field == 1:
            uuid = bytes(_varlen(cursor) for _ in range(16))
        elif field == 3:
            tag = cursor.take(_varlen(cursor)).decode()
        else:
            fields[field] = _varlen(cursor)
    # Signed numbers carry their sign in the lowest bit; none of these is negative.
    number, committed, sequence = (fields[field] >> 1 for field in (2, 4, 5))
    if tag and not TAG.fullmatch(tag):
        raise ValueError(f"{tag!r} is no tag")
    source = f"{_uuid_text(uuid)}:{tag}" if tag else _uuid_text(uuid)
    return _transaction(source, number, begin, fields[6], committed, sequence)


def _varlen(cursor: Cursor) -> int:
    """An integer whose first byte ends in as many ones as bytes follow."""
    first = cursor.number(1)
    ones = 0
    while ones < 8 and first >> ones & 1:
        ones += 1
    return (cursor.number(ones) << 8 | first) >> (ones + 1)


class GtidSet:
    """Holds a set of GTIDs: uuid[:tag] -> closed intervals."""

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
