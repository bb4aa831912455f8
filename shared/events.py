"""Defines events: one topic record each, as JSON on the wire and frozen types in the programs.

The producer makes them of a `Draft` and an operation's JSON; `shared/decode.py` reads them back. The keys up to
`operation` are fixed by the original demo; everything after it is ours:

    transaction  {"gtid":G,"begin":B,"event":N,"time":T,"clock":[L,S],"end":E}
                   gtid   MySQL's global transaction id; absent when the leader has none
                   begin  offset in bn_file.fileName where the transaction's first binlog event starts
                   event  index of this operation's binlog event in the transaction (the first binlog event is 0)
                   time   when the leader committed, microseconds since 1970
                   clock  the leader's logical clock: last_committed, sequence_number
                   end    offset after the transaction; only on its last operation
    key          names of the primary key's columns (rows only; absent without a key)
    types        the leader's column types, parallel to columns (rows only)
    session      time_zone and sql_mode of the leader's session, where generated columns may depend on them (rows only)
    foreign_key_checks   0 when the leader applied these rows without them (rows only)
    database     the default database a Query ran in; writes  the databases it writes; session  its variables
    skipped      why an operator left the leader's transaction out, in whose place this Query stands (Query only)
    tables       database and name of the tables a Query writes; only where a producer has routes and could tell
    raw          base64 of a Query's bytes when they are not valid UTF-8
    leader       server_uuid of the leader; created  when it began the binlog file of bn_file, seconds since 1970;
                 time  its last sign of life, microseconds since 1970 (Heartbeat only)
    filters      what the producer publishes, as its profile says it (Heartbeat only)
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring as json_string
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

#: of rows whose session is as usual
NO_SESSION: Mapping[str, Any] = MappingProxyType({})
#: one value as it stands in an event: "Null", or one variant's name with its payload; shared/values.py opens it
Value = Any

#: a place in the binlog as text: ASCII digits only, few enough for MySQL's own numbers
_POSITION = re.compile(r"(.+\.[0-9]{1,10}):([0-9]{1,20})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Position:
    """Names a place in the leader's binlog."""

    file: str
    #: bytes from the start of the file
    offset: int

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read a position as `str` writes it, "binlog.000003:157". Raises ValueError when it is none."""
        found = _POSITION.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a position: file:offset")
        return cls(found[1], int(found[2]))

    @property
    def number(self) -> int:
        """The file's number, by which files are ordered: binlog.999999 is followed by binlog.1000000."""
        return int(self.file.rpartition(".")[2])

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"

    def __lt__(self, other: Position) -> bool:
        return self._order() < other._order()

    def __le__(self, other: Position) -> bool:
        return self._order() <= other._order()

    def _order(self) -> tuple[int, int]:
        return self.number, self.offset


class Transaction(NamedTuple):
    """Describes one leader commit, as every event of it tells."""

    gtid: str | None
    #: offset of its first binlog event, in the file of its events' positions
    begin: int
    #: commit time on the leader, microseconds since 1970
    time: int
    #: last_committed and sequence_number
    clock: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Query:
    """Holds a statement in its original bytes, and the session it ran in."""

    sql: bytes
    #: default database, "" for none
    database: str
    #: databases the statement writes
    writes: tuple[str, ...]
    #: session variables by name, as `cdc_consumer` restores them
    session: dict[str, Any]
    #: why the leader's transaction was left out by an operator, when this stands in its place
    skipped: str | None = None
    #: database and name of the tables it writes, as a producer with routes found them; None where it cannot tell, and
    #: of a whole database
    tables: tuple[tuple[str, str], ...] | None = None


class Rows(NamedTuple):
    """Holds row images of one table."""

    #: "Add", "Update" or "Delete"
    kind: str
    database: str
    table: str
    columns: tuple[str, ...]
    #: Add, Delete: one list of values a row; Update: one (before, after) pair of lists a row
    rows: list[Any]
    types: tuple[str, ...]
    key: tuple[str, ...]
    foreign_key_checks: bool
    #: variables of the leader's session that a generated column may depend on; empty where they are usual
    session: Mapping[str, Any] = NO_SESSION


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The leader was alive, and had nothing to publish behind the last operation and up to the event's position."""

    #: its server_uuid; "" where the record does not tell
    leader: str
    #: when it began the binlog file of the position, seconds since 1970: another file of the same name differs in it
    created: int | None = None
    #: when it gave its last sign of life, microseconds since 1970 by its own clock
    time: int | None = None
    #: it stands in the journal of a producer with routes, and must be read with the topics of that
    routed: bool = False
    #: what the producer publishes, as [filters] of its profile says it; None where the record does not tell
    filters: Mapping[str, list[str]] | None = None


