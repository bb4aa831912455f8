"""Tells what happened to one value from the leader's literal and the follower's: "is 2 hours later", "is cut short"...

A phrase follows the column's name and begins with "is" or "has". It is "" where nothing is recognised, as of unrelated
values.
"""

from __future__ import annotations

import json
import math
import re
import struct
import unicodedata
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal
from typing import Any

from cdc_consumer.parity.literal import Bytes, Json, Moment, Null, Number, Parsed, Text, parse
from cdc_consumer.parity.model import Column
from cdc_consumer.parity.witness.wire_literals import member_names

_CLOCK = re.compile(r"(-?)(\d+):(\d\d):(\d\d(?:\.\d+)?)")
_ZERO = re.compile(r"[0: .-]+")
_NINES = re.compile(r"-?9+(\.9+)?")

#: MySQL's latin1: cp1252, and what that leaves undefined as it is
_LATIN1 = [bytes([octet]).decode("cp1252", "replace").replace("\ufffd", chr(octet)) for octet in range(256)]
#: time zones are whole quarters of an hour away from each other, and this much at most
_QUARTER, _FARTHEST = timedelta(minutes=15), timedelta(hours=26)
_WIDTHS = (8, 16, 24, 32, 64)
#: what a column of a narrower type stops at
_BOUNDS = {edge for width in _WIDTHS for edge in (-(1 << width - 1), (1 << width - 1) - 1, (1 << width) - 1)}
#: a step from one member of an ENUM to the next means something from this many members on
_MANY_MEMBERS = 8
#: digits enough for every DECIMAL
_EXACT = Context(prec=100)


def signature(leader: str, follower: str, column: Column) -> str:
    """What is different about the follower's value; both are literals of `canonical.literal`."""
    one, other = parse(leader), parse(follower)
    if isinstance(one, Null) or isinstance(other, Null):
        return _with_null(one, other)
    if column.data_type == "enum":
        return _member(one, other, column)
    if isinstance(one, Number) and isinstance(other, Number):
        if column.data_type in ("float", "double"):
            return _floating(float(one.digits), float(other.digits))
        return _number(Decimal(one.digits), Decimal(other.digits), column.data_type == "decimal")
    if isinstance(one, Moment) and isinstance(other, Moment):
        return _temporal(one.text, other.text)
    if isinstance(one, Text) and isinstance(other, Text):
        return _text(one, other)
    if isinstance(one, Bytes) and isinstance(other, Bytes):
        return _octets(one.data, other.data)
    return _json(one.data, other.data) if isinstance(one, Json) and isinstance(other, Json) else ""


def _with_null(leader: Parsed, follower: Parsed) -> str:
    name = _nothing(leader if isinstance(follower, Null) else follower)
    if not name:
        return ""
    return f"is NULL instead of {name}" if isinstance(follower, Null) else f"is {name} instead of NULL"


def _nothing(value: Parsed) -> str:
    """What a value is that can be mistaken for NULL, "" for any other."""
    if isinstance(value, (Text, Bytes)):
        return "" if value.data else "empty"
    if isinstance(value, Number):
        return "" if Decimal(value.digits) else "zero"
    return "zero" if isinstance(value, Moment) and _ZERO.fullmatch(value.text) else ""


# numbers


def _number(leader: Decimal, follower: Decimal, decimal: bool) -> str:
    if leader == follower:
        return "has another number of decimals"
    if leader == -follower:
        return "has the opposite sign"
    inexact = _inexact(leader, follower) if decimal else ""
    bound = _NINES.fullmatch(str(follower)) if decimal else follower in _BOUNDS
    # the leader's value is beyond the bound; no negative fits where 0 is one
    if not inexact and (bound or follower == 0) and (0 < follower < leader or leader < follower <= 0):
        return f"is limited to {follower}"
    return inexact if decimal else _wrapped(int(leader), int(follower))


def _inexact(leader: Decimal, follower: Decimal) -> str:
    exponent = leader.as_tuple().exponent
    assert isinstance(exponent, int)
    for places in range(-exponent - 1, -1, -1):
        for rounding, word in ((ROUND_HALF_UP, "rounded"), (ROUND_HALF_EVEN, "rounded"), (ROUND_DOWN, "cut")):
            if leader.quantize(Decimal(1).scaleb(-places), rounding, _EXACT) == follower:
                return f"is {word} to {places} decimals"
    for name, narrow in (("single", _single), ("double", float)):
        narrowed = Decimal(narrow(float(leader)))
        if narrowed.is_finite() and narrowed.quantize(Decimal(1).scaleb(exponent), context=_EXACT) == follower:
            return f"is cut to {name} precision"
    return ""


def _wrapped(leader: int, follower: int) -> str:
    for width in _WIDTHS:
        if (leader - follower) % (1 << width) == 0 and -(1 << width - 1) <= follower < 1 << width:
            return f"is wrapped around at 2^{width}"
    return ""


def _floating(leader: float, follower: float) -> str:
    if leader == -follower:
        return "has the opposite sign"
    if _single(leader) == follower:
        return "is cut to single precision"
    for digits in range(15, 2, -1):
        if float(f"{leader:.{digits}g}") == follower:
            return f"is rounded to {digits} digits"
    for places in range(15, -1, -1):
        if follower != 0 and round(leader, places) == follower:
            return f"is rounded to {places} decimals"
    return "is different in the last digits" if math.isclose(leader, follower, rel_tol=1e-13) else ""


