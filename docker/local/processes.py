"""Starts child processes that never outlive the process that started them."""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

#: waits for a line, or for the end of its input: the death of whoever started it
WATCHDOG = 'read -r _ || eval "$1"'

_running: set[Child] = set()
_owner = os.getpid()


class Child:
    """Holds a running program whose output goes to a file.

    It lives in a session of its own, so Ctrl-C in a terminal reaches only its parent, which then decides. A watchdog
    kills it when the parent dies, of SIGKILL too. (PR_SET_PDEATHSIG would also fire when the *thread* that started it
    ends.)
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        kill_command: Sequence[str] | None = None,
    ) -> None:
        """`log` is appended to. `kill_command` ends the program where a signal would not, as for a container."""
        self.log = log
        self._kill_command = kill_command
        with uninterrupted():
            with open(log, "ab") as output:
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, start_new_session=True
                )
            _running.add(self)
            script = shlex.join(kill_command) if kill_command else f"kill -KILL {self.pid}"
            self._watchdog = subprocess.Popen(
                ["sh", "-c", WATCHDOG, "watchdog", script],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self.status is None

    @property
    def status(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        status = self._process.poll()
        if status is not None:
            self._ended()
        return status

    def wait(self, timeout: float) -> int:
        """Return the exit status. Raises subprocess.TimeoutExpired."""
        status = self._process.wait(timeout)
        self._ended()
        return status

    def stop(self, timeout: float = 60.0) -> int:
        """Ask it to end, and wait. Raises subprocess.TimeoutExpired, and it is killed, when it does not."""
        if self.running:
            self.send(signal.SIGTERM)
        try:
            return self.wait(timeout)
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """End it at once."""
        if self.running:
            if self._kill_command:
                subprocess.run(self._kill_command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            self.send(signal.SIGKILL)
            self.wait(30.0)

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def tail(self, lines: int = 12) -> str:
        """Return the last lines it wrote."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _ended(self) -> None:
        if self in _running:
            _running.discard(self)
            self._watchdog.communicate(b"\n", timeout=10)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait, so that what is made here is also known to whoever removes it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    handlers = {number: signal.signal(number, lambda found, _: arrived.append(found)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for found in arrived:
            signal.raise_signal(found)


class Interrupts:
    """Raises KeyboardInterrupt on Ctrl-C, and on a polite kill, and remembers that it did.

    What is raised while Python cleans up after itself, as it does all the time while it imports, is dropped. Whoever
    goes on for long therefore calls `check` now and then.
    """

    def __init__(self) -> None:
        self.seen = False

    def listen(self) -> None:
        """Take the two signals from now on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._arrived)
        told = sys.unraisablehook
        # `check` raises it again
        sys.unraisablehook = lambda found: None if found.exc_type is KeyboardInterrupt else told(found)

    def check(self) -> None:
        """Raise KeyboardInterrupt when one of them has arrived."""
        if self.seen:
            raise KeyboardInterrupt

    def _arrived(self, *_: object) -> None:
        self.seen = True
        raise KeyboardInterrupt


#: those of this process
interrupts = Interrupts()


@atexit.register
def _kill_all() -> None:
    # a fork of this process inherits the set, not the children
    if os.getpid() == _owner:
        for child in list(_running):
            child.kill()
