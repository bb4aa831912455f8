"""The topic is that of the leader it is taken for, as far as its heartbeats tell."""

from __future__ import annotations

import pytest
from fix_history import NAMES, reading, row
from kit.events import EventLog

from shared.errors import TopicError


def test_the_last_leader_that_a_heartbeat_names_is_the_one(log: EventLog) -> None:
    """A heartbeat that names none, as a mark of several topics is read, says nothing."""
    log.heartbeat("earlier")
    log.heartbeat("other")
    log.add("db.t", NAMES, row(1))
    log.heartbeat("")
    with reading(log) as found:
        found.require_leader(lambda sql: [("other",)])
        with pytest.raises(TopicError, match="the server other wrote"):
            found.require_leader(lambda sql: [("mine",)])
