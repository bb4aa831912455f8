"""How each column type is read from a row image and written as JSON: fragments of Python source, one per column.

`read_code` gives for a column where its bytes are (`Layout`) and the f-string text of its value, in which `{...}` holds
expressions over the variable `v$` (the bytes or number read; `$` stands for the column's index). row_image.py joins the
fragments into one function per table.
The JSON forms are those of shared/values.py.
"""

from __future__ import annotations

import base64
from binascii import b2a_base64
from collections.abc import Callable
from dataclasses import dataclass
from json.encoder import encode_basestring as json_string
from typing import Any

from cdc_producer import table_map as t
from cdc_producer.decimals import decimal_decoder, decimal_size
from cdc_producer.json_binary import json_value
from cdc_producer.table_map import Column
from shared.values import UTF8_CHARSETS


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a value is: `code` for a field of fixed size, else a length of `prefix` bytes before it."""

    #: struct format of one field, little-endian; "" for a value of variable size
    code: str
    #: bytes of the field, or of the length before the value
    size: int


@dataclass(frozen=True, slots=True)
class ReadCode:
    layout: Layout
    #: statements over v$ that come first; may be empty
    prepare: str
    #: text of an f-string that gives the JSON
    text: str


def field(code: str, size: int) -> Layout:
    return Layout(code, size)


def counted(prefix: int) -> Layout:
    return Layout("", prefix)


def string_json(value: bytes) -> str:
    """A value of a UTF-8 column; bytes that are no UTF-8 (an old server let them in) travel as they are."""
    try:
        return f'{{"String":{json_string(value.decode())}}}'
    except UnicodeDecodeError:
        return encoded_json("utf8mb4", value)


def encoded_json(charset: str, value: bytes) -> str:
    return f'{{"EncodedString":{{"charset":"{charset}","base64":"{base64.b64encode(value).decode()}"}}}}'


def read_code(column: Column, names: dict[str, Any]) -> ReadCode:
    """The fragments of one column; helpers they call are added to `names` under unique names."""
    return READERS[column.type](column, names)


def _integer(codes: str, size: int) -> Callable[[Column, dict[str, Any]], ReadCode]:
    def read(column: Column, names: dict[str, Any]) -> ReadCode:
        variant = "UnsignedInteger" if column.unsigned else "SignedInteger"
        return ReadCode(field(codes[column.unsigned], size), "", f'{{{{"{variant}":{{v$}}}}}}')

    return read


def _medium(column: Column, names: dict[str, Any]) -> ReadCode:
    """MEDIUMINT: struct has no three-byte numbers."""
    signed = "" if column.unsigned else ", signed=True"
    variant = "UnsignedInteger" if column.unsigned else "SignedInteger"
    return ReadCode(field("3s", 3), f'v$ = from_bytes(v$, "little"{signed})', f'{{{{"{variant}":{{v$}}}}}}')


def _real(code: str, size: int, variant: str) -> Callable[[Column, dict[str, Any]], ReadCode]:
    # repr: the shortest digits that give the same double back, -0.0 included
    return lambda column, names: ReadCode(field(code, size), "", f'{{{{"{variant}":{{v$!r}}}}}}')


def _year(column: Column, names: dict[str, Any]) -> ReadCode:
    return ReadCode(field("B", 1), "", '{{"Year":{v$ + 1900 if v$ else 0}}}')


def _decimal(column: Column, names: dict[str, Any]) -> ReadCode:
    name = f"decimal_{column.size}_{column.scale}"
    names[name] = decimal_decoder(column.size, column.scale)
    size = decimal_size(column.size, column.scale)
    return ReadCode(field(f"{size}s", size), "", f'{{{{"Decimal":"{{{name}(v$)}}"}}}}')


def _date(column: Column, names: dict[str, Any]) -> ReadCode:
    text = '{{"Date":{{"year":{v$ >> 9},"month":{v$ >> 5 & 15},"day":{v$ & 31}}}}}'
    return ReadCode(field("3s", 3), 'v$ = from_bytes(v$, "little")', text)


def _fraction(column: Column) -> tuple[int, str, str]:
    """Bytes of the fraction; expressions over v for what is above it, and for the fraction in microseconds."""
    size = (column.size + 1) // 2
    if not size:
        return 0, "v$", "0"
    unit = 100 ** (3 - size)
    low = f"v$ & {(1 << 8 * size) - 1}"
    return size, f"v$ >> {8 * size}", low if unit == 1 else f"({low}) * {unit}"


def _timestamp(column: Column, names: dict[str, Any]) -> ReadCode:
    size, seconds, micros = _fraction(column)
    text = f'{{{{"Timestamp":{{{{"unix_time":{{{seconds}}},"subsecond":{{{micros}}}}}}}}}}}'
    return ReadCode(field(f"{4 + size}s", 4 + size), 'v$ = from_bytes(v$, "big")', text)


def _datetime(column: Column, names: dict[str, Any]) -> ReadCode:
    """40 bits: sign 1, year * 13 + month 17, day 5, hour 5, minute 6, second 6; then the fraction."""
    size, whole, micros = _fraction(column)
    prepare = f'v$ = from_bytes(v$, "big"); w$ = ({whole}) - {1 << 39}; m$ = w$ >> 22'
    text = (
        '{{"DateTime":{{"year":{m$ // 13},"month":{m$ % 13},"day":{w$ >> 17 & 31},"hour":{w$ >> 12 & 31}'
        f',"minute":{{w$ >> 6 & 63}},"second":{{w$ & 63}},"subsecond":{{{micros}}}}}}}}}'
    )
    return ReadCode(field(f"{5 + size}s", 5 + size), prepare, text)


def _time(column: Column, names: dict[str, Any]) -> ReadCode:
    """24 bits: sign 1, unused 1, hours 10, minutes 6, seconds 6; fraction included in the two's complement."""
    size, whole, micros = _fraction(column)
    prepare = f'v$ = from_bytes(v$, "big") - {1 << (8 * size + 23)}; n$ = negative if v$ < 0 else ""'
    prepare += f"; v$ = abs(v$); w$ = {whole}"
    text = (
        '{{"Time":{{"hours":{w$ >> 12},"minutes":{w$ >> 6 & 63},"seconds":{w$ & 63},"subseconds":'
        f"{{{micros}}}{{n$}}}}}}}}"
    )
    return ReadCode(field(f"{3 + size}s", 3 + size), prepare, text)


