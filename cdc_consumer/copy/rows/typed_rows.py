"""Reads the rows whose JSON documents need more than their text, some at once, as SQL that writes them exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cdc_consumer.copy.rows import documents, texts
from cdc_consumer.copy.rows.documents import Document, DocumentFacts
from cdc_consumer.parity.canonical import literal
from cdc_consumer.parity.model import Key, Shape
from cdc_consumer.parity.rows.ranges import Range, among, inside, key_literals
from cdc_consumer.parity.servers.connection import Select
from shared.errors import LeaderError
from shared.mysql import quote_name

#: bytes of the rows that are held at once, about, and their number
ROWS_BYTES, MOST_ROWS = 1 << 20, 200


class TypedRow(NamedTuple):
    """Holds a row with documents that need more than their text."""

    #: SQL of its values, as INSERT takes them
    values: str
    #: each of its documents, and what the leader tells of it
    documents: tuple[tuple[Document, DocumentFacts], ...]


def refusal(shape: Shape) -> LeaderError:
    """Explain a document in a table without a key: no statement would find its row again."""
    return LeaderError(
        f"table {shape.name} has no key and holds JSON with values (DECIMAL, DATE, bytes, UNSIGNED) that its text"
        " loses; give it a primary key on the leader, or load that table by a dump"
    )


def typed_rows(shape: Shape, part: Range, select: Select) -> Iterator[list[TypedRow]]:
    """Yield the rows of a range with documents that need more than their text, some at once."""
    size = " + ".join(f"IFNULL(LENGTH({quote_name(column.name)}), 0)" for column in texts.written(shape))
    where = " AND ".join([*inside(shape.key, part), documents.lossy(shape)])
    found = select(f"SELECT {size}, {key_literals(shape)} FROM {shape.name.sql} WHERE {where}")
    for keys in documents.together(((tuple(key), int(size)) for size, *key in found), ROWS_BYTES, MOST_ROWS):
        yield _read(shape, keys, select)


def _read(shape: Shape, keys: Sequence[Key], select: Select) -> list[TypedRow]:
    own = texts.written(shape)
    shown = ", ".join(f"CAST({quote_name(c.name)} AS CHAR)" if c.data_type == "json" else literal(c) for c in own)
    rows, held = [], list[list[Document]]()
    for found in select(f"SELECT {key_literals(shape)}, {shown} FROM {shape.name.sql} WHERE {among(shape.key, keys)}"):
        key, values = tuple(found[: len(shape.key)]), found[len(shape.key) :]
        rows.append(dict(zip((column.name for column in own), values, strict=True)))
        held.append([Document.read(c.name, key, rows[-1][c.name]) for c in own if c.data_type == "json"])
    told = iter(documents.facts(shape, [document for some in held for document in some], select))
    read = []
    for row, some in zip(rows, held, strict=True):
        pairs = tuple((document, next(told)) for document in some)
        row.update((document.column, documents.written(shape, document, found)) for document, found in pairs)
        read.append(TypedRow(f"({', '.join(row.values())})", pairs))
    return read
