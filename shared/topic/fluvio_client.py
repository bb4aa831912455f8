"""Asks a Fluvio cluster: the only file that imports the wheel.

Runs in a process of its own (shared/topic/fluvio_worker.py says why). Facts about wheel 0.21 are in the comments at the
place they shape.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from shared.topic.record import Sealed

#: A batch is the largest thing the cluster stores whole or not at all, and the wheel sends the next request when one is
#: lost, which leaves a hole. So what is appended is one batch: it lingers until `flush`, and the next one waits for its
#: answer.
BATCH_BYTES = 1 << 20
#: what a record adds to its batch beside its value and key, at most; and a request to its batch
RECORD_OVERHEAD, REQUEST_OVERHEAD = 64, 1024
LINGER_MILLISECONDS = 3_600_000
#: what a server stores at most in one request
REQUEST_BYTES = 32 << 20
#: more than REQUEST_BYTES: a batch larger than one reply could never be read
FETCH_BYTES = 36 << 20
#: The wheel sends a request again when its answer is late, and the cluster stores it twice; the worker's own limit ends
#: the process long before this.
SOCKET_WAIT_SECONDS = 3600
METADATA_MILLISECONDS = 5000
#: how long an append waits for every replica, and how long once one was late: it is stored then all the same, and one
#: that is away would hold up each append
COMMIT_MILLISECONDS, LATE_MILLISECONDS = 5000, 500
#: the cluster's words for it
LATE = r"request 'Produce' exceeded the timeout"
#: no topic is this long; asked for it, the partition's leader names the offset it ends at
FAR = 1 << 62
#: a topic has no leader for a moment after it was created or its server restarted
LEADER_SECONDS = 5.0


class FluvioFailure(Exception):
    """`kind` is link (trying again may help), gone, missing, large or other."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


#: The wheel's exceptions have no codes, only texts. The first match decides. A text that matches none is not known to
#: pass by itself, and stops the program.
KINDS = (
    ("gone", "is evicted"),
    ("missing", "Topic not found|Partition not found"),
    ("large", "too large to send|exceeded maximum request size"),
    ("other", "invalid socket address"),
    (
        "link",
        "[Ss]ocket|refused|reset|closed|[Bb]roken pipe|unreachable|lookup address|[Tt]imed out|timeout|connection"
        "|not the leader|not a leader|not initialized|SPU|failed to get record metadata|stream ended",
    ),
)


def failure(error: BaseException) -> FluvioFailure:
    """Return what an exception of the wheel means."""
    if isinstance(error, FluvioFailure):
        return error
    text = " ".join(str(error).split()) or type(error).__name__
    return FluvioFailure(next((kind for kind, pattern in KINDS if re.search(pattern, text)), "other"), text)


