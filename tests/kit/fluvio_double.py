"""A loopback stand-in for a Fluvio cluster: enough of its wire format for the real client, and its faults on demand.

One controller and one server that stores, in one thread. Where the real server's ways matter, they are the same: a
reply is cut at the client's limit inside a batch, a stream waits for the client's offset before it sends more, an error
is a code inside the reply. Records are kept as the batches they came in.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from kit import fluvio_wire as wire
from kit.fluvio_wire import Log, Reader

T = TypeVar("T")

#: what becomes of a request to store:
#:   lost    not stored, and the connection breaks      stored  stored, and the connection breaks
#:   silent  stored, and never answered                 twice   stored twice, the second copy's offset answered
#:   late    stored, and answered that not every replica has it
#: bytes: not stored, and answered with this error
ProduceFault = Literal["ok", "lost", "stored", "silent", "twice", "late"] | bytes


@dataclass
class Stream:
    log: Log
    #: of the request, and so of every reply
    correlation: int
    id: int
    #: the client's largest reply
    limit: int
    #: how far the client says it is; None while it has yet to say so
    acknowledged: int | None = None


class Connection:
    """One client's connection to either server."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.streams: list[Stream] = []
        #: (label, correlation) of what the client watches
        self.watches: list[tuple[str, int]] = []

    def send(self, correlation: int, body: bytes) -> None:
        if not self.writer.is_closing():
            self.writer.write(struct.pack(">ii", len(body) + 4, correlation) + body)


