"""What both programs are given by people and by the topic: records, profiles."""

from __future__ import annotations

import functools
import os

from kit.programs import ROOT

from cdc_consumer.copy.profile import load_copy
from cdc_consumer.follower.row_statements import RowWriter
from cdc_consumer.follower.tables import FollowerColumn, FollowerTable
from cdc_consumer.parity.profile import load_parity
from cdc_consumer.profile import load_consumer
from cdc_consumer.sql.positions import PositionTables, mark_of
from cdc_consumer.sql.session import of_query
from cdc_consumer.transactions import Transactions
from cdc_producer.profile import load_producer
from shared.decode import decode
from shared.errors import EventError
from shared.events import Query, Rows

LOADS = (load_producer, load_consumer, load_parity, load_copy)


def records(data: bytes) -> None:
    """A topic's record, up to the SQL that a follower would get."""
    event = decode(data, "topic t offset 0")
    Transactions(event.sequence - 1).accept(event, 0)
    PositionTables("fluvio_cdc", "t").write(mark_of(event, 0))
    operation = event.operation
    if isinstance(operation, Rows):
        columns = {
            name: FollowerColumn(name, kind, False, False, False)
            for name, kind in zip(operation.columns, operation.types, strict=False)
        }
        table = FollowerTable(operation.database, operation.table, columns, operation.key, False)
        writer = RowWriter(1 << 20)
        for statement in (*writer.write(operation, table, event.sequence, 0), *writer.finish()):
            statement.sql.encode("utf-8", "surrogateescape")
    elif isinstance(operation, Query):
        try:
            of_query(operation.session)
        except ValueError as error:
            # as cdc_consumer/queries.py does
            raise EventError("it cannot be replayed") from error


def profiles(data: bytes) -> None:
    """A profile. First byte: of which program; then TOML."""
    load = LOADS[data[0] % len(LOADS) if data else 0]
    file = _profile_file()
    os.ftruncate(file, 0)
    os.pwrite(file, data[1:], 0)
    load(f"/proc/self/fd/{file}")


@functools.cache
def _profile_file() -> int:
    """A file without a name, open as long as the process lives."""
    return os.memfd_create("profile")


def seeds_of_profiles() -> list[bytes]:
    return [
        bytes([number]) + (ROOT / f"profiles/{load.__name__.removeprefix('load_')}_profile.toml").read_bytes()
        for number, load in enumerate(LOADS)
    ]
