"""Asks, on a terminal, before anything is dropped; where nobody watches, --replace is the answer."""

from __future__ import annotations

import select
import sys

from cdc_consumer.copy.moment import Ended
from shared.errors import FollowerError, printable
from shared.recovery import NOTICE_SECONDS, Stopping


def require_consent(what: str, stopping: Stopping) -> None:
    """Ask whether `what` may be dropped. Raises FollowerError when it may not, Ended when asked to stop."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    print(printable(f"this drops {what}. Type yes to go on:"), end=" ", file=sys.stderr, flush=True)
    while not select.select([sys.stdin], [], [], NOTICE_SECONDS)[0]:
        if stopping():
            raise Ended
    if sys.stdin.readline().strip().lower() != "yes":
        raise FollowerError("nothing was dropped: the answer was not yes")
