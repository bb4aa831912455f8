"""HTML by construction: text is escaped as it enters an element, so that no value can become markup."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import TypeAlias

from cdc_consumer.parity.report.values import harmless


class Html(str):
    """Marks markup; any other str is text."""

    __slots__ = ()


#: what an element may hold; None is nothing
Content: TypeAlias = "str | int | Html | None"

_VOID = frozenset({"meta", "input", "br", "rect", "path", "line"})


def escape(child: Content) -> Html:
    """Markup of a child; a character that cannot be seen, or cannot be in HTML at all, gets its sign."""
    if child is None:
        return Html("")
    if isinstance(child, Html):
        return child
    return Html(html.escape(harmless(str(child))))


def tag(element: str, /, *children: Content, **attributes: str | int | float | bool | None) -> Html:
    """Write an element. `class_` is the attribute class, `aria_label` is aria-label; None and False leave one out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{"" if value is True else escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if element in _VOID:
        return Html(f"<{element}{written}/>")
    return Html(f"<{element}{written}>{''.join(map(escape, children))}</{element}>")


def join(children: Iterable[Content], between: Content = None) -> Html:
    """Join children after one another."""
    return Html(escape(between).join(map(escape, children)))
