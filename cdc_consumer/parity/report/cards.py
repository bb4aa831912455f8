"""Shows rows one by one: what differs, character by character, and why that is believed; and what stayed undecided."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from cdc_consumer.parity.differences import FILE
from cdc_consumer.parity.model import Difference, KeyEvent, TableName
from cdc_consumer.parity.report import words
from cdc_consumer.parity.report.marks import Segment, diff
from cdc_consumer.parity.report.markup import Content, Html, join, tag
from cdc_consumer.parity.report.overview import scroll
from cdc_consumer.parity.report.tally import Group, Tally
from cdc_consumer.parity.report.values import display
from cdc_consumer.parity.run_model import Run

#: cards of a group shown before the rest is folded
_OPEN = 4
#: columns shown of one row
_COLUMNS = 40
#: rows of the list of the undecided
_UNDECIDED = 200


def anchors(tally: Tally) -> dict[TableName, str]:
    """Show where on the page a table's rows are."""
    return {table: f"t{number}" for number, table in enumerate(tally.tables(), 1)}


def rows(tally: Tally) -> Html | None:
    """Show cards by table and kind of damage; check boxes choose the kinds of rows, without a script."""
    if not tally.rows:
        return None
    places = anchors(tally)
    return tag(
        "section", tag("h2", "Rows"), _choice(tally),
        *(_table(table, groups, tally, places[table]) for table, groups in tally.tables().items()),
        class_="rows", id="rows",
    )  # fmt: skip


def _choice(tally: Tally) -> Html | None:
    if len(tally.kinds) < 2:
        return None
    boxes = (
        tag("label", tag("input", type="checkbox", id=f"show-{kind}", checked=True), f" {tally.kinds[kind]:,} {kind}")
        for kind in words.KINDS
        if tally.kinds[kind]
    )
    return tag("fieldset", tag("legend", "Show"), *boxes, class_="choice")


def _table(table: TableName, groups: list[Group], tally: Tally, anchor: str) -> Html:
    return tag(
        "section", tag("h3", str(table)),
        *(_group(group, tally.groups[group], tally.cards[group]) for group in groups),
        id=anchor,
    )  # fmt: skip


def _group(group: Group, rows: int, cards: list[Difference]) -> Html:
    folded, left = cards[_OPEN:], rows - len(cards)
    summary = f"{words.count(len(folded), 'further row')} of this kind"
    return tag(
        "section",
        tag("h4", tag("span", tag("span", words.SIGNS[group.kind], class_="sign", aria_hidden="true"),
                      f"{rows:,} {group.kind}", class_="kind"), " ", group.cause or words.NO_PATTERN),
        tag("div", *map(card, cards[:_OPEN]), class_="cards"),
        tag("details", tag("summary", summary), tag("div", *map(card, folded), class_="cards")) if folded else None,
        tag("p", f"{words.count(left, 'more row')} of this kind in {FILE}.", class_="note") if left > 0 else None,
        class_=f"group {group.kind}",
    )  # fmt: skip


def card(difference: Difference) -> Html:
    """Show one row."""
    return tag(
        "article",
        tag("h5", _key(difference)),
        _values(difference),
        tag("p", tag("b", f"{words.sentence(difference.stage)} ") if difference.stage != "unknown" else None,
            words.STAGES[difference.stage]),
        _evidence(difference),
        class_="card",
    )  # fmt: skip


def _key(difference: Difference) -> Html:
    if not difference.key:
        return tag("span", "a row of a table without a key", class_="key")
    parts = (join((tag("i", name), " ", display(value))) for name, value in difference.key.items())
    return tag("code", join(parts, ", "), class_="key")


