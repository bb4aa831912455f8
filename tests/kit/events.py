"""A topic written by hand: the events a producer would have published."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cdc_consumer.profile import ConsumerProfile, Follower
from kit.topic import sealed
from shared.events import Draft, Heartbeat, Position, Query, Transaction, heartbeat_json, query_json, resource_uri
from shared.profile import Filters, TopicSettings
from shared.topic import open_writer

#: the session of a Query on a leader with default settings
SESSION: dict[str, Any] = {
    "sql_mode": 1075838976, "foreign_key_checks": 1, "unique_checks": 1, "sql_auto_is_null": 0,
    "character_set_client": 255, "collation_connection": 255, "collation_server": 255, "timestamp": "1700000000.000000",
}  # fmt: skip
#: a server_uuid no real server has
LEADER_UUID = "cdc00000-0000-0000-0000-{:012d}"
RESOURCE = "leader"

Row = Sequence[Any]


class EventLog:
    """Appends events to an embedded topic; each `transaction` is one commit of the leader."""

    def __init__(self, folder: Path, *, gtids: bool = True, seed: int = 1, name: str = "events") -> None:
        """`seed` makes the GTIDs of this log its own."""
        self.settings = TopicSettings(name=name, path=str(folder))
        self._writer = open_writer(self.settings)
        self._uuid = LEADER_UUID.format(seed) if gtids else None
        self._file = "binlog.000001"
        self._offset = 4
        self._number = 0
        self.sequence = -1
        self._drafts: list[tuple[Draft, bytes]] = []
        self._transaction: Transaction | None = None

    def close(self) -> None:
        self._writer.close()

    @property
    def gtid(self) -> str | None:
        """Of the last transaction."""
        return None if self._uuid is None else f"{self._uuid}:{self._number}"

    @contextmanager
    def transaction(self, *, end: bool = True) -> Iterator[None]:
        """The events made inside are one transaction; without `end` its last one is missing from the topic."""
        self._number += 1
        self._transaction = Transaction(self.gtid, self._offset, 1_700_000_000_000_000 + self._number, (0, 1))
        self._drafts = []
        yield
        last = len(self._drafts) - 1
        records = []
        for index, (draft, operation) in enumerate(self._drafts):
            self.sequence += 1
            records.append(draft.encode(operation, self.sequence, self._offset if end and index == last else None))
        self.append(*records)

    def rows(
        self, kind: str, table: str, columns: Sequence[str], rows: Sequence[Any], *,
        types: Sequence[str] | None = None, foreign_key_checks: bool = True,
    ) -> None:  # fmt: skip
        """Row images of `table` ("database.table"): lists of wire values, of (before, after) pairs for an Update."""
        if kind == "Update":
            images: list[Any] = [{"before_cols": before, "after_cols": after} for before, after in rows]
        else:
            images = [{"cols": row} for row in rows]
        body = f',"columns":{json.dumps(list(columns))},"operation":{json.dumps({kind: {"rows": images}})}'
        body += f',"types":{json.dumps(list(types or [""] * len(columns)))}'
        if not foreign_key_checks:
            body += ',"foreign_key_checks":0'
        self._add(body.encode(), *table.split(".", 1))

    def query(self, sql: str | bytes, database: str, writes: Sequence[str] | None = None, **session: Any) -> None:
        query = Query(
            sql.encode() if isinstance(sql, str) else sql, database,
            tuple(filter(None, [database]) if writes is None else writes), {**SESSION, **session},
        )  # fmt: skip
        self._add(query_json(query), database)

    def ddl(self, sql: str | bytes, database: str, writes: Sequence[str] | None = None, **session: Any) -> None:
        """A transaction of one Query."""
        with self.transaction():
            self.query(sql, database, writes, **session)

    def add(self, table: str, columns: Sequence[str], *rows: Row, **more: Any) -> None:
        """A transaction of one Add."""
        with self.transaction():
            self.rows("Add", table, columns, rows, **more)

    def update(self, table: str, columns: Sequence[str], *rows: tuple[Row, Row], **more: Any) -> None:
        with self.transaction():
            self.rows("Update", table, columns, rows, **more)

    def delete(self, table: str, columns: Sequence[str], *rows: Row, **more: Any) -> None:
        with self.transaction():
            self.rows("Delete", table, columns, rows, **more)

    def heartbeat(self, leader: str = "u") -> None:
        """One that tells this server_uuid."""
        self._offset += 10
        draft = Draft(json.dumps(resource_uri(RESOURCE, "")), self._position(), None, 0)
        self.append(draft.encode(heartbeat_json(Heartbeat(leader)), self.sequence, None))

    def append(self, *records: bytes) -> None:
        """Records as they are."""
        self._writer.append(sealed(records))

    def records(self) -> list[bytes]:
        from shared.topic import open_reader

        reader = open_reader(self.settings)
        try:
            return [record.value for record in reader.read(0.0)]
        finally:
            reader.close()

    def _add(self, operation: bytes, database: str, table: str | None = None) -> None:
        uri = json.dumps(resource_uri(RESOURCE, database, table))
        draft = Draft(uri, self._position(), self._transaction, len(self._drafts))
        self._drafts.append((draft, operation))
        self._offset += 100

    def _position(self) -> Position:
        return Position(self._file, self._offset)


def integer(value: int | None) -> Any:
    return "Null" if value is None else {"SignedInteger": value}


def string(value: str | None) -> Any:
    return "Null" if value is None else {"String": value}


def consumer_profile(
    server: Any, log: EventLog, system_database: str, filters: Filters | None = None, **database: Any
) -> ConsumerProfile:
    """The profile of a consumer that replays `log` into `server`, all databases unless `filters` says otherwise."""
    values: Mapping[str, Any] = {"host": server.host, "port": server.port, "user": "root", **database}
    follower = Follower(system_database=system_database, **values)
    return ConsumerProfile(follower, filters or Filters(exclude_dbs=()), log.settings)
