"""Shows how far a copy is: rows, rows a second, what is left of each table, and how long that may take.

On a terminal one line is written anew all the time, elsewhere the log gets a line every ten seconds.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TextIO

from cdc_consumer.copy.rows.task import Copied, CopyTask
from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.progress import StatusLine, bar
from cdc_consumer.parity.report.words import count, duration
from shared.topic.walk import Entry

logger = logging.getLogger(__name__)

#: tables named in a line, those with most left
NAMED = 3
#: records between two looks at the clock
LOOK_RECORDS = 256
#: seconds between two lines while one statement runs
TICK_SECONDS = 0.5
#: what a statement that reads no rows counts beside one that makes an index, in rows
STATEMENT_ROWS = 1000
#: what an index begins with, of all that is added to a table
_INDEX = re.compile("KEY |UNIQUE |FULLTEXT |SPATIAL ")


class CopyProgress:
    """Counts what passes."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._status = StatusLine(out, lambda text: logger.info("%s", text))
        for handler in logging.getLogger().handlers:
            handler.addFilter(self._clear)
        self._began = time.monotonic()
        #: rows that were there before this run, that it has copied, that it has read so far, and a guess of all
        self._before = self._rows = self._read = self._all = 0
        self._left: Counter[TableName] = Counter()
        self._ranges: Counter[TableName] = Counter()
        #: rows that this run has copied of each table, and the seconds that took, those of all readers together
        self.rows: Counter[TableName] = Counter()
        self.seconds: dict[TableName, float] = {}

    def _clear(self, _: logging.LogRecord) -> bool:
        self._status.clear()
        return True

    def begin(self, counts: tuple[int, int], tasks: Sequence[CopyTask]) -> None:
        """Note what is there and how many rows there may be in all, and what is left to do."""
        self._before, self._all = counts
        self._began, self._rows, self._read = time.monotonic(), 0, 0
        self._left, self._ranges = Counter(), Counter()
        for task in tasks:
            self._left[task.shape.name] += task.expected
            self._ranges[task.shape.name] += 1
        if tasks:
            logger.info(
                "copying %s of %s; about %d rows in all", count(len(tasks), "range"), count(len(self._ranges), "table"),
                self._all,
            )  # fmt: skip

    def heard(self, copied: Copied) -> None:
        """Note that a range is there."""
        name = copied.task.shape.name
        self._rows += copied.rows
        self.rows[name] += copied.rows
        self.seconds[name] = self.seconds.get(name, 0.0) + copied.seconds
        self._left[name] -= copied.task.expected
        self._ranges[name] -= 1
        if not self._ranges[name]:
            del self._ranges[name], self._left[name]
        self._status.show(self.line)

    def rates(self) -> dict[TableName, float]:
        """Return how many rows a second one reader has copied, of each table that this run has copied rows of."""
        return {name: rows / self.seconds[name] for name, rows in self.rows.items() if rows and self.seconds[name]}

    def tick(self, rows: int) -> None:
        """Note how many rows have been read since `begin`, also those of ranges that are not there yet."""
        self._read = rows
        self._status.show(self.line)

    def line(self) -> str:
        """Say how far the rows are."""
        new = max(self._rows, self._read)
        there = self._before + new
        seconds = time.monotonic() - self._began
        rest = max(self._all - there, 0)
        eta = f", about {duration(rest * seconds / new)} left" if new and rest else ""
        tables = [
            f"{name} ({_tables_rest(self._left[name], self._ranges[name])})"
            for name, _ in self._left.most_common(NAMED)
        ]
        more = f" and {count(len(self._left) - NAMED, 'table')} more" if len(self._left) > NAMED else ""
        left = f"; left: {', '.join(tables)}{more}" if tables else ""
        done = min(there / self._all, 1.0) if self._all else 1.0
        return f"{bar(done)} {there:,} of about {self._all:,} rows, {new / max(seconds, 0.1):,.0f} rows/s{eta}{left}"

    def passing(self, entries: Iterator[Entry], start: int, stop: int) -> Iterator[Entry]:
        """Yield the entries of the topic from `start` to `stop`, and say how far they are."""
        began = time.monotonic()
        for number, entry in enumerate(entries):
            if number % LOOK_RECORDS == 0:
                self._status.show(lambda at=entry.offset: _passing(at, start, stop, time.monotonic() - began))  # type: ignore[misc]
            yield entry

    @contextmanager
    def step(self, steps: CopySteps) -> Iterator[None]:
        """Say which of the statements behind the rows runs, and since when."""
        logger.info("%s", steps.words())
        began, done = time.monotonic(), threading.Event()

        def tick() -> None:
            while not done.wait(TICK_SECONDS):
                self._status.show(lambda: steps.line(time.monotonic() - began))

        thread = threading.Thread(target=tick, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


class CopySteps:
    """Knows how far the statements behind the rows are: an index takes as long as its table has rows."""

    def __init__(self, statements: Sequence[str], rows: Mapping[TableName, int]) -> None:
        self._statements = statements
        heads = [(f"ALTER TABLE {name.sql} ADD ", number) for name, number in rows.items()]
        self._weights = [
            STATEMENT_ROWS + sum(rows for head, rows in heads if sql.startswith(head) and _INDEX.match(sql, len(head)))
            for sql in statements
        ]
        self._began = time.monotonic()
        #: index of the one that runs
        self.number = 0

    def words(self) -> str:
        """Say which one runs."""
        words = " ".join(self._statements[self.number].split())
        return (
            f"step {self.number + 1} of {len(self._statements)}: {words if len(words) <= 100 else words[:97] + '...'}"
        )

    def line(self, seconds: float) -> str:
        """Say which one runs since so many seconds, and when all may have run."""
        done, rest = sum(self._weights[: self.number]), sum(self._weights[self.number :])
        before = time.monotonic() - self._began - seconds
        eta = f", about {duration(max(before * rest / done - seconds, 0))} left" if done and before > 1 else ""
        return f"{bar(self.number / len(self._weights))} {self.words()}: since {duration(seconds)}{eta}"


def _tables_rest(rows: int, ranges: int) -> str:
    return f"about {count(rows, 'row')} in {count(ranges, 'range')}"


def _passing(at: int, start: int, stop: int, seconds: float) -> str:
    passed, rest = at - start, stop - at
    eta = f", about {duration(rest * seconds / passed)} left" if passed > 0 and rest else ""
    rate = passed / max(seconds, 0.1)
    done = bar(passed / max(stop - start, 1))
    what = f"{passed:,} of {stop - start:,} records, {rate:,.0f} a second{eta}"
    return f"{done} catching up with what was written meanwhile: {what}"
