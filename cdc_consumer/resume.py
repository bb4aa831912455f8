"""Opens the topic for the replay, and checks that it goes on from the follower's position."""

from __future__ import annotations

import logging
import time

from cdc_consumer.sql.positions import Mark, mark_of
from shared.decode import decode
from shared.errors import OffsetGoneError, TopicLinkError, TopicMissingError, causes
from shared.profile import TopicSettings
from shared.recovery import Stopping, sleep
from shared.topic import Record, TopicReader, open_reader

logger = logging.getLogger(__name__)

#: seconds between two looks for a topic that does not exist yet
MISSING_SECONDS = 1.0
#: seconds within which a record that the topic says it holds must arrive, and of one wait for it
RECORD_SECONDS, READ_SECONDS = 30.0, 0.5

ADVICE = "it was created anew or lost records; load the follower anew, or name the topic it was loaded from"


def open_topic(settings: TopicSettings, stopping: Stopping, wait: bool) -> TopicReader | None:
    """Open the topic, or, if it may `wait`, wait until it exists; None when the program is asked to stop before.

    Raises TopicError.
    """
    told = False
    while not stopping():
        try:
            return open_reader(settings)
        except (TopicMissingError, TopicLinkError) as error:
            # a cluster that was reached once may be away for a while
            if not wait or not (told or isinstance(error, TopicMissingError)):
                raise
            if not told:
                logger.info("waiting for the topic: %s", causes(error))
                told = True
            sleep(MISSING_SECONDS, stopping)
    return None


def continue_after(mark: Mark, reader: TopicReader, name: str, stopping: Stopping) -> None:
    """Make the reader continue after the follower's position. Raises OffsetGoneError when the topic does not.

    `name` is the topic's. A topic that ends too early is given the time that it may need to come back, unless the
    program is asked to stop.
    """
    if mark.offset >= 0 and _reaches(mark, reader, name, stopping):
        _check(mark, reader, name)
    reader.seek(mark.offset + 1)


def _reaches(mark: Mark, reader: TopicReader, name: str, stopping: Stopping) -> bool:
    """Whether the topic holds what the follower has applied; False when asked to stop before that is known."""
    deadline = time.monotonic() + reader.return_seconds
    told = False
    while (end := reader.next_offset()) <= mark.offset:
        short = f"topic {name} ends at offset {end}, and the follower has applied offset {mark.offset}"
        if time.monotonic() >= deadline:
            away = "a server that has them is away (start it, and then this again), or " if told else ""
            raise OffsetGoneError(f"{short}: {away}{ADVICE}")
        if not told:
            told = True
            logger.warning("%s: waiting up to %.0f s for the rest to come back", short, reader.return_seconds)
        sleep(MISSING_SECONDS, stopping)
        if stopping():
            return False
    return True


def _check(mark: Mark, reader: TopicReader, name: str) -> None:
    """Compare the record that the follower applied last with what the topic holds there."""
    reader.seek(mark.offset)
    try:
        record = _first_record(reader, name)
    except OffsetGoneError:
        # Retention removed what is applied. The sequence of the next record decides, if that is still there.
        return
    event = decode(record.value, f"topic {name} offset {record.offset}")
    found = mark_of(event, record.offset)
    same = (found.sequence, found.file, found.leader_offset, found.gtid)
    if same != (mark.sequence, mark.file, mark.leader_offset, mark.gtid):
        raise OffsetGoneError(
            f"offset {mark.offset} of topic {name} holds sequence {found.sequence} of leader {found.file}:"
            f"{found.leader_offset}, and the follower has applied sequence {mark.sequence} of {mark.file}:"
            f"{mark.leader_offset} there: {ADVICE}"
        )


def _first_record(reader: TopicReader, name: str) -> Record:
    deadline = time.monotonic() + RECORD_SECONDS
    while time.monotonic() < deadline:
        if records := reader.read(READ_SECONDS):
            return records[0]
    raise TopicLinkError(
        f"topic {name} has not delivered a record it holds for {RECORD_SECONDS:.0f} s; look whether its server is well"
    )
