"""Causes: every kind of damage done to random values is recognised, and unrelated values are not taken for damage."""

from __future__ import annotations

import json
import struct
import unicodedata
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cdc_consumer.parity.diagnosis.causes import cause_of
from cdc_consumer.parity.model import Column, Shape, TableName

TABLE = TableName("db", "t")


def column(kind: str, charset: str | None = None, name: str = "c") -> Column:
    return Column(name, kind, kind.partition("(")[0].split()[0], charset, True, False)


def text(value: str) -> str:
    return f"_utf8mb4 x'{value.encode().hex()}'"


def document(value: Any) -> str:
    return f"CAST(CONVERT(x'{json.dumps(value).encode().hex()}' USING utf8mb4) AS JSON)"


def cause(leader: str, follower: str, of: Column) -> str:
    return cause_of({of.name: leader}, {of.name: follower}, Shape(TABLE, (of,), ()))


DATETIME, DATE, TIME = column("datetime(6)"), column("date"), column("time(6)")
NAME, BYTES, JSON = column("varchar(200)", "utf8mb4"), column("varbinary(200)"), column("json")
INT, DECIMAL, DOUBLE = column("bigint"), column("decimal(20,6)"), column("double")
ENUM = column("enum('zero','one','two','three','four','five','six','seven')", "utf8mb4")
ENUM_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven")

MOMENTS = st.datetimes(datetime(1980, 1, 2), datetime(2037, 1, 1))
LETTERS = st.text(st.characters(categories=["L", "N", "P", "Zs"], exclude_characters="\\"), min_size=3, max_size=30)
FOREIGN = LETTERS.filter(lambda value: not value.isascii())
DECIMALS = st.integers(-(10**15), 10**15).map(lambda number: Decimal(number).scaleb(-6))
INTEGERS = st.lists(st.integers(-(1 << 53), 1 << 53), min_size=1)
DOUBLES = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30).filter(
    lambda d: abs(d) > 1e-3
)
CENT, MICRO = Decimal("0.01"), Decimal("0.000000")
LATIN1 = [bytes([octet]).decode("cp1252", "replace").replace("\ufffd", chr(octet)) for octet in range(256)]


def moment(value: datetime) -> str:
    return f"'{value.isoformat(' ', 'microseconds')}'"


def mojibake(value: str) -> str:
    return "".join(LATIN1[octet] for octet in value.encode())


