"""SQL literals, without a server; tests/integration/test_literals_roundtrip.py asks one."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from cdc_consumer.sql import literals
from cdc_consumer.sql.predicates import exactly
from shared.values import require_values


def b64(value: bytes) -> str:
    return base64.b64encode(value).decode()


@pytest.mark.parametrize(
    ("value", "sql"),
    [
        ("Null", "NULL"),
        ({"SignedInteger": -9223372036854775808}, "-9223372036854775808"),
        ({"UnsignedInteger": 18446744073709551615}, "18446744073709551615"),
        ({"Float": 0.10000000149011612}, "0.10000000149011612"),
        ({"Double": 1.5e300}, "1.5e+300"),
        ({"Double": 0.0}, "0e0"),
        ({"Double": -0.0}, "-0e0"),
        ({"Double": 3}, "3"),
        ({"Decimal": "-0.10"}, "-0.10"),
        ({"String": "a'b\\c\n\x00名"}, "'a''b\\\\c\n\x00名'"),
        ({"EncodedString": {"charset": "latin1", "base64": b64(b"\x81'")}}, "_latin1 x'8127'"),
        ({"Blob": b64(b"\x00\xff")}, "x'00ff'"),
        ({"Blob": ""}, "x''"),
        ({"Enum": 0}, "0"),
        ({"Set": 18446744073709551615}, "18446744073709551615"),
        ({"Bit": 513}, "513"),
        ({"Year": 0}, "0"),
        ({"Date": {"year": 0, "month": 0, "day": 0}}, "'0000-00-00'"),
        ({"Time": {"hours": 838, "minutes": 59, "seconds": 59, "subseconds": 0}}, "'838:59:59.000000'"),
        ({"Time": {"hours": 0, "minutes": 0, "seconds": 1, "subseconds": 1, "negative": True}}, "'-00:00:01.000001'"),
        (
            {
                "DateTime": {
                    "year": 9999,
                    "month": 12,
                    "day": 31,
                    "hour": 23,
                    "minute": 59,
                    "second": 59,
                    "subsecond": 1,
                }
            },
            "'9999-12-31 23:59:59.000001'",
        ),
        ({"Timestamp": {"unix_time": 0, "subsecond": 0}}, "'0000-00-00 00:00:00'"),
        ({"Timestamp": {"unix_time": 2147483647, "subsecond": 500000}}, "'2038-01-19 03:14:07.500000'"),
        ({"Json": '{"a": "\\n\'"}'}, "'{\"a\": \"\\\\n''\"}'"),
        (
            {"JsonTyped": {"text": "[1.1]", "typed": [["$[0]", "decimal(3,2)", "1.10"], ["$.a", "binary", "/w=="]]}},
            "JSON_SET(CAST('[1.1]' AS JSON), '$[0]', 1.10, '$.a', x'ff')",
        ),
        ({"Vector": b64(b"\x00\x00\x80\x3f")}, "x'0000803f'"),
    ],
)
def test_literal(value: Any, sql: str) -> None:
    require_values([value])
    assert literals.literal(value) == sql
    compared = f"TIME{sql}" if "Time" in value else sql
    assert literals.row([value, value]) == f"({compared},{compared})"


def test_long_bytes_are_escaped_not_doubled() -> None:
    value = bytes(range(256)) * 1000
    sql = literals.encode(literals.blob(b64(value)))
    assert len(sql) < 1.02 * len(value)
    inner = sql.removeprefix(b"_binary'").removesuffix(b"'")
    assert inner.replace(b"\\'", b"'").replace(b"\\\\", b"\\") == value


@pytest.mark.parametrize(
    "value",
    [
        {"SignedInteger": "1); DROP TABLE t; --"},
        {"UnsignedInteger": 1.5},
        {"Double": "1"},
        {"Decimal": "1e5"},
        {"Decimal": "1) --"},
        {"Decimal": "\u0661"},
        {"EncodedString": {"charset": "x'", "base64": ""}},
        {"Blob": "not base64!"},
        {"Enum": None},
        {"Bit": "1"},
        {"Date": {"year": "2024", "month": 1, "day": 1}},
        {"Date": {"year": 2024, "month": "1", "day": 1}},
        {"Date": {"year": 2024, "month": 100, "day": 1}},
        {"Timestamp": {"unix_time": "0", "subsecond": 0}},
        {"JsonTyped": {"text": "1", "typed": [["$", "char(1)", "x"]]}},
        {"String": 1},
        {"String": ["'); drop table victim.x; insert into a.t(v) values ('ha"]},
        {"String": {"'": 1}},
        {"Json": ["'"]},
        {"Json": {"'": 1}},
        {"SignedInteger": True},
        {"Double": True},
        {"Enum": False},
        {"Blob": [39]},
        {"EncodedString": {"charset": ["latin1"], "base64": ""}},
        {"DateTime": {"year": 2024, "month": 1, "day": 1, "hour": -77, "minute": -90, "second": -41, "subsecond": 0}},
        {"DateTime": {"year": 2024, "month": 1, "day": 1, "hour": 7, "minute": 9, "second": 1, "subsecond": 12345678}},
        {"Date": {"year": 2024, "month": True, "day": 1}},
        {"Date": {"year": 2024, "month": 1.0, "day": 1}},
        {"Time": {"hours": 1, "minutes": 60, "seconds": 0, "subseconds": 0}},
        {"Time": {"hours": -1, "minutes": 0, "seconds": 0, "subseconds": 0}},
        {"Timestamp": {"unix_time": 10**17, "subsecond": 0}},
        {"Timestamp": {"unix_time": True, "subsecond": 0}},
        {"JsonTyped": {"text": ["1"], "typed": []}},
        {"JsonTyped": {"text": "1", "typed": [[["$'"], "date", "x"]]}},
        {"JsonTyped": {"text": "1", "typed": [["$", "date", {"'": 1}]]}},
        {"Unheard": 1},
        {},
        {"SignedInteger": 1, "Double": 1.0},
        "Nil",
        None,
        7,
    ],
)
def test_what_is_no_value_never_becomes_sql(value: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError, IndexError)):
        literals.row([value])
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError, IndexError)):
        exactly("c", value)
    with pytest.raises(ValueError):
        require_values([value])


def test_a_row_whose_values_only_add_up_is_none() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        literals.row([{}, {"SignedInteger": 1, "Double": 1.0}])


def test_equal_numbers_of_other_types_are_not_taken_for_what_was_written_before() -> None:
    day = {"year": 2024, "month": 1, "day": 1}
    literals.row([{"Date": day}])
    for wrong in (1.0, True):
        with pytest.raises(ValueError, match="no date"):
            literals.row([{"Date": {**day, "month": wrong}}])


def test_a_predicate_is_exact() -> None:
    assert exactly("c", "Null") == "c IS NULL"
    assert exactly("c", {"String": "a"}) == "c = 'a' AND CAST(c AS BINARY) = CAST('a' AS BINARY)"
    assert exactly("c", {"Enum": 2}) == "CAST(c AS UNSIGNED) = 2"
    assert exactly("c", {"Double": -0.0}) == "c = 0 AND LEFT(CAST(c AS CHAR), 1) = '-'"
    assert exactly("c", {"SignedInteger": 5}) == "c = 5"
