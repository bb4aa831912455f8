"""Decoders: the same records with them and without, whatever becomes of them."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable

import pytest
from kit.helpers import wait_until
from kit.programs import ENVIRONMENT
from kit.topic import ListTopic

from cdc_producer.decode import processes as module
from cdc_producer.decode.binlog_event import BinlogEvent
from cdc_producer.decode.processes import BATCH_BYTES, LARGEST_EVENT, Decoders
from cdc_producer.decode.rows_event import RowsOperation
from cdc_producer.decode.table_decoders import TableDecoders
from cdc_producer.decode.table_map import Charset
from cdc_producer.outgoing import Outgoing
from shared.binlog_format import EventType
from shared.errors import UnsupportedError
from shared.events import Draft, Position
from shared.filters import DatabaseFilter
from shared.profile import Filters

#: a rows event with what is no row
DAMAGED = bytes(8) + b"\x02\x00" + b"\x02\x03" + b"\xf0" * (8 << 10)


def tables() -> TableDecoders:
    return TableDecoders("mysql-srv1", DatabaseFilter(Filters(include_dbs=("d",))), {255: Charset("utf8mb4", 4)})


def table_map(name: str) -> BinlogEvent:
    """Of a table with an INT and a MEDIUMTEXT column."""
    names = b"\x01d\x00" + bytes([len(name)]) + name.encode() + b"\x00"
    columns = b"\x02\x03\xfc" + b"\x01\x03" + b"\x00"
    # signedness, character set, names
    metadata = b"\x01\x01\x00" + b"\x03\x03\xfc\xff\x00" + b"\x04\x04\x01i\x01s"
    return BinlogEvent(EventType.TABLE_MAP, 0, 0, bytes(8) + names + columns + metadata, "b.1", 4, 5)


def rows_event(kind: int, size: int) -> bytes:
    """The body of a rows event of about so many bytes."""
    head = bytes(8) + b"\x02\x00" + b"\x02" + b"\x03" * (2 if kind == EventType.UPDATE_ROWS else 1)
    text = ("ä№\"\\\n🦭 '" * 20).encode()
    row = b"\x00" + struct.pack("<i", -size) + len(text).to_bytes(3, "little") + text
    return head + row * max(2, size // len(row) // 2 * 2)


def workload() -> list[tuple[int, str, bytes]]:
    """Several batches: (type, table, body) of each event, small and large ones among them."""
    kinds = (EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS)
    sizes = [8 << 10] * 100 + [300] * 20 + [LARGEST_EVENT - 2000] * 6 + [2 * LARGEST_EVENT] + [30 << 10] * 60
    return [(kinds[n % 3], f"t{n % 2}", rows_event(kinds[n % 3], size)) for n, size in enumerate(sizes)]


class Run:
    """Captures events as the program does, and keeps what becomes records."""

    def __init__(self, limit: int) -> None:
        self.tables = tables()
        self.decoders = Decoders(self.tables, limit)
        self.topic = ListTopic()
        self.outgoing = Outgoing(self.topic, self.decoders)

    def add(self, number: int, kind: int, name: str, body: bytes) -> None:
        table = self.tables.table(table_map(name))
        assert table is not None
        operation = RowsOperation(BinlogEvent(kind, 0, 0, body, "b.1", number, number + 1), table)
        self.outgoing.add(Draft(table.uri, Position("b.1", number), None, 0), operation, number, None)

    def records(
        self, events: list[tuple[int, str, bytes]], at: Callable[[int], None] = lambda number: None
    ) -> list[bytes]:
        """The records of these events; `at` is called with the number of each before it."""
        with self.outgoing:
            try:
                for number, event in enumerate(events):
                    at(number)
                    self.add(number, *event)
            finally:
                self.outgoing.finish()
        return self.topic.values

    def processes(self) -> list[int]:
        return [decoder.process.pid for decoder in self.decoders._decoders]


@pytest.fixture
def encoded_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one whenever an operation is encoded in this process."""
    found: list[int] = []
    encode = RowsOperation.encode

    def count(self: RowsOperation) -> None:
        found.append(self.size)
        encode(self)

    monkeypatch.setattr(RowsOperation, "encode", count)
    return found


@pytest.mark.parametrize("limit", [1, 2])
def test_records_are_the_same(limit: int, encoded_here: list[int]) -> None:
    events = workload()
    expected = Run(0).records(events)
    assert len(encoded_here) == len(expected) == len(events)
    encoded_here.clear()
    assert Run(limit).records(events) == expected
    assert len(encoded_here) < len(events)


def test_an_answer_that_was_altered_is_not_used(monkeypatch: pytest.MonkeyPatch, encoded_here: list[int]) -> None:
    """The checksum of what a decoder made is the decoder's."""
    settle, altered = module._Batch.settle, []

    def alter(self: module._Batch, answered: memoryview) -> None:
        answered[-2] ^= 1
        altered.append(len(answered))
        settle(self, answered)

    monkeypatch.setattr(module._Batch, "settle", alter)
    events = workload()
    found = Run(1).records(events)
    assert len(encoded_here) >= len(altered) > 0
    assert found == Run(0).records(events)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_decoder_that_fails_is_done_without(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    events = workload()
    run = Run(2)

    def fail(at: int) -> None:
        if at == 90:
            assert run.processes()
            for process in run.processes():
                os.kill(process, number)

    assert run.records(events, fail) == Run(0).records(events)
    assert not run.decoders._decoders


def test_without_processes_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    events = workload()
    expected = Run(0).records(events)
    monkeypatch.setattr(sys, "executable", "/nonexistent")
    assert Run(2).records(events) == expected


def test_rows_that_cannot_be_decoded_are_told_after_all_before_them() -> None:
    events = workload()
    expected = Run(0).records(events)
    events[70] = (EventType.WRITE_ROWS, "t0", DAMAGED)
    run = Run(1)
    with pytest.raises(UnsupportedError, match=r'^rows of "flv://mysql-srv1/d/t0" at b\.1:70: '):
        run.records(events)
    assert run.topic.values == expected[:70]


def test_what_is_no_bulk_load_starts_no_process() -> None:
    run = Run(1)
    for number in range(BATCH_BYTES // (8 << 10) - 1):
        run.add(number, EventType.WRITE_ROWS, "t0", rows_event(EventType.WRITE_ROWS, 8 << 10))
    assert not run.processes()
    run.outgoing.finish()
    assert not run.processes()


PROGRAM = """
import os, signal, sys
from test_processes import Run, workload
run = Run(1)
for number, event in enumerate(workload()[:90]):
    run.add(number, *event)
print(*run.processes(), flush=True)
signal.pause()
"""


def test_a_decoder_ends_when_its_program_is_killed() -> None:
    environment = ENVIRONMENT | {"PYTHONPATH": os.pathsep.join([*sys.path, os.path.dirname(__file__)])}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, env=environment, text=True
    ) as program:
        assert program.stdout is not None
        decoder = int(program.stdout.readline())
        assert _runs(decoder)
        program.kill()
    wait_until(lambda: not _runs(decoder), "the decoder still runs")


def _runs(pid: int) -> bool:
    """False too for a process that has ended and was not asked for its status."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(found.strip()) and not found.startswith("Z")
