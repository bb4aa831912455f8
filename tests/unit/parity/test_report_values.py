"""Literals as people read them, and the marks on what differs."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.report import json_literal, text
from kit.report_strategies import literals, texts

from cdc_consumer.parity.report.marks import Marked, Segment, compare, diff
from cdc_consumer.parity.report.values import WITHHELD, display, harmless, read, visible


def sides(one: str, other: str) -> tuple[str, str]:
    """Both sides of a diff with [changed] and <left out> parts."""
    return written(diff(one, other).one), written(diff(one, other).other)


def written(segments: tuple[Segment, ...]) -> str:
    forms = {"same": "{}", "frame": "{}", "changed": "[{}]", "gap": "<{}>"}
    return "".join(forms[segment.mark].format(segment.text) for segment in segments)


@pytest.mark.parametrize(
    ("literal", "shown"),
    [
        ("NULL", "NULL"),
        ("-12", "-12"),
        ("28806.56333333333", "28806.56333333333"),
        ("'2022-02-23 11:22:00.000000'", "2022-02-23 11:22:00.000000"),
        ("_utf8mb4 x'6162'", "'ab'"),
        ("_utf8mb4 x''", "''"),
        (text("NULL"), "'NULL'"),
        (text("it's"), "'it's'"),
        (text("  a b "), "'␣␣a b␣'"),
        (text("   "), "'␣␣␣'"),
        (text("a\nb\t\0\x7f"), "'a⟨LF⟩b⟨TAB⟩⟨NUL⟩⟨U+007F⟩'"),
        (text("a\u200b\u202e\ufe0f\xa0"), "'a⟨U+200B⟩⟨U+202E⟩⟨U+FE0F⟩⟨U+00A0⟩'"),
        (text("␣⟨LF⟩"), "'⟨U+2423⟩⟨U+27E8⟩LF⟨U+27E9⟩'"),
        ("_latin1 x'4f6c6be920'", "'Olké␣'"),
        ("_latin1 x'81'", "'⟨x81⟩'"),
        ("_utf8mb4 x'61ff'", "'a⟨xFF⟩'"),
        ("_ucs2 x'00610062'", "'ab'"),
        ("_utf16le x'6100'", "'a'"),
        ("_utf32 x'00000061'", "'a'"),
        ("_gbk x'c4e3'", "'你'"),
        ("_greek x'e4'", "'δ'"),
        ("_ucs2 x'0061d8'", "'a⟨xD8⟩'"),
        # a character set that cannot be read at all
        ("_swe7 x'5b'", "0x5b"),
        ("_binary x'00ff'", "0x00ff"),
        ("x'00ff'", "0x00ff"),
        ("x''", "0x"),
        (json_literal('{"a": "é"}'), '{"a": "é"}'),
        ("L", "(withheld)"),
        ("x'0'", "x'0'"),
        ("CAST(1 AS JSON)", "CAST(1 AS JSON)"),
    ],
)
def test_what_people_read(literal: str, shown: str) -> None:
    assert display(literal) == shown


def test_long_values_are_cut_and_their_size_told() -> None:
    assert display(text("x" * 1_000), 10) == "'xxxxxxxxxx…' (1,000 characters)"
    assert display("x'" + "00ff" * 700 + "'", 4) == "0x00ff00ff… (1,400 bytes)"


@given(texts, texts)
def test_no_two_texts_read_alike(one: str, other: str) -> None:
    assert (display(text(one), None) == display(text(other), None)) == (one == other)


@given(literals)
def test_whatever_a_literal_holds_one_printable_line_shows_it(literal: str) -> None:
    assert display(literal).isprintable()
    assert len(display(literal)) < 3_000


@given(texts)
def test_signs_stay_when_they_meet_a_page(value: str) -> None:
    assert harmless(visible(value)) == visible(value)
    assert harmless(value).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("one", "other", "marked"),
    [
        ("169.09", "196.10", ("1[69].[09]", "1[96].[10]")),
        ("28806.56333333333", "28806.56333333334", ("28806.5633333333[3]", "28806.5633333333[4]")),
        ("'2022-02-23 11:22:00'", "'2022-02-24 12:22:00'", ("2022-02-2[3] 1[1]:22:00", "2022-02-2[4] 1[2]:22:00")),
        (text("abc"), text("abc "), ("'abc'", "'abc[␣]'")),
        (text("a  b"), text("a b"), ("'a [␣]b'", "'a b'")),
        (text("Diane"), text("Peter"), ("'[Diane]'", "'[Peter]'")),
        (text("José"), text("JosÃ©"), ("'Jos[é]'", "'Jos[Ã©]'")),
        # a mark alone cannot be seen
        (text("Jose"), text("Jose\u0301"), ("'Jos[e]'", "'Jos[e\u0301]'")),
        (text(""), "NULL", ("''", "[NULL]")),
        (text("NULL"), "NULL", ("'[NULL]'", "[NULL]")),
        ("x'00ff10'", "x'00fe10'", ("0x00[ff]10", "0x00[fe]10")),
        ("x'0f'", "x'0f0f'", ("0x0f", "0x0f[0f]")),
        ("L", "F", ("[(withheld)]", "[(withheld)]")),
    ],
)
def test_what_differs_is_marked(one: str, other: str, marked: tuple[str, str]) -> None:
    assert sides(one, other) == marked


def test_letters_that_look_alike_have_their_code_points_told() -> None:
    assert diff(text("pay"), text("p\u0430y")).note == "U+0061 against U+0430"
    assert diff(text("é"), text("e\u0301")).note == "U+00E9 against U+0065 U+0301"
    assert diff(text("pay"), text("pan")).note == ""


def test_a_long_value_is_shortened_around_what_differs() -> None:
    one, other = "a" * 5_000 + "x" + "b" * 5_000, "a" * 5_000 + "y" + "b" * 4_000
    for side, letter in zip(diff(text(one), text(other))[:2], "xy", strict=True):
        assert written(side).startswith("'<… 4,952 characters …>aaa")
        assert f"a[{letter}" in written(side)
        assert written(side).endswith("characters …>'")
        assert len(written(side)) < 1_500
    assert sides(text("a" * 900), text("a" * 900 + "!"))[0] == f"'<… 852 characters …>{'a' * 48}'"


@given(literals, literals)
def test_marks_keep_what_both_have_in_common(one: str, other: str) -> None:
    marked = diff(one, other)
    same = ["".join(part.text for part in side if part.mark == "same") for side in marked[:2]]
    changed = [part.text for side in marked[:2] for part in side if part.mark == "changed"]
    if not any(part.mark == "gap" for side in marked[:2] for part in side):
        assert same[0].replace("␣", " ") == same[1].replace("␣", " ")
        for literal, side in zip((one, other), marked[:2], strict=True):
            shown = "".join(part.text for part in side)
            assert shown.replace("␣", " ") == display(literal, None).replace("␣", " ")
    readings = read(one), read(other)
    differ = readings[0] != readings[1] or (one != other and bool({one, other} & {"NULL", *WITHHELD}))
    # where one side has nothing only the other side can be marked, and "" cannot be marked at all
    assert bool(changed) == differ or "" in (readings[0].text, readings[1].text)


@given(st.lists(st.sampled_from("ab\n "), max_size=30).map("".join), st.text("ab\n", max_size=30))
def test_text_of_several_lines_keeps_them(one: str, other: str) -> None:
    for whole, side in zip((one, other), compare(one, other)[:2], strict=True):
        assert "".join(part.text for part in side).replace("␣", " ") == whole


HARD = [
    "ab" * 400,
    "ba" * 399 + "a",
    "a" * 199,
    "aab" * 66,
    "x" + "a" * 198,
    "a b " * 5_000,
    "b a " * 4_999,
    "ab" * 10**6,
    "b" * 10**6,
]


@pytest.mark.parametrize("one", HARD, ids=len)
def test_a_diff_takes_bounded_time_and_room(one: str) -> None:
    started = time.process_time()
    for other in HARD:
        marked: Marked = diff(text(one), text(other))
        assert sum(len(part.text) for side in marked[:2] for part in side) < 30_000
    assert time.process_time() - started < 3
