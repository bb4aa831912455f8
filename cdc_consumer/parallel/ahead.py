"""Passes over what ended before its turn, once the topic was found to hold that very transaction there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cdc_consumer.sql.positions import NOTHING, Mark, mark_of
from cdc_consumer.transactions import Step
from shared.errors import FollowerError


class Ahead:
    """Knows what was committed behind the follower's position when the session began."""

    def __init__(self, ended: Mapping[int, Mark]) -> None:
        """`ended` has where each of them ends, by the sequence of its first event."""
        self._ended = ended
        #: the end of the last one that was met
        self._until = NOTHING

    def passes(self, step: Step) -> bool:
        """Tell whether an operation was applied. Raises FollowerError when a slot tells of another topic."""
        event = step.event
        if step.first:
            self._until = self._ended.get(event.sequence, self._until)
        until = self._until
        if event.sequence == until.sequence:
            # a topic that was set back and written again, or has routes since, holds it at another offset
            found = mark_of(event, until.offset)
            if until.committed is None:
                found = replace(found, committed=None)
            if until != found or not step.last:
                raise FollowerError(
                    f"the follower has applied sequence {until.sequence} of the topic, leader {until.file}:"
                    f"{until.leader_offset}, and the topic holds another transaction there; load the follower anew, and"
                    " delete the topic's rows of the table position"
                )
        return event.sequence <= until.sequence
