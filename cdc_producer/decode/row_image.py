"""Turns row images, the bytes of rows, into JSON: column by column, or, of many, by generated functions.

A generated function reads one row image whose NULLs are known: adjacent columns of fixed size are unpacked at once, and
the JSON is one f-string. There is one function per combination of NULLs that has many rows; the others, and the tables
that have few, are read column by column, by functions that all tables share, because generating costs as much as
reading hundreds of rows. What is generated is bounded in bytes, whatever the number of tables.

The two images of an update mostly differ in few columns, so the text of a value that is the same bytes is made once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from struct import error as StructError
from typing import Any

from cdc_producer.decode.columns import HELPERS, Layout, ReadCode, read_code
from cdc_producer.decode.table_map import TableMapColumn
from shared import binlog_format as t
from shared.errors import UnsupportedError

#: a decoder: the event's body and the offset after the row's NULL bits, to the JSON array and the offset after the row
ReadRow = Callable[[bytes, int], tuple[str, int]]
#: rows with the same NULLs after which they get a function of their own
MANY_ROWS = 100
#: combinations of NULLs that are counted: of one table, and of all, which take some 5 MB
MAX_PATTERNS, MAX_COUNTED = 128, 1 << 14
#: characters of source of all generated functions, which need several times as many bytes
MAX_SOURCE = 4 << 20
#: types whose text costs more than comparing two values
COSTLY = frozenset({
    t.FLOAT, t.DOUBLE, t.NEWDECIMAL, t.TIMESTAMP2, t.DATETIME2, t.TIME2, t.VARCHAR, t.STRING, t.BLOB, t.JSON,
    t.GEOMETRY, t.VECTOR,
})  # fmt: skip
#: what a generated function is for: an image alone, the two of an update, or a column
ALONE, BEFORE, AFTER, COLUMN = range(4)


class RowImages:
    """Reads the row images of all tables whose columns have the same types."""

    __slots__ = ("__weakref__", "_after", "_alone", "_as_bytes", "_before", "_null_bytes", "columns")

    def __init__(self, columns: tuple[TableMapColumn, ...]) -> None:
        """Names and members of the columns do not matter."""
        self.columns = columns
        self._null_bytes = (len(columns) + 7) // 8
        self._alone = _Patterns(columns, ALONE)
        self._before: _Patterns | None = None
        self._after: _Patterns | None = None
        #: for rows with text that its column's character set does not allow, as an old server let in
        self._as_bytes: _Patterns | None = None

    def read(self, body: bytes, position: int) -> list[str]:
        """Return all row images from `position` to the end of a rows event's body, each as a JSON array of values.

        Raises UnsupportedError when the bytes do not end where the last row does.
        """
        images: list[str] = []
        null_bytes, end, patterns = self._null_bytes, len(body), self._alone
        try:
            while position < end:
                start = position + null_bytes
                try:
                    image, position = patterns[body[position:start]](body, start)
                except UnicodeDecodeError:
                    image, position = self._bytes()[body[position:start]](body, start)
                images.append(image)
        except (StructError, ValueError, LookupError) as error:
            raise UnsupportedError(f"row image {len(images) + 1} cannot be decoded: {error}") from error
        return _ended(images, position - end)

    def read_pairs(self, body: bytes, position: int, between: str) -> list[str]:
        """Read the rows of an update: each as its image before, the text `between` and its image after."""
        rows: list[str] = []
        null_bytes, end = self._null_bytes, len(body)
        befores = self._before = self._before or _Patterns(self.columns, BEFORE)
        afters = self._after = self._after or _Patterns(self.columns, AFTER)
        try:
            while position < end:
                start = position + null_bytes
                try:
                    before, middle, kept = befores[body[position:start]](body, start)
                    start = middle + null_bytes
                    after, position = afters[body[middle:start]](body, start, kept)
                except UnicodeDecodeError:
                    before, middle = self._image(body, position)
                    after, position = self._image(body, middle)
                rows.append(f"{before}{between}{after}")
        except (StructError, ValueError, LookupError) as error:
            raise UnsupportedError(f"row {len(rows) + 1} cannot be decoded: {error}") from error
        return _ended(rows, position - end)

    def _image(self, body: bytes, position: int) -> tuple[str, int]:
        start = position + self._null_bytes
        nulls = body[position:start]
        try:
            found: tuple[str, int] = self._alone[nulls](body, start)
        except UnicodeDecodeError:
            found = self._bytes()[nulls](body, start)
        return found

    def _bytes(self) -> _Patterns:
        self._as_bytes = self._as_bytes or _Patterns(self.columns, ALONE, as_bytes=True)
        return self._as_bytes


def _ended(rows: list[str], behind: int) -> list[str]:
    """The rows; raises UnsupportedError when the last one ended `behind` the end."""
    if behind:
        raise UnsupportedError(f"row image {len(rows)} ends {behind} bytes behind its binlog event")
    return rows


class _Patterns(dict[bytes, Callable[..., Any]]):
    """NULL bits -> decoder; a generated one when many rows had them, until then one that reads column by column."""

    __slots__ = ("_as_bytes", "_columns", "_readers", "_role", "_rows")

    def __init__(self, columns: tuple[TableMapColumn, ...], role: int, *, as_bytes: bool = False) -> None:
        super().__init__()
        self._columns = columns
        self._role = role
        self._as_bytes = as_bytes
        self._readers = tuple(column_reader(column, as_bytes) for column in columns)
        #: rows by NULL bits
        self._rows: dict[bytes, int] = {}

    def __bool__(self) -> bool:
        return True

    def __missing__(self, nulls: bytes) -> Callable[..., Any]:
        rows = self._rows.get(nulls, 0) + 1
        if rows > MANY_ROWS:
            return self._generate(nulls)
        if rows > 1:
            self._rows[nulls] = rows
        elif len(self._rows) < MAX_PATTERNS:
            _COUNTED.add(self._rows, nulls)
        return self._by_column

    def _generate(self, nulls: bytes) -> Callable[..., Any]:
        codes = [read_code(column, as_bytes=self._as_bytes) for column in self._columns]
        kept = [self._role != ALONE and column.type in COSTLY for column in self._columns]
        source = _Source(codes, int.from_bytes(nulls, "little"), self._role, kept)
        generated = self[nulls] = source.function()
        _GENERATED.add(self, nulls, sum(map(len, source.lines)))
        return generated

    def forget(self, nulls: bytes) -> None:
        """Give the function up until many rows need it again."""
        del self[nulls]
        self._rows.pop(nulls, None)

    def _by_column(self, data: bytes, position: int, _: Any = None) -> Any:
        size = (len(self._readers) + 7) // 8
        nulls = int.from_bytes(data[position - size : position], "little")
        texts = []
        for read in self._readers:
            if nulls & 1:
                texts.append('"Null"')
            else:
                text, position = read(data, position)
                texts.append(text)
            nulls >>= 1
        image = f"[{','.join(texts)}]"
        return (image, position, None) if self._role == BEFORE else (image, position)


class _Counted(deque[tuple[dict[bytes, int], bytes]]):
    """All counts of all tables, oldest first; the oldest are given up for new ones."""

    def add(self, rows: dict[bytes, int], nulls: bytes) -> None:
        while len(self) >= MAX_COUNTED:
            counts, oldest = self.popleft()
            counts.pop(oldest, None)
        rows[nulls] = 1
        self.append((rows, nulls))


_COUNTED = _Counted()


class _Generated(deque[tuple[_Patterns, bytes, int]]):
    """All functions that tables have of their own, oldest first; the oldest are given up for new ones."""

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def add(self, patterns: _Patterns, nulls: bytes, size: int) -> None:
        self.append((patterns, nulls, size))
        self._size += size
        while self._size > MAX_SOURCE and len(self) > 1:
            oldest, forgotten, size = self.popleft()
            oldest.forget(forgotten)
            self._size -= size


_GENERATED = _Generated()


@lru_cache(maxsize=2048)
def column_reader(column: TableMapColumn, as_bytes: bool) -> ReadRow:
    """Return what reads one value that is not NULL, to its JSON."""
    return _Source([read_code(column, as_bytes=as_bytes)], 0, COLUMN, [False]).function()


class _Source:
    """The lines of one generated function, and the names they use."""

    def __init__(self, codes: list[ReadCode], nulls: int, role: int, kept: list[bool]) -> None:
        """`nulls`: bit i is set when column i is NULL; `kept` are the columns whose text an image after may repeat."""
        self.names: dict[str, Any] = dict(HELPERS)
        self._role = role
        #: distance from p to the next byte, known while generating
        self._ahead = 0
        #: fixed fields not yet read: (variable, layout)
        self._fields: list[tuple[str, Layout]] = []
        #: statements that wait until the fields are read
        self._prepare: list[str] = []
        self.lines = [f"def read(data, p{', kept' if role == AFTER else ''}):"]
        if role == AFTER:
            names = [f"b{index}, s{index}, " for index, keep in enumerate(kept) if keep]
            self.names["nothing"] = (None,) * 2 * len(names)
            if names:
                self.lines.append(f"  {''.join(names)} = kept or nothing")
        texts = [
            '"Null"' if nulls >> index & 1 else self._column(code, index, kept[index])
            for index, code in enumerate(codes)
        ]
        self._read_fields()
        image = ",".join(texts) if role == COLUMN else f"[{','.join(texts)}]"
        last = f", ({self._told(nulls, kept)})" if role == BEFORE else ""
        self.lines.append(f"  return f'''{image}''', p + {self._ahead}{last}")

    def function(self) -> Callable[..., Any]:
        exec("\n".join(self.lines), self.names)
        read: Callable[..., Any] = self.names["read"]
        return read

    @staticmethod
    def _told(nulls: int, kept: list[bool]) -> str:
        """What an image before hands to the one after it: bytes and text of each kept column, None for a NULL."""
        columns = [index for index, keep in enumerate(kept) if keep]
        return "".join("None, None, " if nulls >> index & 1 else f"r{index}, t{index}, " for index in columns)

    def _column(self, code: ReadCode, index: int, kept: bool) -> str:
        """Add what reads one column; returns its f-string text."""
        name = f"r{index}" if kept else f"v{index}"
        if code.layout.code:
            self._fields.append((name, code.layout))
        else:
            self._read_fields()
            self._counted(name, code.layout.size)
        prepare, text = (part.replace("$", str(index)) for part in (code.prepare, code.text))
        if not kept:
            self._prepare += prepare.splitlines()
            return text
        make = [f"v{index} = r{index}", *prepare.splitlines(), f"t{index} = f'''{text}'''"]
        if self._role == AFTER:
            # zero has two signs that are equal
            same = f"if r{index} == b{index} and r{index}: t{index} = s{index}"
            make = [same, "else:", *(f"  {line}" for line in make)]
        self._prepare += make
        return f"{{t{index}}}"

    def _read_fields(self) -> None:
        """Read the fixed fields gathered so far with one unpack."""
        if self._fields:
            name = "unpack_" + "".join(layout.code for _, layout in self._fields)
            structure = _structure(name.removeprefix("unpack_"))
            self.names[name] = structure.unpack_from
            variables = ", ".join(variable for variable, _ in self._fields)
            self.lines.append(f"  {variables}, = {name}(data, p + {self._ahead})")
            self._ahead += structure.size
            self._fields.clear()
        self.lines += [f"  {statement}" for statement in self._prepare]
        self._prepare.clear()

    def _counted(self, variable: str, prefix: int) -> None:
        """Read a value that has its length before it; afterwards p stands behind it."""
        at = self._ahead
        octets = [f"data[p + {at + index}] << {8 * index}" if index else f"data[p + {at}]" for index in range(prefix)]
        self.lines += [
            f"  s = p + {at + prefix}",
            f"  p = s + ({' | '.join(octets)})",
            f"  {variable} = data[s:p]",
        ]
        self._ahead = 0


@lru_cache(maxsize=512)
def _structure(codes: str) -> Struct:
    return Struct("<" + codes)