class FluvioDouble:
    """A cluster in a `with` block. Faults are plain attributes, read when a request arrives."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        """With `tls` both servers speak TLS only."""
        self._tls = tls
        self.logs: dict[str, Log] = {}
        #: one for each coming request to store
        self.produce: deque[ProduceFault] = deque()
        #: answers still given as if the server did not lead the topic, as after its restart
        self.not_leader = 0
        #: largest reply of a stream in bytes, whatever the client asks for
        self.reply_bytes = 1 << 30
        #: seconds by which each reply of a stream comes late
        self.delay = 0.0
        #: index of a batch that the next reply of a stream leaves out
        self.skip: int | None = None
        #: False: streams send nothing any more, though the connection lives
        self.streaming = True
        #: True: requests are read and never answered
        self.silent = False
        #: requests to store, and streams opened, so far
        self.stored = 0
        self.opened = 0
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        # The client never learns of topics when the controller has none; a real one has this.
        self._add(Log("consumer-offset"))

    def __enter__(self) -> FluvioDouble:
        self._thread.start()
        self.call(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the double's thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _start(self) -> None:
        self._store = await asyncio.start_server(self._serve(self._answer_store), "127.0.0.1", 0, ssl=self._tls)
        self._controller = await asyncio.start_server(
            self._serve(self._answer_controller), "127.0.0.1", 0, ssl=self._tls
        )
        self._port = self._store.sockets[0].getsockname()[1]
        self.endpoint = f"127.0.0.1:{self._controller.sockets[0].getsockname()[1]}"

    async def _stop(self) -> None:
        for server in (self._store, self._controller):
            server.close()
        await self._disconnect()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def disconnect(self) -> None:
        """Break every connection."""
        self.call(self._disconnect())

    async def _disconnect(self) -> None:
        for connection in self._connections:
            connection.writer.transport.abort()

    def _serve(self, answer: Callable[[Connection, int, int, Reader], bytes | None]) -> Any:
        """`answer` takes connection, request key, correlation and request; None is no answer, or one given already."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._tasks.add(task := asyncio.current_task())  # type: ignore[arg-type]
            self._connections.add(connection := Connection(writer))
            try:
                while True:
                    (size,) = struct.unpack(">i", await reader.readexactly(4))
                    request = Reader(await reader.readexactly(size))
                    key, _, correlation = request.take("H"), request.take("h"), request.take("i")
                    request.string()  # client id
                    if self.silent:
                        continue
                    if (body := answer(connection, key, correlation, request)) is not None:
                        connection.send(correlation, body)
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                self._connections.discard(connection)
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()
                self._tasks.discard(task)

        return serve

    # --- the controller

    def _answer_controller(self, client: Connection, key: int, correlation: int, request: Reader) -> bytes | None:
        if key == wire.VERSIONS:
            return versions(wire.CONTROLLER_VERSIONS)
        label = request.string()
        request.take("I")
        if key == wire.LIST:
            wanted = [request.string() for _ in range(request.take("I"))]
            logs = [log for log in self.logs.values() if any(part in log.name for part in wanted)]
            if label == "Partition":
                found = [log.partition(number) for log in logs for number in range(log.partitions)]
            else:
                found = [log.topic() for log in logs]
            return wire.labelled(label, wire.listing(*found))
        if key == wire.CREATE:
            log = wire.parse_topic(request)
            if log.name in self.logs:
                return wire.string(log.name) + wire.TOPIC_EXISTS + wire.some(None)
            self._add(log)
            return wire.string(log.name) + wire.OK + wire.some(None)
        assert key == wire.WATCH, key
        client.watches.append((label, correlation))
        return self._known(label)

    def _add(self, log: Log) -> None:
        self.logs[log.name] = log
        for client in self._connections:
            for label, correlation in client.watches:
                client.send(correlation, self._known(label))

    def _known(self, label: str) -> bytes:
        if label == "SPU":
            everything = [wire.spu(self._port)]
        elif label == "Topic":
            everything = [log.topic() for log in self.logs.values()]
        else:
            everything = [log.partition() for log in self.logs.values()]
        return wire.labelled(label, bytes(8) + wire.listing() + wire.listing(*everything))

    # --- the server that stores

    def _answer_store(self, client: Connection, key: int, correlation: int, request: Reader) -> bytes | None:
        if key == wire.VERSIONS:
            return versions(wire.STORE_VERSIONS)
        if key == wire.OFFSETS:
            request.take("I")
            log = self.logs[request.string()]
            code, start, end = (wire.OK, log.start, log.end) if self.not_leader <= 0 else (wire.NOT_LEADER, 0, 0)
            partition = code + struct.pack(">Iqq", 0, start, end)
            return wire.listing(wire.string(log.name) + wire.listing(partition))
        if key == wire.STREAM:
            return self._open(client, correlation, request)
        if key == wire.UPDATE:
            return self._update(client, request)
        assert key == wire.PRODUCE, key
        return self._produce(request)

    def _produce(self, request: Reader) -> bytes | None:
        request.option("b"), request.take("h"), request.take("i")
        request.take("I")
        log = self.logs[request.string()]
        answers = []
        for _ in range(request.take("I")):
            request.take("I")
            records = request.bytes(request.take("i"))
            self.stored += 1
            fault: ProduceFault = self.produce.popleft() if self.produce else "ok"
            code, base = (fault, -1) if isinstance(fault, bytes) else (wire.OK, log.end)
            if fault == "lost":
                raise ConnectionError
            if not isinstance(fault, bytes):
                base = log.append(records)
            if fault == "twice":
                base = log.append(records)
            if fault == "late":
                code = wire.TIMED_OUT
            self._push(log)
            if fault == "stored":
                raise ConnectionError
            if fault == "silent":
                return None
            answers.append(struct.pack(">I", 0) + code + struct.pack(">qqq", base, -1, -1))
        return wire.listing(wire.string(log.name) + wire.listing(*answers)) + bytes(4)

    def _open(self, client: Connection, correlation: int, request: Reader) -> bytes | None:
        log = self.logs[request.string()]
        request.take("I")
        offset, limit = request.take("q"), request.take("i")
        stream = Stream(log, correlation, len(client.streams) + 1, limit)
        if self.not_leader > 0:
            self.not_leader -= 1
            return self._reply(stream, wire.NOT_LEADER)
        if offset > log.end:
            return self._reply(stream, wire.other(f"start offset: {offset} is greater than leo: {log.end}"))
        if offset < log.start:
            return self._reply(stream, wire.evicted(offset, log.start))
        self.opened += 1
        client.streams.append(stream)
        self._continue(client, stream, offset)
        return None

    def _update(self, client: Connection, request: Reader) -> bytes:
        request.take("I")
        offset, number = request.take("q"), request.take("I")
        for stream in client.streams:
            if stream.id == number:
                self._continue(client, stream, offset)
        return wire.listing(struct.pack(">I", number) + wire.OK)

    def _push(self, log: Log) -> None:
        for client in self._connections:
            for stream in client.streams:
                if stream.log is log and stream.acknowledged is not None:
                    self._continue(client, stream, stream.acknowledged)

    def _continue(self, client: Connection, stream: Stream, offset: int) -> None:
        """The client is at `offset`: send what follows, or remember it until there is something."""
        stream.acknowledged = offset
        if offset < stream.log.end and self.streaming:
            stream.acknowledged = None
            data = stream.log.read(offset, min(stream.limit, self.reply_bytes), self.skip)
            self.skip = None
            reply = self._reply(stream, wire.OK, data)
            if self.delay:
                self._loop.call_later(self.delay, client.send, stream.correlation, reply)
            else:
                client.send(stream.correlation, reply)

    def _reply(self, stream: Stream, code: bytes, data: bytes = b"") -> bytes:
        log = stream.log
        offsets = struct.pack(">qqq", log.end, 0, log.start)
        partition = bytes(4) + code + offsets + wire.some(None) + struct.pack(">i", len(data)) + data
        return wire.string(log.name) + struct.pack(">I", stream.id) + partition


def versions(spoken: list[tuple[int, int, int]]) -> bytes:
    return wire.OK + wire.listing(*(struct.pack(">hhh", *entry) for entry in spoken)) + wire.string("0.18.1")
