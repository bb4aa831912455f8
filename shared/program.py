"""Does what all programs do the same way: arguments, logging, signals and exit status."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from shared.errors import CdcError, ProfileError, causes, printable
from shared.start import STOP_SIGNALS

#: how the profile of whoever reads both servers names them
BOTH_SERVERS = """\
  [leader]
  host = "127.0.0.1"
  port = 3080
  user = "fluvio"
  password_env = "CDC_LEADER_PASSWORD"
  [follower]
  host = "127.0.0.1"
  port = 3090
  user = "fluvio"
  password_env = "CDC_FOLLOWER_PASSWORD"
"""

EXIT_STATUS = """exit status: 0 done or asked to stop, 1 a named error (one line on standard error), 2 usage or a bad
profile, 3 a bug in this program (please report the traceback)"""

PROFILE = "the TOML file that says where everything is"
#: characters of a reason at most
REASON_CHARACTERS = 2000
#: exit status of a bug, and of a program that Ctrl-C broke off
BUG, INTERRUPTED = 3, 130


class _Breakable:
    #: how many things the main thread is in that a stop may break off
    depth = 0


@contextmanager
def broken_off_by_a_stop() -> Iterator[None]:
    """Let a first signal end the program at once: nothing that the main thread does inside has to be finished."""
    if threading.current_thread() is not threading.main_thread():
        yield  # which a signal does not reach
        return
    _Breakable.depth += 1
    try:
        yield
    finally:
        _Breakable.depth -= 1


class StopRequest:
    """Becomes true when SIGINT or SIGTERM arrives; a second signal ends the program at once."""

    def __init__(self) -> None:
        self.requested = False
        for number in STOP_SIGNALS:
            signal.signal(number, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        again, self.requested = self.requested, True
        if again or _Breakable.depth:
            raise KeyboardInterrupt

    def __call__(self) -> bool:
        return self.requested


class _Line(logging.Formatter):
    """Keeps to one line what a server, a topic or an operator may have put into a message."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return printable(super().formatMessage(record))


def interrupt_on_signals() -> None:
    """Let SIGINT and SIGTERM raise KeyboardInterrupt, in a program that only reads and has nothing to finish."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.default_int_handler)


def parser(name: str, description: str, epilog: str, profile: str = PROFILE) -> argparse.ArgumentParser:
    """Describe the argument that all programs have; `profile` says what it is."""
    result = argparse.ArgumentParser(
        name, description=description, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("profile", metavar="PROFILE", help=profile)
    return result


def replication_parser(name: str, description: str, end_help: str, epilog: str) -> argparse.ArgumentParser:
    """Describe the arguments of a program that runs until it is stopped; `end_help` explains --exit-at-end."""
    result = parser(name, description, f"{epilog}\n\n{EXIT_STATUS}")
    result.add_argument("--exit-at-end", action="store_true", help=end_help)
    result.add_argument("--verbose", action="store_true", help="log every step to standard error")
    return result


def kept_reason(given: str | None) -> str:
    """Return the reason of a decision to --skip a transaction, as it is kept. Raises ProfileError."""
    if given is None or not given.strip() or len(given) > REASON_CHARACTERS:
        raise ProfileError(f"--skip needs --reason, a text of at most {REASON_CHARACTERS} characters that is kept")
    return given.strip()


def run(
    name: str, action: Callable[[], int | None], *, level: int = logging.WARNING, failed: int | None = None,
    bug: int = BUG, interrupted: int = INTERRUPTED,
) -> int:  # fmt: skip
    """Do what the program is for; returns its exit status.

    That is what `action` returns (None is 0), `failed` after a CdcError (None is the error's own), 2 after a
    ProfileError, `interrupted` after KeyboardInterrupt, `bug` after any other exception. Lines of `level` and above are
    logged to standard error.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line(f"%(asctime)s {name}: %(levelname)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
    try:
        return action() or 0
    except CdcError as error:
        print(f"{name}: {causes(error)}", file=sys.stderr)
        return error.exit_status if failed is None or isinstance(error, ProfileError) else failed
    except KeyboardInterrupt:
        return interrupted
    except Exception:
        traceback.print_exc()
        return bug


def run_replication(
    name: str, action: Callable[[StopRequest], None], *, verbose: bool, interrupted: int = 0
) -> int:  # fmt: skip
    """Run a program that ends in order when it is asked to stop, and at once when it is asked again (`interrupted`)."""
    stop = StopRequest()
    return run(name, lambda: action(stop), level=logging.DEBUG if verbose else logging.INFO, interrupted=interrupted)