def _bit(column: Column, names: dict[str, Any]) -> ReadCode:
    size = (column.size + 7) // 8
    return ReadCode(field(f"{size}s", size), 'v$ = from_bytes(v$, "big")', '{{"Bit":{v$}}}')


def _members(variant: str) -> Callable[[Column, dict[str, Any]], ReadCode]:
    def read(column: Column, names: dict[str, Any]) -> ReadCode:
        size = column.size
        return ReadCode(field(f"{size}s", size), 'v$ = from_bytes(v$, "little")', f'{{{{"{variant}":{{v$}}}}}}')

    return read


def _text(prefix: Callable[[Column], int]) -> Callable[[Column, dict[str, Any]], ReadCode]:
    """Strings, binary or not; `prefix` gives the bytes of the length before the value."""

    def read(column: Column, names: dict[str, Any]) -> ReadCode:
        layout = counted(prefix(column))
        if column.charset is None:
            # The row image leaves out the zeros that BINARY(n) ends in; the value has them.
            pad = f"v$ = v$.ljust({column.size}, zero)" if column.type == t.STRING else ""
            return ReadCode(layout, pad, '{{"Blob":"{base64(v$)}"}}')
        if column.charset.name in UTF8_CHARSETS:
            return ReadCode(layout, "", "{string(v$)}")
        return ReadCode(layout, "", f"{{encoded({column.charset.name!r}, v$)}}")

    return read


def _bytes(variant: str) -> Callable[[Column, dict[str, Any]], ReadCode]:
    return lambda column, names: ReadCode(counted(column.size), "", f'{{{{"{variant}":"{{base64(v$)}}"}}}}')


def _json(column: Column, names: dict[str, Any]) -> ReadCode:
    return ReadCode(counted(column.size), "", "{json(v$)}")


READERS: dict[int, Callable[[Column, dict[str, Any]], ReadCode]] = {
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

#: what the fragments call
HELPERS: dict[str, Any] = {
    "from_bytes": int.from_bytes,
    "string": string_json,
    "encoded": encoded_json,
    "base64": lambda value: b2a_base64(value, newline=False).decode(),
    "json": json_value,
    "zero": b"\0",
    "negative": ',"negative":true',
}
