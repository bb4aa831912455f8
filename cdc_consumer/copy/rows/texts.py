"""Writes a row as one line of text that LOAD DATA takes without altering a bit; the leader makes the line.

    LOAD DATA ... CHARACTER SET binary FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\\'' ESCAPED BY '\\\\'

Where such text cannot hold a value (other character sets, bytes, numbers of an ENUM), the line has its hexadecimal
digits or its number, and the follower turns them back. A JSON loses types of its inner values; see `documents.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cdc_consumer.parity.canonical import literal
from cdc_consumer.parity.model import Column, Shape, TableName
from cdc_consumer.sql.column_types import INTEGERS
from shared.mysql import quote_name

#: types whose text is exact and holds neither a quote nor a comma
_PLAIN = INTEGERS | {"decimal", "year", "date", "time", "datetime", "timestamp", "double"}
#: character sets whose bytes QUOTE leaves as they are
_QUOTED = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii", "latin1"})
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_FORMAT = r"CHARACTER SET binary FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\'' ESCAPED BY '\\'"
#: in the SQL of a row, between two of its values
_COMMA = ", ',', "
#: ends a line; also what the last byte of a text that was not cut is
LINE_END = b"\n"


class Field(NamedTuple):
    """Says how one column travels."""

    #: on the leader: SQL of its text, "NULL" for NULL
    text: str
    #: on the follower: SQL of its value, of the text in `{}`; "" where the text is the value
    value: str = ""


def field(column: Column) -> Field:
    """Return how the values of a column travel."""
    source, kind = quote_name(column.name), column.data_type
    if kind in _TEXTS and column.charset in _QUOTED:
        return Field(f"QUOTE({source})")
    if kind == "json":
        return Field(f"QUOTE(CAST({source} AS CHAR))", "CONVERT({} USING utf8mb4)")
    text, value = f"HEX({source})", "UNHEX({})"
    if kind in _PLAIN:
        text, value = source, ""
    elif kind == "float":
        # its own text has six digits only
        text, value = f"CAST({source} AS DOUBLE)", ""
    elif kind == "enum":
        text, value = f"{source} + 0", "{} + 0"
    elif kind in ("set", "bit"):
        text, value = f"CAST({source} AS UNSIGNED)", "CAST({} AS UNSIGNED)"
    return Field(f"IFNULL({text}, 'NULL')" if column.nullable else text, value)


def written(shape: Shape) -> list[Column]:
    """Return the columns that are written; the others are computed from them."""
    return [column for column in shape.columns if not column.generated]


def line(shape: Shape) -> str:
    """Return the SQL of a row's line, without its end; a binary string."""
    texts = [field(column).text for column in written(shape)]
    # beside a binary string each text is taken as its bytes
    return f"CONCAT(CAST('' AS BINARY), {_COMMA.join(texts)})"


def zeros(shape: Shape) -> str:
    """Return the SQL of how many error values of ENUM columns a row holds: each is a warning where it is written."""
    enums = [quote_name(column.name) for column in written(shape) if column.data_type == "enum"]
    return " + ".join(f"IFNULL({name} + 0 = 0, 0)" for name in enums) or "0"


def load_statement(shape: Shape) -> str:
    """Return the statement that reads lines on the follower."""
    places, values = [], []
    for number, column in enumerate(written(shape)):
        name, value = quote_name(column.name), field(column).value
        places.append(f"@v{number}" if value else name)
        if value:
            values.append(f"{name} = {value.format(f'@v{number}')}")
    settings = f" SET {', '.join(values)}" if values else ""
    return (
        f"LOAD DATA LOCAL INFILE 'rows' INTO TABLE {shape.name.sql} {_FORMAT} LINES TERMINATED BY '\\n'"
        f" ({', '.join(places)}){settings}"
    )


def values(shape: Shape) -> str:
    """Return the SQL of a row as INSERT takes it, where the follower takes no LOAD DATA LOCAL."""
    return f"CONCAT(CAST('(' AS BINARY), {_COMMA.join(map(literal, written(shape)))}, ')')"


def insert_head(name: TableName, columns: Sequence[Column]) -> str:
    """Return an INSERT up to its rows."""
    return f"INSERT INTO {name.sql} ({', '.join(quote_name(column.name) for column in columns)}) VALUES "