class Event(NamedTuple):
    """Holds one record of the topic, read; a tuple, as what it holds, because a million are made of them."""

    sequence: int
    #: where the operation's binlog event starts; of a Heartbeat: how far the producer has read
    position: Position
    operation: Query | Rows | Heartbeat
    #: None on a Heartbeat sent before any transaction was seen
    transaction: Transaction | None
    #: index of the operation's binlog event in its transaction
    index: int  # type: ignore[assignment]  # hides a method of tuples that nobody needs
    #: offset after the transaction, on its last operation only
    end: int | None

    @property
    def gtid(self) -> str | None:
        """Return its transaction's GTID; None without a transaction, or on a leader without GTIDs."""
        return None if self.transaction is None else self.transaction.gtid


def resource_uri(resource: str, database: str, table: str | None = None) -> str:
    """Write flv://resource/database[/table], names percent-encoded where a URI needs it."""
    parts = [resource, database] if table is None else [resource, database, table]
    return "flv://" + "/".join(quote(part, safe="") for part in parts)


def transaction_json(transaction: Transaction, index: int) -> str:
    """Return the `transaction` key without its closing brace, so that `end` may follow."""
    gtid = "" if transaction.gtid is None else f'"gtid":"{transaction.gtid}",'
    committed, number = transaction.clock
    return (
        f'"transaction":{{{gtid}"begin":{transaction.begin},"event":{index},'
        f'"time":{transaction.time},"clock":[{committed},{number}]'
    )


class Draft(NamedTuple):
    """Holds what stands around an operation in its event, as far as it is known when the operation is read."""

    #: JSON text of the key `uri`
    uri: str
    position: Position
    transaction: Transaction | None
    index: int  # type: ignore[assignment]  # hides a method of tuples that nobody needs
    #: of rows: variables of the leader's session that a generated column may depend on
    session: Mapping[str, Any] = NO_SESSION

    def encode(self, operation: bytes | memoryview, sequence: int, end: int | None) -> bytes:
        """Return the record's bytes.

        `operation` is JSON from after bn_file to before `transaction`, as `query_json` makes it; `end` is the offset
        after the transaction when this is its last operation.
        """
        tail = "}"
        if self.transaction is not None:
            closing = "}}" if end is None else f',"end":{end}}}}}'
            tail = "," + transaction_json(self.transaction, self.index) + closing
        if self.session:
            tail = f',"session":{orjson.dumps(dict(self.session)).decode()}{tail}'
        name, offset = json_string(self.position.file), self.position.offset
        head = f'{{"uri":{self.uri},"sequence":{sequence},"bn_file":{{"fileName":{name},"offset":{offset}}}'
        return b"".join((head.encode(), operation, tail.encode()))


def query_json(query: Query) -> bytes:
    """Return what Draft.encode needs of a Query."""
    text, raw = "", ""
    try:
        text = query.sql.decode()
    except UnicodeDecodeError:
        text = query.sql.decode(errors="replace")
        raw = f',"raw":"{base64.b64encode(query.sql).decode()}"'
    session = orjson.dumps(query.session).decode()
    writes = orjson.dumps(query.writes).decode()
    skipped = "" if query.skipped is None else f',"skipped":{json_string(query.skipped)}'
    tables = "" if query.tables is None else f',"tables":{orjson.dumps(query.tables).decode()}'
    return (
        f',"operation":{{"Query":{json_string(text)}}}{raw},"database":{json_string(query.database)}'
        f',"writes":{writes},"session":{session}{skipped}{tables}'
    ).encode()


def heartbeat_json(heartbeat: Heartbeat) -> bytes:
    """Return what Draft.encode needs of a Heartbeat."""
    created = "" if heartbeat.created is None else f',"created":{heartbeat.created}'
    time = "" if heartbeat.time is None else f',"time":{heartbeat.time}'
    filters = "" if heartbeat.filters is None else f',"filters":{orjson.dumps(dict(heartbeat.filters)).decode()}'
    return f',"operation":"Heartbeat","leader":"{heartbeat.leader}"{created}{time}{filters}'.encode()
