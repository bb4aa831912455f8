"""Marks what two values do not have in common, character by character, in bounded time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, takewhile
from typing import Literal, NamedTuple

from cdc_consumer.parity.report.values import WITHHELD, harmless, read, visible

#: "frame" is a quote or prefix that is no part of the value; "gap" tells what was left out
Emphasis = Literal["same", "changed", "gap", "frame"]

#: pairs of units an alignment may look at: it takes milliseconds
_PAIRS = 40_000
#: below this share of units in common two texts are told apart as wholes
_ALIKE = 0.5
#: characters kept on each side of what was left out
_CONTEXT = 48
#: changed characters kept on each side of what was left out
_KEPT = 200
#: changed characters whose code points are worth telling
_NAMED = 6

#: characters that belong to the one before them: combining marks, variation selectors and joiners
_EXTENDING = frozenset({"Mn", "Me", "Mc"})
_WORD = re.compile(r"\w+|\W")
#: numbers and times are compared place by place
_FIGURES = re.compile(r"[0-9 .:eE+-]*")

#: characters of a differing part that is looked at more closely, and runs it may be cut into
_LONGEST = 20_000
_RUNS = 100

#: units of one side, and whether the other side has the same there
_Piece = tuple[str, bool]
#: whether a run of units is the same on both sides, and both sides' units
_Runs = list[tuple[bool, Sequence[str], Sequence[str]]]


class Segment(NamedTuple):
    """Holds a piece of text that is shown in one way."""

    text: str
    mark: Emphasis


class Marked(NamedTuple):
    """Holds both sides of a comparison."""

    one: tuple[Segment, ...]
    other: tuple[Segment, ...]
    #: code points of the differing characters when letters may look alike, else ""
    note: str


def diff(one: str, other: str) -> Marked:
    """Two literals with their differing characters marked; long ones are shortened around them."""
    left, right = read(one), read(other)
    if one == other:
        sides = [[(left.text, True)], [(right.text, True)]]
    elif (left.before, left.unit) != (right.before, right.unit) or {one, other} & {"NULL", *WITHHELD}:
        sides = [[(left.text, False)], [(right.text, False)]]
    else:
        sides = list(_pieces(left.text, right.text, left.unit == "bytes"))
    one_side, other_side = (
        (*_frame(shown.before), *_segments(pieces, shown.unit), *_frame(shown.after))
        for shown, pieces in zip((left, right), sides, strict=True)
    )
    return Marked(one_side, other_side, _note(*sides) if left.unit == right.unit == "characters" else "")


def compare(one: str, other: str) -> Marked:
    """Return the same for plain text of one or several lines."""
    left, right = _pieces(one, other, False)
    unit = "characters"
    return Marked(_segments(left, unit, lines=True), _segments(right, unit, lines=True), _note(left, right))


def _frame(text: str) -> Iterator[Segment]:
    if text:
        yield Segment(text, "frame")


def _pieces(one: str, other: str, hexadecimal: bool) -> tuple[list[_Piece], list[_Piece]]:
    """Both texts cut where they begin or cease to be the same."""
    start = _common(one, other)
    end = _common(one[start:][::-1], other[start:][::-1])
    if hexadecimal:
        start, end = start - start % 2, end - end % 2
    else:
        while start and (_extends(one[start : start + 1]) or _extends(other[start : start + 1])):
            start -= 1
        while end and _extends(one[-end]):
            end -= 1
    middle = one[start : len(one) - end], other[start : len(other) - end]
    sides = [(one[:start], True)], [(other[:start], True)]
    for same, left, right in _aligned(*middle, hexadecimal):
        sides[0].append((left, same))
        sides[1].append((right, same))
    tail = one[len(one) - end :]
    for side in sides:
        side.append((tail, True))
    return _joined(sides[0]), _joined(sides[1])


def _common(one: str, other: str) -> int:
    """Length of the common prefix, found with slices because a loop over megabytes takes seconds."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _extends(character: str) -> bool:
    return bool(character) and unicodedata.category(character) in _EXTENDING


def _clusters(text: str) -> list[str]:
    """Characters, each with the marks that follow it: a mark alone cannot be seen."""
    if text.isascii():
        return list(text)
    clusters: list[str] = []
    for character in text:
        if clusters and _extends(character):
            clusters[-1] += character
        else:
            clusters.append(character)
    return clusters


