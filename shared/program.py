"""Does what all programs do the same way: arguments, logging, signals and exit status."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType

from shared.errors import CdcError, causes

EXIT_STATUS = """exit status: 0 done or asked to stop, 1 a named error (one line on standard error), 2 usage or a bad
profile, 3 a bug in this program (please report the traceback)"""

#: exit status of a bug
BUG = 3


class StopRequest:
    """Becomes true when SIGINT or SIGTERM arrives; a second signal ends the program at once."""

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __call__(self) -> bool:
        return self.requested


def parser(name: str, description: str, end_help: str, epilog: str) -> argparse.ArgumentParser:
    """The arguments both programs have."""
    result = argparse.ArgumentParser(
        name, description=description, epilog=f"{epilog}\n\n{EXIT_STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    result.add_argument("profile", metavar="PROFILE", help="the TOML file that says where everything is")
    result.add_argument("--exit-at-end", action="store_true", help=end_help)
    result.add_argument("--verbose", action="store_true", help="log every step to standard error")
    return result


def run(name: str, action: Callable[[StopRequest], None], *, verbose: bool = False) -> int:
    """Run a program's action; returns its exit status."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.DEBUG if verbose else logging.INFO,
        format=f"%(asctime)s {name}: %(levelname)s: %(message)s",
    )  # fmt: skip
    stop = StopRequest()
    try:
        action(stop)
        return 0
    except CdcError as error:
        print(f"{name}: {causes(error)}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 0 if stop.requested else 130
    except Exception:
        traceback.print_exc()
        return BUG
