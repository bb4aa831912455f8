"""Opens the topic for the replay, and checks that it goes on from the follower's position."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice

from cdc_consumer.sql.positions import Mark, mark_of
from shared.decode import decode
from shared.errors import CdcError, OffsetGoneError, TopicLinkError, TopicMissingError, causes
from shared.events import Event, Position
from shared.profile import TopicSettings
from shared.recovery import Stopping, sleep
from shared.topic import Record, TopicReader, open_reader
from shared.topic.walk import backwards, entry, forwards, told_leader

#: tells of a GTID whether its transaction was executed
Executed = Callable[[str], bool]

logger = logging.getLogger(__name__)

#: seconds between two looks for a topic that does not exist yet
MISSING_SECONDS = 1.0
#: seconds within which a record that the topic says it holds must arrive, and of one wait for it
RECORD_SECONDS, READ_SECONDS = 30.0, 0.5
#: records among which a heartbeat is looked for; where there is much to publish, only the first one may be one
LAST_RECORDS, FIRST_RECORDS = 1000, 10

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


def leader_of_topic(reader: TopicReader, name: str) -> str:
    """Return the server_uuid that the topic's last heartbeat tells, "" for none among its last records and first ones.

    `name` is the topic's. What cannot be read tells nothing here: it is judged in its turn.
    """
    last, first = islice(backwards(reader, name), LAST_RECORDS), islice(forwards(reader, name), FIRST_RECORDS)
    with suppress(CdcError):
        return told_leader(map(entry, chain(last, first)))
    return ""


def continue_after(
    mark: Mark, reader: TopicReader, name: str, stopping: Stopping, executed: Executed = lambda gtid: False
) -> Mark:
    """Make the reader continue after the follower's position, which is returned with the offset it has in this topic.

    `name` is the topic's; `executed` tells of a GTID whether the follower has its transaction. A topic that ends too
    early is given the time that it may need to come back, unless the program is asked to stop. Raises OffsetGoneError
    when the topic does not hold what the follower has applied.
    """
    if reader.by_sequence:
        mark = replace(mark, offset=mark.sequence)
    if mark.offset >= 0 and _reaches(mark, reader, name, stopping):
        mark = _found(mark, reader, name, executed)
    reader.seek(mark.offset + 1)
    return mark


def _reaches(mark: Mark, reader: TopicReader, name: str, stopping: Stopping) -> bool:
    """Whether the topic holds what the follower has applied; False when asked to stop before that is known."""
    deadline = time.monotonic() + reader.return_seconds
    told = False
    while (end := reader.next_offset()) <= mark.offset:
        last = _mark_at(end - 1, reader, name)
        if last is not None and not _is_before(last, mark):
            # fewer heartbeats than there were, perhaps; where the follower's last event is will be seen
            return True
        short = f"topic {name} ends at offset {end}, and the follower has applied offset {mark.offset}"
        if time.monotonic() >= deadline:
            away = "a server that has them is away (start it, and then this again), or " if told else ""
            raise OffsetGoneError(f"{short}: {away}{_advice(mark, last)}")
        if not told:
            told = True
            logger.warning("%s: waiting up to %.0f s for the rest to come back", short, reader.return_seconds)
        sleep(MISSING_SECONDS, stopping)
        if stopping():
            return False
    return True


def _is_before(last: Mark, mark: Mark) -> bool:
    """Tell whether a topic that ends with `last` has not yet come to what the follower has."""
    if last.sequence != mark.sequence or last.position is None or mark.position is None:
        return last.sequence < mark.sequence
    return last.position < mark.position


def _advice(mark: Mark, last: Mark | None) -> str:
    """What to do about a topic that ends, with the record of `last`, before what the follower has applied."""
    if last is None or last.position is None or mark.position is None or mark.position < last.position:
        return ADVICE
    return (
        f"it is an earlier state of itself, of sequence {last.sequence} where the follower has {mark.sequence}: start"
        " its producer, which writes the rest again as long as the leader has it, and then this again; if the producer"
        f" stops, {ADVICE}"
    )


def _found(mark: Mark, reader: TopicReader, name: str, executed: Executed) -> Mark:
    """Find the record that the follower applied last: where it was, or where the topic has that very event now.

    A topic that was set back, and written on by its producer, holds the same events between other heartbeats.
    """
    try:
        there = _mark_at(mark.offset, reader, name)
    except OffsetGoneError:
        # Retention removed what is applied. The sequence of the next record decides, if that is still there.
        return mark
    if there is not None and (_same(there, mark) or (reader.by_sequence and _fits(there, mark))):
        return mark
    moved = _event_of(mark, reader, name, executed)
    if moved is None:
        found = "nothing" if there is None else f"sequence {there.sequence} of leader {there.position}"
        another = ", committed at another time" if there is not None and _another(there, mark) else ""
        raise OffsetGoneError(
            f"offset {mark.offset} of topic {name} holds {found}, and the follower has applied sequence"
            f" {mark.sequence} of {mark.position} there{another}: {ADVICE}"
        )
    logger.warning(
        "topic %s holds at offset %d what the follower has applied from offset %d: it was set back and written again",
        name, moved, mark.offset,
    )  # fmt: skip
    return replace(mark, offset=moved)


def _same(found: Mark, mark: Mark) -> bool:
    same = (found.sequence, found.file, found.leader_offset, found.gtid)
    return same == (mark.sequence, mark.file, mark.leader_offset, mark.gtid) and not _another(found, mark)


def _another(found: Mark, mark: Mark) -> bool:
    """Tell whether what the topic has of this sequence was committed at another time than what the follower has.

    A leader that went back in time together with its topic may give another transaction the same name and place.
    """
    known = found.committed is not None and mark.committed is not None
    # a heartbeat behind an event repeats its sequence, and has a place and a time of its own
    same = (found.sequence, found.position) == (mark.sequence, mark.position)
    return known and same and found.committed != mark.committed


def _fits(there: Mark, mark: Mark) -> bool:
    """Tell whether a mark can be that of a heartbeat behind the record of the same sequence, or before a later one."""
    if there.position is None or mark.position is None or there.sequence < mark.sequence or _another(there, mark):
        return False
    return there.position <= mark.position if there.sequence == mark.sequence else mark.position <= there.position


def _event_of(mark: Mark, reader: TopicReader, name: str, executed: Executed) -> int | None:
    """Return the offset of the event that has the mark's sequence, None unless it is the one that was applied.

    The mark may be that of a heartbeat behind it, and of a transaction of other databases: then the event must be one
    that the follower has executed, and what follows it in the topic must lie behind the mark.
    """
    offset, following = (_first(sequence, reader, name) for sequence in (mark.sequence, mark.sequence + 1))
    event, behind = (_event_at(each, reader, name) for each in (offset, min(following, reader.next_offset() - 1)))
    if event is None or event.end is None or event.sequence != mark.sequence or behind is None:
        return None
    found = mark_of(event, offset)
    if _same(found, mark):
        return offset
    if _another(found, mark):
        return None
    known = found.gtid is not None and executed(found.gtid)
    same = (found.gtid, found.committed, found.file) == (mark.gtid, mark.committed, mark.file)
    place, end, begin = mark.position, found.position, behind.position
    if behind.transaction is not None and behind.sequence > mark.sequence:
        begin = Position(begin.file, behind.transaction.begin)
    between = place is not None and end is not None and end <= place <= begin
    return offset if between and (same or known) else None


def _first(sequence: int, reader: TopicReader, name: str) -> int:
    """Return the offset of the first record with this sequence or a later one, else the topic's end."""
    low, high = reader.first_offset(), reader.next_offset()
    while low < high:
        middle = (low + high) // 2
        probe = _event_at(middle, reader, name)
        if probe is None or probe.sequence >= sequence:
            high = middle
        else:
            low = middle + 1
    return low


def _mark_at(offset: int, reader: TopicReader, name: str) -> Mark | None:
    event = _event_at(offset, reader, name)
    return None if event is None else mark_of(event, offset)


def _event_at(offset: int, reader: TopicReader, name: str) -> Event | None:
    """Return the event at this offset, None when the topic does not reach it. Raises OffsetGoneError."""
    if not reader.first_offset() <= offset < reader.next_offset():
        if 0 <= offset < reader.first_offset():
            raise OffsetGoneError(f"topic {name} no longer holds offset {offset}")
        return None
    reader.seek(offset)
    record = _first_record(reader, name)
    return decode(record.value, f"topic {name} offset {record.offset}")


def _first_record(reader: TopicReader, name: str) -> Record:
    deadline = time.monotonic() + RECORD_SECONDS
    while time.monotonic() < deadline:
        if records := reader.read(READ_SECONDS):
            return records[0]
    raise TopicLinkError(
        f"topic {name} has not delivered a record it holds for {RECORD_SECONDS:.0f} s; look whether its server is well"
    )
