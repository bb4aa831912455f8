"""The two connections to the leader, when it accepts and says nothing."""

from __future__ import annotations

import pytest
from kit.rogue import server_that_says

from cdc_producer.connection import ReplicationConnection
from cdc_producer.leader import LeaderConsole
from cdc_producer.profile import Leader
from shared import mysql
from shared.errors import LeaderLinkError
from shared.events import Position


def test_both_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql, "CONNECT_SECONDS", 0.5)
    with server_that_says(b"") as port:
        leader = Leader("fluvio", port=port)
        with pytest.raises(LeaderLinkError, match=f"{port}.* did not answer within"):
            LeaderConsole(leader)
        with pytest.raises(LeaderLinkError, match=f"{port}.* did not answer within"):
            ReplicationConnection(leader, 1, "uuid", Position("binlog.000001", 4))
