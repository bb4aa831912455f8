"""Every kind of column with all values it may have on the wire, and how a stored one is read back."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Value = Any


def b64(value: bytes) -> str:
    return base64.b64encode(value).decode()


@dataclass(frozen=True)
class Kind:
    """One column type: its values on the wire, and how a stored one is read back."""

    type: str
    values: st.SearchStrategy[Value]
    #: SQL of what is read from column c
    read: str
    #: what must be read for a wire value
    expect: Callable[[Value], Any]


def integers(type_: str, low: int, high: int) -> Kind:
    name = "SignedInteger" if low < 0 else "UnsignedInteger"
    return Kind(type_, st.integers(low, high).map(lambda n: {name: n}), "c", lambda value: value[name])


def text(type_: str, strip: bool = False) -> Kind:
    letters = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    # close in every collation, different in bytes
    alike = st.sampled_from(["a", "A", "á", "a ", "a\0", "", " ", "ß", "ss"])
    values = st.one_of(letters, alike).map(lambda s: s.rstrip(" ") if strip else s)
    return Kind(
        type_, values.map(lambda s: {"String": s}), "HEX(CAST(c AS BINARY))",
        lambda value: value["String"].encode().hex().upper(),
    )  # fmt: skip


def encoded(type_: str, charset: str, values: st.SearchStrategy[bytes]) -> Kind:
    return Kind(
        f"{type_} CHARACTER SET {charset}",
        values.map(lambda own: {"EncodedString": {"charset": charset, "base64": b64(own)}}),
        "HEX(CAST(c AS BINARY))",
        lambda value: base64.b64decode(value["EncodedString"]["base64"]).hex().upper(),
    )


def binary(type_: str, values: st.SearchStrategy[bytes], name: str = "Blob") -> Kind:
    return Kind(
        type_, values.map(lambda own: {name: b64(own)}), "HEX(CAST(c AS BINARY))",
        lambda value: base64.b64decode(value[name]).hex().upper(),
    )  # fmt: skip


def floats(type_: str, name: str, width: Any) -> Kind:
    values = st.floats(allow_nan=False, allow_infinity=False, width=width, allow_subnormal=True)
    return Kind(type_, values.map(lambda f: {name: f}), "CAST(c AS DOUBLE)", lambda value: value[name])


def digits(precision: int, scale: int) -> Kind:
    def shown(number: int) -> str:
        sign, plain = ("-" if number < 0 else ""), str(abs(number)).rjust(scale + 1, "0")
        return sign + (f"{plain[:-scale]}.{plain[-scale:]}" if scale else plain)

    most = 10**precision - 1
    values = st.integers(-most, most).map(lambda n: {"Decimal": shown(n)})
    return Kind(f"DECIMAL({precision},{scale})", values, "CAST(c AS CHAR)", lambda value: value["Decimal"])


def numbers(type_: str, name: str, low: int, high: int) -> Kind:
    near = st.integers(max(low, (1 << 53) - 3), (1 << 53) + 3) if high > 1 << 53 else st.integers(low, high)
    values = st.one_of(st.integers(low, high), near).map(lambda n: {name: n})
    return Kind(type_, values, "CAST(c AS UNSIGNED)", lambda value: value[name])


def parts(**limits: tuple[int, int]) -> st.SearchStrategy[dict[str, int]]:
    return st.fixed_dictionaries({name: st.integers(*limit) for name, limit in limits.items()})


DAY = {"month": (0, 12), "day": (0, 31)}
CLOCK = {"hour": (0, 23), "minute": (0, 59), "second": (0, 59)}


def real_day(value: dict[str, int]) -> bool:
    """What MySQL stores under ALLOW_INVALID_DATES: any day up to 31, of a month, or zeros."""
    return value["year"] > 0 or (value["month"], value["day"]) == (0, 0)


def dates() -> Kind:
    def shown(value: Value) -> str:
        return "{year:04d}-{month:02d}-{day:02d}".format(**value["Date"])

    values = parts(year=(0, 9999), **DAY).filter(real_day).map(lambda p: {"Date": p})
    return Kind("DATE", values, "CAST(c AS CHAR)", shown)


def datetimes(fraction: int) -> Kind:
    unit = 10 ** (6 - fraction)

    def shown(value: Value) -> str:
        whole = "{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}".format(**value["DateTime"])
        return whole + (f".{value['DateTime']['subsecond'] // unit:0{fraction}d}" if fraction else "")

    moments = parts(year=(0, 9999), **DAY, **CLOCK, subsecond=(0, 10**fraction - 1)).filter(real_day)
    values = moments.map(lambda p: {"DateTime": {**p, "subsecond": p["subsecond"] * unit}})
    return Kind(f"DATETIME({fraction})", values, "CAST(c AS CHAR)", shown)


def times(fraction: int) -> Kind:
    unit = 10 ** (6 - fraction)

    def shown(value: Value) -> str:
        p = value["Time"]
        whole = f"{'-' if p.get('negative') else ''}{p['hours']:02d}:{p['minutes']:02d}:{p['seconds']:02d}"
        return whole + (f".{p['subseconds'] // unit:0{fraction}d}" if fraction else "")

    def wire(p: dict[str, int], negative: bool) -> Value:
        value: dict[str, Any] = {**p, "subseconds": p["subseconds"] * unit}
        return {"Time": {**value, "negative": True} if negative and any(p.values()) else value}

    values = parts(hours=(0, 837), minutes=(0, 59), seconds=(0, 59), subseconds=(0, 10**fraction - 1))
    return Kind(f"TIME({fraction})", st.builds(wire, values, st.booleans()), "CAST(c AS CHAR)", shown)


def timestamps() -> Kind:
    moments = parts(unix_time=(1, 2147483647), subsecond=(0, 999999))
    zero = st.just({"unix_time": 0, "subsecond": 0})
    return Kind(
        "TIMESTAMP(6)", st.one_of(moments, zero).map(lambda p: {"Timestamp": p}), "CAST(UNIX_TIMESTAMP(c) AS CHAR)",
        lambda value: "{unix_time}.{subsecond:06d}".format(**value["Timestamp"]),
    )  # fmt: skip


LETTERS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
DOCUMENTS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(1 << 63), (1 << 64) - 1), LETTERS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LETTERS, inner, max_size=3),
    max_leaves=6,
)


def documents() -> Kind:
    return Kind(
        "JSON", DOCUMENTS.map(lambda d: {"Json": json.dumps(d)}), "CAST(c AS CHAR)",
        lambda value: Document(value["Json"]),
    )  # fmt: skip


class Document(str):
    """JSON text that equals another text of the same document."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and json.loads(self) == json.loads(other)

    __hash__ = str.__hash__


