"""The appender: writes batches to the topic from a thread of its own, one at a time and in order.

While a batch is on its way to the disk or the cluster the binlog is decoded on. There is never a second under way, so
a failure leaves no hole behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from shared.topic import TopicWriter


class Appender:
    """Used with `with`; leaving it waits for the last batch and raises what it raised."""

    def __init__(self, topic: TopicWriter) -> None:
        self._topic = topic
        self._pool = ThreadPoolExecutor(1, "appender")
        self._running: Future[None] | None = None

    @property
    def idle(self) -> bool:
        """Whether `append` would return at once."""
        return self._running is None or self._running.done()

    def append(self, values: Sequence[bytes]) -> None:
        """Hand a batch over once the one before is durable. Raises the TopicError of the one before."""
        self._settle()
        self._running = self._pool.submit(self._topic.append, values)

    def _settle(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.result()

    def __enter__(self) -> Appender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._settle()
        finally:
            self._pool.shutdown(wait=True)
