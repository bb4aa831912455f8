"""Small charts as inline SVG; every number they show is also in their title or in the table beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cdc_consumer.parity.report.markup import Content, Html, join, tag

#: units of a chart's own space; the page stretches it to the room there is
_WIDTH, _HEIGHT = 240, 48
_STRIP_HEIGHT = 12
#: parts of the key space named in words
_NAMED = 8


def _picture(label: str, width: float, height: float, *shapes: Content, class_: str) -> Html:
    return tag(
        "svg", tag("title", label), *shapes, class_=class_, role="img", aria_label=label,
        viewBox=f"0 0 {width:g} {height:g}", preserveAspectRatio="none",
    )  # fmt: skip


def strip(cells: Sequence[int]) -> Html:
    """Show where in the key space rows differ: a bar per part that holds any, by magnitude."""
    most = max(cells, default=0)
    bars = []
    for at, rows in enumerate(cells):
        if rows:
            height = _STRIP_HEIGHT * (0.45 + 0.55 * math.log1p(rows) / math.log1p(most))
            bars.append(
                tag("rect", x=at, y=f"{_STRIP_HEIGHT - height:.2f}", width=1, height=f"{height:.2f}", class_="hit")
            )
    ground = tag("rect", x=0, y=_STRIP_HEIGHT - 1, width=len(cells), height=1, class_="ground")
    return _picture(strip_words(cells), len(cells), _STRIP_HEIGHT, ground, *bars, class_="strip")


def strip_words(cells: Sequence[int]) -> str:
    """Say it, as in "rows differ in 17 of 64 parts of the key space: 12 (1 row), 20 to 35 (31,204 rows)"."""
    runs: list[list[int]] = []
    for at, rows in enumerate(cells):
        if not rows:
            continue
        if runs and runs[-1][1] == at - 1:
            runs[-1][1:] = [at, runs[-1][2] + rows]
        else:
            runs.append([at, at, rows])
    if not runs:
        return f"no row differs in any of {len(cells)} parts of the key space"
    parts = [
        f"{first + 1}{f' to {last + 1}' if last > first else ''} ({rows:,} row{'' if rows == 1 else 's'})"
        for first, last, rows in runs[:_NAMED]
    ]
    more = f" and {len(runs) - _NAMED} more places" if len(runs) > _NAMED else ""
    hit = sum(map(bool, cells))
    return f"rows differ in {hit} of {len(cells)} parts of the key space: {', '.join(parts)}{more}"


def bar(label: str, parts: Sequence[tuple[float, str]]) -> Html:
    """Draw a horizontal bar of (share of the whole width, class) parts."""
    shapes, x = [], 0.0
    for share, name in parts:
        if share > 0:
            # the smallest part can still be seen
            width = max(100 * share, 0.8)
            shapes.append(tag("rect", x=f"{x:.2f}", y=0, width=f"{width:.2f}", height=10, class_=name))
            x += width
    return _picture(label, max(100.0, x), 10, *shapes, class_="bar")


def timeline(label: str, values: Sequence[float | None], top: float) -> Html:
    """Equally spaced values from 0 to `top` as lines over a filled area; None interrupts them."""
    step = _WIDTH / max(len(values) - 1, 1)
    runs: list[list[str]] = [[]]
    ends: list[tuple[float, float]] = []
    for at, value in enumerate(values):
        if value is None:
            if runs[-1]:
                runs.append([])
            continue
        y = _HEIGHT - (_HEIGHT - 2) * min(value / top, 1) if top else float(_HEIGHT)
        if not runs[-1]:
            ends.append((at * step, at * step))
        ends[-1] = (ends[-1][0], at * step)
        runs[-1].append(f"{at * step:.2f} {y:.2f}")
    shapes = [
        join(
            (
                tag("path", d=f"M{first:.2f} {_HEIGHT}L{'L'.join(run)}L{last:.2f} {_HEIGHT}Z", class_="area"),
                tag("path", d=f"M{'L'.join(run)}{'' if len(run) > 1 else 'h1'}", class_="line"),
            )
        )
        for run, (first, last) in zip(runs, ends, strict=False)
    ]
    return _picture(label, _WIDTH, _HEIGHT, *shapes, class_="timeline")
