"""Short transactions read at once: the same records, the same state and the same errors as event by event."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fuzz.blocks import framed, load_seeds, unpack
from fuzz.leader_targets import DESCRIPTION, FACTS, START, captured
from hypothesis import given
from hypothesis import strategies as st

from cdc_producer import capture as module
from cdc_producer.decode.binlog import BinlogReader
from shared.binlog_format import EventType
from shared.errors import LeaderError

#: transactions as a leader wrote them, without those that begin a file
TRANSACTIONS = [
    blocks for seed in load_seeds("events") if EventType.ROTATE not in dict(blocks := list(unpack(seed)))
]  # fmt: skip


def stream(numbers: Sequence[int]) -> list[bytes]:
    """The packets of these transactions in one file."""
    packets, position = [], START.offset
    for kind, body in ((EventType.FORMAT_DESCRIPTION, DESCRIPTION), *(b for n in numbers for b in TRANSACTIONS[n])):
        packets.append(framed(kind, body, position))
        position += len(packets[-1])
    return packets


def result(packets: Sequence[bytes], pieces: Sequence[int] | None) -> Any:
    """Records, state and error after packets that come in pieces of these sizes; one event at a time with None."""
    outgoing, capture = captured(FACTS)
    reader, said = BinlogReader(START), ""
    try:
        if pieces is None:
            for packet in packets:
                for event in reader.read(packet):
                    capture.feed(event)
        first = 0
        for size in pieces or ():
            capture.take(reader, packets[first : first + size])
            first += size
    except LeaderError as error:
        said = str(error)
    state = capture.edge, capture.sequence, capture._last, capture._told, capture.at_edge, reader.position
    return [tuple(record) for record in outgoing._records], state, said


def pieces_of(count: int, chance: random.Random) -> list[int]:
    sizes = [chance.randint(1, 30) for _ in range(count)]
    return [*sizes, count]


@pytest.fixture(scope="module", autouse=True)
def taken() -> Any:
    """How many short transactions these tests read at once."""
    found: list[object] = []
    read: Callable[..., Any] = module.read_short

    def count(*arguments: Any) -> Any:
        short = read(*arguments)
        found.extend([short] if short else [])
        return short

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "read_short", count)
        yield found
    assert len(found) > 100


@given(st.lists(st.integers(0, len(TRANSACTIONS) - 1), max_size=12), st.randoms(use_true_random=False))
def test_records_and_state_are_the_same(numbers: list[int], chance: random.Random) -> None:
    packets = stream(numbers)
    assert result(packets, pieces_of(len(packets), chance)) == result(packets, None)


@given(st.lists(st.integers(0, len(TRANSACTIONS) - 1), min_size=1, max_size=4), st.data())
def test_damage_is_told_the_same(numbers: list[int], data: st.DataObject) -> None:
    """A bit, in the body of an event whose checksum is right or in the packet as it came."""
    packets = stream(numbers)
    number = data.draw(st.integers(1, len(packets) - 1))
    packet = bytearray(packets[number])
    bit = data.draw(st.integers(0, 8 * len(packet) - 1))
    packet[bit // 8] ^= 1 << bit % 8
    if data.draw(st.booleans()):
        start = sum(map(len, packets[:number])) + START.offset
        packet = bytearray(framed(packet[4], bytes(packet[19:-4]), start))
    packets[number] = bytes(packet)
    assert result(packets, [len(packets)]) == result(packets, None)


def test_all_seeds_at_once() -> None:
    packets = stream([*range(len(TRANSACTIONS))] * 2)
    one, other = result(packets, [len(packets)]), result(packets, None)
    assert one == other
    assert not one[2]
    assert len(one[0]) > 500
