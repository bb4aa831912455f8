"""Runs a part of a program as a process of its own, with a pipe in each direction."""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
import sys
from pathlib import Path
from typing import IO

#: bytes a pipe holds before the one who writes has to wait
PIPE_BYTES = 1 << 20
#: the process imports this project from where the program did; "" would be the working directory
START = "import sys; sys.path[0] = sys.argv[1]; from importlib import import_module; import_module(sys.argv[2]).main()"


class HelperProcess:
    """Holds the program's side of one process; it ends at the latest when the program does, as its stdin does."""

    def __init__(self, module: str) -> None:
        """Start `main()` of this module. Raises OSError when there is no process to be had."""
        # A session of its own: Ctrl-C is for the program, which still has a transaction to finish.
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, str(Path(__file__).parents[1]), module], bufsize=0, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert self._process.stdin and self._process.stdout
        #: its stdin, and its stdout
        self.input: IO[bytes] = self._process.stdin
        self.output: IO[bytes] = self._process.stdout
        for pipe in (self.input, self.output):
            with contextlib.suppress(AttributeError, OSError):  # Linux; elsewhere pipes stay small
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def wait(self) -> int:
        """Wait until it has ended; returns its exit status."""
        return self._process.wait()

    def kill(self) -> None:
        """End it at once; nothing when it has ended."""
        self._process.kill()

    def close(self) -> None:
        """End the process; what is still on its way in the pipes is lost."""
        self.kill()
        self.wait()
        self.input.close()
        self.output.close()
