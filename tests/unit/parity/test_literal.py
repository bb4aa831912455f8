"""Literals as `canonical.literal` makes them, read back; tests/integration/test_parity_canonical.py asks the servers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.parity.literal import CODECS, Bytes, Json, Moment, Null, Number, Parsed, Text, parse

DATA = st.binary(max_size=40)
VALUES = st.one_of(
    st.just(Null()),
    st.from_regex(r"-?[0-9]{1,30}(\.[0-9]{1,30})?(e-?[0-9]{1,3})?", fullmatch=True, alphabet="-.e0123456789").map(Number),
    st.datetimes().map(lambda at: Moment(at.isoformat(" "))),
    st.sampled_from(["-838:59:59.000000", "0000-00-00", "2024-01-02"]).map(Moment),
    st.builds(Text, st.sampled_from([*CODECS, "swe7"]), DATA),
    DATA.map(Bytes),
    DATA.filter(bool).map(Json),
)  # fmt: skip


@given(VALUES)
def test_a_value_is_read_from_its_literal(value: Parsed) -> None:
    assert parse(value.sql) == value


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("NULL", Null()),
        ("-0e0", Number("-0e0")),
        ("0000", Number("0000")),
        ("'2022-02-23 11:22:00.000000'", Moment("2022-02-23 11:22:00.000000")),
        ("_latin1 x'e9'", Text("latin1", b"\xe9")),
        ("x''", Bytes(b"")),
        ("CAST(CONVERT(x'7b7d' USING utf8mb4) AS JSON)", Json(b"{}")),
    ],
)
def test_what_literals_say(literal: str, value: Parsed) -> None:
    assert parse(literal) == value and value.sql == literal


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "NULL\n", " 1", "1\n", "1; DROP TABLE t", "1.", ".5", "1e", "--1", "'a'", "''", "'2024-01-01", "x'0'", "x'0G'",
        "x'00'; --", "x'0 0'", "_latin1 'a'", "_latin1  x'61'", "_Latin1 x'61'", "CAST(1 AS JSON)", "=", "L", "F", "٣",
        "CAST(CONVERT(x'' USING utf8mb4) AS JSON)",
    ],
)  # fmt: skip
def test_nothing_else_is_a_literal(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


def test_whole_numbers() -> None:
    assert [Number(digits).whole for digits in ("-12", "0000", "1.0", "1e3")] == [-12, 0, None, None]


@given(st.sampled_from(sorted(CODECS)), st.text(max_size=20))
def test_text_is_decoded_by_its_character_set(charset: str, text: str) -> None:
    data = text.encode(CODECS[charset], "ignore")
    decoded = Text(charset, data).decoded()
    assert decoded is None or decoded.encode(CODECS[charset]) == data


def test_what_cannot_be_decoded() -> None:
    assert Text("swe7", b"[").decoded("surrogateescape") is None, "Python does not know the character set"
    assert Text("utf8mb4", b"a\xff").decoded() is None
    assert Text("utf8mb4", b"a\xff").decoded("surrogateescape") == "a\udcff"
