"""What a producer with routes writes, operations of some tables in batches to topics in memory, and what is read of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from cdc_consumer.transactions import Transactions
from kit.topics_in_memory import MemoryTopics
from shared.decode import decode
from shared.events import Draft, Heartbeat, Position, Query, Transaction, heartbeat_json, query_json, resource_uri
from shared.topic import Sealed
from shared.topic.marks import Routes, head_of
from shared.topic.merged import MergedReader
from shared.topic.record import seal
from shared.topic.routed import RoutedWriter

FILE = "binlog.000001"
ROUTES = Routes("main", {"d.a": "{database}-{table}", "d.b*": "{table}_x", "d.c": "c"})
#: tables and the topic of each
TABLES = {"a": "d-a", "b": "b-x", "b2": "b2-x", "c": "c", "other": "main"}
EVERYWHERE = "*"


class Made(NamedTuple):
    """One operation as the producer makes it."""

    sequence: int
    record: Sealed
    #: the table of rows, the tables of a Query, or EVERYWHERE
    tables: tuple[str, ...]
    last: bool


def history(shape: Sequence[Sequence[tuple[str, ...]]]) -> list[Made]:
    """The operations of transactions, each of which is a list of the tables of its operations."""
    made: list[Made] = []
    offset = 100
    for number, operations in enumerate(shape):
        transaction = Transaction(None, offset, 1_700_000_000_000_000 + number, (number, number + 1))
        end = offset + 100 * len(operations) + 50
        for index, tables in enumerate(operations):
            last = index == len(operations) - 1
            place = Position(FILE, offset + 100 * index + 10)
            if len(tables) == 1 and tables != (EVERYWHERE,):
                uri = resource_uri("r", "d", tables[0])
                body = b',"columns":["x"],"operation":{"Add":{"rows":[{"cols":["Null"]}]}},"types":["int"]'
            else:
                uri = resource_uri("r", "d")
                named = None if tables == (EVERYWHERE,) else tuple(("d", table) for table in tables)
                body = query_json(Query(b"DDL", "d", ("d",), {}, tables=named))
            draft = Draft(json.dumps(uri), place, transaction, index)
            value = draft.encode(body, len(made), end if last else None)
            made.append(Made(len(made), seal(value, [b"raw"]), tables, last))
        offset = end
    return made


def heartbeat(sequence: int, offset: int) -> Sealed:
    """Make the record of a heartbeat at this offset of the binlog."""
    body = heartbeat_json(Heartbeat("uuid", 1, 2))
    return seal(Draft('"flv://r"', Position(FILE, offset), None, 0).encode(body, sequence, None))


def open_writer(topics: MemoryTopics, most_open: int = 3) -> RoutedWriter:
    """Open the producer's side of all topics."""
    return RoutedWriter(ROUTES, None, topics.writer, topics.reader, most_open)


def publish(topics: MemoryTopics, made: Sequence[Made], random: Random, beats: bool = True) -> None:
    """One run of the producer: from its memory on, in batches of any size."""
    writer = open_writer(topics)
    last = writer.last()
    start = 0 if last is None else head_of(last.value, "").sequence + 1
    if last is not None:
        operation = decode(last.value, "the last record").operation
        assert not isinstance(operation, Heartbeat) or operation.leader == "uuid"
    while start < len(made):
        stop = start + random.randint(1, 6)
        batch: list[Sealed] = []
        for one in made[start:stop]:
            batch.append(one.record)
            if beats and one.last and random.random() < 0.3:
                batch.append(heartbeat(one.sequence, head_of(one.record.value, "").end or 0))
        writer.append(batch)
        start = stop
    if beats:
        writer.append([heartbeat(len(made) - 1, 1 << 20)])


def open_merged(topics: MemoryTopics, names: Sequence[str] | None = None) -> MergedReader:
    return MergedReader("main", names, topics.reader, 2)


def read_all(reader: MergedReader) -> list[Any]:
    """Each operation with its offset, as the consumer accepts them; heartbeats are left out."""
    accepted, found = Transactions(-1, reader.gaps), []
    while records := reader.read(0.0):
        for record in records:
            step = accepted.accept(decode(record.value, "here"), record.offset)
            if step is not None and not isinstance(step.event.operation, Heartbeat):
                assert step.offset == step.event.sequence
                found.append(step)
    assert not accepted.inside
    return found


def iter_all(reader: MergedReader) -> list[Any]:
    found: list[Any] = []
    while records := reader.read(0.0):
        found += records
    return found
