"""Reads Query binlog events: a statement's original bytes and the session it ran in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from types import MappingProxyType
from typing import Any

from cdc_producer.decode.binlog_event import BinlogEvent, way_past
from cdc_producer.decode.cursor import Cursor
from shared.errors import UnsupportedError
from shared.statements.heads import shown_sql

FIXED = Struct("<IIBHH")  # thread, seconds it took, length of the database's name, error, length of the variables
#: the last three of these; and what follows the database's name in most transactions
TAIL, BEGIN = Struct("<BHH"), b"\0BEGIN"
#: the leader writes this count instead of names when a statement writes more than 16 databases
OVER_MAX_DATABASES = 254


@dataclass(frozen=True, slots=True)
class QueryEvent:
    """Holds a Query binlog event."""

    sql: bytes
    #: default database, "" for none
    database: str
    #: databases it writes, as the leader recorded them; None when it did not
    updated: tuple[str, ...] | None
    #: session variables by name
    session: dict[str, Any]
    #: status variable codes this version does not know
    unknown: tuple[int, ...]
    error: int


def query_text(event: BinlogEvent) -> bytes:
    """Return the statement alone, without reading its session."""
    body = event.body
    start = FIXED.size + int.from_bytes(body[11:13], "little") + body[8] + 1
    if start > len(body):
        raise ValueError("it ends before its statement")
    return body[start:]


def read_query(event: BinlogEvent) -> QueryEvent:
    """Return the whole event. Source: MySQL's statement_events.cpp, Query_event."""
    cursor = Cursor(event.body)
    _, _, name_length, error, size = FIXED.unpack(cursor.take(FIXED.size))
    status = _Status(cursor.take(size), event.timestamp)
    status.read()
    database = cursor.take(name_length).decode()
    cursor.take(1)  # NUL
    return QueryEvent(
        sql=cursor.rest(),
        database=database,
        updated=status.updated,
        session=status.session,
        unknown=status.unknown,
        error=error,
    )


class _Status(Cursor):
    """The status variables: a code byte, then a value whose size only the code tells."""

    __slots__ = ("_microseconds", "_seconds", "session", "unknown", "updated")

    def __init__(self, data: bytes, timestamp: int) -> None:
        super().__init__(data)
        self.session: dict[str, Any] = {}
        self.updated: tuple[str, ...] | None = None
        self.unknown: tuple[int, ...] = ()
        self._seconds = timestamp
        self._microseconds = 0

    def read(self) -> None:
        while self:
            code = self.number(1)
            if code in NUMBERS:
                name, size = NUMBERS[code]
                self.session[name] = self.number(size)
            elif code in SKIPPED:
                self.take(SKIPPED[code])
            elif code in READERS:
                READERS[code](self)
            else:
                # Its size is not known, so nothing after it can be read either.
                self.unknown = (code,)
                break
        self.session["timestamp"] = f"{self._seconds}.{self._microseconds:06d}"

    def _text(self) -> str:
        return self.take(self.number(1)).decode()

    def flags(self) -> None:
        flags = self.number(4)
        self.session["foreign_key_checks"] = 1 - (flags >> 26 & 1)
        self.session["unique_checks"] = 1 - (flags >> 27 & 1)
        self.session["sql_auto_is_null"] = flags >> 14 & 1

    def auto_increment(self) -> None:
        self.session["auto_increment_increment"] = self.number(2)
        self.session["auto_increment_offset"] = self.number(2)

    def charset(self) -> None:
        for name in ("character_set_client", "collation_connection", "collation_server"):
            self.session[name] = self.number(2)

    def time_zone(self) -> None:
        self.session["time_zone"] = self._text()

    def catalog(self) -> None:
        self._text()

    def invoker(self) -> None:
        # An ALTER EVENT without the clause makes this account its definer; elsewhere it stands in the text.
        self.session["invoker"] = [self._text(), self._text()]

    def databases(self) -> None:
        count = self.number(1)
        if count == OVER_MAX_DATABASES:
            return
        self.updated = tuple(self._name() for _ in range(count))

    def _name(self) -> str:
        """A name that ends in NUL."""
        name = self.take(self.data.index(0, self.position) - self.position)
        self.take(1)
        return name.decode()

    def microseconds(self) -> None:
        self._microseconds = self.number(3)
        if self._microseconds >= 1_000_000:
            raise ValueError(f"{self._microseconds} microseconds")


#: codes whose value is one number that is a session variable: name, bytes
NUMBERS = {
    0x01: ("sql_mode", 8),
    0x07: ("lc_time_names", 2),
    0x08: ("collation_database", 2),
    0x10: ("explicit_defaults_for_timestamp", 1),
    0x12: ("default_collation_for_utf8mb4", 2),
    0x13: ("sql_require_primary_key", 1),
    0x14: ("default_table_encryption", 1),
}
#: codes whose value does not matter to a replay: bytes
SKIPPED = {
    0x09: 8,  # tables of a multi-table update: statements only
    0x0A: 4,  # data the leader's own leader wrote
    0x11: 8,  # transaction of an atomic DDL
    0x15: 1,  # enable_cascade_triggers: rows only
}
READERS = {
    0x00: _Status.flags,
    0x03: _Status.auto_increment,
    0x04: _Status.charset,
    0x05: _Status.time_zone,
    0x06: _Status.catalog,
    0x0B: _Status.invoker,
    0x0C: _Status.databases,
    0x0D: _Status.microseconds,
}


#: bits of sql_mode by which MySQL computes an expression: NO_UNSIGNED_SUBTRACTION, TIME_TRUNCATE_FRACTIONAL
COMPUTING_MODES = 1 << 6 | 1 << 32


def rows_session(begin: bytes) -> Mapping[str, Any]:
    """Return what the body of a BEGIN tells of the session that generated columns of its rows were computed in.

    The leader writes a time zone only when the session used it.
    """
    return _rows_session(begin[FIXED.size : FIXED.size + int.from_bytes(begin[11:13], "little")])


@lru_cache(maxsize=1024)
def is_begin(body: bytes) -> bool:
    """Tell whether the body of a QUERY event, from the length of the database's name on, is a BEGIN.

    Raises what UNREADABLE lists for session variables that cannot be read.
    """
    name, _, size = TAIL.unpack_from(body)
    _rows_session(body[TAIL.size : TAIL.size + size])
    return body.endswith(BEGIN) and len(body) == TAIL.size + size + name + len(BEGIN)


@lru_cache(maxsize=1024)
def _rows_session(variables: bytes) -> Mapping[str, Any]:
    """The same of its status variables alone, which most transactions have in common."""
    status = _Status(variables, 0)
    status.read()
    session: dict[str, Any] = {}
    if status.session.get("time_zone", "+00:00") != "+00:00":
        session["time_zone"] = status.session["time_zone"]
    if modes := status.session.get("sql_mode", 0) & COMPUTING_MODES:
        session["sql_mode"] = modes
    return MappingProxyType(session)


def require_understood(query: QueryEvent, where: str) -> None:
    """Refuse a statement that is about to be published and carries something unknown, or failed half-way."""
    which = f"statement at {where} ({shown_sql(query.sql)})"
    if query.unknown:
        raise UnsupportedError(
            f"{which} carries session variable {query.unknown[0]:#x}, which this version does not know;"
            f" {way_past(where)}"
        )
    if query.error:
        raise UnsupportedError(
            f"{which} ended with error {query.error} on the leader and may have run in part; bring followers to what it"
            f" left; {way_past(where)}"
        )
