"""Keeps of each table what its rows need: what the JSON of every rows event repeats, and the decoder of its images."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import lru_cache
from json.encoder import encode_basestring as json_string
from weakref import WeakValueDictionary

from cdc_producer.decode.binlog_event import BinlogEvent
from cdc_producer.decode.columns import narrow
from cdc_producer.decode.row_image import RowImages
from cdc_producer.decode.table_map import Charsets, TableMap, TableMapColumn, read_names, read_table_map
from shared import binlog_format as t
from shared.events import resource_uri
from shared.values import UTF8_CHARSETS

#: bytes of the tables that are remembered: tens of thousands of them, and as much again of those before
MAX_REMEMBERED = 32 << 20
#: bytes that a table takes besides its texts: in all, and of each column
TABLE_BYTES, COLUMN_BYTES = 1800, 40
#: databases whose names are remembered
MAX_DATABASES = 10_000

NAMES = {
    t.TINY: "tinyint", t.SHORT: "smallint", t.INT24: "mediumint", t.LONG: "int", t.LONGLONG: "bigint",
    t.FLOAT: "float", t.DOUBLE: "double", t.YEAR: "year", t.DATE: "date", t.TIMESTAMP2: "timestamp",
    t.DATETIME2: "datetime", t.TIME2: "time", t.JSON: "json",
}  # fmt: skip
GEOMETRIES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection",
)  # fmt: skip
BLOBS = {1: "tiny", 2: "", 3: "medium", 4: "long"}


@dataclass(frozen=True, slots=True)
class TableDecoder:
    """Holds one included table, ready for its rows."""

    #: JSON text of the event key `uri`
    uri: str
    #: narrow JSON text of `,"columns":[..],"operation":`
    columns: str
    #: narrow JSON text of what follows the operation: types, and key when there is one
    facts: str
    images: RowImages
    #: number of columns, for the row event that says it again
    width: int
    #: body of the TABLE_MAP event that told all this, from behind the table id
    source: bytes

    @property
    def size(self) -> int:
        """Bytes it takes, about."""
        texts = len(self.uri) + len(self.columns) + len(self.facts) + len(self.source)
        return TABLE_BYTES + COLUMN_BYTES * self.width + texts


class TableDecoders:
    """Maps table maps to tables; None for a table of a database that is left out."""

    def __init__(self, resource: str, databases: Container[str] | None, charsets: Charsets) -> None:
        """`databases` are those included; None for all."""
        self._resource = resource
        self._databases = databases
        self._charsets = charsets
        #: what another process needs to make the same, which only gets what is included
        self.settings = (resource, None, charsets)
        #: included tables by their map, because a leader writes the same one before every statement; when they take
        #: too many bytes they become those before, of which only what is used again is kept
        self._tables: dict[bytes, TableDecoder] = {}
        self._before: dict[bytes, TableDecoder] = {}
        self._bytes = 0
        self._images: WeakValueDictionary[tuple[TableMapColumn, ...], RowImages] = WeakValueDictionary()
        #: whether a database is included, by its name in a table map
        self._included: dict[bytes, bool] = {}

    def table(self, event: BinlogEvent) -> TableDecoder | None:
        """Return the table of a TABLE_MAP event. Raises UnsupportedError, and what UNREADABLE lists."""
        body = event.body
        source = body[6:]  # without the table id, which a restart of the leader gives to another table
        table = self._tables.get(source)
        if table is None and self._takes_part(body):
            table = self._before.get(source)
            if table is None:
                table = self._prepare(read_table_map(event, self._charsets), source)
            self._remember(table)
        return table

    def _takes_part(self, body: bytes) -> bool:
        """Decide by the database's name alone, so that nothing is kept of a table that is left out."""
        name = body[9 : 9 + body[8]]
        included = self._included.get(name)
        if included is None:
            if len(self._included) >= MAX_DATABASES:
                self._included.clear()
            database, _ = read_names(body)
            included = self._included[name] = self._databases is None or database in self._databases
        return included

    def _remember(self, table: TableDecoder) -> None:
        self._bytes += table.size
        if self._bytes > MAX_REMEMBERED:
            self._before, self._tables, self._bytes = self._tables, {}, table.size
        self._tables[table.source] = table

    def _row_images(self, columns: tuple[TableMapColumn, ...]) -> RowImages:
        """One for all tables whose columns have the same types."""
        shape = tuple(shape_of(column) for column in columns)
        images = self._images.get(shape)
        if images is None:
            images = self._images[shape] = RowImages(shape)
        return images

    def _prepare(self, table_map: TableMap, source: bytes) -> TableDecoder:
        uri = json_string(resource_uri(self._resource, table_map.database, table_map.table))
        names = _strings_json(column.name for column in table_map.columns)
        types = _strings_json(column_type(column) for column in table_map.columns)
        key = f',"key":{_strings_json(table_map.key)}' if table_map.key else ""
        return TableDecoder(
            uri,
            narrow(f',"columns":{names},"operation":'),
            narrow(f',"types":{types}{key}'),
            self._row_images(table_map.columns),
            len(table_map.columns),
            source,
        )


@lru_cache(maxsize=2048)
def _one_for_all(column: TableMapColumn) -> TableMapColumn:
    """The same object for equal columns."""
    return column


def shape_of(column: TableMapColumn) -> TableMapColumn:
    """Return the column as its values need it: without name and members, a text without its exact size."""
    size = column.size
    if column.type == t.VARCHAR or (column.type == t.STRING and column.charset is not None):
        size = 255 if size < 256 else 256
    return _one_for_all(column._replace(name="", size=size, members=()))


def _strings_json(strings: Iterable[str]) -> str:
    return f"[{','.join(map(json_string, strings))}]"


def column_type(column: TableMapColumn) -> str:
    """Return the column's type as information_schema writes it, as far as the binlog tells; "" when it does not."""
    unsigned = " unsigned" if column.unsigned else ""
    if column.type == t.NEWDECIMAL:
        return f"decimal({column.size},{column.scale}){unsigned}"
    if column.type == t.BIT:
        return f"bit({column.size})"
    if column.type in (t.ENUM, t.SET):
        return _members_type(column)
    if column.type in (t.VARCHAR, t.STRING):
        name = "varchar" if column.type == t.VARCHAR else "char"
        if column.charset is None:
            return f"{name.replace('char', 'binary')}({column.size})"
        return f"{name}({column.size // column.charset.max_length})"
    if column.type == t.BLOB:
        return BLOBS[column.size] + ("blob" if column.charset is None else "text")
    if column.type in (t.TIMESTAMP2, t.DATETIME2, t.TIME2) and column.size:
        return f"{NAMES[column.type]}({column.size})"
    if column.type == t.GEOMETRY:
        return GEOMETRIES[column.scale]
    if column.type == t.VECTOR:
        return f"vector({column.scale})"
    return NAMES[column.type] + unsigned


def _members_type(column: TableMapColumn) -> str:
    charset = column.charset
    if (
        charset is not None
        and charset.name not in UTF8_CHARSETS
        and (charset.max_length > 1 or not all(member.isascii() for member in column.members))
    ):
        return ""
    quoted = ",".join("'" + member.decode().replace("'", "''") + "'" for member in column.members)
    return f"{'enum' if column.type == t.ENUM else 'set'}({quoted})"
