"""Fluvio's wire format, as much as tests/fluvio_double.py speaks: big-endian, i16 before strings, u32 before lists."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

# requests that both kinds of server answer, of the controller, of the server that stores
VERSIONS = 18
CREATE, LIST, WATCH = 1001, 1003, 1004
PRODUCE, OFFSETS, STREAM, UPDATE = 0, 1002, 1003, 1005
#: the versions spoken: (request, oldest, newest)
CONTROLLER_VERSIONS = [(VERSIONS, 0, 2), (CREATE, 9, 19), (LIST, 15, 19), (WATCH, 15, 19)]
STORE_VERSIONS = [(VERSIONS, 0, 2), (PRODUCE, 0, 24), (OFFSETS, 24, 24), (STREAM, 24, 24), (UPDATE, 0, 0)]
SPU = 5001
#: base offset, length, leader epoch, magic, crc, attributes, last offset delta
BATCH = struct.Struct(">qiibIhi")
BATCH_HEAD = 12


def error(code: int, detail: bytes = b"") -> bytes:
    return struct.pack(">h", code) + detail


OK = error(0)
#: after 5 seconds, a request to store
TIMED_OUT = error(7, struct.pack(">QB", 5000, 0))
NOT_LEADER, TOO_LARGE, STORAGE, SHORT_CIRCUIT = error(6), error(10), error(56), error(73)
TOPIC_EXISTS = error(2002)


def other(text: str) -> bytes:
    return error(2, string(text))


def evicted(offset: int, start: int) -> bytes:
    return error(71, struct.pack(">qq", offset, start))


def partition_full(topic: str) -> bytes:
    return error(72, string(topic) + bytes(4))


def string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def some(data: bytes | None) -> bytes:
    return b"\0" if data is None else b"\1" + data


def listing(*items: bytes) -> bytes:
    return struct.pack(">I", len(items)) + b"".join(items)


def labelled(label: str, body: bytes) -> bytes:
    """An object whose kind is told by its label."""
    return string(label) + struct.pack(">I", len(body)) + body


@dataclass
class Reader:
    """Takes values off the front of a message."""

    data: bytes
    at: int = 0

    def take(self, shape: str) -> int:
        (value,) = struct.unpack_from(">" + shape, self.data, self.at)
        self.at += struct.calcsize(">" + shape)
        return int(value)

    def bytes(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def string(self) -> str:
        return self.bytes(max(0, self.take("h"))).decode()

    def option(self, shape: str) -> int | None:
        return self.take(shape) if self.take("b") else None


@dataclass
class Log:
    """One topic: its batches as they arrived, and what it was created with."""

    name: str
    retention: int | None = None
    size: int | None = None
    partitions: int = 1
    replication: int = 1
    start: int = 0
    end: int = 0
    #: (base offset, records, bytes)
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)

    def append(self, records: bytes) -> int:
        """Store a record set; returns the offset of its first record."""
        base = self.end
        reader = Reader(records)
        while reader.at < len(records):
            _, length, *_, last = BATCH.unpack_from(records, reader.at)
            batch = bytearray(reader.bytes(BATCH_HEAD + length))
            struct.pack_into(">q", batch, 0, self.end)
            self.batches.append((self.end, last + 1, bytes(batch)))
            self.end += last + 1
        return base

    def read(self, offset: int, limit: int, skip: int | None) -> bytes:
        """What a server sends: from the batch that holds `offset`, cut off at `limit` bytes wherever that is."""
        found = [batch for base, count, batch in self.batches if base + count > offset]
        if skip is not None:
            del found[skip : skip + 1]
        return b"".join(found)[:limit]

    def topic(self) -> bytes:
        cleanup = None if self.retention is None else struct.pack(">BI", 0, self.retention)
        storage = None if self.size is None else b"\0" + some(struct.pack(">Q", self.size))
        spec = struct.pack(">BIIB", 1, 1, 1, 0) + some(cleanup) + some(storage) + b"\4\0\0"
        status = struct.pack(">BHIII", 4, 1, 0, 1, SPU) + bytes(2) + string("")
        return string(self.name) + spec + status

    def partition(self, number: int = 0) -> bytes:
        spec = struct.pack(">iIi", SPU, 1, SPU) + b"\0\0\4\0\0\0"
        replica = struct.pack(">iqq", SPU, self.end, self.end)
        status = b"\1" + replica + struct.pack(">I", 0) + listing() + struct.pack(">qBq", 0, 0, self.start)
        return string(f"{self.name}-{number}") + spec + status


def spu(port: int) -> bytes:
    public = struct.pack(">H", port) + listing(some(string("127.0.0.1")) + some(None)) + b"\0"
    private = struct.pack(">H", 1) + string("127.0.0.1") + b"\0"
    return string(f"custom-spu-{SPU}") + struct.pack(">iB", SPU, 1) + public + private + some(None) * 2 + b"\0"


def parse_topic(reader: Reader) -> Log:
    """A create request: name, options, and a topic with computed replicas."""
    log = Log(reader.string())
    reader.take("b"), reader.option("I")  # dry run, timeout
    assert reader.take("b") == 1 and reader.take("I") == 1, "one partition, computed"
    log.replication = reader.take("I")
    reader.take("b")
    if reader.take("b"):
        assert reader.take("b") == 0
        log.retention = reader.take("I")
    if reader.take("b"):
        reader.option("I")
        log.size = reader.option("Q")
    return log
