"""Connections that read rows: never too many, and opened again when a server was away for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, TypeVar

from cdc_consumer.parity import canonical
from cdc_consumer.positions import PositionTables
from shared.errors import AuditError, ServerGoneError, TableMovedError
from shared.mysql import (
    Connection,
    MySQLError,
    connect,
    error_number,
    error_text,
    is_link_error,
    quote_name,
    rows,
    stream,
)
from shared.profile import Database

Role: TypeAlias = Literal["leader", "follower"]
T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
#: runs a SELECT
Ask: TypeAlias = Callable[[str], Sequence[Row]]

#: seconds a server may be away before the audit gives up
PATIENCE = 120.0
#: MySQL's numbers for: no such database, column or table; definition changed; partition or index gone
MOVED = frozenset({1049, 1054, 1146, 1176, 1412, 1735})
#: for a statement that took too long
TOO_LONG = frozenset({1028, 1317, 3024})


class Reader:
    """One connection to one of the two servers, opened when it is first used."""

    def __init__(self, role: Role, address: Database, *, statement_seconds: float = 600.0, slots: int = 0) -> None:
        """`slots`: how many readers of all processes may hold one at a time, see `take_slot`."""
        self.role = role
        self.address = address
        self._slots = slots
        self._slot_held = False
        self._milliseconds = int(statement_seconds * 1000)
        self._connection: Connection | None = None
        self._status = "SHOW BINARY LOG STATUS"

    def __str__(self) -> str:
        return f"{self.role} {self.address}"

    def rows(self, sql: str) -> list[Row]:
        """All rows of a SELECT; see `use`."""
        return self.use(lambda connection: rows(connection, sql))

    def stream(self, sql: str) -> Iterator[Row]:
        """The rows of a SELECT one by one, without holding them all; a lost link is an error."""
        connection = self.use(lambda found: found)
        try:
            yield from stream(connection, sql)
        except (MySQLError, OSError) as error:
            self.close()
            raise self._named(error) from error

    @contextmanager
    def frozen(self) -> Iterator[Ask]:
        """Runs SELECTs that all see the same moment; a lost link is an error."""
        connection = self.use(lambda found: found)
        try:
            rows(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            rows(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            yield lambda sql: rows(connection, sql)
            rows(connection, "COMMIT")
        except (MySQLError, OSError, EOFError) as error:
            self.close()
            raise self._named(error) from error

    def position(self) -> str:
        """Where the server writes its binlog next, as file:offset."""
        try:
            found = self.rows(self._status)
        except AuditError as error:
            if self._status.startswith("SHOW MASTER") or error_number(error.__cause__ or error) != 1064:
                raise
            self._status = "SHOW MASTER STATUS"  # before 8.2
            found = self.rows(self._status)
        if not found:
            raise AuditError(f"the {self} writes no binlog")
        return f"{found[0][0]}:{found[0][1]}"

    def take_slot(self) -> None:
        """Wait until fewer than `slots` readers of this server hold one; MySQL's own named locks count them."""
        while self._slots and not self._slot_held:
            for number in range(self._slots):
                ((taken,),) = self.rows(f"SELECT GET_LOCK('cdc-parity-{number}', 0)")
                if taken:
                    self._slot_held = True
                    return
            time.sleep(0.1)

    def free_slot(self) -> None:
        """Let another reader have the slot."""
        if self._slot_held:
            self._slot_held = False
            self.rows("SELECT RELEASE_ALL_LOCKS()")

    def close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection._force_close()  # type: ignore[attr-defined]  # close() would wait for a dead server

    def use(self, action: Callable[[Connection], T]) -> T:
        """Run something on the connection, again on a new one while the server is away.

        Raises ServerGoneError after PATIENCE seconds, TableMovedError when a table is not what it was.
        """
        deadline = time.monotonic() + PATIENCE
        wait = 0.05
        while True:
            try:
                if self._connection is None:
                    self._connection = self._open()
                return action(self._connection)
            except (MySQLError, OSError, EOFError) as error:
                if not is_link_error(error):
                    raise self._named(error) from error
                self.close()
                if time.monotonic() > deadline:
                    raise ServerGoneError(f"the {self} does not answer: {error_text(error)}") from error
                time.sleep(wait)
                wait = min(wait * 2, 2.0)

    def _open(self) -> Connection:
        connection = connect(self.address)
        for statement in (*canonical.SESSION, f"SET SESSION max_execution_time = {self._milliseconds}"):
            rows(connection, statement)
        if self._slot_held:  # the lock went with the old connection
            self._slot_held = False
        return connection

    def _named(self, error: BaseException) -> AuditError:
        number = error_number(error)
        if number in MOVED:
            return TableMovedError(f"{error_text(error)} on the {self}")
        if number in TOO_LONG:
            return AuditError(f"a statement took longer than limits.statement_seconds on the {self}")
        if is_link_error(error):
            return ServerGoneError(f"the {self} went away: {error_text(error)}")
        return AuditError(f"the {self} refuses to be read: {error_text(error)}")


def position_query(follower: Reader, system_database: str, topic: str | None) -> str:
    """SELECT of the follower's row in `position`, see positions.mark_from. Raises AuditError without exactly one."""
    table = f"{quote_name(system_database)}.`position`"
    try:
        topics = [name for (name,) in follower.rows(f"SELECT DISTINCT topic FROM {table}")]
    except TableMovedError:
        topics = []
    if topic is None and len(topics) == 1:
        topic = topics[0]
    if topic is None or topic not in topics:
        which = f"topic {topic}" if topic is not None else "one topic; name it in [topic]"
        raise AuditError(
            f"{table} on the {follower} has no position of {which}"
            f" (it has {', '.join(topics) or 'none'}): has the consumer ever run there?"
        )
    return PositionTables(system_database, topic).read()
