"""Shows what the schemas do not have in common, side by side, with the SQL that would end it."""

from __future__ import annotations

from cdc_consumer.parity.model import SchemaDifference
from cdc_consumer.parity.repair.files import SCHEMA
from cdc_consumer.parity.report import words
from cdc_consumer.parity.report.cards import segments
from cdc_consumer.parity.report.marks import Segment, compare
from cdc_consumer.parity.report.markup import Content, Html, tag
from cdc_consumer.parity.run_model import COUNTED, Run

#: things shown of one grade
_SHOWN = 200


def schemas(run: Run) -> Html | None:
    """Show the part about schemas; None when they differ in nothing."""
    if not run.schema:
        return None
    grades = {grade: [item for item in run.schema if item.grade == grade] for grade in words.GRADES}
    counted = [_item(item) for grade in words.GRADES if grade in COUNTED for item in grades[grade][:_SHOWN]]
    quiet = [item for grade in words.GRADES if grade not in COUNTED for item in grades[grade]]
    left = sum(max(0, len(grades[grade]) - _SHOWN) for grade in COUNTED) + max(0, len(quiet) - _SHOWN)
    title = f"{words.count(len(quiet), 'difference')} that {'does' if len(quiet) == 1 else 'do'} not count"
    return tag(
        "section", tag("h2", "Schema"),
        tag("p", f"{SCHEMA} has all of these statements in an order that runs.", class_="note")
        if any(item.fix for item in run.schema) else None,
        tag("div", *counted, class_="cards wide"),
        tag("details", tag("summary", title), tag("div", *map(_item, quiet[:_SHOWN]), class_="cards wide"))
        if quiet else None,
        tag("p", f"{left:,} more in schema.json.", class_="note") if left else None,
    )  # fmt: skip


def name(item: SchemaDifference) -> str:
    """Name it, as in "column shop.orders.total"."""
    return f"{item.object} {'.'.join(filter(None, (item.database, item.parent, item.name)))}"


def _item(item: SchemaDifference) -> Html:
    leader, follower = _sides(item)
    return tag(
        "article",
        tag("h3", tag("span", item.grade, class_=f"kind g-{item.grade}", title=words.GRADES[item.grade]), " ",
            tag("span", name(item), class_="key")),
        tag("p", words.sentence(item.text.removeprefix(name(item)).strip())),
        tag("div", _side("Leader", leader), _side("Follower", follower), class_="sides")
        if leader or follower else None,
        tag("div", tag("h4", "Makes the follower like the leader"), tag("pre", tag("code", item.fix)), class_="fix")
        if item.fix else None,
        class_=f"card {item.grade}",
    )  # fmt: skip


def _sides(item: SchemaDifference) -> tuple[tuple[Segment, ...] | None, tuple[Segment, ...] | None]:
    if item.leader is None or item.follower is None:
        one, other = (None if text is None else (Segment(text, "same"),) for text in (item.leader, item.follower))
        return one, other
    marked = compare(item.leader, item.follower)
    return marked.one, marked.other


def _side(title: str, text: tuple[Segment, ...] | None) -> Html:
    content: Content = tag("p", "not there", class_="note") if text is None else tag("pre", segments(text))
    return tag("div", tag("h4", title), content)
