"""Runs of programs that are forks of a process that has read their modules, held as those that were started."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from docker.local.processes import Child
from kit import preloaded
from kit.preloaded import PATIENCE, Death


class Forked(Child):
    """Holds a running fork: `connection` tells its pid, and in the end its status."""

    def __init__(self, command: Sequence[str], log: Path, connection: socket.socket) -> None:
        self.log = log
        self._kill_command = None
        self._command = command
        self._connection = connection
        self._told = b""
        self._pid = self._number(PATIENCE)
        self._status: int | None = None
        assert self._pid is not None, f"{' '.join(command)} did not begin"

    def _number(self, timeout: float) -> int | None:
        """Return the next number that is told, None when none is within so many seconds."""
        self._connection.settimeout(timeout)
        while b"\n" not in self._told:
            try:
                found = self._connection.recv(64)
            except (TimeoutError, BlockingIOError):
                return None
            assert found, f"nobody knows how {' '.join(self._command)} ended"
            self._told += found
        number, _, self._told = self._told.partition(b"\n")
        return int(number)

    @property
    def pid(self) -> int:
        assert self._pid is not None  # else it would not exist
        return self._pid

    @property
    def status(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._ends_within(0.0)

    def _ends_within(self, timeout: float) -> int | None:
        if self._status is None:
            self._status = self._number(timeout)
            if self._status is not None:
                self._connection.close()
        return self._status

    def wait(self, timeout: float) -> int:
        """Return the exit status. Raises subprocess.TimeoutExpired."""
        status = self._ends_within(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self._command, timeout)
        return status

    def send(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.running:
            os.kill(self.pid, number)


class Preloaded:
    """Stands for one program that has been read; it ends with this process."""

    def __init__(self, module: str, environment: dict[str, str]) -> None:
        self._command = [sys.executable, "-m", module]
        # a name that is no file, and goes when nobody listens
        self._address = f"\0cdc-tests-{os.getpid()}-{module}"
        command = [sys.executable, preloaded.__file__, module, self._address[1:]]
        self._child = Child(command, Path(os.devnull), env=environment)

    def start(self, arguments: Sequence[str], log: Path, death: Death | None = None) -> Forked:
        """Start it; what it writes is appended to the log."""
        with open(log, "ab") as output:
            return self._fork(arguments, output, output, log, death)

    def run(
        self, arguments: Sequence[str], timeout: float, death: Death | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end. Raises subprocess.TimeoutExpired, which holds what it wrote."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            child = self._fork(arguments, out, err, Path(os.devnull), death)
            try:
                status, late = child.wait(timeout), False
            except subprocess.TimeoutExpired:
                child.kill()
                status, late = -1, True
            except BaseException:
                child.kill()
                raise
            out.seek(0)
            err.seek(0)
            said = out.read(), err.read()
        command = [*self._command, *arguments]
        if late:
            raise subprocess.TimeoutExpired(command, timeout, *said)
        return subprocess.CompletedProcess(command, status, *said)

    def _fork(self, arguments: Sequence[str], out: IO[Any], err: IO[Any], log: Path, death: Death | None) -> Forked:
        connection = self._connect()
        request = {"arguments": list(arguments), "folder": os.getcwd(), "death": death}
        socket.send_fds(connection, [json.dumps(request).encode()], [out.fileno(), err.fileno()])
        return Forked([*self._command, *arguments], log, connection)

    def _connect(self) -> socket.socket:
        deadline = time.monotonic() + PATIENCE
        while True:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(self._address)
                return connection
            except ConnectionRefusedError:
                connection.close()
                assert self._child.running and time.monotonic() < deadline, f"{' '.join(self._command)} cannot be read"
                time.sleep(0.02)
