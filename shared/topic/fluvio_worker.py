"""Runs the Fluvio client in a process of its own, which can be ended when it hangs; and holds the program's end of it.

The client (wheel 0.21) holds Python's interpreter lock while it waits for a record, for a confirmation or for the
cluster's controller, and takes no time limit anywhere: a silent cluster would freeze every thread and every signal
handler of the program. In the worker it may. Before each exchange the worker sets `faulthandler`'s alarm, which needs
no interpreter lock and ends the process; the program sees its pipe close. The program's own waits are plain `select`s.

Both sides exchange frames (FRAME: tag, size of what follows) over the worker's stdin and stdout. The first frame to a
worker holds JSON: topic, endpoint or null, tls or null, replication, seconds (limit of one exchange), idle (seconds of
silence after which a stream is opened anew), stalls (the same while there is a backlog, one for each stream in vain)
and offset or null. With an offset it streams: OPENED, then one frame a record, tagged with its offset. Without, it
answers requests. Records are framed as shared/topic/record.py does it. A frame tagged FAILED holds kind and text of a
FluvioFailure; it is the last one.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import select
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

from shared.helper_process import PIPE_BYTES, HelperProcess
from shared.topic.fluvio_client import FluvioClient, FluvioFailure, content, failure, quicken
from shared.topic.record import frame, unframe

FRAME = struct.Struct("<qI")
#: requests; CREATE carries the retention in seconds as text, AT the offset, APPEND the records of one batch
CREATE, CHECK, BEGIN, END, AT, APPEND = range(6)
#: answers that are not an offset
FAILED, OPENED = -1, -2
#: payload of the answer to APPEND when not every replica had the records in time
LATE = b"late"
#: a worker's clock (seconds)
TICK_SECONDS = 0.25
#: the wheel leaves about one of thirty connections behind when a stream is dropped; so a worker opens only this many
STREAMS = 100
#: `quicken` is of use this long after a record (seconds), and is called so often in a window of so many seconds
QUICKEN_DELAY, QUICKEN_TIMES, QUICKEN_WINDOW = 0.002, 4, 0.05

Frame = tuple[int, bytes]


class WorkerEnded(Exception):
    """The worker is gone without a last word. Its exit status: 0 wants to be started anew, 1 its alarm rang."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class WorkerHandle:
    """Holds the program's side of one worker."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.process = HelperProcess(__name__)
        self._buffer = bytearray()
        self.write(CREATE, json.dumps(settings).encode())

    def write(self, tag: int, payload: bytes) -> None:
        view = memoryview(FRAME.pack(tag, len(payload)) + payload)
        with contextlib.suppress(BrokenPipeError):  # what it said last, or its silence, is found when reading
            while view:
                view = view[self.process.input.write(view) :]

    def ask(self, tag: int, payload: bytes = b"") -> Frame:
        """Send a request and wait for its answer, as long as the worker lives."""
        self.write(tag, payload)
        while not (found := self.frames(1)):
            self.fill(None)
        return found[0]

    def fill(self, timeout: float | None) -> bool:
        """Receive bytes; False when none came within `timeout` seconds (None: no limit). Raises WorkerEnded."""
        if not select.select([self.process.output], [], [], timeout)[0]:
            return False
        read = os.read(self.process.output.fileno(), PIPE_BYTES)
        if not read:
            raise WorkerEnded(self.process.wait())
        self._buffer += read
        return True

    def frames(self, limit: int) -> list[Frame]:
        """Return whole frames received, until they reach `limit` bytes.

        Raises FluvioFailure when the next one is FAILED.
        """
        found: list[Frame] = []
        position, length = 0, len(self._buffer)
        with memoryview(self._buffer) as view:
            while length - position >= FRAME.size and position < limit:
                tag, size = FRAME.unpack_from(view, position)
                start = position + FRAME.size
                if length - start < size or (tag == FAILED and found):
                    break
                position = start + size
                found.append((tag, bytes(view[start:position])))
        del self._buffer[:position]
        if found and found[0][0] == FAILED:
            kind, _, text = found[0][1].decode().partition("\n")
            raise FluvioFailure(kind, text)
        return found

    def close(self) -> None:
        self.process.close()


class _Silent(Exception):
    """Raised by the tick inside a wait that has lasted too long."""


class _Worker:
    """The worker's side."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._seconds: float = settings["seconds"]
        self._idle: float = settings["idle"]
        self._stalls: list[float] = settings["stalls"]
        self._client = FluvioClient(settings["topic"], settings["endpoint"], settings["tls"], settings["replication"])
        self._waiting = False
        self._ticks = 0
        self._limit = 0.0

    def alarm(self, seconds: float) -> None:
        faulthandler.dump_traceback_later(seconds, exit=True)

    def serve(self, requests: queue.SimpleQueue[Frame]) -> None:
        """Answer requests until the program closes."""
        while True:
            tag, payload = requests.get()
            self.alarm(self._seconds)
            send(*self._answer(tag, payload))
            faulthandler.cancel_dump_traceback_later()

    def _answer(self, tag: int, payload: bytes) -> tuple[int, bytes]:
        if tag == CREATE:
            self._client.create(int(payload), lambda: self.alarm(3 * self._seconds))
            return OPENED, b""
        if tag == CHECK:
            self._client.require_one_partition()
            return OPENED, b""
        if tag == APPEND:
            self.alarm(self._seconds + len(payload) / (4 << 20))
            end, in_time = self._client.append(unframe(payload), lambda: self.alarm(self._seconds))
            return end, b"" if in_time else LATE
        if tag == AT:
            return int(payload), b"".join(frame([self._client.at(int(payload))]))
        return (self._client.begin() if tag == BEGIN else self._client.end()), b""

    def stream(self, offset: int) -> None:
        """Send every record from `offset` on, without a gap, until the program closes or STREAMS are opened."""
        signal.signal(signal.SIGALRM, self._tick)
        signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)
        vain = 0
        for _ in range(STREAMS):
            self.alarm(self._seconds)
            end = self._client.end()
            if offset > end:
                raise FluvioFailure("link", f"it ends at offset {end}, before {offset}")
            records = self._client.records(offset)
            faulthandler.cancel_dump_traceback_later()
            send(OPENED)
            start, offset = offset, self._relay(records, offset, end, self._stalls[vain])
            vain = vain + 1 if offset == start < end else 0
            if vain == len(self._stalls):  # once more would be no different
                raise FluvioFailure("other", f"offset {offset} cannot be read, though it goes on to offset {end}")

    def _relay(self, records: Iterator[Any], offset: int, end: int, stall: float) -> int:
        """Send records while each follows the last one; returns the offset to open the next stream at.

        `stall` is the silence (seconds) after which it gives up before `end`.
        The cluster cuts a large reply inside a batch, and the wheel skips the rest of that batch without a word.
        Offsets are dense, so the skip shows in the next record, or as silence before `end`.
        """
        window, times = 0.0, 0
        try:
            while True:
                self._ticks, self._limit = 0, stall if offset < end else self._idle
                self._waiting = True
                record = next(records)
                self._waiting = False
                if record.offset() != offset:
                    return offset
                send(offset, *frame([content(record)]))
                offset += 1
                if offset >= end:
                    if (now := time.monotonic()) > window + QUICKEN_WINDOW:
                        window, times = now, 0
                    if (times := times + 1) <= QUICKEN_TIMES:
                        time.sleep(QUICKEN_DELAY)
                        quicken()
        except _Silent:
            return offset
        finally:
            self._waiting = False

    def _tick(self, *_: object) -> None:
        # The wheel looks for signals every 100 ms of a wait. Coming here also lets `_listen` see the program's end.
        self._ticks += 1
        if self._waiting and self._ticks * TICK_SECONDS > self._limit:
            self._waiting = False
            raise _Silent


def send(tag: int, *pieces: bytes) -> None:
    """Send a frame to the program, at once: whether the next record comes soon is not known."""
    payload = b"".join(pieces)
    view = memoryview(FRAME.pack(tag, len(payload)) + payload)
    while view:
        view = view[os.write(sys.stdout.fileno(), view) :]


def _listen(requests: queue.SimpleQueue[Frame]) -> None:
    """Queue the program's frames; end this process when the program closes or dies."""
    while len(head := sys.stdin.buffer.read(FRAME.size)) == FRAME.size:
        tag, size = FRAME.unpack(head)
        requests.put((tag, sys.stdin.buffer.read(size)))
    os._exit(0)


def main() -> None:
    """Run the worker until the program closes its pipe."""
    requests: queue.SimpleQueue[Frame] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    settings = json.loads(requests.get()[1])
    try:
        worker = _Worker(settings)
        if settings["offset"] is None:
            worker.serve(requests)
        else:
            worker.stream(settings["offset"])
            os._exit(0)
    except BaseException as error:  # the wheel's panics are no Exceptions
        fault = failure(error)
        send(FAILED, f"{fault.kind}\n{fault}".encode())
        os._exit(1)
