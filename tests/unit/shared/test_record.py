"""Records and batches: what is sealed comes back, and nothing that was altered does."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import RecordDamagedError
from shared.topic import batch
from shared.topic.record import Record, Sealed, binlog_events, cut, frame, seal, unframe, unseal


def binlog_event(body: bytes) -> bytes:
    """A binlog event of any type: of its header only the size matters here."""
    return bytes(9) + (19 + len(body)).to_bytes(4, "little") + bytes(6) + body


class Parts(NamedTuple):
    value: bytes
    events: list[bytes]
    checksums: bool

    def seal(self) -> Sealed:
        return seal(*self)


records = st.builds(Parts, st.binary(max_size=200), st.lists(st.binary(max_size=50).map(binlog_event)), st.booleans())


@given(parts=records, offset=st.integers(0, 1 << 60))
def test_what_is_sealed_comes_back(parts: Parts, offset: int) -> None:
    found = unseal(offset, *parts.seal(), "topic t")
    assert found == Record(offset, parts.value, b"".join(parts.events), parts.checksums)
    assert binlog_events(found) == parts.events


@given(parts=records)
def test_every_altered_bit_is_found(parts: Parts) -> None:
    value, key = parts.seal()
    both = value + key
    for bit in range(8 * len(both)):
        altered = bytearray(both)
        altered[bit // 8] ^= 1 << bit % 8
        with pytest.raises(RecordDamagedError, match="topic t offset 7 does not match its checksum"):
            unseal(7, bytes(altered[: len(value)]), bytes(altered[len(value) :]), "topic t")


@given(parts=records, by=st.integers(1, 20))
def test_every_other_border_between_value_and_key_is_found(parts: Parts, by: int) -> None:
    value, key = parts.seal()
    for border in (len(value) - by, len(value) + by):
        both = value + key
        if 0 <= border <= len(both):
            with pytest.raises(RecordDamagedError, match="topic t offset 7"):
                unseal(7, both[:border], both[border:], "topic t")


@pytest.mark.parametrize("key", [b"", b"No key", b"\0" * 4])
def test_a_record_of_another_program(key: bytes) -> None:
    with pytest.raises(
        RecordDamagedError, match=r"topic t offset 3 .*checksum.*; start again, and if that does not help"
    ):
        unseal(3, b"{}", key, "topic t")


def test_a_form_of_a_later_version() -> None:
    checksum = zlib.crc32(b"\2", zlib.crc32(b"value", 5))
    with pytest.raises(RecordDamagedError, match="is of form 2, which has no place there"):
        unseal(0, b"value", checksum.to_bytes(4, "little") + b"\2", "topic t")


@pytest.mark.parametrize("binlog", [b"short", binlog_event(b"body")[:-1], binlog_event(b"") + b"x", bytes(19)])
def test_binlog_events_that_are_not_whole(binlog: bytes) -> None:
    with pytest.raises(RecordDamagedError, match=r"offset 5 holds .* of a binlog event"):
        binlog_events(Record(5, b"", binlog))


def packed(first: int, records: Sequence[Sealed]) -> tuple[int, list[bytes]]:
    size, parts = batch.pack(first, records)
    return size, list(parts)


@given(values=st.lists(st.binary(max_size=300), min_size=1, max_size=8), part=st.integers(1, 500))
def test_a_batch_comes_back(values: list[bytes], part: int) -> None:
    """Also one of many parts."""
    records = [seal(value) for value in values]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "PART_BYTES", part)
        size, parts = packed(9, records)
        assert len(parts) == -(-size // part)
        assert batch.unpack(9, size, parts) == records
        with pytest.raises(ValueError, match="another offset"):
            batch.unpack(8, size, parts)
        if len(parts) > 1:
            with pytest.raises(ValueError, match=r"are not there|size"):
                batch.unpack(9, size, parts[:-1])


@given(sizes=st.lists(st.integers(0, 40), max_size=12))
def test_what_is_cut_holds_all_records_in_order(sizes: list[int]) -> None:
    records = [seal(bytes(size)) for size in sizes]
    found = list(cut(records, 60, overhead=5))
    assert [record for some in found for record in some] == records
    assert all(len(some) == 1 or sum(record.size + 5 for record in some) <= 60 for some in found)
    assert all(found)


def unpacked(first: int, size: int, parts: Sequence[bytes]) -> list[Record]:
    return [unseal(offset, *record, "topic t") for offset, record in enumerate(batch.unpack(first, size, parts), first)]


def test_no_altered_byte_of_a_batch_alters_a_record() -> None:
    """An error, or, where the compression has bits to spare, the same records."""
    source = random.Random(3)
    records = [seal(b'{"value":"%d"}' % number, [binlog_event(source.randbytes(9))], True) for number in range(20)]
    size, (part,) = packed(0, records)
    whole = unpacked(0, size, [part])
    errors = 0
    for position in range(len(part)):
        for bit in range(8):
            altered = bytearray(part)
            altered[position] ^= 1 << bit
            try:
                assert unpacked(0, size, [bytes(altered)]) == whole
            except (ValueError, RecordDamagedError):
                errors += 1
    assert errors > 7 * len(part)


def test_a_batch_that_claims_to_be_huge_is_not_unpacked() -> None:
    size, (part,) = packed(0, [seal(bytes(1000))])
    for claimed in (0, size - 1, size + 1, 1 << 40):
        with pytest.raises(ValueError, match=r"size|not there"):
            batch.unpack(0, claimed, [part])


def test_frames_that_are_not_whole() -> None:
    data = b"".join(frame([seal(b"value"), seal(b"")]))
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"it ends within|not have the length"):
            unframe(data[:end])
    with pytest.raises(ValueError, match="not have the length"):
        unframe(data + b"x")
