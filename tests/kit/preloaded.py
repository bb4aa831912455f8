"""Reads a program, and forks for each run of it: to read its modules would take each run a third of a second.

Every run is a process of its own, in a session of its own, with its own arguments, output and exit status, and enters
the program where the installed command does. Each program has a process of its own to be forked from, so that none
finds what only another one imports. See kit/forked.py for the other side.

python tests/kit/preloaded.py cdc_producer ADDRESS
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

#: what a program imports when it needs it; the rest its command line does
LATE: dict[str, tuple[str, ...]] = {
    "cdc_producer": ("cdc_producer.cli", "cdc_producer.produce", "shared.topic.embedded"),
    "cdc_consumer": ("cdc_consumer.cli", "cdc_consumer.replay", "shared.topic.embedded"),
    "cdc_consumer.copy": ("cdc_consumer.copy.cli", "cdc_consumer.copy.copy", "shared.topic.embedded"),
}
#: seconds in which the modules are read, however busy the machine is
PATIENCE = 90.0

#: where a run dies, or stands still: function, when and call, as kit/kill_at.py takes them
Death = tuple[str, str, int]


def serve(module: str, address: str) -> int:
    """Read a program, and fork for each request; returns, in a process of its own, the program's exit status."""
    main = import_module(f"{module}.__main__").main
    for name in LATE[module]:
        import_module(name)
    gc.collect()
    gc.freeze()
    # nobody waits for those that wait for the programs
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + address)
        listener.listen(64)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection:
        request, outputs, _, _ = socket.recv_fds(connection, 1 << 16, 2)
        program = os.fork()
        if program:
            _tell_end(connection, program, outputs)
    _become(module, json.loads(request), outputs)
    return int(main())


def _tell_end(connection: socket.socket, program: int, outputs: Sequence[int]) -> None:
    """Send the program's pid, and in the end its exit status; kill it when whoever asked for it is gone."""
    for number in outputs:
        os.close(number)
    try:
        connection.sendall(b"%d\n" % program)
        with selectors.DefaultSelector() as selector:
            end = os.pidfd_open(program)
            for each in (end, connection):
                selector.register(each, selectors.EVENT_READ)
            if end not in [key.fileobj for key, _ in selector.select()]:
                os.kill(program, signal.SIGKILL)
        _, status = os.waitpid(program, 0)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    finally:
        os._exit(0)


def _become(module: str, request: dict[str, Any], outputs: Sequence[int]) -> None:
    """Make this process look as if it had been started by itself."""
    os.setsid()
    os.chdir(request["folder"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, wanted in zip((nothing, *outputs), range(3), strict=True):
        os.dup2(number, wanted)
        os.close(number)
    sys.argv = [str(sys.modules[f"{module}.__main__"].__file__), *request["arguments"]]
    if request["death"] is not None:
        _die_at(module, *request["death"])


def _die_at(module: str, target: str, when: str, count: int) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    prepare = import_module("kit.kill_at").prepare
    sys.path.pop(0)
    prepare(module, target, when, count)


if __name__ == "__main__":
    # of the folder of this file nothing is a program's
    sys.path.pop(0)
    sys.exit(serve(*sys.argv[1:]))
