"""Reads from and writes to a server so that a wait for it can be told and given up, or ends by itself."""

from __future__ import annotations

import contextlib
import io
import select
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any, Protocol

#: seconds of one step
STEP_SECONDS = 0.5
#: of a silent link: seconds before the first probe, between two, and how many may stay unanswered; milliseconds that
#: something sent may stay unanswered
KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6, "TCP_USER_TIMEOUT": 90_000}


def keep_alive(link: socket.socket) -> None:
    """Notice a server that has vanished within minutes, not hours, however long a statement may take."""
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):  # not every system has all of them
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Waiter(Protocol):
    """Hears of waiting while it lasts."""

    def waits(self, seconds: float) -> None:
        """Hear that the server has not moved for so long. What it raises ends the wait, and with it the connection."""

    def moved(self, seconds: float) -> None:
        """Hear that the server moved again after so long."""


class PatientLink(io.RawIOBase):
    """Is the file that a driver reads answers from, and sends its packets to."""

    def __init__(self, link: socket.socket, waiter: Waiter) -> None:
        self._link: Any = link
        self._waiter = waiter
        self._encrypted = isinstance(link, ssl.SSLSocket)
        self._polls = {event: select.poll() for event in (select.POLLIN, select.POLLOUT)}
        for event, poll in self._polls.items():
            poll.register(link, event)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._in_steps(select.POLLIN, lambda: self._link.recv_into(buffer))

    def send(self, data: bytes) -> None:
        """Send all of it."""
        rest = memoryview(data)
        # a TLS layer takes no flags, and sends a whole record
        flags = () if self._encrypted else (socket.MSG_DONTWAIT,)
        if flags:
            with contextlib.suppress(BlockingIOError):
                rest = rest[self._link.send(rest, *flags) :]
        while rest:
            piece = rest[: 1 << 14] if self._encrypted else rest
            rest = rest[self._in_steps(select.POLLOUT, lambda piece=piece: self._link.send(piece, *flags)) :]  # type: ignore[misc]

    def _in_steps(self, event: int, move: Callable[[], int]) -> int:
        """Wait until the link can move, and move; of a TLS record a part may have come, and then it cannot yet."""
        began = time.monotonic()
        waited = 0.0
        poll = self._polls[event].poll
        if self._encrypted:
            # no poll tells of what is decrypted already, or not whole; the same call may be made again
            self._link.settimeout(STEP_SECONDS)
        while True:
            try:
                if self._encrypted or poll(STEP_SECONDS * 1000):
                    moved = move()
                    break
            except TimeoutError:
                pass
            waited = time.monotonic() - began
            self._waiter.waits(waited)
        if waited:
            self._waiter.moved(waited)
        return moved


class TimedLink(io.RawIOBase):
    """Is the file that a driver reads answers from, each of which must have come whole within some seconds."""

    def __init__(self, link: socket.socket, seconds: float, until: float | None = None) -> None:
        """`until` is when the first answer must have come (monotonic seconds), in so many `seconds` when None."""
        self._link = link
        self._seconds = seconds
        self._until = time.monotonic() + seconds if until is None else until

    def restart(self) -> None:
        """Begin to wait for the next answer."""
        self._until = time.monotonic() + self._seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        rest = self._until - time.monotonic()
        try:
            if rest > 0:
                self._link.settimeout(rest)
                return self._link.recv_into(buffer)
        except TimeoutError:
            pass
        raise TimeoutError(f"its answer was not whole within {self._seconds:g} seconds")
