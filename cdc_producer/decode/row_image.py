"""Turns row images, the bytes of rows, into JSON, by a decoder generated for each table map.

A generated function reads one row image whose NULLs are known: adjacent columns of fixed size are unpacked at once, and
the JSON is one f-string. There is one function per combination of NULLs that occurs, up to a limit; beyond it one
function that tests each column.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from typing import Any

from cdc_producer.decode.columns import HELPERS, Layout, ReadCode, read_code
from cdc_producer.decode.table_map import Column
from shared.errors import UnsupportedError

#: a decoder: the event's body and the offset after the row's NULL bits, to the JSON array and the offset after the row
ReadRow = Callable[[bytes, int], tuple[str, int]]
#: combinations of NULLs that get a function of their own
MAX_PATTERNS = 128


class RowImages:
    """Reads the row images of one table map."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self._null_bytes = (len(columns) + 7) // 8
        self._patterns = _Patterns(columns)
        #: for rows with text that its column's character set does not allow, as an old server let in
        self._as_bytes = _Patterns(columns, as_bytes=True)

    def read(self, body: bytes, position: int) -> list[str]:
        """Return all row images from `position` to the end of a rows event's body, each as a JSON array of values.

        Raises UnsupportedError when the bytes do not end where the last row does.
        """
        null_bytes, end = self._null_bytes, len(body)
        patterns = self._patterns
        images: list[str] = []
        try:
            while position < end:
                start = position + null_bytes
                try:
                    image, position = patterns[body[position:start]](body, start)
                except UnicodeDecodeError:
                    image, position = self._as_bytes[body[position:start]](body, start)
                images.append(image)
        except (StructError, ValueError, LookupError) as error:
            raise UnsupportedError(f"row image {len(images) + 1} cannot be decoded: {error}") from error
        if position != end:
            raise UnsupportedError(f"row image {len(images)} ends {position - end} bytes behind its binlog event")
        return images


class _Patterns(dict[bytes, ReadRow]):
    """NULL bits -> decoder, made when first seen."""

    def __init__(self, columns: tuple[Column, ...], *, as_bytes: bool = False) -> None:
        super().__init__()
        self._columns = columns
        self._as_bytes = as_bytes
        self._any: ReadRow | None = None

    def __missing__(self, nulls: bytes) -> ReadRow:
        if len(self) < MAX_PATTERNS:
            self[nulls] = self._compile(int.from_bytes(nulls, "little"))
            return self[nulls]
        if self._any is None:
            self._any = self._compile(None)
        return self._any

    def _compile(self, nulls: int | None) -> ReadRow:
        """Generate the function for these NULL bits (bit i: column i is NULL), or with None the one that tests them."""
        source = _Source([read_code(column, as_bytes=self._as_bytes) for column in self._columns], nulls)
        exec("\n".join(source.lines), source.names)
        read: ReadRow = source.names["read"]
        return read


class _Source:
    """The lines of one generated function, and the names they use."""

    def __init__(self, codes: list[ReadCode], nulls: int | None) -> None:
        self.names: dict[str, Any] = dict(HELPERS)
        self.lines = ["def read(data, p):"]
        #: distance from p to the next byte, known while generating
        self._ahead = 0
        #: fixed fields not yet read: (variable, layout)
        self._fields: list[tuple[str, Layout]] = []
        #: statements that wait until the fields are read
        self._prepare: list[str] = []
        if nulls is None:
            texts = self._testing(codes)
        else:
            texts = ['"Null"' if nulls >> index & 1 else self._column(code, index) for index, code in enumerate(codes)]
            self._read_fields()
        self.lines.append(f"  return f'''[{','.join(texts)}]''', p + {self._ahead}")

    def _column(self, code: ReadCode, index: int) -> str:
        """Add what reads one column; returns its f-string text."""
        if code.layout.code:
            self._fields.append((f"v{index}", code.layout))
        else:
            self._read_fields()
            self._counted(f"v{index}", code.layout.size)
        if code.prepare:
            self._prepare += code.prepare.replace("$", str(index)).splitlines()
        return code.text.replace("$", str(index))

    def _read_fields(self) -> None:
        """Read the fixed fields gathered so far with one unpack."""
        if self._fields:
            structure = Struct("<" + "".join(layout.code for _, layout in self._fields))
            name = f"unpack{len(self.names)}"
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

    def _testing(self, codes: list[ReadCode]) -> list[str]:
        """Read column by column, each behind a test of its NULL bit."""
        size = (len(codes) + 7) // 8
        self.lines.append(f"  nulls = from_bytes(data[p - {size}:p], 'little')")
        for index, code in enumerate(codes):
            outside, self.lines = self.lines, []
            text = self._column(code, index)
            self._read_fields()
            self.lines += [f"  t{index} = f'''{text}'''", f"  p += {self._ahead}"]
            self._ahead = 0
            self.lines = [
                *outside, f"  if nulls >> {index} & 1: t{index} = '\"Null\"'", "  else:",
                *(f"  {line}" for line in self.lines),
            ]  # fmt: skip
        return [f"{{t{index}}}" for index in range(len(codes))]
