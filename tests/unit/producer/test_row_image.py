"""Generated decoders: every combination of NULLs reads alike, whichever function reads it."""

from __future__ import annotations

import json
import struct
from decimal import Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.reference_rows import read_images

from cdc_producer.decode import row_image
from cdc_producer.decode.decimals import decimal_decoder, decimal_size
from cdc_producer.decode.row_image import RowImages
from cdc_producer.decode.table_map import Charset, TableMapColumn
from shared import binlog_format as t
from shared.errors import UnsupportedError

UTF8 = Charset("utf8mb4", 4)
#: column, a strategy of (value on the wire, its bytes in a row image)
INT = TableMapColumn("i", t.LONG, 0)
TEXT = TableMapColumn("s", t.VARCHAR, 400, charset=UTF8)
DOUBLE = TableMapColumn("d", t.DOUBLE, 8)
YEAR = TableMapColumn("y", t.YEAR, 0)
BLOB = TableMapColumn("b", t.BLOB, 2)
ENUM = TableMapColumn("e", t.ENUM, 1, charset=UTF8, members=(b"a", b"b"))

Cell = tuple[Any, bytes]
INTS = st.integers(-(1 << 31), (1 << 31) - 1).map(lambda n: ({"SignedInteger": n}, struct.pack("<i", n)))
TEXTS = st.text(max_size=90).map(lambda s: ({"String": s}, struct.pack("<H", len(s.encode())) + s.encode()))
DOUBLES = st.floats(allow_nan=False, allow_infinity=False).map(lambda d: ({"Double": d}, struct.pack("<d", d)))
YEARS = st.integers(0, 255).map(lambda y: ({"Year": y + 1900 if y else 0}, bytes([y])))
NULL: Cell = ("Null", b"")

COLUMNS = (INT, TEXT, YEAR, DOUBLE, TEXT, TEXT, YEAR, INT, DOUBLE)
CELLS = (INTS, TEXTS, YEARS, DOUBLES, TEXTS, TEXTS, YEARS, INTS, DOUBLES)
ROW = st.tuples(*(st.one_of(st.just(NULL), cell) for cell in CELLS))
ROWS = st.lists(ROW, max_size=20)


