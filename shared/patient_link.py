"""Reads from and writes to a server in steps, so that who waits for it can say so, and give up."""

from __future__ import annotations

import io
import select
import socket
import time
from typing import Any, Protocol

#: seconds of one step
STEP_SECONDS = 0.5


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

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # a TLS layer may hold decrypted bytes that no poll tells of
        if not (hasattr(self._link, "pending") and self._link.pending()):
            self._wait(select.POLLIN)
        return int(self._link.recv_into(buffer))

    def send(self, data: bytes) -> None:
        """Send all of it."""
        rest = memoryview(data)
        # a TLS layer takes no flags, and sends a whole record
        flags = () if hasattr(self._link, "pending") else (socket.MSG_DONTWAIT,)
        while rest:
            self._wait(select.POLLOUT)
            rest = rest[self._link.send(rest[: 1 << 14] if not flags else rest, *flags) :]

    def _wait(self, event: int) -> None:
        poll = select.poll()
        poll.register(self._link, event)
        began = time.monotonic()
        waited = 0.0
        while not poll.poll(STEP_SECONDS * 1000):
            waited = time.monotonic() - began
            self._waiter.waits(waited)
        if waited:
            self._waiter.moved(waited)
