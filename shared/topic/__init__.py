"""Defines topics: an ordered, durable log of records has one writer and any number of readers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from shared.errors import RecordDamagedError, TopicError, TopicMissingError
from shared.profile import TopicSettings
from shared.profile_table import expand
from shared.topic.record import Record, Sealed

__all__ = ["Record", "Sealed", "TopicReader", "TopicWriter", "open_one_reader", "open_reader", "open_writer"]

logger = logging.getLogger(__name__)


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

    #: whether offsets are sequences, as where several topics are read as one, and whether some of these are left out
    by_sequence: bool
    gaps: bool
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


#: topics of one producer that stay open at once; with more the longest unused is closed. Fluvio's need processes
MOST_OPEN = {"embedded": 64, "fluvio": 16}


def open_writer(settings: TopicSettings) -> TopicWriter:
    """Open the topic for appending, with all to which it has routes; it is created when missing."""
    if settings.routes is None:
        return _open_unrouted_writer(settings)
    from shared.topic.marks import Routes
    from shared.topic.routed import RoutedWriter

    routes, most = Routes(settings.name, settings.routes), MOST_OPEN[settings.backend]
    writers = partial(_open_one_writer, settings)
    return RoutedWriter(routes, settings.control, writers, partial(open_one_reader, settings), most)


def _open_unrouted_writer(settings: TopicSettings) -> TopicWriter:
    from shared.topic.marks import require_journal

    writer = _open_one_writer(settings, settings.name)
    try:
        if require_journal(settings.name, writer.last()):
            raise TopicError(
                f"topic {settings.name} was written with routes, and the profile has none; set [topic.routes] as it"
                " was, or as an empty table, which sends all to this one from now on"
            )
        return writer
    except BaseException:
        writer.close()
        raise


def _open_one_writer(settings: TopicSettings, name: str) -> TopicWriter:
    settings = replace(settings, name=name)
    if settings.backend == "fluvio":
        from shared.topic.fluvio_topic import FluvioWriter

        return FluvioWriter(settings)
    from shared.topic.embedded import EmbeddedWriter

    return EmbeddedWriter(_file(settings), settings.retention_days)


def open_reader(settings: TopicSettings) -> TopicReader:
    """Open the topic for reading, with all others of its producer when that has routes, or with those that are named.

    Raises TopicMissingError when it does not exist, TopicError when it is unusable.
    """
    reader = open_one_reader(settings, settings.name)
    try:
        routed = _ends_routed(reader, settings.name)
        if settings.names is None and not routed:
            reader.seek(0)
            return reader
    except BaseException:
        reader.close()
        raise
    reader.close()
    from shared.topic.merged import MergedReader

    for name in settings.names or ():
        _look_at_part(settings, name)
    readers, most = partial(open_one_reader, settings), MOST_OPEN[settings.backend]
    return MergedReader(settings.name, settings.names, readers, most)


def _ends_routed(reader: TopicReader, name: str) -> bool:
    """Tell whether a producer with routes has written the topic's last record. Raises TopicError for no journal."""
    from shared.topic.marks import require_journal
    from shared.topic.walk import backwards, forwards

    for found in (backwards(reader, name), forwards(reader, name)):
        with suppress(RecordDamagedError):
            return require_journal(name, next(found, None))
    return False  # whoever reads on meets the damage


def _look_at_part(settings: TopicSettings, name: str) -> None:
    """Warn of a topic that is to be read and does not exist. Raises TopicError when it is none of this producer's."""
    from shared.topic.marks import journal_of
    from shared.topic.walk import backwards

    try:
        with closing(open_one_reader(settings, name)) as reader, suppress(RecordDamagedError):
            last = next(backwards(reader, name), None)
            if name != settings.name and last is not None and journal_of(last) != settings.name:
                raise TopicError(f"topic {name}, which names has, is none of the topics of {settings.name}")
    except TopicMissingError:
        logger.warning("topic %s, which names has, does not exist so far: nothing is read of it", name)


def open_one_reader(settings: TopicSettings, name: str) -> TopicReader:
    """Open one topic for reading, and no other. Raises what `open_reader` raises."""
    settings = replace(settings, name=name)
    if settings.backend == "fluvio":
        from shared.topic.fluvio_topic import FluvioReader

        return FluvioReader(settings)
    from shared.topic.embedded import EmbeddedReader

    return EmbeddedReader(_file(settings))


def _file(settings: TopicSettings) -> Path:
    return expand(settings.path, "topic.path") / f"{settings.name}.topic"
