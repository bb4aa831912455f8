"""Records: an event with its checksum and the leader's own binlog events beside it, from capture to apply.

What travels is a value and a key, as bytes:

    value  the event's JSON (shared/events.py)
    key    bytes 0 to 3   CRC-32 of value and rest of the key, as `_checksum` makes it, little-endian
           byte 4         form: CHECKSUMS when each binlog event ends with the leader's checksum, NO_CHECKSUMS when none
                          does, PART for a piece of a record (shared/topic/fluvio_parts.py)
           byte 5 on      the binlog events of the operation, verbatim and one behind the other, or nothing

The binlog events are the TABLE_MAP and the rows event of a rows operation, also where the leader wrote the table map
once for several rows events; the QUERY event of a Query; nothing for a Heartbeat. Those out of a compressed transaction
come without checksums.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from shared.binlog_format import HEADER_SIZE, SIZE_AT
from shared.errors import RecordDamagedError

#: for whoever meets damage
ALTERED_ADVICE = "start again, and if that does not help, load the follower anew from an empty topic"
#: the forms of a key
NO_CHECKSUMS, CHECKSUMS, PART = range(3)
_FORMS = tuple(bytes((form,)) for form in range(3))
#: checksum, and checksum and form
_CHECKSUM, _KEY = Struct("<I"), Struct("<IB")
#: number of framed records; lengths of a value and a key
_COUNT, _LENGTHS = Struct("<I"), Struct("<QI")


class Sealed(NamedTuple):
    """Holds a record that has no place yet."""

    value: bytes
    key: bytes

    @property
    def size(self) -> int:
        """Return bytes in all."""
        return len(self.value) + len(self.key)


class Record(NamedTuple):
    """Holds a record of a topic, found to be what was sealed."""

    #: index in the topic; from 0, never reused, dense but for a record that came in parts, which has that of its last
    offset: int
    #: the event's JSON
    value: bytes
    #: the leader's binlog events, one behind the other; `binlog_events` separates them
    binlog: bytes = b""
    #: whether each of them ends with the leader's checksum
    checksums: bool = False


def seal(value: bytes, binlog: Sequence[bytes] = (), checksums: bool = False) -> Sealed:
    """Make a record of an event's JSON and its binlog events; `checksums` tells whether these end with one."""
    return enclose(value, CHECKSUMS if checksums else NO_CHECKSUMS, *binlog)


def enclose(value: bytes, form: int, *content: bytes) -> Sealed:
    """A value and the key made of `form` and what belongs to it."""
    rest = b"".join((_FORMS[form], *content))
    return Sealed(value, _CHECKSUM.pack(_checksum(value, rest)) + rest)


def unseal(offset: int, value: bytes, key: bytes, topic: str) -> Record:
    """Check a record that was read from a topic; `topic` names it in errors. Raises RecordDamagedError."""
    form, content = disclose(offset, value, key, topic)
    if form not in (CHECKSUMS, NO_CHECKSUMS):
        raise damaged(topic, offset, f"is of form {form}, which has no place there")
    return Record(offset, value, content, form == CHECKSUMS)


def disclose(offset: int, value: bytes, key: bytes, topic: str) -> tuple[int, bytes]:
    """Return the form of a record and what belongs to it, as `enclose` took them. Raises RecordDamagedError."""
    if len(key) < _KEY.size:
        raise damaged(topic, offset, "has no checksum: it was altered, or written by another program")
    checksum, form = _KEY.unpack_from(key)
    if checksum != _checksum(value, memoryview(key)[4:]):
        raise damaged(topic, offset, "does not match its checksum: it was altered after it was made")
    return form, key[_KEY.size :]


def form_of(key: bytes) -> int:
    """The form that a key claims; its checksum is not looked at."""
    return key[_KEY.size - 1] if len(key) >= _KEY.size else NO_CHECKSUMS


def _checksum(value: bytes, rest: bytes | memoryview) -> int:
    """Compute the CRC-32, begun with the value's length, so that no byte passes from value to key unseen."""
    return zlib.crc32(rest, zlib.crc32(value, len(value) & 0xFFFFFFFF))


def damaged(topic: str, offset: int, what: str) -> RecordDamagedError:
    """The error for a record that is not what was appended; `what` goes on after the offset."""
    return RecordDamagedError(f"{topic} offset {offset} {what}; {ALTERED_ADVICE}")


def binlog_events(record: Record) -> list[bytes]:
    """Return the leader's binlog events of a record, each with its header and, if `checksums`, its checksum.

    Raises RecordDamagedError when they are not whole.
    """
    found, position, data = [], 0, record.binlog
    while position < len(data):
        size = int.from_bytes(data[position + SIZE_AT : position + SIZE_AT + 4], "little")
        left = len(data) - position
        if not HEADER_SIZE <= size <= left:
            raise damaged("topic", record.offset, f"holds {left} bytes of a binlog event of {size}")
        found.append(data[position : position + size])
        position += size
    return found


def cut(records: Sequence[Sealed], limit: int, overhead: int = 0) -> Iterator[Sequence[Sealed]]:
    """Records in order, so many together as take at most `limit` bytes with `overhead` each; a larger one alone."""
    first, size = 0, 0
    for index, record in enumerate(records):
        size += record.size + overhead
        if size > limit and index > first:
            yield records[first:index]
            first, size = index, record.size + overhead
    if records:
        yield records[first:]


def frame(records: Sequence[Sealed]) -> list[bytes]:
    """The pieces of bytes in which `unframe` finds the records again, once they are joined.

    The number of records, all lengths, all values, all keys: JSON and binlog events apart are smaller when compressed.
    """
    lengths = [_LENGTHS.pack(len(value), len(key)) for value, key in records]
    values, keys = [record.value for record in records], [record.key for record in records]
    return [_COUNT.pack(len(records)), *lengths, *values, *keys]


def unframe(data: bytes, start: int = 0) -> list[Sealed]:
    """Return the records in framed bytes from `start` on. Raises ValueError when these are not what `frame` made."""
    if len(data) < start + _COUNT.size:
        raise ValueError("it ends within the number of its records")
    (count,) = _COUNT.unpack_from(data, start)
    start += _COUNT.size
    middle = start + count * _LENGTHS.size
    if len(data) < middle:
        raise ValueError("it ends within the lengths of its records")
    lengths = list(_LENGTHS.iter_unpack(memoryview(data)[start:middle]))
    at_value, at_key = middle, middle + sum(value for value, _ in lengths)
    if len(data) != at_key + sum(key for _, key in lengths):
        raise ValueError("it does not have the length of its records")
    records = []
    for value, key in lengths:
        records.append(Sealed(data[at_value : at_value + value], data[at_key : at_key + key]))
        at_value += value
        at_key += key
    return records