def single(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


def wrapped(number: int, width: int) -> int:
    return (number + (1 << width - 1)) % (1 << width) - (1 << width - 1)


class Damage(NamedTuple):
    phrase: str
    column: Column
    values: st.SearchStrategy[Any]
    #: a value to its literal
    shown: Callable[[Any], str]
    #: what became of it
    change: Callable[[Any], Any]


DAMAGES = [
    Damage("is 2 hours later", DATETIME, MOMENTS, moment, lambda at: at + timedelta(hours=2)),
    Damage("is 5 hours 30 minutes earlier", DATETIME, MOMENTS, moment, lambda at: at - timedelta(hours=5.5)),
    Damage("is 1 day earlier", DATE, MOMENTS, lambda at: f"'{at.date()}'", lambda at: at - timedelta(days=1)),
    Damage("is 1 hour later", TIME, st.integers(-800, 800), lambda hours: f"'{hours:03d}:00:00.000000'", lambda hours: hours + 1),
    Damage("is cut to whole seconds", DATETIME, MOMENTS, moment, lambda at: at.replace(microsecond=0)),
    Damage("is cut to 3 decimals of a second", DATETIME, MOMENTS, moment, lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
    Damage("is encoded twice", NAME, FOREIGN, text, mojibake),
    Damage("has ? in place of some characters", NAME, FOREIGN, text, lambda s: s.encode("ascii", "replace").decode()),
    Damage("has no trailing spaces", NAME, LETTERS.map(lambda s: s + "  "), text, lambda s: s.rstrip(" ")),
    Damage("has trailing spaces", NAME, LETTERS.filter(lambda s: s.strip() == s), text, lambda s: s + " "),
    Damage("has another number of trailing spaces", NAME, LETTERS.map(lambda s: s + "  "), text, lambda s: s + " "),
    Damage("is in another case", NAME, LETTERS, text, lambda s: s.casefold()),
    Damage("is in another Unicode form", NAME, FOREIGN, text, lambda s: unicodedata.normalize("NFD", s)),
    Damage("has another number of decimals", DECIMAL, DECIMALS, str, lambda d: f"{d}00"),
    Damage("is cut short", NAME, LETTERS.filter(lambda s: s.strip() == s), text, lambda s: s[:-1]),
    Damage("has other line ends", NAME, LETTERS.map(lambda s: f"{s}\n{s}."), text, lambda s: s.replace("\n", "\r\n")),
    Damage("has other backslashes", NAME, LETTERS.map(lambda s: rf"'{s}\{s}'"), text, lambda s: s.replace("\\", "\\\\")),
    Damage("is empty", NAME, LETTERS, text, lambda s: ""),
    Damage("is cut short", BYTES, st.binary(min_size=2).map(lambda b: b + b"."), lambda b: f"x'{b.hex()}'", lambda b: b[:-1]),
    Damage("has other zero bytes at the end", BYTES, st.binary(min_size=2), lambda b: f"x'{b.hex()}'", lambda b: b + b"\0"),
    Damage("has the opposite sign", INT, st.integers(2, 1 << 60), str, lambda n: -n),
    Damage("is limited to 2147483647", INT, st.integers((1 << 31) + 1, 1 << 60), str, lambda n: (1 << 31) - 1),
    Damage("is limited to 0", INT, st.integers(-(1 << 60), -2), str, lambda n: 0),
    Damage("is wrapped around at 2^32", INT, st.integers((1 << 31) + (1 << 24), (1 << 32) - (1 << 25)), str, lambda n: wrapped(n, 32)),
    Damage("is rounded to 2 decimals", DECIMAL, DECIMALS, str, lambda d: d.quantize(CENT, ROUND_HALF_UP) + MICRO),
    Damage("is cut to 2 decimals", DECIMAL, DECIMALS, str, lambda d: d.quantize(CENT, ROUND_DOWN) + MICRO),
    Damage("is cut to single precision", DOUBLE, DOUBLES, repr, single),
    Damage("is rounded to 15 digits", DOUBLE, DOUBLES, repr, lambda d: float(f"{d:.15g}")),
    Damage("is different in the last digits", DOUBLE, DOUBLES, repr, lambda d: d * (1 + 2**-50)),
    Damage("has numbers of another type", JSON, INTEGERS, document, lambda all_: [float(all_[0]), *all_[1:]]),
    Damage("has texts in place of numbers", JSON, INTEGERS, document, lambda all_: [str(n) for n in all_]),
    Damage("is one member later in the ENUM", ENUM, st.integers(0, 6), lambda n: text(ENUM_NAMES[n]), lambda n: n + 1),
]  # fmt: skip
#: two kinds that some texts suffer at once
AMBIGUOUS = {"is in another case": "is in another Unicode form", "is in another Unicode form": "is in another case"}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: f"{damage.phrase}, {damage.column.data_type}")
@given(st.data())
def test_damage_is_recognised(damage: Damage, data: st.DataObject) -> None:
    value = data.draw(damage.values)
    leader, follower = damage.shown(value), damage.shown(damage.change(value))
    assume(leader != follower)
    told = cause(leader, follower, damage.column).removeprefix("c ")
    assert told == damage.phrase or similar(damage.phrase, told)


def similar(phrase: str, told: str) -> bool:
    """Whether two kinds of damage do the same to some values, so that either name is right."""
    inexact = ("is cut to", "is rounded to", "is different in the last digits")
    return told == AMBIGUOUS.get(phrase) or (phrase.startswith(inexact) and told.startswith(inexact))


NULLS = [
    ("NULL", text(""), "empty instead of NULL"), (text(""), "NULL", "NULL instead of empty"), ("x''", "NULL", "NULL instead of empty"),
    ("NULL", "0", "zero instead of NULL"), ("NULL", "0.00", "zero instead of NULL"), ("0e0", "NULL", "NULL instead of zero"),
    ("NULL", "'0000-00-00 00:00:00'", "zero instead of NULL"), ("NULL", "5", ""), (text("a"), "NULL", ""),
]  # fmt: skip


@pytest.mark.parametrize(("leader", "follower", "phrase"), NULLS)
def test_null_and_what_stands_for_it(leader: str, follower: str, phrase: str) -> None:
    assert cause(leader, follower, NAME) == (f"c is {phrase}" if phrase else "")


def test_error_values() -> None:
    assert cause(text("one"), "0", ENUM) == "c has the error value of an ENUM"
    assert cause("'2024-02-03'", "'0000-00-00'", DATE) == "c is the zero date"


UNRELATED: list[tuple[Column, Callable[[Random], str]]] = [
    (DATETIME, lambda r: moment(datetime(1990, 1, 1) + timedelta(microseconds=r.randrange(10**15)))),
    (TIME, lambda r: f"'{r.randrange(100):02d}:{r.randrange(60):02d}:{r.randrange(60):02d}.000000'"),
    (NAME, lambda r: text("".join(r.choices("abcdefghijklmnop ABé", k=r.randint(5, 30))))),
    (BYTES, lambda r: f"x'{bytes(r.choices(range(256), k=r.randint(4, 20))).hex()}'"),
    (INT, lambda r: str(r.randrange(10**6))),
    (DECIMAL, lambda r: str(Decimal(r.randrange(10**12)).scaleb(-6))),
    (DOUBLE, lambda r: repr(r.uniform(-1000, 1000))),
    (JSON, lambda r: document([r.randrange(1000), {"a": r.choice("xyz") * r.randint(1, 9)}, r.random()])),
]


@pytest.mark.parametrize(("of", "draw"), UNRELATED, ids=[of.data_type for of, _ in UNRELATED])
def test_unrelated_values_have_no_cause(of: Column, draw: Callable[[Random], str]) -> None:
    """But by chance, as when two moments are whole hours apart."""
    random = Random(1)
    found = [cause(draw(random), draw(random), of) for _ in range(2000)]
    assert sum(map(bool, found)) <= 20, {told for told in found if told}


# rows


SHAPE = Shape(
    TABLE,
    (column("bigint", name="id"), column("int", name="a"), column("int", name="b"), column("datetime", name="d")),
    ("id",),
)


def row(id_: int, a: int, b: int, hour: int = 10) -> dict[str, str]:
    return {"id": str(id_), "a": str(a), "b": str(b), "d": f"'2024-01-02 {hour}:00:00'"}


def test_the_cause_of_a_row_names_its_columns() -> None:
    assert cause_of(row(1, 5, 6), row(1, 6, 5), SHAPE) == "a and b are swapped"
    assert cause_of(row(1, 5, 6), row(1, -5, -6, 12), SHAPE) == "a and b have the opposite sign; d is 2 hours later"
    # one column that is not recognised leaves the row without a cause
    assert cause_of(row(1, 5, 6), row(1, 7, 6, 12), SHAPE) == ""
    assert cause_of(row(1, 5, 6), None, SHAPE) == cause_of(None, row(1, 5, 6), SHAPE) == ""
    assert cause_of(row(1, 5, 6), row(1, 5, 6), SHAPE) == "a JSON value has numbers of another type"
