"""Literals of events' values, without a server; tests/integration/test_parity_history.py asks one."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.parity.model import Column
from cdc_consumer.parity.witness.wire_literals import literal_of

DAY = {"year": 2024, "month": 2, "day": 3}
NOON = {**DAY, "hour": 12, "minute": 0, "second": 0}


def column(kind: str, charset: str | None = None, *, converted: bool = False) -> Column:
    return Column("c", kind, kind.partition("(")[0].split()[0], charset, True, False, converted)


TOLD: list[tuple[Any, Column, str | None]] = [
    ("Null", column("json"), "NULL"),
    ({"SignedInteger": -12}, column("int"), "-12"),
    ({"UnsignedInteger": (1 << 64) - 1}, column("bigint unsigned"), "18446744073709551615"),
    ({"Decimal": "-1.10"}, column("decimal(10,2)"), "-1.10"),
    ({"Decimal": "5"}, column("decimal(10,0) unsigned"), "5"),
    ({"String": "é"}, column("varchar(9)", "utf8mb3"), "_utf8mb3 x'c3a9'"),
    ({"EncodedString": {"charset": "latin1", "base64": "6Q=="}}, column("char(9)", "latin1"), "_latin1 x'e9'"),
    ({"Blob": "AP8="}, column("binary(2)"), "x'00ff'"),
    ({"Enum": 2}, column("enum('a','it''s')", "utf8mb4"), "_utf8mb4 x'69742773'"),
    ({"Enum": 0}, column("enum('a','')", "utf8mb4"), "0"),
    ({"Set": 5}, column("set('a','b','c')", "ascii"), "_ascii x'612c63'"),
    ({"Set": 0}, column("set('a','b','c')", "utf16"), "_utf16 x''"),
    ({"Bit": 513}, column("bit(10)"), "513"),
    ({"Year": 0}, column("year"), "0000"),
    ({"Date": DAY}, column("date"), "'2024-02-03'"),
    ({"DateTime": {**NOON, "subsecond": 500_000}}, column("datetime(3)"), "'2024-02-03 12:00:00.500'"),
    ({"DateTime": {**NOON, "subsecond": 0}}, column("datetime"), "'2024-02-03 12:00:00'"),
    ({"DateTime": {**NOON, "subsecond": 0}}, column("datetime", converted=True), "'2024-02-03 12:00:00.000000'"),
    ({"Timestamp": {"unix_time": 0, "subsecond": 0}}, column("timestamp(2)"), "'0000-00-00 00:00:00.00'"),
    ({"Timestamp": {"unix_time": 1, "subsecond": 0}}, column("timestamp"), "'1970-01-01 00:00:01'"),
    (
        {"Time": {"hours": 1, "minutes": 2, "seconds": 3, "subseconds": 0, "negative": True}}, column("time"), "'-01:02:03'",
    ),
    ({"Double": 0.1}, column("double"), "0.1"),
    ({"Float": 16777216.0}, column("float"), "16777216"),
    ({"Double": -0.0}, column("double"), "-0e0"),
    ({"Double": 1e15}, column("double"), "1e15"),
    ({"Geometry": "AAAA"}, column("point"), "x'000000'"),
]  # fmt: skip

#: the value is not what the column's type says, or its text is not known
NOT_TOLD: list[tuple[Any, Column]] = [
    ({"Json": "[1]"}, column("json")),
    ({"SignedInteger": 1}, column("varchar(9)", "utf8mb4")),
    ({"SignedInteger": -1}, column("int unsigned")),
    ({"UnsignedInteger": 1 << 63}, column("bigint")),
    ({"Decimal": "1.1"}, column("decimal(10,2)")),
    ({"Decimal": "1.10"}, column("decimal(10,2) unsigned zerofill")),
    ({"String": "1"}, column("int")),
    ({"String": "é"}, column("varchar(9)", "latin1")),
    ({"EncodedString": {"charset": "latin1", "base64": "6Q=="}}, column("varchar(9)", "latin2")),
    ({"EncodedString": {"charset": "utf8mb4", "base64": "6Q=="}}, column("varchar(9)", "utf8mb4", converted=True)),
    ({"Blob": "AP8="}, column("varchar(9)", "utf8mb4")),
    ({"Enum": 3}, column("enum('a','b')", "utf8mb4")),
    ({"Enum": 1}, column(r"enum('a\\b')", "utf8mb4")),
    ({"Enum": 1}, column("enum('é')", "latin1")),
    ({"Enum": 1}, column("enum('a')", "gbk")),
    ({"Enum": 0}, column("int")),
    ({"Set": 4}, column("set('a','b')", "utf8mb4")),
    ({"DateTime": {**NOON, "subsecond": 500_000}}, column("datetime")),
    ({"DateTime": {**NOON, "subsecond": 0}}, column("timestamp")),
    ({"Double": 0.1}, column("double(10,2)")),
    ({"Float": 0.5}, column("double")),
]


@pytest.mark.parametrize(("value", "of", "literal"), TOLD)
def test_a_literal(value: Any, of: Column, literal: str | None) -> None:
    assert literal_of(value, of) == literal


@pytest.mark.parametrize(("value", "of"), NOT_TOLD)
def test_a_literal_that_is_not_told(value: Any, of: Column) -> None:
    assert literal_of(value, of) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_number(number: float) -> None:
    literal = literal_of({"Double": number}, column("double"))
    # its seventeen digits, a sign and the zeros behind the point may be more than the server shows without an exponent
    if 1e-3 < abs(number) < 1e15:
        assert literal is not None
    assert literal is None or struct.pack("d", float(literal)) == struct.pack("d", number)