def _octets(digits: str) -> list[str]:
    return [digits[at : at + 2] for at in range(0, len(digits), 2)]


def _aligned(one: str, other: str, hexadecimal: bool) -> Iterator[tuple[bool, str, str]]:
    """Runs of units: whether both sides have them, and both sides' text."""
    runs: _Runs = []
    if max(len(one), len(other)) <= _LONGEST:
        units = _octets if hexadecimal else _clusters
        runs = _runs(units(one), units(other))
    shared = sum(len("".join(left)) for same, left, _ in runs if same)
    alike = 2 * shared >= _ALIKE * (len(one) + len(other)) or _FIGURES.fullmatch(one + other)
    if len(runs) > _RUNS or not alike:
        runs = [(False, one, other)]
    for same, left, right in runs:
        yield same, "".join(left), "".join(right)


def _runs(one: Sequence[str], other: Sequence[str]) -> _Runs:
    """The finest alignment that takes milliseconds; none when there is none."""
    if len(one) == len(other) and (len(one) * len(other) > _PAIRS or all(map(_FIGURES.fullmatch, (*one, *other)))):
        runs: _Runs = []
        for same, run in groupby(zip(one, other, strict=True), key=lambda pair: pair[0] == pair[1]):
            left, right = zip(*run, strict=True)
            runs.append((same, left, right))
        return runs
    if len(one) * len(other) > _PAIRS:
        one, other = _WORD.findall("".join(one)), _WORD.findall("".join(other))
    if len(one) * len(other) > _PAIRS:
        return []
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return [(tag == "equal", one[a:b], other[c:d]) for tag, a, b, c, d in matcher.get_opcodes()]


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    """Neighbours of one kind made one; an empty differing piece stays, as the place the other side has more at."""
    kept = (piece for piece in pieces if piece[0] or not piece[1])
    return [("".join(text for text, _ in run), same) for same, run in groupby(kept, key=lambda piece: piece[1])]


def _segments(pieces: list[_Piece], unit: str, lines: bool = False) -> tuple[Segment, ...]:
    """Pieces as they are shown: shortened, then with a sign for what cannot be seen."""
    cut: list[Segment] = []
    for number, (text, same) in enumerate(pieces):
        head, tail = (_CONTEXT if number else 0, _CONTEXT if number < len(pieces) - 1 else 0)
        if not same:
            head = tail = _KEPT
        elif len(pieces) == 1:
            head, tail = 2 * _KEPT, 0
        mark: Emphasis = "same" if same else "changed"
        # a gap takes room too
        if len(text) <= head + tail + 24:
            cut.append(Segment(text, mark))
            continue
        left_out = (len(text) - head - tail) // (2 if unit == "bytes" else 1)
        cut.append(Segment(text[:head], mark))
        cut.append(Segment(f"… {left_out:,} {unit} …", "gap"))
        cut.append(Segment(text[len(text) - tail :], mark))
    return tuple(_signed([segment for segment in cut if segment.text], lines))


def _signed(cut: list[Segment], lines: bool) -> Iterator[Segment]:
    """Spaces have a sign where they are changed, and at either end of a value."""
    whole = "".join("…" if segment.mark == "gap" else segment.text for segment in cut)
    before = sum(1 for _ in takewhile(" ".__eq__, whole))
    after = len(whole.rstrip(" "))
    at = 0
    for text, mark in cut:
        if mark == "gap":
            at += 1
            yield Segment(text, mark)
            continue
        head, tail = (max(0, min(len(text), edge - at)) for edge in (before, after))
        at += len(text)
        if lines:
            shown = "␣" * len(text) if mark == "changed" and not text.strip(" ") else harmless(text)
        else:
            shown = "␣" * head + visible(text[head:tail]) + "␣" * (len(text) - max(head, tail))
            shown = shown.replace(" ", "␣") if mark == "changed" else shown
        yield Segment(shown, mark)


def _note(one: list[_Piece], other: list[_Piece]) -> str:
    sides = ["".join(text for text, same in pieces if not same) for pieces in (one, other)]
    if all(map(str.isascii, sides)) or not all(0 < len(side) <= _NAMED for side in sides):
        return ""
    return " against ".join(" ".join(f"U+{ord(character):04X}" for character in side) for side in sides)
