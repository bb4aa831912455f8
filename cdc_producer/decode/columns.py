"""Writes the Python source that reads a column from a row image and makes JSON of it, one fragment per column.

`read_code` gives for a column where its bytes are (`Layout`) and the f-string text of its value, in which `{...}` holds
expressions over the variable `v$` (the bytes or number read; `$` stands for the column's index). row_image.py joins the
fragments into one function per table.
The JSON forms are those of shared/values.py. The text is *narrow*: each of its characters stands for one byte of UTF-8,
so that Python never stores it with two or four bytes a character, and encoding it is a copy.
"""

from __future__ import annotations

import base64
from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass
from json.encoder import encode_basestring as json_string
from typing import Any

import orjson

from cdc_producer.decode.decimals import TWO_DIGITS, decimal_code, decimal_size, impossible
from cdc_producer.decode.documents.json_binary import json_value
from cdc_producer.decode.table_map import TableMapColumn
from shared import binlog_format as t
from shared.values import UTF8_CHARSETS

#: types whose values are text when their column has a character set; ENUM and SET have one and are numbers
TEXTS = (t.VARCHAR, t.STRING, t.BLOB)


@dataclass(frozen=True, slots=True)
class Layout:
    """Tells where a value is: `code` for a field of fixed size, else a length of `prefix` bytes before it."""

    #: struct format of one field, little-endian; "" for a value of variable size
    code: str
    #: bytes of the field, or of the length before the value
    size: int


@dataclass(frozen=True, slots=True)
class ReadCode:
    """Holds the source that reads one column."""

    layout: Layout
    #: statements over v$ that come first; may be empty
    prepare: str
    #: text of an f-string that gives the JSON
    text: str


def field(code: str, size: int) -> Layout:
    """Describe a field of fixed size."""
    return Layout(code, size)


def counted(prefix: int) -> Layout:
    """Describe a value behind a length of `prefix` bytes."""
    return Layout("", prefix)


def encoded_json(charset: str, value: bytes) -> str:
    """Write a text of another character set than UTF-8 as JSON."""
    return f'{{"EncodedString":{{"charset":"{charset}","base64":"{base64.b64encode(value).decode()}"}}}}'


def narrow(text: str) -> str:
    """Return the same JSON text, one character for each byte of its UTF-8."""
    return text.encode().decode("latin-1")


def read_code(column: TableMapColumn, *, as_bytes: bool = False) -> ReadCode:
    """The fragments of one column, which call what HELPERS names; `as_bytes` does not decode text."""
    code = READERS[column.type](column)
    if as_bytes and column.type in TEXTS and column.charset is not None and column.charset.name in UTF8_CHARSETS:
        return ReadCode(code.layout, "", f"{{encoded({column.charset.name!r}, v$)}}")
    return code


def _scalar(variant: str, expression: str) -> str:
    """f-string text of {"variant":expression}."""
    return f'{{{{"{variant}":{{{expression}}}}}}}'


def _quoted(variant: str, expression: str) -> str:
    """f-string text of {"variant":"expression"}."""
    return f'{{{{"{variant}":"{{{expression}}}"}}}}'


def _object(variant: str, members: str) -> str:
    """f-string text of {"variant":{members}}; `members` is f-string text."""
    return '{{"' + variant + '":{{' + members + "}}}}"


def _integer(codes: str, size: int) -> Callable[[TableMapColumn], ReadCode]:
    return lambda column: ReadCode(field(codes[column.unsigned], size), "", _scalar(_signed(column), "v$"))


def _medium(column: TableMapColumn) -> ReadCode:
    """MEDIUMINT: struct has no three-byte numbers."""
    signed = "" if column.unsigned else ", signed=True"
    return ReadCode(field("3s", 3), f'v$ = from_bytes(v$, "little"{signed})', _scalar(_signed(column), "v$"))


def _signed(column: TableMapColumn) -> str:
    return "UnsignedInteger" if column.unsigned else "SignedInteger"