class FluvioClient:
    """Reaches one topic on one cluster. Every method may hang for ever and raises what `failure` explains."""

    def __init__(
        self, topic: str, endpoint: str | None, tls: Sequence[str | None] | None = None, replication: int = 1
    ) -> None:
        """`endpoint` None stands for the active Fluvio profile; `tls` are domain, key, cert and ca, None for no TLS.

        With None as domain nobody is verified. `replication` is told to the cluster when the topic is created.
        """
        # read by the wheel's runtime, once
        os.environ["FLV_CLIENT_MAX_FETCH_BYTES"] = str(FETCH_BYTES)
        os.environ["FLV_SOCKET_WAIT"] = str(SOCKET_WAIT_SECONDS)
        os.environ["FLV_METADATA_TIMEOUT"] = str(METADATA_MILLISECONDS)
        import fluvio  # here, because the parent process imports this module's constants and never needs the wheel

        self._wheel: Any = fluvio
        self._topic = topic
        self._endpoint = endpoint
        self._tls = tls
        self._replication = replication
        self._producer: Any = None
        #: whether a replica was late for the last append
        self._late = False
        #: offset the producer's next record must get
        self._end = 0

    def _config(self) -> Any:
        wheel = self._wheel.FluvioConfig
        config = wheel.load() if self._endpoint is None else wheel.new(self._endpoint)
        if self._tls is not None and self._tls[0] is None:
            config.set_anonymous_tls()
        elif self._tls is not None:
            config.set_tls_file_paths(*self._tls)
        return config

    def _connect(self) -> Any:
        """A new connection each time: an old one never sees new topics once the cluster's controller restarted."""
        return self._wheel.Fluvio.connect_with_config(self._config())

    def records(self, offset: int) -> Iterator[Any]:
        """Records from `offset` on; waits at the end of the topic for more. May skip: check their offsets."""
        return self._records(self._wheel.Offset.absolute(offset))

    def _records(self, offset: Any) -> Iterator[Any]:
        # The deprecated consumer on purpose: it reports errors. Its successor waits for ever past the end, jumps over
        # removed records, and reconnects for half an hour, all without a word. And one lasting stream that the cluster
        # pushes to: each bounded read would leave one behind in the server (after 600 of them a new record was sent 600
        # times), and the asynchronous calls, which mind Python's lock, take a turn of the event loop for each record.
        stream: Iterator[Any] = self._connect().partition_consumer(self._topic, 0).stream(offset)
        yield from stream
        raise FluvioFailure("link", "the stream ended")

    def end(self) -> int:
        """Return the offset the topic ends at, as its leader says it.

        Every other question has an answer that looks alike for a topic without records and one that is not ready.
        """
        deadline = time.monotonic() + LEADER_SECONDS
        while True:
            try:
                next(self.records(FAR))
            except Exception as error:
                if found := re.search(r"greater than leo: (\d+)$", str(error)):
                    return int(found[1])
                if "not the leader" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                raise FluvioFailure("other", f"the cluster claims to hold offset {FAR}")

    def begin(self) -> int:
        """Return the offset of the oldest record; 0 when there is none."""
        return int(next(self._records(self._wheel.Offset.beginning())).offset()) if self.end() else 0

    def at(self, offset: int) -> Sealed:
        """Return what stands at this offset, which the topic holds."""
        record = next(self.records(offset))
        if record.offset() != offset:
            raise FluvioFailure("link", f"the cluster sent offset {record.offset()} when asked for {offset}")
        return content(record)

    def require_one_partition(self) -> None:
        """Raise FluvioFailure when the topic has more: offsets are counted by partition, and one of them is read."""
        self._require_one_partition(self._admin())

    def _admin(self) -> Any:
        return self._wheel.FluvioAdmin.connect_with_config(self._config())

    def _require_one_partition(self, admin: Any) -> None:
        # the filter also finds partitions of topics that contain the name
        names = [partition.name() for partition in admin.list_partitions([self._topic])]
        count = sum(re.fullmatch(rf"{self._topic}-\d+", name) is not None for name in names)
        if count > 1:
            raise FluvioFailure(
                "other",
                f"it has {count} partitions, and the order of events is only kept within one; delete it, so that its"
                " producer creates it, or name another topic",
            )

    def create(self, retention_seconds: int, limit: Callable[[], None]) -> None:
        """Create the topic when it is missing, with one partition.

        `limit` is called before the cluster is asked to create, which takes longer than other requests.
        """
        admin = self._admin()
        # the filter also finds topics that contain the name
        if self._topic in (topic.name() for topic in admin.list_topics([self._topic])):
            self._require_one_partition(admin)
            return
        limit()
        spec = self._wheel.TopicSpec.create().with_replications(self._replication)
        spec = spec.with_retention_time(retention_seconds)
        spec = spec.with_max_partition_size(1 << 50)  # a pebibyte; by default the oldest records go at 100 GB
        try:
            admin.create_topic(self._topic, spec.build())
        except Exception as error:
            if "already exists" not in str(error):
                raise

    def append(self, records: Sequence[Sealed], limit: Callable[[], None]) -> tuple[int, bool]:
        """Store records as one batch, whole or not at all: they must fit into BATCH_BYTES, or be one.

        Returns the offset after them, and whether every replica had them in time. `limit` is called when half of what
        may take long is done. After an error the client is of no use.
        """
        if self._producer is None:
            self._end = self.end()
            self._producer = self._new_producer()
        sent = self._producer.send_all([(record.key, record.value) for record in records])
        try:
            self._producer.flush()  # returns when the cluster answered; what it answered only `wait` tells
            for expected, output in enumerate(sent, self._end):
                self._require(output.wait().offset(), expected)
        except Exception as error:
            if not re.search(LATE, str(error)):
                raise
            limit()
            self._require_stored(records)
            return self._end, False
        if self._late:
            self._late, self._producer = False, None  # the next one is patient again
        self._end += len(records)
        return self._end, True

    def _require(self, found: int, expected: int) -> None:
        if found != expected:
            raise FluvioFailure(
                "link",
                f"a record was stored at offset {found} instead of {expected}:"
                " another producer writes to it, or the cluster stored a request twice",
            )

    def _require_stored(self, records: Sequence[Sealed]) -> None:
        """Be certain that the topic ends with these records, though not every replica has them."""
        self._late, self._producer = True, None
        end = self.end()
        self._require(end, self._end + len(records))
        if self.at(end - 1) != records[-1]:
            raise FluvioFailure("link", f"offset {end - 1} holds another record than was stored there")
        self._end = end

    def _new_producer(self) -> Any:
        config = (
            self._wheel.TopicProducerConfigBuilder()
            .batch_size(BATCH_BYTES)
            .max_request_size(REQUEST_BYTES)
            .linger(LINGER_MILLISECONDS)
            .isolation(self._wheel.Isolation.ReadCommitted)  # confirmed when every replica has it
            .timeout(LATE_MILLISECONDS if self._late else COMMIT_MILLISECONDS)
        )
        return self._connect().topic_producer_with_config(self._topic, config.build())


def quicken() -> None:
    """Make the kernel acknowledge what it received on this process's connections.

    The server sends a record in two segments and, by TCP's rules, the second only when the first is acknowledged, for
    which Linux takes 40 ms. Measured from `append` to `read`: 66 ms without this, 2 ms with it.
    """
    with contextlib.suppress(OSError, AttributeError):  # Linux only
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):  # no socket, or closed meanwhile
                connection = socket.socket(fileno=int(name))
                try:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                finally:
                    connection.detach()


def content(record: Any) -> Sealed:
    """What the wheel's record holds; one without a key has the key `No key`, which no checksum matches."""
    return Sealed(record.value(), record.key())
