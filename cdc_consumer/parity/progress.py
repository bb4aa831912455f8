"""What the terminal shows while the audit runs, and the samples its report draws."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from cdc_consumer.parity.run_model import Round, Sample
from cdc_consumer.parity.servers.pair import Pair
from shared.errors import CdcError

#: seconds between two lines where nobody watches, and between two samples
LINE_SECONDS = 10.0
SAMPLE_SECONDS = 1.0
#: samples kept; beyond it every second one is dropped and the pace halved
MOST_SAMPLES = 2000
BAR = 20


class StatusLine:
    """Writes one line anew on a terminal, a line every ten seconds elsewhere; both on standard error."""

    def __init__(self, out: TextIO | None = None, say: Callable[[str], None] | None = None) -> None:
        """`say` writes a line that stays where nobody watches; without it `out` gets that, too."""
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        self._say = say
        self._next = time.monotonic() + LINE_SECONDS

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self.clear()
        if self._say is None:
            self._out.write(f"{text}\n")
            self._out.flush()
        else:
            self._say(text)

    def show(self, line: Callable[[], str]) -> None:
        """Show how far it is: on a terminal at once, elsewhere when it is time."""
        if self._live:
            width = shutil.get_terminal_size().columns
            self._out.write(f"\r\x1b[K{line()[: width - 1]}")
            self._out.flush()
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_SECONDS
            self.say(line())

    def clear(self) -> None:
        """Let whatever else is written begin at the start of the line."""
        if self._live:
            self._out.write("\r\x1b[K")
            self._out.flush()


def bar(done: float) -> str:
    """Draw the part that is done, 0 to 1."""
    return f"[{'#' * int(done * BAR)}".ljust(BAR + 1, ".") + "]"


class Progress:
    """Tells how far an audit is, and samples it."""

    def __init__(self, pair: Pair, out: TextIO | None = None) -> None:
        self._pair = pair
        self._status = StatusLine(out)
        self.began = time.monotonic()
        self.expected_rows = 0
        self._rows = 0
        self.rounds: list[Round] = []
        self.samples: list[Sample] = []
        self._pace = SAMPLE_SECONDS
        self._next_sample = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self._status.say(text)

    def tick(self, rows: int, suspects: int) -> None:
        """Show the rows compared and the suspects found so far."""
        self._rows = rows
        now = self.seconds
        if now >= self._next_sample:
            self._next_sample = now + self._pace
            self._sample(now, rows, suspects)
        self._status.show(lambda: self._line(now, rows, suspects))

    def round(self, found: Round) -> None:
        self.rounds.append(found)
        self.tick(self._rows, found.open)
        self.say(
            f"round {found.number}: of {found.suspects:,} suspects {found.equal:,} equal, {found.proven:,} proven"
            f" different, {found.open:,} open; waited {found.waited:.1f} s for the follower"
        )

    def _sample(self, now: float, rows: int, suspects: int) -> None:
        lag: float | None = None
        threads: int | None = None
        try:
            with self._pair.leader.at_once(), self._pair.follower.at_once():
                lag = self._pair.lag()
                threads = self._pair.leader.threads_running()
        except CdcError:
            pass  # a server is away; what needs it will say so
        self.samples.append(Sample(round(now, 2), rows, suspects, lag, threads))
        if len(self.samples) > MOST_SAMPLES:
            self.samples = self.samples[::2]
            self._pace *= 2

    def _line(self, now: float, rows: int, suspects: int) -> str:
        done = min(rows / self.expected_rows, 1.0) if self.expected_rows else 0.0
        left = f"{now / done - now:.0f} s left" if done > 0.02 else "estimating"
        lag = self.samples[-1].lag if self.samples else None
        behind = "unknown" if lag is None else f"{lag:.1f} s"
        return (
            f"{bar(done)} {rows:,} of about {self.expected_rows:,} rows, {rows / max(now, 0.1):,.0f} rows/s, {left};"
            f" {suspects:,} suspects; follower behind {behind}"
        )
