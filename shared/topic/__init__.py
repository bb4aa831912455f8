"""Defines topics: an ordered, durable log of records has one writer and any number of readers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from shared.profile import TopicSettings
from shared.profile_table import expand
from shared.topic.record import Record, Sealed

__all__ = ["Record", "Sealed", "TopicReader", "TopicWriter", "open_reader", "open_writer"]


class TopicWriter(Protocol):
    """Describes the producer's side. Only one writer exists at a time where the engine can enforce it."""

    def last(self) -> Record | None:
        """Return the newest record, or None when the topic has never held one.

        Raises RecordDamagedError when it was altered, TopicError when it is not certain.
        """

    def append(self, records: Sequence[Sealed]) -> None:
        """Append all records in order; they are durable on return. After an error, ask `last` what arrived.

        Raises TopicLinkError when trying again with a new writer may help, TopicError otherwise.
        """

    def close(self) -> None: ...


class TopicReader(Protocol):
    """Describes a consumer's side."""

    #: seconds within which a topic that ends before what was read from it may come back to its length; 0 when it cannot
    return_seconds: float

    def first_offset(self) -> int:
        """Return the offset of the oldest record still held; 0 for a topic that has never held one."""

    def next_offset(self) -> int:
        """Offset the next appended record will get; 0 for a topic that has never held one."""

    def seek(self, offset: int) -> None:
        """Make `read` continue at this offset."""

    def read(self, timeout: float) -> list[Record]:
        """Return the next records in offset order without a gap, or [] when none arrived within `timeout` seconds.

        Each was found to be what was appended. Raises OffsetGoneError when the record sought was removed,
        RecordDamagedError when it was altered, TopicLinkError when trying again may help.
        """

    def close(self) -> None: ...


def open_writer(settings: TopicSettings) -> TopicWriter:
    """Open the topic for appending; it is created when missing."""
    if settings.backend == "fluvio":
        from shared.topic.fluvio_topic import FluvioWriter

        return FluvioWriter(settings)
    from shared.topic.embedded import EmbeddedWriter

    return EmbeddedWriter(_file(settings), settings.retention_days)


def open_reader(settings: TopicSettings) -> TopicReader:
    """Open the topic for reading. Raises TopicMissingError when it does not exist, TopicError when it is unusable."""
    if settings.backend == "fluvio":
        from shared.topic.fluvio_topic import FluvioReader

        return FluvioReader(settings)
    from shared.topic.embedded import EmbeddedReader

    return EmbeddedReader(_file(settings))


def _file(settings: TopicSettings) -> Path:
    return expand(settings.path, "topic.path") / f"{settings.name}.topic"