def image(row: tuple[Cell, ...]) -> bytes:
    nulls = sum(1 << index for index, cell in enumerate(row) if cell is NULL)
    return nulls.to_bytes((len(row) + 7) // 8, "little") + b"".join(data for _, data in row)


@given(ROWS, st.sampled_from([0, 3, 128]))
def test_rows_read_back(rows: list[tuple[Cell, ...]], many: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_image, "MANY_ROWS", many)
        found = RowImages(COLUMNS).read(b"head" + b"".join(map(image, rows)), 4)
    assert len(found) == len(rows)
    for text, row in zip(found, rows, strict=True):
        # each character is a byte of UTF-8; repr because 0.0 and -0.0 are equal, but not alike
        assert repr(json.loads(text.encode("latin-1"))) == repr([value for value, _ in row])


def test_what_is_generated_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that have had their turn give their functions up, and read on."""
    monkeypatch.setattr(row_image, "MANY_ROWS", 1)
    monkeypatch.setattr(row_image, "MAX_SOURCE", 20_000)
    tables = [RowImages((INT,) * count) for count in range(1, 60)]
    for _ in range(3):
        for count, table in enumerate(tables, 1):
            body = (bytes((count + 7) // 8) + bytes(4 * count)) * 3
            assert len(table.read(body, 0)) == 3
    generated = [table for table in tables if table._alone]
    assert 0 < sum(map(len, (table._alone for table in generated))) < 40


def test_what_is_counted_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many tables there are, of however many combinations of NULLs."""
    monkeypatch.setattr(row_image, "MAX_COUNTED", 200)
    tables = [RowImages((INT,) * 7 + (YEAR,) * count) for count in range(40)]
    for count, table in enumerate(tables):
        nulls = (1 << 7 + count) - 1
        body = b"".join((nulls ^ alone).to_bytes((14 + count) // 8, "little") + bytes(alone and 4) for alone in ALONE)
        for _ in range(3):
            assert len(table.read(body, 0)) == len(ALONE)
    assert 0 < sum(len(table._alone._rows) for table in tables) <= 200


#: one INT that is not NULL, or none
ALONE = [0, *(1 << bit for bit in range(7))]
#: rows of an update: the image before, and for each column whether the image after repeats it
PAIRS = st.lists(st.tuples(ROW, ROW, st.lists(st.booleans(), min_size=9, max_size=9)), max_size=20)


@given(PAIRS, st.sampled_from([0, 3, 128]))
def test_the_images_of_an_update_read_as_they_do_alone(pairs: list[Any], many: int) -> None:
    images = []
    for before, other, same in pairs:
        after = tuple(old if keep else new for old, new, keep in zip(before, other, same, strict=True))
        images += [image(before), image(after)]
    body = b"head" + b"".join(images)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_image, "MANY_ROWS", many)
        alone = RowImages(COLUMNS).read(body, 4)
        found = RowImages(COLUMNS).read_pairs(body, 4, " and ")
    assert found == [f"{before} and {after}" for before, after in zip(alone[::2], alone[1::2], strict=True)]
    expected = read_images(COLUMNS, body, 4)
    assert repr([json.loads(text.encode("latin-1")) for text in alone]) == repr(expected)


def test_zero_keeps_its_sign_where_only_that_changes() -> None:
    body = b"".join(b"\0" + struct.pack("<d", number) for number in (0.0, -0.0, -0.0, 0.0) * 200)
    assert set(RowImages((DOUBLE,)).read_pairs(body, 0, " ")) == {
        '[{"Double":0.0}] [{"Double":-0.0}]', '[{"Double":-0.0}] [{"Double":0.0}]',
    }  # fmt: skip


def test_one_image_of_an_update_may_hold_text_that_is_no_utf8() -> None:
    good, bad = b"\0\2\0ok", b"\0\2\0\xff\xfe"
    (found,) = RowImages((TEXT,)).read_pairs(good + bad, 0, " ")
    assert found == '[{"String":"ok"}] [{"EncodedString":{"charset":"utf8mb4","base64":"//4="}}]'


@given(st.binary(max_size=300))
def test_foreign_bytes_are_refused_or_read_to_the_end(data: bytes) -> None:
    """Never a wrong number of rows in silence, never another exception."""
    images = RowImages((INT, TEXT, BLOB))
    try:
        found = images.read(data, 0)
    except UnsupportedError:
        return
    assert (len(found) == 0) == (len(data) == 0)


def test_text_that_is_no_utf8_keeps_its_bytes() -> None:
    row = b"\x00" + struct.pack("<H", 2) + b"\xff\xfe" + b"\x02"
    (found,) = RowImages((TEXT, ENUM)).read(row, 0)
    assert json.loads(found) == [{"EncodedString": {"charset": "utf8mb4", "base64": "//4="}}, {"Enum": 2}]


@given(st.integers(1, 65).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, min(p, 30)))), st.data())
def test_decimals(shape: tuple[int, int], data: st.DataObject) -> None:
    precision, scale = shape
    unscaled = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    with localcontext() as context:
        context.prec = 70
        text = f"{Decimal(unscaled).scaleb(-scale):.{scale}f}"
    packed = pack_decimal(unscaled, precision, scale)
    assert len(packed) == decimal_size(precision, scale)
    assert decimal_decoder(precision, scale)(packed) == text


def pack_decimal(unscaled: int, precision: int, scale: int) -> bytes:
    """MySQL's decimal2bin, the plain way."""
    sizes = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    digits = str(abs(unscaled)).zfill(precision)
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    groups = [whole[: len(whole) % 9]] if len(whole) % 9 else []
    groups += [whole[at : at + 9] for at in range(len(whole) % 9, len(whole), 9)]
    groups += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    packed = b"".join(int(group).to_bytes(sizes[len(group)], "big") for group in groups)
    if unscaled < 0:
        packed = bytes(octet ^ 0xFF for octet in packed)
    return bytes([packed[0] ^ 0x80]) + packed[1:]
