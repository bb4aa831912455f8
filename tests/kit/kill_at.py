"""Runs a program until one of its functions was called so many times, and kills it there.

python tests/kit/kill_at.py cdc_consumer.copy.state:CopyState.plan after 2 cdc_consumer.copy PROFILE
python tests/kit/kill_at.py cdc_consumer.copy.state:CopyState.plan 0.02 2 cdc_consumer.copy PROFILE
python tests/kit/kill_at.py cdc_consumer.copy.state:CopyState.plan stop 2 cdc_consumer.copy PROFILE

The second dies somewhere, 0.02 seconds after the call began. However quick the machine is, it will not have come far:
the function is called AHEAD more times at most, and then waits for its end. The third does not die: it stands still
after the call, and whoever started it kills it when it likes.
"""

from __future__ import annotations

import functools
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

#: so that there are many of them
SMALL = {"cdc_consumer.copy.window": {"PART_ROWS": 50}}
#: calls that a process may make which is to die some time after one
AHEAD = 8


def kill_at(target: str, when: str, count: int) -> None:
    """Let the process die before or after the function's call of this number, or so many seconds after it began.

    With "stop" it stops after the call.
    """
    module, _, path = target.partition(":")
    owner: Any = importlib.import_module(module)
    *parts, name = path.split(".")
    for part in parts:
        owner = getattr(owner, part)
    original: Callable[..., Any] = getattr(owner, name)
    calls, lock = iter(range(1, sys.maxsize)), threading.Lock()
    seconds = None if when in ("before", "after", "stop") else float(when)

    @functools.wraps(original)
    def counted(*arguments: Any, **named: Any) -> Any:
        with lock:
            number = next(calls)
        if seconds is not None:
            if number == count:
                threading.Timer(seconds, die).start()
            elif number > count + AHEAD:
                threading.Event().wait()
        elif number == count and when == "before":
            die()
        result = original(*arguments, **named)
        if number == count and when == "after":
            die()
        if number == count and when == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        return result

    setattr(owner, name, counted)
    for other in list(sys.modules.values()):
        # where it was imported by its name
        if getattr(other, name, None) is original:
            setattr(other, name, counted)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def prepare(program: str, target: str, when: str, count: int) -> None:
    """Read a program, of which this process is to be a run that dies; see `kill_at`."""
    importlib.import_module(f"{program}.cli")
    for module, values in SMALL.items():
        for name, value in values.items():
            setattr(importlib.import_module(module), name, value)
    kill_at(target, when, count)


if __name__ == "__main__":
    target, when, count, program, *arguments = sys.argv[1:]
    prepare(program, target, when, int(count))
    sys.exit(importlib.import_module(f"{program}.cli").main(arguments))
