"""Reads values of a document that have a column's type, which JSON does not have."""

from __future__ import annotations

import base64
from json.encoder import encode_basestring as json_string

from cdc_producer.decode.decimals import decimal_decoder, decimal_size
from shared.values import JSON_BYTES

#: column types that an opaque value may have
(TIMESTAMP, DATE, TIME, DATETIME, BIT, NEWDECIMAL) = (7, 10, 11, 12, 16, 246)
#: of a DECIMAL in a document, which MySQL keeps in at most nine whole groups of nine
MOST_DIGITS = 81


def read_opaque(column_type: int, value: bytes) -> tuple[str, str, str]:
    """Return a value's JSON text, as MySQL shows it; its SQL type; and its text as that type. Raises ValueError."""
    if column_type == NEWDECIMAL:
        return _decimal(value)
    if column_type in (TIMESTAMP, DATE, TIME, DATETIME):
        if len(value) != 8:
            raise ValueError(f"a moment has {len(value)} bytes")
        name, text = _moment(column_type, int.from_bytes(value, "little", signed=True))
        return json_string(text), name, text
    text = base64.b64encode(value).decode()
    shown = json_string(f"base64:type{column_type}:{text}")
    if column_type == BIT and len(value) in range(1, 9):
        return shown, f"bit({8 * len(value)})", str(int.from_bytes(value, "big"))
    return shown, JSON_BYTES.get(column_type, f"opaque({column_type})"), text


def _decimal(value: bytes) -> tuple[str, str, str]:
    precision, scale, digits = value[0], value[1], value[2:]
    possible = 0 < precision <= MOST_DIGITS and scale <= min(precision, 30)
    if not possible or len(digits) != decimal_size(precision, scale):
        raise ValueError(f"a DECIMAL({precision},{scale}) has {len(digits)} bytes")
    text = decimal_decoder(precision, scale)(digits)
    return text, f"decimal({precision},{scale})", text


def _moment(column_type: int, packed: int) -> tuple[str, str]:
    """SQL type and text of a packed DATE, TIME, DATETIME or TIMESTAMP."""
    sign, whole, micros = "-" if packed < 0 else "", abs(packed) >> 24, abs(packed) & 0xFFFFFF
    hours, minute, second = whole >> 12, whole >> 6 & 0x3F, whole & 0x3F
    months, day = divmod(hours >> 5, 32)
    year, month = divmod(months, 13)
    hour = hours if column_type == TIME else hours & 0x1F
    if hour > (838 if column_type == TIME else 23) or minute > 59 or second > 59 or micros > 999_999:
        raise ValueError(f"no time of day is {packed:#x}")
    clock = f"{hour:02d}:{minute:02d}:{second:02d}.{micros:06d}"
    if column_type == TIME:
        return "time(6)", sign + clock
    if year > 9999 or sign:
        raise ValueError(f"no date is {packed:#x}")
    date = f"{year:04d}-{month:02d}-{day:02d}"
    if column_type == DATE:
        return "date", date
    return "timestamp(6)" if column_type == TIMESTAMP else "datetime(6)", f"{date} {clock}"
