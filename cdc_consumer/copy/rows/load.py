"""Writes lines of rows into a table of the follower, and proves that each of them is there as it was sent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cdc_consumer.copy.rows import texts
from cdc_consumer.copy.rows.documents import facts, together
from cdc_consumer.copy.rows.lines import SLOW_SECONDS, LeaderRows
from cdc_consumer.copy.rows.typed_rows import MOST_ROWS, ROWS_BYTES, TypedRow
from cdc_consumer.parity.model import Shape
from cdc_consumer.parity.rows.ranges import TableQueries, among
from cdc_consumer.sql import literals
from cdc_consumer.sql.packets import leave, load_rows
from cdc_consumer.sql.session import RELAXED_MODE, ROWS
from shared.errors import DivergedError
from shared.mysql import Connection, connect, rows
from shared.profile import Database

#: what the server says of a LOAD DATA
_COUNTS = re.compile(r"Records: (\d+)  Deleted: (\d+)  Skipped: (\d+)  Warnings: (\d+)")

#: MySQL's number for a warning that what was written, a character set, is not the newest
OUTDATED = 1287

#: bytes of the largest packet that a server may take
MOST_PACKET = 1 << 30


def session(settings: Mapping[str, str]) -> str:
    """Return the statement that gives a session on the follower what the writes of a copy need.

    They stay out of its binlog: with GTIDs they would be transactions that the leader does not know.
    """
    own = {
        **ROWS, **settings, "net_read_timeout": str(SLOW_SECONDS), "sql_log_bin": "0", "foreign_key_checks": "0",
        "unique_checks": "0", "sql_mode": RELAXED_MODE, "max_error_count": "65535",
    }  # fmt: skip
    return f"SET {', '.join(f'{name} = {value}' for name, value in own.items())}"


def _head(shape: Shape) -> bytes:
    return texts.insert_head(shape.name, texts.written(shape)).encode()


class Writer:
    """Holds one connection to the follower, in a session for the rows of a copy."""

    def __init__(self, follower: Database, settings: Mapping[str, str], *, local_files: bool) -> None:
        """Raises MySQLError and OSError, as all else here does."""
        self._local_files = local_files
        self.connection: Connection = connect(follower, local_files=local_files)
        self.run(session(settings))
        ((packet,),) = self.rows("SELECT @@SESSION.max_allowed_packet")
        self._packet = int(packet)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return rows(self.connection, literals.encode(sql))

    def run(self, sql: str | bytes) -> tuple[int, int]:
        """Run a statement; return how many rows it inserted or matched, and its warnings."""
        with self.connection.cursor() as cursor:
            count = cursor.execute(literals.encode(sql) if isinstance(sql, str) else sql)
            return count, int(getattr(cursor, "warning_count", 0))

    def expect(self, sql: str, count: int) -> None:
        """Run a statement that must match so many rows. Raises DivergedError."""
        found, _ = self.run(sql)
        if found != count:
            raise DivergedError(f"{found} of {count} rows were found by: {sql[:200]}")

    def close(self) -> None:
        """Leave at once: the server undoes what is open."""
        leave(self.connection)

    def room(self, shape: Shape) -> int:
        """Return how many bytes of rows the follower takes at once, of which more are many statements."""
        if self._local_files:
            return MOST_PACKET  # LOAD DATA sends its lines piece by piece
        return self._packet - len(_head(shape)) - (1 << 6)

    def fill(self, shape: Shape, lines: LeaderRows) -> int:
        """Write all lines, inside the open transaction; return how many. Raises DivergedError when one would differ."""
        if self._local_files:
            warnings, words = load_rows(self.connection, texts.load_statement(shape), lines)
            found = _COUNTS.search(words)
            records, deleted, skipped = map(int, found.groups()[:3]) if found else (-1, 0, 0)
        else:
            records, warnings, deleted, skipped, words = 0, 0, 0, 0, "INSERT"
            head = _head(shape)
            for values in lines:
                inserted, more = self.run(head + values)
                records += inserted
                if more:
                    warnings += sum(number != OUTDATED for _, number, _ in self.rows("SHOW WARNINGS"))
        if (records, deleted, skipped, warnings) != (lines.count, 0, 0, lines.zeros):
            raise DivergedError(
                f"the follower did not take the leader's rows of {shape.name} as they are: {lines.count} rows with"
                f" {lines.zeros} expected warnings were sent, and it says {words!r} with {warnings} warnings in all"
                f" ({self._first_warning()})"
            )
        typed = sum(self._insert(shape, some) for some in lines.typed())
        if any(column.generated for column in shape.columns):
            self._compare(shape, lines)
        return lines.count + typed

    def _first_warning(self) -> str:
        found = self.rows("SHOW WARNINGS LIMIT 1")
        return f"{found[0][2]} ({found[0][1]})" if found else "no warning"

    def _insert(self, shape: Shape, some: Sequence[TypedRow]) -> int:
        """Write rows whose documents need more than their text, and compare them with the leader's; return how many."""
        head = texts.insert_head(shape.name, texts.written(shape))
        sized = ((row.values, len(literals.encode(row.values)) + 1) for row in some)
        for batch in together(sized, min(self._packet - len(head) - (1 << 6), ROWS_BYTES), MOST_ROWS):
            self.expect(head + ",".join(batch), len(batch))
        pairs = [pair for row in some for pair in row.documents]
        for (document, expected), found in zip(pairs, facts(shape, [one for one, _ in pairs], self.rows), strict=True):
            if found != expected:
                raise DivergedError(
                    f"a JSON in {document.column} of {shape.name} cannot be written as it is on the leader, where"
                    f" {among(shape.key, [document.key])}; change it there to what its text says"
                )
        return len(some)

    def _compare(self, shape: Shape, lines: LeaderRows) -> None:
        """Compare all rows of the range: what the follower computed may depend on the session that wrote them."""
        ours = self.rows(TableQueries(shape).digest(lines.part))[0]
        if lines.count and tuple(ours) != tuple(lines.digest()):
            raise DivergedError(
                f"the follower computes stored generated columns of {shape.name} otherwise than the leader did: they"
                " depend on the session that wrote them; load that table by a dump"
            )
