"""Short transactions read at once: the same records, the same state and the same errors as event by event."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fuzz.blocks import framed, load_seeds, unpack
from fuzz.leader_targets import DESCRIPTION, FACTS, START, Collected, captured
from hypothesis import given
from hypothesis import strategies as st

from cdc_producer.capture import Capture
from cdc_producer.decode import processes
from cdc_producer.decode.binlog import BinlogReader
from cdc_producer.decode.binlog_event import UNREADABLE
from cdc_producer.decode.gtids import is_transaction, read_transaction
from cdc_producer.decode.short import EVENTS, ShortRun
from cdc_producer.intake import Intake
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


def result(packets: Sequence[bytes], pieces: Sequence[int] | None, decoders: int = 0) -> Any:
    """Records, state and error after packets that come in pieces of these sizes; one event at a time with None.

    After an error nothing is read on, so there is no state.
    """
    outgoing, capture = captured(FACTS, decoders=decoders)
    state, said = None, ""
    with outgoing:
        try:
            state = fed(packets, pieces, outgoing, capture)
        except LeaderError as error:
            said = told(outgoing) or str(error)
        return [tuple(record) for record in outgoing.withdraw()], state, said


def told(outgoing: Collected) -> str:
    """Wait for what is under way, as `finish` does; an error in it comes before the one that was met."""
    try:
        while outgoing.decoding:
            outgoing.advance()
    except LeaderError as error:
        return str(error)
    return ""


def fed(packets: Sequence[bytes], pieces: Sequence[int] | None, outgoing: Collected, capture: Capture) -> Any:
    """The state after these packets."""
    reader = BinlogReader(START)
    if pieces is None:
        for packet in packets:
            for event in reader.read(packet, capture):
                capture.feed(event)
    else:
        intake = Intake(capture, capture._tables, outgoing)
        reader = intake._reader
        first = 0
        for size in pieces:
            intake.take(packets[first : first + size])
            first += size
    while outgoing.decoding:
        outgoing.advance()
    return capture.edge, capture.sequence, capture._last, capture._told, capture.at_edge, reader.position


def pieces_of(count: int, chance: random.Random) -> list[int]:
    sizes = [chance.randint(1, 30) for _ in range(count)]
    return [*sizes, count]


@pytest.fixture(scope="module", autouse=True)
def taken() -> Any:
    """How many transactions these tests read in runs."""
    found: list[int] = []
    begin = ShortRun.begin

    def count(self: ShortRun) -> bool:
        begun = begin(self)
        found.append(len(self.packets) // EVENTS if begun else 0)
        return begun

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShortRun, "begin", count)
        yield found
    assert sum(found) > 1000 and max(found) > 100


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


#: short transactions, of tables that are included and of one that is left out
SHORT = [
    number
    for number, blocks in enumerate(TRANSACTIONS)
    if result(stream([number] * 2), [99])[0] and len(blocks) == EVENTS
]


def long_stream(transactions: int) -> list[bytes]:
    """Runs of short transactions that are worth another process, and others between them."""
    others = [number for number in range(len(TRANSACTIONS)) if number not in SHORT]
    runs = [SHORT[number % len(SHORT)] for number in range(transactions)]
    for place, number in enumerate(others[:5]):
        runs.insert((place + 1) * transactions // 6, number)
    return stream(runs)


def test_decoders_make_the_same() -> None:
    packets = long_stream(3000)
    handed: list[int] = []
    answer = ShortRun.settle
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShortRun, "settle", lambda run, frame: (handed.append(len(frame)), answer(run, frame)))
        found = result(packets, [700] * (len(packets) // 700 + 1), decoders=1)
    assert found == result(packets, None)
    assert handed and all(handed)


@pytest.mark.parametrize("spoil", [lambda frame: frame[:-1], lambda frame: frame[:0], lambda frame: altered(frame)])
def test_an_answer_that_was_altered_is_not_used(spoil: Callable[[memoryview], memoryview]) -> None:
    packets = long_stream(1500)
    answer, spoiled = ShortRun.settle, []

    def settle(run: ShortRun, frame: memoryview) -> None:
        spoiled.append(len(frame))
        answer(run, spoil(frame))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShortRun, "settle", settle)
        found = result(packets, [len(packets)], decoders=1)
    assert found == result(packets, None)
    assert spoiled


def altered(frame: memoryview) -> memoryview:
    found = bytearray(frame)
    found[len(found) // 2] ^= 4
    return memoryview(found)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_decoder_that_fails_is_done_without(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    packets = long_stream(3000)
    monkeypatch.setattr(processes, "PATIENCE", 0.3)
    send, failed = processes._Decoder.send, []

    def fail(decoder: processes._Decoder, errand: processes.Errand) -> None:
        send(decoder, errand)
        if not failed:
            os.kill(decoder.process.pid, number)
        failed.append(errand)

    monkeypatch.setattr(processes._Decoder, "send", fail)
    assert result(packets, [700] * (len(packets) // 700 + 1), decoders=2) == result(packets, None)
    assert failed


#: bodies of the events that begin a transaction with a GTID of its own, or without one
OPENINGS = [blocks[0] for blocks in TRANSACTIONS if blocks[0][0] in (EventType.GTID, EventType.ANONYMOUS_GTID)]


@given(st.sampled_from(OPENINGS), st.integers(0, 70), st.sampled_from([b"", bytes(8), b"\xff" * 8]), st.booleans())
def test_what_begins_a_transaction_that_is_left_out_is_read_too(
    opening: tuple[int, bytes], at: int, other: bytes, cut: bool
) -> None:
    kind, body = opening
    body = body[:at] + other + (b"" if cut else body[at + len(other) :])
    try:
        readable = bool(read_transaction(kind, body, 4))
    except UNREADABLE:
        readable = False
    assert is_transaction(framed(kind, body, 4)) == readable


@pytest.mark.parametrize("event", range(EVENTS))
def test_what_cannot_be_read_is_told_after_all_before_it(event: int, caplog: pytest.LogCaptureFixture) -> None:
    """Whether another process met it or this one: a body without its end, with a checksum that is right."""
    numbers = [SHORT[number % len(SHORT)] for number in range(600)]
    blocks = [list(block) for n in numbers for block in TRANSACTIONS[n]]
    kind, body = blocks[EVENTS * 450 + event]
    blocks[EVENTS * 450 + event] = [kind, body[: len(body) // 2]]
    packets, position = [], START.offset
    for kind, body in ((EventType.FORMAT_DESCRIPTION, DESCRIPTION), *blocks):
        packets.append(framed(kind, body, position))
        position += len(packets[-1])
    expected = result(packets, None)
    assert expected[2] or event == EVENTS - 1
    for decoders in (0, 1):
        assert result(packets, [len(packets)], decoders=decoders) == expected
    assert not caplog.messages  # a decoder that answers nothing is no decoder that fell silent
