"""The worker processes of the Fluvio engine: they never hold the program up, and never outlive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing

import pytest
from kit.fluvio_double import FluvioDouble
from kit.helpers import wait_until
from kit.programs import ENVIRONMENT
from kit.topic import VALUES, numbered, read, sealed

from shared.errors import RecordDamagedError, TopicLinkError
from shared.helper_process import HelperProcess
from shared.profile import TopicSettings
from shared.topic import Record, Sealed
from shared.topic.fluvio_topic import FluvioReader, FluvioWriter

pytest_plugins = ["fix_fluvio"]


class Interrupt(Exception):
    pass


def test_a_signal_ends_a_wait_at_once(double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader) -> None:
    def interrupt(*_: object) -> None:
        raise Interrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        double.produce.append("silent")
        for wait in (lambda: writer.append(sealed(VALUES)), lambda: read(reader, 9)):
            started = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(Interrupt):
                wait()
            assert time.monotonic() - started < 8
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_a_worker_that_is_killed(writer: FluvioWriter, reader: FluvioReader) -> None:
    writer.append(sealed(VALUES))
    assert len(read(reader, 4)) == 4
    for handle in (reader._stream, writer._clerk.worker):
        assert handle is not None
        handle.process.kill()
    with pytest.raises(TopicLinkError, match="the client died"):
        read(reader, 1)
    assert reader.read(0.1) == []
    with pytest.raises(TopicLinkError, match="the client died"):
        writer.append(sealed(VALUES))


def test_a_search_starts_no_process_for_each_record(
    writer: FluvioWriter, reader: FluvioReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream is a process; what a search looks at is asked of the one that answers questions."""
    writer.append(sealed([b"%d" % number for number in range(300)]))
    started: list[HelperProcess] = []
    monkeypatch.setattr(HelperProcess, "__init__", _noting(started))
    for offset in (200, 17, 299, 0, 5):
        reader.seek(offset)
        assert reader.read(20.0) == [Record(offset, b"%d" % offset)]
    assert not started
    assert read(reader, 2)[:2] == [Record(6, b"6"), Record(7, b"7")]
    assert len(started) == 1


def _noting(started: list[HelperProcess]) -> Callable[[HelperProcess, str], None]:
    start = HelperProcess.__init__

    def noted(process: HelperProcess, module: str) -> None:
        started.append(process)
        start(process, module)

    return noted


def test_a_damaged_record_that_is_sought(double: FluvioDouble, writer: FluvioWriter, reader: FluvioReader) -> None:
    """It is not passed over: each read comes to it again."""
    writer.append([*sealed(VALUES[:1]), Sealed(b"altered", sealed(VALUES[:1])[0].key), *sealed(VALUES[2:])])
    reader.seek(1)
    for _ in range(2):
        with pytest.raises(RecordDamagedError):
            read(reader, 1)
    reader.seek(2)
    assert read(reader, 2) == numbered(VALUES[2:], 2)


PROGRAM = """
import sys, time
from shared.profile import TopicSettings
from shared.topic.fluvio_topic import FluvioReader, FluvioWriter
from shared.topic.record import seal
settings = TopicSettings("t-1", backend="fluvio", endpoint=sys.argv[1])
writer, reader = FluvioWriter(settings), FluvioReader(settings)
writer.append([seal(b"x")])
while reader._stream is None: reader.read(1)
print(*(worker.process.pid for worker in (writer._clerk.worker, reader._clerk.worker, reader._stream)), flush=True)
time.sleep(60)
"""


def test_workers_end_with_the_program(double: FluvioDouble) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, double.endpoint], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    with program:
        assert program.stdout is not None
        workers = [int(word) for word in program.stdout.readline().split()]
        assert len(workers) == 3 and all(map(running, workers))
        program.kill()
    wait_until(lambda: not any(map(running, workers)), "workers outlive their program")


def running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(found.strip()) and not found.strip().startswith("Z")


def test_no_worker_is_left_behind(double: FluvioDouble, topic: TopicSettings) -> None:
    opened = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    for start in (0, 4):
        with closing(FluvioWriter(topic)) as writer, closing(FluvioReader(topic)) as reader:
            writer.append(sealed(VALUES))
            reader.seek(start)
            assert len(read(reader, 4)) == 4
            pids = [
                handle.process.pid for handle in (writer._clerk.worker, reader._clerk.worker, reader._stream) if handle
            ]
            assert len(pids) == 3
        assert not any(map(running, pids))
    if opened:
        assert set(os.listdir("/proc/self/fd")) == opened