TYPED = {
    "decimal(5,2)": ("1.10", "1.10", "DECIMAL"),
    "decimal(1,0)": ("1", "1", "DECIMAL"),
    "date": ("2024-02-29", '"2024-02-29"', "DATE"),
    "time(6)": ("-25:00:00.500000", '"-25:00:00.500000"', "TIME"),
    "datetime(6)": ("2024-02-29 01:02:03.000000", '"2024-02-29 01:02:03.000000"', "DATETIME"),
    "signed": ("1", "1", "INTEGER"),
    "unsigned": ("1", "1", "UNSIGNED INTEGER"),
    "double": ("1", "1.0", "DOUBLE"),
    "binary": (b64(b"\x00\xff'"), '"base64:type15:AP8n"', "BLOB"),
}


def typed_documents() -> Kind:
    values = st.sampled_from(sorted(TYPED)).map(
        lambda kind: {"JsonTyped": {"text": '{"k":[0]}', "typed": [["$.k[0]", kind, TYPED[kind][0]]]}}
    )

    def shown(value: Value) -> str:
        _, text_, type_ = TYPED[value["JsonTyped"]["typed"][0][1]]
        return f"{text_} {type_}"

    read = "CONCAT(CAST(c->'$.k[0]' AS CHAR), ' ', JSON_TYPE(c->'$.k[0]'))"
    return Kind("JSON /* typed */", values, read, shown)


def points() -> Kind:
    coordinates = st.floats(-90, 90)
    values = st.builds(
        lambda srid, x, y: struct.pack("<IBIdd", srid, 1, 1, x, y), st.sampled_from([0, 4326]), coordinates, coordinates
    )
    return binary("GEOMETRY", values, "Geometry")


def vectors() -> Kind:
    floats_ = st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3)
    return binary("VECTOR(3)", floats_.map(lambda f: struct.pack("<3f", *f)), "Vector")


SHIFT_JIS = st.text(st.sampled_from("aA \\'~ｱｲ表ソ能十予申名前"), max_size=10).map(lambda s: s.encode("cp932"))
MEMBERS = ",".join(f"'m{index}'" for index in range(64))
KINDS = [
    integers("TINYINT", -128, 127),
    integers("SMALLINT UNSIGNED", 0, 65535),
    integers("INT", -(1 << 31), (1 << 31) - 1),
    integers("BIGINT", -(1 << 63), (1 << 63) - 1),
    integers("BIGINT UNSIGNED", 0, (1 << 64) - 1),
    floats("FLOAT", "Float", 32),
    floats("DOUBLE", "Double", 64),
    digits(65, 30),
    digits(10, 2),
    digits(5, 0),
    text("VARCHAR(50) CHARACTER SET utf8mb4"),
    text("VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"),
    text("CHAR(50) CHARACTER SET utf8mb4", strip=True),
    text("TEXT CHARACTER SET utf8mb4"),
    encoded("VARCHAR(50)", "latin1", st.binary(max_size=20)),
    encoded("TEXT", "cp932", SHIFT_JIS),
    encoded("VARCHAR(50)", "utf16", LETTERS.map(lambda s: s.encode("utf-16-be"))),
    encoded("VARCHAR(50)", "utf32", LETTERS.map(lambda s: s.encode("utf-32-be"))),
    binary("BINARY(8)", st.binary(min_size=8, max_size=8)),
    binary("VARBINARY(50)", st.binary(max_size=50)),
    binary("BLOB", st.binary(max_size=100)),
    numbers("ENUM('','a','b')", "Enum", 1, 3),
    numbers(f"SET({MEMBERS})", "Set", 0, (1 << 64) - 1),
    numbers("BIT(64)", "Bit", 0, (1 << 64) - 1),
    numbers("BIT(10)", "Bit", 0, 1023),
    numbers("YEAR", "Year", 1901, 2155),
    numbers("YEAR /* zero */", "Year", 0, 0),
    dates(),
    datetimes(6),
    datetimes(0),
    times(6),
    times(1),
    times(0),
    timestamps(),
    documents(),
    typed_documents(),
    points(),
    vectors(),
]