def _values(difference: Difference) -> Html:
    leader, follower = difference.leader, difference.follower
    if difference.kind != "changed" or leader is None or follower is None:
        said = words.KINDS[difference.kind]
        if difference.copies is not None:
            leaders, followers = difference.copies
            said = f"the leader holds {words.copies(leaders)} of this row, the follower {followers:,}"
        return join((tag("p", words.sentence(said)), _whole(leader or follower or {})))
    names = difference.columns
    if not names:
        return tag("p", words.SAME_TEXT)
    body = [_column(name, leader[name], follower[name]) for name in names[:_COLUMNS]]
    equal = len(leader) - len(names)
    told = [f"{words.count(len(names) - _COLUMNS, 'more column')} differ."] if len(names) > _COLUMNS else []
    told += [f"{words.count(equal, 'other column')} {'is' if equal == 1 else 'are'} equal."] if equal else []
    table = tag("table", *body, class_="values", aria_label="Values that differ")
    return join((table, tag("p", " ".join(told), class_="note") if told else None))


def _column(name: str, leader: str, follower: str) -> Html:
    """A column that differs, the sides one above the other so that characters stand in line."""
    marked = diff(leader, follower)
    lines = [
        tag("tr", tag("th", "leader", scope="row"), tag("td", segments(marked.one))),
        tag("tr", tag("th", "follower", scope="row"), tag("td", segments(marked.other))),
    ]
    if marked.note:
        lines.append(tag("tr", tag("td"), tag("td", tag("small", marked.note))))
    return tag("tbody", tag("tr", tag("th", name, scope="rowgroup", colspan=2)), *lines)


def segments(parts: tuple[Segment, ...]) -> Html:
    """Marked text; the marks are underlined too, so that they show without colour."""
    elements = {"changed": "mark", "gap": "i", "frame": "span"}
    shown: list[Content] = [part.text if part.mark == "same" else tag(elements[part.mark], part.text) for part in parts]
    return tag("code", *shown)


def _whole(row: Mapping[str, str]) -> Html:
    shown: list[Content] = [
        tag("div", tag("dt", name), tag("dd", tag("code", display(value))))
        for name, value in islice(row.items(), _COLUMNS)
    ]
    if len(row) > _COLUMNS:
        shown.append(tag("div", tag("dt", "…"), tag("dd", words.count(len(row) - _COLUMNS, "more column"))))
    return tag("dl", *shown, class_="whole")


def _evidence(difference: Difference) -> Html:
    evidence = difference.evidence
    hashes = {"leader": difference.leader_hash, "follower": difference.follower_hash}
    return tag(
        "details", tag("summary", "Evidence"), tag("p", words.proof(evidence)),
        tag("p", "Last events of the row in the topic:") if evidence.events else None,
        tag("ol", *map(_event, evidence.events), class_="events") if evidence.events else None,
        tag("dl", *(tag("div", tag("dt", f"{side}'s hash"), tag("dd", tag("code", digest or "no row")))
                    for side, digest in hashes.items()), class_="whole"),
    )  # fmt: skip


def _event(event: KeyEvent) -> Html:
    parts = [f"sequence {event.sequence}", f"offset {event.offset}", event.position, words.moment(event.time)]
    return tag("li", tag("b", event.operation), " ", ", ".join([*parts, *filter(None, [event.gtid])]))


def undecided(run: Run) -> Html | None:
    """Show what could be proven neither way."""
    if not run.undecided:
        return None
    body = (
        tag("tr", tag("th", str(item.table), scope="row"),
            tag("td", tag("code", ", ".join(f"{name} {display(value)}" for name, value in item.key.items())))
            if item.key else tag("td", "the whole table"),
            tag("td", item.reason))
        for item in run.undecided[:_UNDECIDED]
    )  # fmt: skip
    left = len(run.undecided) - _UNDECIDED
    heads = tag("tr", *(tag("th", name, scope="col") for name in ("Table", "Row", "Why")))
    return tag(
        "section", tag("h2", "Undecided"), scroll("Undecided", tag("thead", heads), tag("tbody", *body)),
        tag("p", f"{left:,} more in run.json.", class_="note") if left > 0 else None,
    )  # fmt: skip
