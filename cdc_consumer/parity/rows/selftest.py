"""The hash put to the test before it is trusted: each column of real rows is altered inside a SELECT, and must show.

It is asked of both servers, because each of them computes hashes with a version and settings of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdc_consumer.parity import canonical
from cdc_consumer.parity.model import Column, Shape
from cdc_consumer.parity.servers.connection import ServerConnection
from cdc_consumer.sql.column_types import INTEGERS
from shared.errors import AuditError
from shared.mysql import quote_name

#: rows of each table that are put to the test
SAMPLE = 5
#: columns altered by one SELECT
COLUMNS = 50

_INTEGERS = INTEGERS | {"bit"}


def _altered(column: Column) -> Iterator[str]:
    """SQL of small changes of a value, among them those that other checksums overlook; NULL becomes a value."""
    name = quote_name(column.name)
    something = _something(column)
    if column.nullable:
        yield f"IF({name} IS NULL, {something}, NULL)"
    for change in _changes(column, name):
        yield f"IF({name} IS NULL, {something}, {change})" if column.nullable else change


def _changes(column: Column, name: str) -> Iterator[str]:
    kind = column.data_type
    if kind in _INTEGERS:
        yield f"CAST({name} AS UNSIGNED) ^ 1" if kind == "bit" or "unsigned" in column.type else f"{name} ^ 1"
    elif kind == "float":
        # the neighbour; the largest one has none above it
        yield f"CAST(IF(ABS({name}) < 2e-38, {name} + 1.4e-45, {name} * (1 - 6e-8)) AS FLOAT)"
    elif kind == "double":
        yield f"IF(ABS({name}) < 4e-308, {name} + 5e-324, {name} * (1 - 1.2e-16))"
    elif kind == "decimal":
        digits = int(column.type.partition(",")[2].partition(")")[0] or "0")
        unit = "0." + "1".zfill(digits) if digits else "1"
        yield f"IF({name} > 0, {name} - {unit}, {name} + {unit})"
    elif kind in ("char", "varchar") or kind.endswith("text"):
        yield f"CONCAT({name}, ' ')"
        yield f"CONCAT({name}, '#')"
    elif kind in ("binary", "varbinary") or kind.endswith("blob"):
        yield f"CONCAT({name}, x'00')"
    elif kind == "json":
        # as a text: the value itself may be as deep as a JSON can be
        yield f"JSON_ARRAY(CAST({name} AS CHAR))"


def _something(column: Column) -> str:
    """A value of the column's type."""
    kind = column.data_type
    if kind in ("date", "datetime", "timestamp"):
        return "'2001-02-03'"
    if kind == "json":
        return "JSON_ARRAY()"
    if kind == "vector":
        return "STRING_TO_VECTOR('[1]')"
    if kind in ("char", "varchar", "enum", "set", "binary", "varbinary") or kind.endswith(("text", "blob")):
        return "''"
    return "0" if kind in _INTEGERS or kind in ("float", "double", "decimal", "year", "time") else "x''"


def check(shape: Shape, reader: ServerConnection) -> None:
    """Raises AuditError when altering a column of the first rows leaves their hash as it was."""
    changes = [(column, change) for column in shape.columns for change in _altered(column)]
    for start in range(0, len(changes), COLUMNS):
        part = changes[start : start + COLUMNS]
        hashes = [canonical.row_hash(shape), *(canonical.row_hash(shape, {column.name: sql}) for column, sql in part)]
        for row in reader.rows(f"SELECT {', '.join(hashes)} FROM {shape.name.sql} LIMIT {SAMPLE}"):
            for (column, sql), altered in zip(part, row[1:], strict=True):
                if altered == row[0] is not None:
                    raise AuditError(
                        f"the hash of {shape.name} does not see column {column.name} altered by {sql} on the {reader};"
                        " this is a defect of the audit, please report it"
                    )
