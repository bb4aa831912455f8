"""Keeps of each table what its rows need: what the JSON of every rows event repeats, and the decoder of its images."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from json.encoder import encode_basestring as json_string
from typing import NamedTuple
from weakref import WeakValueDictionary

from cdc_producer.decode.binlog_event import BinlogEvent
from cdc_producer.decode.columns import narrow
from cdc_producer.decode.row_image import RowImages
from cdc_producer.decode.table_map import Charsets, TableMapColumn, read_names, read_table_map
from shared import binlog_format as t
from shared.binlog_format import EventType
from shared.events import resource_uri
from shared.filters import DatabaseFilter
from shared.values import UTF8_CHARSETS

#: bytes of the tables that are remembered, by the program and its decoders together: ten thousand of them and more
MAX_REMEMBERED = 32 << 20
#: bytes that a table takes besides its texts: in all, of each column, and of what reads the rows of all tables with the
#: same types, when rows were inserted and updated
TABLE_BYTES, COLUMN_BYTES, IMAGES_BYTES = 700, 50, 1600
#: databases, or tables, whose names are remembered
MAX_NAMES = 10_000

NAMES = {
    t.TINY: "tinyint", t.SHORT: "smallint", t.INT24: "mediumint", t.LONG: "int", t.LONGLONG: "bigint",
    t.FLOAT: "float", t.DOUBLE: "double", t.YEAR: "year", t.DATE: "date", t.TIMESTAMP2: "timestamp",
    t.DATETIME2: "datetime", t.TIME2: "time", t.JSON: "json",
}  # fmt: skip
GEOMETRIES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection",
)  # fmt: skip
BLOBS = {1: "tiny", 2: "", 3: "medium", 4: "long"}


class TableShape:
    """Holds what tables have in common whose columns have the same names and types, and which have the same key."""

    __slots__ = ("__weakref__", "columns", "facts", "images", "one_bitmap", "two_bitmaps", "width")

    def __init__(self, columns: str, facts: str, images: RowImages) -> None:
        """`columns` and `facts` are narrow JSON text."""
        #: `,"columns":[..],"operation":`
        self.columns = columns
        #: what follows the operation: types, and key when there is one
        self.facts = facts
        self.images = images
        #: number of columns, for the rows event that says it again
        self.width = len(images.columns)
        #: bytes in which a rows event says that, and which columns one image of each row, or two, have
        counted, bitmap = (1 if self.width < 251 else 3), (self.width + 7) // 8
        self.one_bitmap, self.two_bitmaps = counted + bitmap, counted + 2 * bitmap


class TableDecoder(NamedTuple):
    """Holds one included table, ready for its rows."""

    #: JSON text of the event key `uri`
    uri: str
    shape: TableShape
    #: body of the TABLE_MAP event that told all this, from behind the table id
    source: bytes

    @property
    def size(self) -> int:
        """Bytes it takes, about, with a shape of its own, which is found by most of `source` once more.

        What reads its rows is not counted here, because tables of the same types share it.
        """
        shape = self.shape
        texts = len(self.uri) + len(shape.columns) + len(shape.facts) + 2 * len(self.source)
        return TABLE_BYTES + COLUMN_BYTES * shape.width + texts


class TableDecoders:
    """Maps table maps to tables; None for a table of a database that is left out."""

    def __init__(
        self, resource: str, databases: DatabaseFilter | None, charsets: Charsets, most: int = MAX_REMEMBERED
    ) -> None:
        """`databases` tells what is included, None for all; `most` is the bytes of the tables that are remembered."""
        self._resource = resource
        self._databases = databases
        self._charsets = charsets
        self._most = most
        #: what another process needs to make the same
        self.settings = (resource, databases, charsets, most)
        #: included tables by their map, because a leader writes the same one before every statement; those that were
        #: used last stand last
        self._tables: OrderedDict[bytes, TableDecoder] = OrderedDict()
        self._bytes = 0
        self._images: WeakValueDictionary[tuple[TableMapColumn, ...], RowImages] = WeakValueDictionary()
        #: by what follows the names in a table map
        self._shapes: WeakValueDictionary[bytes, TableShape] = WeakValueDictionary()
        #: whether it is included, by a database's name in a table map, or that and a table's
        self._included: dict[bytes, bool] = {}

    @property
    def counted_bytes(self) -> int:
        """Count the bytes of all that is remembered, about."""
        return self._bytes + IMAGES_BYTES * len(self._images)

    def table(self, event: BinlogEvent) -> TableDecoder | None:
        """Return the table of a TABLE_MAP event. Raises UnsupportedError, and what UNREADABLE lists."""
        source = event.body[6:]  # without the table id, which a restart of the leader gives to another table
        table = self._remembered(source)
        if table is None and self.included(source):
            database, name = read_names(event.body)
            uri = json_string(resource_uri(self._resource, database, name))
            table = TableDecoder(uri, self._shape(event), source)
            self._remember(table)
        return table

    def known(self, source: bytes) -> TableDecoder | None:
        """Return the table of a `TableDecoder.source`. Raises what `table` raises."""
        table = self._remembered(source)
        if table is None and self.included(source):
            table = self.table(BinlogEvent(EventType.TABLE_MAP, 0, 0, bytes(6) + source, "", 0, 0))
        return table

    def included(self, source: bytes) -> bool:
        """Decide by the names alone, so that nothing is kept of the columns of a table that is left out.

        `source` is the body of its TABLE_MAP event from behind the table id. Raises what UNREADABLE lists.
        """
        databases = self._databases
        end = 3 + source[2]
        if databases is not None and not databases.whole_databases:
            end += 2 + source[end + 1]
        names = source[2:end]
        included = self._included.get(names)
        if included is None:
            if len(self._included) >= MAX_NAMES:
                self._included.clear()
            database, table = read_names(bytes(6) + source)
            included = self._included[names] = databases is None or databases.takes(database, table)
        return included

    def _remembered(self, source: bytes) -> TableDecoder | None:
        table = self._tables.get(source)
        if table is not None:
            self._tables.move_to_end(source)
        return table

    def _remember(self, table: TableDecoder) -> None:
        self._tables[table.source] = table
        self._bytes += table.size
        while self.counted_bytes > self._most and len(self._tables) > 1:
            self._bytes -= self._tables.popitem(last=False)[1].size

    def _row_images(self, columns: tuple[TableMapColumn, ...]) -> RowImages:
        """One for all tables whose columns have the same types."""
        shape = tuple(shape_of(column) for column in columns)
        images = self._images.get(shape)
        if images is None:
            images = self._images[shape] = RowImages(shape)
        return images

    def _shape(self, event: BinlogEvent) -> TableShape:
        """Read the table map, unless another table's says the same of its columns."""
        behind_database = 9 + event.body[8] + 1
        source = event.body[behind_database + 1 + event.body[behind_database] + 1 :]
        shape = self._shapes.get(source)
        if shape is None:
            table_map = read_table_map(event, self._charsets)
            names = _strings_json(column.name for column in table_map.columns)
            types = _strings_json(column_type(column) for column in table_map.columns)
            key = f',"key":{_strings_json(table_map.key)}' if table_map.key else ""
            columns, facts = narrow(f',"columns":{names},"operation":'), narrow(f',"types":{types}{key}')
            shape = self._shapes[source] = TableShape(columns, facts, self._row_images(table_map.columns))
        return shape


@lru_cache(maxsize=2048)
def _one_for_all(column: TableMapColumn) -> TableMapColumn:
    """The same object for equal columns."""
    return column


def shape_of(column: TableMapColumn) -> TableMapColumn:
    """Return the column as its values need it: without name and members, a text without its exact size."""
    size = column.size
    if column.type == t.VARCHAR or (column.type == t.STRING and column.charset is not None):
        size = 255 if size < 256 else 256
    _, kind, _, scale, unsigned, charset, _ = column
    return _one_for_all(TableMapColumn("", kind, size, scale, unsigned, charset))


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
    """The type with its members; "" where their bytes do not tell the text that information_schema has.

    A table converted to UTF-8 keeps the bytes that its members had in their former character set.
    """
    charset = column.charset
    utf8 = charset is None or charset.name in UTF8_CHARSETS
    if charset is not None and not utf8 and (charset.max_length > 1 or charset.name == "swe7"):
        return ""
    try:
        members = [member.decode("utf-8" if utf8 else "ascii") for member in column.members]
    except UnicodeDecodeError:
        return ""
    quoted = ",".join("'" + member.replace("'", "''") + "'" for member in members)
    return f"{'enum' if column.type == t.ENUM else 'set'}({quoted})"