def _real(code: str, size: int, variant: str) -> Callable[[TableMapColumn], ReadCode]:
    # the shortest digits that give the same double back, -0.0 included; in a third of the time repr takes
    # what is not finite differs from itself, or from itself less itself
    return lambda column: ReadCode(
        field(code, size), "if v$ - v$ != 0: impossible(v$)", _scalar(variant, "real(v$).decode()")
    )


def _year(column: TableMapColumn) -> ReadCode:
    return ReadCode(field("B", 1), "", _scalar("Year", "v$ + 1900 if v$ else 0"))


def _decimal(column: TableMapColumn) -> ReadCode:
    size = decimal_size(column.size, column.scale)
    prepare, text = decimal_code(column.size, column.scale)
    return ReadCode(field(f"{size}s", size), prepare, f'{{{{"Decimal":"{text}"}}}}')


def _date(column: TableMapColumn) -> ReadCode:
    """24 bits: year 15, month 4, day 5."""
    return ReadCode(field("3s", 3), "", _object("Date", '{day[from_bytes(v$, "little")]}'))


def _fraction(column: TableMapColumn) -> tuple[int, str, str, str]:
    """Bytes of the fraction; over v$: the expression of what is above it, a test of it, its text in microseconds."""
    size = (column.size + 1) // 2
    if not size:
        return 0, "v$", "", "0"
    low, most = f"(v$ & {(1 << 8 * size) - 1})", 100**size - 1
    if size == 1:
        return size, "(v$ >> 8)", "", f"{{hundredths[{low}]}}"
    micros = low if size == 3 else f"{low} * 100"
    return size, f"(v$ >> {8 * size})", f"\nif {low} > {most}: impossible(v$)", f"{{{micros}}}"


def _timestamp(column: TableMapColumn) -> ReadCode:
    size, seconds, test, micros = _fraction(column)
    text = _object("Timestamp", f'"unix_time":{{{seconds}}},"subsecond":{micros}')
    return ReadCode(field(f"{4 + size}s", 4 + size), f'v$ = from_bytes(v$, "big"){test}', text)


def _datetime(column: TableMapColumn) -> ReadCode:
    """40 bits: sign 1, year * 13 + month 17, day 5, hour 5, minute 6, second 6; then the fraction."""
    size, whole, test, micros = _fraction(column)
    prepare = f'v$ = from_bytes(v$, "big"); w$ = {whole} - {1 << 39}{test}'
    moment = '{date[w$ >> 17]},{clock[w$ >> 6 & 2047]},"second":{digits[w$ & 63]},"subsecond":'
    return ReadCode(field(f"{5 + size}s", 5 + size), prepare, _object("DateTime", moment + micros))


def _time(column: TableMapColumn) -> ReadCode:
    """24 bits: sign 1, unused 1, hours 10, minutes 6, seconds 6; fraction included in the two's complement."""
    size, whole, test, micros = _fraction(column)
    prepare = f'v$ = from_bytes(v$, "big") - {1 << (8 * size + 23)}'
    prepare += f'; n$ = negative if v$ < 0 else ""; v$ = abs(v$){test}'
    clock = f'"hours":{{hours[{whole} >> 12]}},"minutes":{{digits[{whole} >> 6 & 63]}}'
    seconds = f',"seconds":{{digits[{whole} & 63]}},"subseconds":{micros}{{n$}}'
    return ReadCode(field(f"{3 + size}s", 3 + size), prepare, _object("Time", clock + seconds))


def _bit(column: TableMapColumn) -> ReadCode:
    size = (column.size + 7) // 8
    return ReadCode(field(f"{size}s", size), 'v$ = from_bytes(v$, "big")', _scalar("Bit", "v$"))


def _members(variant: str) -> Callable[[TableMapColumn], ReadCode]:
    def read(column: TableMapColumn) -> ReadCode:
        if column.size <= 2:
            return ReadCode(field(" BH"[column.size], column.size), "", _scalar(variant, "v$"))
        layout = field(f"{column.size}s", column.size)
        return ReadCode(layout, 'v$ = from_bytes(v$, "little")', _scalar(variant, "v$"))

    return read


