"""Starts a program, so that from its first moment to its last a signal ends it with the status it documents.

Nothing is imported here but what the interpreter has read already: what a program needs takes a second to read.
"""

from __future__ import annotations

import atexit
import os
import signal
from importlib import import_module
from types import FrameType

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def start(module: str, stopped: int) -> int:
    """Run `main()` of this module; returns its exit status, `stopped` when a signal has ended it.

    A signal ends the process at once until the program has a handler of its own (it has not begun anything by then),
    and once it has returned.
    """
    _end_with(stopped)
    # what is registered first runs last, after all that may still wait for something
    atexit.register(_ignore_signals)
    try:
        status: int = import_module(module).main()
        _end_with(status)
    except KeyboardInterrupt:
        return stopped
    return status


def topic() -> int:
    """Entry point of cdc-topic, whose own package reads too much before it; returns the exit status."""
    return start("shared.topic.cli", stopped=130)


def _end_with(status: int) -> None:
    def end(number: int, frame: FrameType | None) -> None:
        os._exit(status)

    for number in STOP_SIGNALS:
        signal.signal(number, end)


def _ignore_signals() -> None:
    """Let the interpreter take itself down: it gives signals their usual meaning back on the way."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
