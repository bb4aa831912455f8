"""The two connections to the leader, when it accepts and says nothing."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from kit.rogue import server_that_drips, server_that_says

from cdc_producer import connection
from cdc_producer.connection import ReplicationConnection
from cdc_producer.leader import LeaderConsole
from cdc_producer.profile import Leader
from shared import mysql
from shared.errors import LeaderLinkError
from shared.events import Position
from shared.recovery import Stopping


def test_both_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql, "CONNECT_SECONDS", 0.5)
    with server_that_says(b"") as port:
        leader = Leader("fluvio", port=port)
        with pytest.raises(LeaderLinkError, match=f"{port}.* did not answer within"):
            LeaderConsole(leader)
        with pytest.raises(LeaderLinkError, match=f"{port}.* did not answer within"):
            ReplicationConnection(leader, 1, "uuid", Position("binlog.000001", 4))


@contextmanager
def dump(
    port: int, monkeypatch: pytest.MonkeyPatch, stopping: Stopping, heartbeat: float = 10.0
) -> Iterator[ReplicationConnection]:
    """A dump that has begun, on a link to this port."""
    with socket.create_connection(("127.0.0.1", port)) as link:
        registered = SimpleNamespace(
            _BinLogStreamReader__connect_to_stream=lambda: None,
            _stream_connection=SimpleNamespace(_sock=link, _force_close=link.close),
        )
        monkeypatch.setattr(connection, "BinLogStreamReader", lambda *_, **__: registered)
        leader = Leader("fluvio", port=port, heartbeat_seconds=heartbeat)
        yield ReplicationConnection(leader, 1, "uuid", Position("binlog.000001", 4), stopping)


@pytest.mark.parametrize("size", [100, 3 << 20])
@pytest.mark.parametrize("drips", [True, False])
def test_a_request_to_stop_does_not_wait_for_a_packet_that_drips(
    monkeypatch: pytest.MonkeyPatch, size: int, drips: bool
) -> None:
    monkeypatch.setattr(connection, "STOP_SECONDS", 0.5)
    began = time.monotonic()
    head, rest = size.to_bytes(3, "little") + b"\0\0", b"x" * (200 if drips else 0)
    with (
        server_that_drips(rest, 0.2, at_once=head) as port,
        dump(port, monkeypatch, lambda: time.monotonic() - began > 0.5) as reader,
        pytest.raises(LeaderLinkError, match="asked to stop"),
    ):
        list(reader.events())
    assert time.monotonic() - began < 5


def test_a_packet_that_drips_ends_the_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte is a sign of life, and the packet would take minutes."""
    head = (1000).to_bytes(3, "little") + b"\0\0"
    with (
        server_that_drips(b"x" * 900, 0.2, at_once=head) as port,
        dump(port, monkeypatch, lambda: False, heartbeat=0.2) as reader,
        pytest.raises(LeaderLinkError, match=r"comes too slowly, [0-9]+ bytes in"),
    ):
        list(reader.events())


def test_a_packet_that_comes_slowly_comes_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than the leader may be silent."""
    monkeypatch.setattr(connection, "SLOWEST", 1)
    size = 20
    head = (size + 1).to_bytes(3, "little") + b"\0\0"
    with (
        server_that_drips(b"x" * size, 0.05, at_once=head) as port,
        dump(port, monkeypatch, lambda: False, heartbeat=0.2) as reader,
    ):
        assert list(reader.events()) == [b"x" * size]


def test_silence_ends_the_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        server_that_says(b"") as port,
        dump(port, monkeypatch, lambda: True, heartbeat=0.1) as reader,
        pytest.raises(LeaderLinkError, match=r"no sign of life for 0\.3 seconds"),
    ):
        list(reader.events())


def packet(body: bytes) -> bytes:
    """What carries this binlog event: as many packets as it needs, of which only the last is not full."""
    body = b"\0" + body
    cut = [body[start : start + connection.MAX_PACKET] for start in range(0, len(body), connection.MAX_PACKET)]
    if len(cut[-1]) == connection.MAX_PACKET:
        cut.append(b"")
    return b"".join(len(part).to_bytes(3, "little") + b"\7" + part for part in cut)


def test_events_of_every_size_come_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    full = connection.MAX_PACKET
    events = [b"", b"a" * 70_000, b"b" * (full - 2), b"c" * (full - 1), b"d" * full, b"", b"e" * (2 * full - 1)]
    found: list[bytes] = []
    with (
        server_that_says(b"".join(map(packet, events))) as port,
        dump(port, monkeypatch, lambda: False) as reader,
    ):
        while len(found) < len(events):
            found += reader.events()
    assert found == events


def test_an_empty_packet_ends_the_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        server_that_says(packet(b"event") + b"\0\0\0\1") as port,
        dump(port, monkeypatch, lambda: False) as reader,
        pytest.raises(LeaderLinkError, match="ended the binlog stream"),
    ):
        while True:
            assert list(reader.events()) == [b"event"]