def _text(prefix: Callable[[TableMapColumn], int]) -> Callable[[TableMapColumn], ReadCode]:
    """Strings, binary or not; `prefix` gives the bytes of the length before the value."""

    def read(column: TableMapColumn) -> ReadCode:
        layout = counted(prefix(column))
        if column.charset is None:
            # The row image leaves out the zeros that BINARY(n) ends in; the value has them.
            pad = f"v$ = v$.ljust({column.size}, zero)" if column.type == t.STRING else ""
            return ReadCode(layout, pad, _quoted("Blob", "base64(v$)"))
        if column.charset.name in UTF8_CHARSETS:
            # Decoding tells whether it is UTF-8; the text itself would be wide.
            return ReadCode(layout, "v$.isascii() or v$.decode()", '{{"String":{quote(v$.decode("latin-1"))}}}')
        return ReadCode(layout, "", f"{{encoded({column.charset.name!r}, v$)}}")

    return read


def _bytes(variant: str) -> Callable[[TableMapColumn], ReadCode]:
    return lambda column: ReadCode(counted(column.size), "", _quoted(variant, "base64(v$)"))


def _json(column: TableMapColumn) -> ReadCode:
    return ReadCode(counted(column.size), "", "{json(v$)}")


READERS: dict[int, Callable[[TableMapColumn], ReadCode]] = {
    t.TINY: _integer("bB", 1),
    t.SHORT: _integer("hH", 2),
    t.INT24: _medium,
    t.LONG: _integer("iI", 4),
    t.LONGLONG: _integer("qQ", 8),
    t.FLOAT: _real("f", 4, "Float"),
    t.DOUBLE: _real("d", 8, "Double"),
    t.NEWDECIMAL: _decimal,
    t.YEAR: _year,
    t.DATE: _date,
    t.TIMESTAMP2: _timestamp,
    t.DATETIME2: _datetime,
    t.TIME2: _time,
    t.BIT: _bit,
    t.ENUM: _members("Enum"),
    t.SET: _members("Set"),
    t.VARCHAR: _text(lambda column: 1 if column.size < 256 else 2),
    t.STRING: _text(lambda column: 1 if column.size < 256 else 2),
    t.BLOB: _text(lambda column: column.size),
    t.JSON: _json,
    t.GEOMETRY: _bytes("Geometry"),
    t.VECTOR: _bytes("Vector"),
}


class _Dates(dict[int, str]):
    """(year * `months` + month) * 32 + day -> its members as JSON text; most rows repeat a date that was seen."""

    def __init__(self, months: int) -> None:
        super().__init__()
        self._months = months

    def __missing__(self, packed: int) -> str:
        whole, day = divmod(packed, 32)
        year, month = divmod(whole, self._months)
        if not 0 <= year <= 9999 or month > 12:
            raise ValueError(f"no date is {year}-{month}-{day}")
        if len(self) >= 1 << 15:
            self.clear()
        text = self[packed] = f'"year":{year},"month":{month},"day":{day}'
        return text


#: what the fragments call; a look-up that fails tells of a value that cannot be
HELPERS: dict[str, Any] = {
    "date": _Dates(13),
    "day": _Dates(16),
    #: looking up the text of a small number costs half of formatting it
    "digits": tuple(map(str, range(60))),
    "hours": tuple(map(str, range(839))),
    "hundredths": tuple(str(hundredth * 10_000) for hundredth in range(100)),
    "clock": {hour << 6 | minute: f'"hour":{hour},"minute":{minute}' for hour in range(24) for minute in range(60)},
    "impossible": impossible,
    "two_digits": TWO_DIGITS,
    "real": orjson.dumps,
    "from_bytes": int.from_bytes,
    "quote": json_string,
    "encoded": encoded_json,
    "base64": lambda value: b2a_base64(value, newline=False).decode(),
    "json": json_value,
    "zero": b"\0",
    "negative": ',"negative":true',
}
