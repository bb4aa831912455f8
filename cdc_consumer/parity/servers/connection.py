"""Keeps the connections that read rows: never too many, and opened again when a server was away for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, TypeVar

from cdc_consumer.parity import canonical
from cdc_consumer.sql.packets import leave
from shared.errors import AuditError, ServerGoneError, TableMovedError
from shared.mysql import (
    Connection,
    MySQLError,
    connect,
    error_number,
    error_text,
    is_link_error,
    rows,
    stream,
)
from shared.profile import Database

Role: TypeAlias = Literal["leader", "follower"]
T = TypeVar("T")
SqlRow: TypeAlias = tuple[Any, ...]
#: runs a SELECT
Select: TypeAlias = Callable[[str], Sequence[SqlRow]]

#: seconds a server may be away before the audit gives up
PATIENCE = 120.0
#: MySQL's numbers for: no such database, column or table; definition changed; partition or index gone
MOVED = frozenset({1049, 1054, 1146, 1176, 1412, 1735})
#: for a table altered or emptied after a snapshot was taken
ALTERED = 1412
#: for a statement that somebody, the server that shuts down, or its own time limit has ended
ENDED = frozenset({1028, 1317})
#: for its own time limit alone
TOO_LONG = 3024
#: seconds beyond its time limit after which a statement's server counts as gone
SILENCE = 30.0
#: snapshots of one look
SNAPSHOTS = 5


class ServerConnection:
    """Holds one connection to one of the two servers, opened when it is first used."""

    def __init__(self, role: Role, address: Database, *, statement_seconds: float = 600.0, slots: int = 0) -> None:
        """`slots`: how many connections of all processes may hold one at a time, see `take_slot`."""
        self.role = role
        self.address = address
        self._slots = slots
        self._slot_held = False
        self._seconds = statement_seconds
        #: seconds the server may be away before that is an error
        self._patience = PATIENCE
        self._connection: Connection | None = None

    def __str__(self) -> str:
        return f"{self.role} {self.address}"

    def rows(self, sql: str) -> list[SqlRow]:
        """Return all rows of a SELECT; see `use`."""
        return self.use(lambda connection: rows(connection, sql))

    def stream(self, sql: str) -> Iterator[SqlRow]:
        """The rows of a SELECT one by one, without holding them all; a lost link is an error."""
        connection = self.use(lambda found: found)
        try:
            yield from stream(connection, sql)
        except (MySQLError, OSError) as error:
            self.close()
            raise self._named(error) from error

    def frozen(self, look: Callable[[Select], T]) -> T:
        """Return what `look` makes of SELECTs that all see the same moment.

        Called again when link or snapshot break.
        """

        def attempt(connection: Connection) -> T:
            rows(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            rows(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            try:
                return look(lambda sql: rows(connection, sql))
            finally:
                rows(connection, "COMMIT")

        for _ in range(SNAPSHOTS - 1):
            try:
                return self.use(attempt)
            except TableMovedError as error:
                if error_number(error.__cause__ or error) != ALTERED:
                    raise
        return self.use(attempt)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Make a server that is away an error at once, meanwhile."""
        before, self._patience = self._patience, 0.0
        try:
            yield
        finally:
            self._patience = before

    def take_slot(self, until: float) -> bool:
        """Wait until fewer than `slots` connections to this server hold one; MySQL's own named locks count them.

        False when that is not so by `until`, as time.time() tells it.
        """
        while self._slots and not self._slot_held:
            self._slot_held = self.use(self._lock_slot)
            if not self._slot_held:
                if time.time() > until:
                    return False
                time.sleep(0.1)
        return True

    def _lock_slot(self, connection: Connection) -> bool:
        locks = (f"SELECT GET_LOCK('cdc-parity-{self.role}-{number}', 0)" for number in range(self._slots))
        return any(rows(connection, sql) == [(1,)] for sql in locks)

    def free_slot(self) -> None:
        """Let another connection have the slot."""
        if self._slot_held and self._connection is not None:
            try:
                rows(self._connection, "SELECT RELEASE_ALL_LOCKS()")
            except (MySQLError, OSError, EOFError):
                self.close()  # which frees it too
        self._slot_held = False

    def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            leave(connection)

    def use(self, action: Callable[[Connection], T]) -> T:
        """Run something on the connection, again on a new one while the server is away.

        `action` may therefore run more than once. Raises ServerGoneError after PATIENCE seconds, TableMovedError when a
        table is not what it was.
        """
        deadline = time.monotonic() + self._patience
        wait = 0.05
        while True:
            try:
                if self._connection is None:
                    self._connection = self._open()
                return action(self._connection)
            except (MySQLError, OSError, EOFError) as error:
                if not _passes(error):
                    raise self._named(error) from error
                self.close()
                if time.monotonic() >= deadline:
                    raise ServerGoneError(f"the {self} does not answer: {error_text(error)}") from error
                time.sleep(wait)
                wait = min(wait * 2, 2.0)

    def _open(self) -> Connection:
        connection = connect(self.address, read_timeout=self._seconds + SILENCE)
        # the first is for SELECTs; SHOW CREATE TABLE waits for a statement that alters the table
        seconds = max(int(self._seconds), 1)
        limit = f"SET SESSION max_execution_time = {int(self._seconds * 1000)}, lock_wait_timeout = {seconds}"
        for statement in (*canonical.SESSION, limit):
            rows(connection, statement)
        if self._slot_held:  # it went with the old connection
            self._lock_slot(connection)
        return connection

    def _named(self, error: BaseException) -> AuditError:
        number = error_number(error)
        if number in MOVED:
            return TableMovedError(f"{error_text(error)} on the {self}")
        if number == TOO_LONG or number in ENDED:
            return AuditError(
                f"a statement took longer than limits.statement_seconds on the {self}; raise it in the profile"
            )
        if is_link_error(error):
            return ServerGoneError(f"the {self} went away: {error_text(error)}")
        return AuditError(f"the {self} refuses to be read: {error_text(error)}; --help names the grants its user needs")


def _passes(error: BaseException) -> bool:
    """True when the same may succeed on a new connection."""
    timed_out = "execution time" in error_text(error)
    return is_link_error(error) or (error_number(error) in ENDED and not timed_out)