def _single(number: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.inf


# moments


def _temporal(leader: str, follower: str) -> str:
    if _ZERO.fullmatch(follower) and "-" in follower:
        return "is the zero date"
    one, other = _moment(leader), _moment(follower)
    if one is None or other is None:
        return ""
    shift = other - one
    if abs(shift) <= _FARTHEST and not shift % _QUARTER:
        return f"is {_span(abs(shift))} {'later' if shift > timedelta(0) else 'earlier'}"
    for places in range(5, -1, -1):
        unit = timedelta(microseconds=10 ** (6 - places))
        shown = f"{places} decimals of a second" if places else "whole seconds"
        if one - one % unit == other:
            return f"is cut to {shown}"
        if one % unit * 2 >= unit and one - one % unit + unit == other:
            return f"is rounded to {shown}"
    return ""


def _moment(text: str) -> timedelta | None:
    """Since the year 1, or of a TIME since 0; None of a date that does not exist."""
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        sign, hours, minutes, seconds = clock.groups()
        span = timedelta(hours=int(hours), minutes=int(minutes), microseconds=int(Decimal(seconds) * 1_000_000))
        return -span if sign else span
    whole, _, fraction = text.partition(".")
    try:
        return datetime.fromisoformat(whole) - datetime.min + timedelta(microseconds=int(fraction.ljust(6, "0")))
    except ValueError:
        return None


def _span(shift: timedelta) -> str:
    """One day, 2 hours 30 minutes..."""
    minutes = int(shift.total_seconds()) // 60
    parts = [(minutes // 1440, "day"), (minutes // 60 % 24, "hour"), (minutes % 60, "minute")]
    return " ".join(f"{count} {unit}{'s' * (count > 1)}" for count, unit in parts if count)


# texts


def _member(leader: Parsed, follower: Parsed, column: Column) -> str:
    if isinstance(follower, Number):
        return "has the error value of an ENUM"
    names = member_names(column.type) or ()
    if not (isinstance(leader, Text) and isinstance(follower, Text)) or len(names) < _MANY_MEMBERS:
        return ""
    try:
        one, other = (names.index(text.decoded() or "") for text in (leader, follower))
    except ValueError:
        return ""
    if abs(one - other) != 1:
        return ""
    return f"is one member {'later' if other > one else 'earlier'} in the ENUM"


def _text(leader: Text, follower: Text) -> str:
    one, other = leader.decoded(), follower.decoded()
    if one is None or other is None:
        return _octets(leader.data, follower.data)
    if not other:
        return "is empty"
    for phrase, alike in _ALIKE.items():
        if alike(one, other):
            return phrase
    return ""


def _mojibake(text: str) -> str:
    return "".join(_LATIN1[octet] for octet in text.encode())


def _without_accents(text: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


def _replaced(leader: str, follower: str) -> bool:
    """Whether some characters became question marks, and nothing else changed."""
    if len(leader) != len(follower):
        return False
    letters = zip(leader, follower, strict=True)
    return all(ours == theirs or (ours in "?\ufffd" and theirs > "\x7f") for theirs, ours in letters)


def _same(change: Callable[[str], str]) -> Callable[[str, str], bool]:
    return lambda leader, follower: change(leader) == change(follower)


#: phrase -> whether it is true of two texts that differ; the first one counts
_ALIKE: dict[str, Callable[[str, str], bool]] = {
    "has no trailing spaces": lambda leader, follower: leader.rstrip(" ") == follower,
    "has trailing spaces": lambda leader, follower: leader == follower.rstrip(" "),
    "has another number of trailing spaces": _same(lambda text: text.rstrip(" ")),
    "has other white space at the ends": _same(str.strip),
    "has other line ends": _same(lambda text: text.replace("\r\n", "\n").replace("\r", "\n")),
    "is encoded twice": lambda leader, follower: _mojibake(leader) == follower,
    "is decoded twice": lambda leader, follower: _mojibake(follower) == leader,
    "has ? in place of some characters": _replaced,
    "is in another case": _same(str.casefold),
    "is in another Unicode form": _same(lambda text: unicodedata.normalize("NFC", text)),
    "has no accents": lambda leader, follower: _without_accents(leader) == follower,
    "has other backslashes": _same(lambda text: text.replace("\\", "")),
    "is cut short": str.startswith,
}


def _octets(leader: bytes, follower: bytes) -> str:
    if not follower:
        return "is empty"
    if leader.rstrip(b"\0") == follower.rstrip(b"\0"):
        return "has other zero bytes at the end"
    return "is cut short" if leader.startswith(follower) else ""


# JSON


def _json(leader: bytes, follower: bytes) -> str:
    try:
        one, other = (json.loads(document, parse_float=Decimal) for document in (leader, follower))
    except ValueError:
        return ""
    for phrase, change in (("has numbers of another type", _numbers), ("has texts in place of numbers", _texts)):
        if _leaves(one, change) == _leaves(other, change):
            return phrase
    return ""


def _leaves(document: Any, change: Callable[[Any], Any]) -> Any:
    """The document with each of its values changed."""
    if isinstance(document, dict):
        return {name: _leaves(value, change) for name, value in document.items()}
    if isinstance(document, list):
        return [_leaves(value, change) for value in document]
    return change(document)


def _numbers(value: Any) -> Any:
    # True equals 1
    return (type(value), value) if isinstance(value, bool) or not isinstance(value, (int, Decimal)) else Decimal(value)


def _texts(value: Any) -> str:
    return json.dumps(str(value)) if isinstance(value, (int, Decimal)) else json.dumps(value)
