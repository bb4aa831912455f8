"""Draws text on a terminal: tables like the mysql client's, calm colours."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any


def draw(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Draw the lines of a result."""
    cells = [list(names), *(["NULL" if value is None else str(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        "|" + "|".join(f" {cell:<{width}} " for cell, width in zip(row, widths, strict=True)) + "|" for row in cells
    ]
    return [rule, lines[0], rule, *lines[1:], rule]


def side_by_side(left: Sequence[str], right: Sequence[str]) -> str:
    """Draw two blocks next to each other, or below each other on a narrow terminal."""
    width = max(map(len, left))
    if sys.stdout.isatty() and shutil.get_terminal_size().columns < width + 3 + max(map(len, right)):
        return "\n".join([*left, "", *right])
    return "\n".join(f"{one:<{width}}   {other}" for one, other in itertools.zip_longest(left, right, fillvalue=""))


def bold(text: str) -> str:
    """Make a text bold."""
    return _style("1", text)


def dim(text: str) -> str:
    """Make a text dim."""
    return _style("2", text)


def _style(code: str, text: str) -> str:
    shown = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return f"\x1b[{code}m{text}\x1b[0m" if shown else text
