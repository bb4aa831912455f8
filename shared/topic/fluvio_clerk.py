"""Starts the worker processes of a topic on a cluster (fluvio_worker.py), asks them, and words what fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from shared.errors import OffsetGoneError, RecordTooLargeError, TopicError, TopicLinkError, TopicMissingError
from shared.profile import TopicSettings
from shared.profile_table import expand
from shared.topic import fluvio_worker as worker
from shared.topic.fluvio_client import FluvioFailure
from shared.topic.fluvio_parts import whole_end, whole_start
from shared.topic.record import Sealed, unframe

#: limit of one exchange with the cluster; an append gets a second more for each 4 MiB, a creation three times as much
ANSWER_SECONDS = 10.0
#: a stream that brought nothing for this long is opened anew, which tells a quiet topic from a dead connection
IDLE_SECONDS = 15.0
#: the same while there is a backlog: once, and each time that the stream before gave nothing of it. A reply has up to
#: 32 MB, and nothing is heard of it until it is whole
STALL_SECONDS = (1.0, 5.0, 25.0)

ERRORS = {
    "gone": OffsetGoneError,
    "large": RecordTooLargeError,
    "link": TopicLinkError,
    "missing": TopicMissingError,
}
NEVER_MADE = "it does not exist; start its producer first, or check [topic] name and endpoint"
DELETED = "it was deleted; its producer makes it anew when it is started, and the follower must then be loaded anew"


class FluvioTopic:
    """Names a topic on a cluster, and has the words for what goes wrong with it."""

    def __init__(self, settings: TopicSettings) -> None:
        self.settings = settings
        self.name = f"topic {settings.name} on Fluvio {settings.endpoint or 'cluster of the active profile'}"
        #: what it means when the cluster does not know it
        self.missing = NEVER_MADE

    def start(self, offset: int | None = None) -> worker.WorkerHandle:
        """Return a worker that streams the records from `offset` on; without one it answers requests."""
        settings, tls = self.settings, self.settings.tls
        files = [str(expand(file, "tls")) for file in (tls.key, tls.cert, tls.ca) if file] if tls else []
        first = {
            "topic": settings.name,
            "endpoint": settings.endpoint,
            "replication": settings.replication,
            "tls": tls and ([tls.domain, *files] if tls.verified else [None]),
            "seconds": ANSWER_SECONDS,
            "idle": IDLE_SECONDS,
            "stalls": STALL_SECONDS,
            "offset": offset,
        }
        try:
            return worker.WorkerHandle(first)
        except OSError as error:
            raise TopicError(f"{self.name}: its worker process cannot be started: {error.strerror}") from None

    @contextmanager
    def named_errors(self, asked: float | None = None) -> Iterator[None]:
        """Turn failures into TopicErrors; `asked` is when the answer that is waited for was asked for (monotonic)."""
        try:
            yield
        except FluvioFailure as error:
            reason = self.missing if error.kind == "missing" else str(error)
            if "no active profile" in reason:
                reason = "there is no active Fluvio profile; set [topic] endpoint"
            raise ERRORS.get(error.kind, TopicError)(f"{self.name}: {reason}") from None
        except worker.WorkerEnded as error:
            waited = ANSWER_SECONDS if asked is None else time.monotonic() - asked
            reason = f"no answer within {waited:.0f} s" if error.status == 1 else f"the client died ({error})"
            raise TopicLinkError(f"{self.name}: {reason}") from None


class Clerk:
    """Asks the cluster by a worker, which is started for the first question and for the first after one that failed."""

    def __init__(self, topic: FluvioTopic) -> None:
        self._topic = topic
        self.worker: worker.WorkerHandle | None = None

    def ask(self, tag: int, payload: bytes = b"") -> worker.Frame:
        asked = time.monotonic()
        try:
            with self._topic.named_errors(asked):
                self.worker = self.worker or self._topic.start()
                return self.worker.ask(tag, payload)
        except BaseException:
            self.close()
            raise

    def at(self, offset: int) -> Sealed:
        """Return what stands at an offset that the topic holds."""
        (stored,) = unframe(self.ask(worker.AT, b"%d" % offset)[1])
        return stored

    def whole_end(self) -> int:
        """Return the offset after the last record that is whole."""
        return whole_end(self.ask(worker.END)[0], self.at, self._topic.name)

    def whole_start(self) -> int:
        """Return the offset of the first record that is whole."""
        start, end = self.ask(worker.BEGIN)[0], self.ask(worker.END)[0]
        return whole_start(start, end, self.at, self._topic.name)

    def close(self) -> None:
        if self.worker is not None:
            self.worker.close()
            self.worker = None
