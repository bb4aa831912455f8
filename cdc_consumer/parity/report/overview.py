"""The first screen: is the follower equal, and if not, what differs and why; then every table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from cdc_consumer.parity.model import Kind, TableName, TableResult, Verdict
from cdc_consumer.parity.report import words
from cdc_consumer.parity.report.markup import Content, Html, join, tag
from cdc_consumer.parity.report.svg import bar, strip
from cdc_consumer.parity.report.tally import Cause, Tally
from cdc_consumer.parity.run_model import Run

#: reasons under the headline
_REASONS = 3
#: equal tables shown before the rest of them is folded
_EQUAL = 40
#: columns of the matrix, one a cause
_CAUSES = 6
#: rows of the matrix and of the list of causes
_ROWS = 60


def verdict_tag(verdict: Verdict) -> Html:
    """Show a verdict with its sign."""
    sign = tag("span", words.SIGNS[verdict], class_="sign", aria_hidden="true")
    return tag("span", sign, verdict, class_=f"verdict v-{verdict}")


def headline(run: Run, tally: Tally) -> Html:
    """Show the verdict, its reasons, and which servers were compared when."""
    reasons = words.reasons(run, tally)
    shown: list[Content] = [tag("li", reason) for reason in reasons[:_REASONS]]
    if len(reasons) > _REASONS:
        shown.append(tag("li", f"{words.count(len(reasons) - _REASONS, 'further finding')} below."))
    return tag(
        "header",
        tag("p", "Parity audit ", tag("span", run.id, class_="id"), class_="eyebrow"),
        tag(
            "h1", tag("span", words.SIGNS[run.verdict], class_="glyph", aria_hidden="true"),
            tag("span", words.headline(run)),
        ),
        tag("ul", *shown, class_="reasons") if shown else None,
        tag(
            "p", "Leader ", tag("code", run.leader.address), " and follower ", tag("code", run.follower.address),
            f", {run.started} to {run.ended}, ", tag("span", words.duration(run.seconds), class_="whole-word"),
            class_="when",
        ),
        class_=f"head v-{run.verdict}",
    )  # fmt: skip


def tiles(run: Run) -> Html:
    """Show the numbers of the run."""
    tables = words.verdicts(run)
    leader, follower = (sum(getattr(t, side) for t in run.tables) for side in ("leader_rows", "follower_rows"))
    grades = Counter(item.grade for item in run.schema)
    schema = words.counted_schema(run)
    proven: Counter[Kind] = sum(map(words.proven, run.tables), Counter())
    undecided = len(run.undecided)
    return tag(
        "section", tag("h2", "In numbers", class_="hidden"),
        tag(
            "dl",
            number_tile("Tables", len(run.tables), _parts(tables, words.VERDICTS) or "none selected"),
            number_tile("Rows compared", leader, f"{follower:,} on the follower"),
            number_tile("Rows different", run.total_differences, _parts(proven, words.KINDS) or "none",
                  "different" if run.total_differences else "equal"),
            number_tile("Schema differences", schema, _parts(grades, words.GRADES) or "none",
                  "different" if schema else "equal"),
            number_tile("Undecided", undecided, "rows or tables, proven neither way" if undecided else "none",
                  "undecided" if undecided else "equal"),
            class_="tiles",
        ),
    )  # fmt: skip


def _parts(counts: Counter[Any], names: Iterable[str]) -> Html:
    """ "10 equal, 3 different", no number parted from its word."""
    return join((tag("span", f"{counts[name]:,} {name}", class_="whole-word") for name in names if counts[name]), ", ")


def number_tile(name: str, number: int, detail: str, verdict: str = "") -> Html:
    """Show one number of the first screen, with what there is to say of it."""
    return tag(
        "div", tag("dt", name), tag("dd", f"{number:,}", class_="number"), tag("dd", detail, class_="detail"),
        class_=f"tile v-{verdict}" if verdict else "tile",
    )  # fmt: skip


def causes(run: Run, tally: Tally) -> Html | None:
    """Show what kinds of damage there are, and which part of the replication failed."""
    if not tally.causes:
        return None
    most = max(cause.rows for cause in tally.causes)
    left = len(tally.causes) - _ROWS
    return tag(
        "section", tag("h2", "Causes"),
        tag("p", f"These are the first {words.count(tally.rows, 'row')} of {run.total_differences:,}.", class_="note")
        if tally.rows < run.total_differences else None,
        scroll(
            "Causes",
            tag("thead", head_row("Cause", ">Rows", "", "Rows are", "Where", "What failed")),
            tag("tbody", *(_cause(cause, most) for cause in tally.causes[:_ROWS])),
        ),
        tag("p", f"{left:,} more in run.json.", class_="note") if left > 0 else None,
    )  # fmt: skip


def _cause(cause: Cause, most: int) -> Html:
    tables = [f"{table} ({rows:,})" for table, rows in cause.tables.most_common(3)]
    if len(cause.tables) > 3:
        tables.append(words.count(len(cause.tables) - 3, "more table"))
    columns = [name for name, _ in cause.columns.most_common(4)]
    if len(cause.columns) > 4:
        columns.append("…")
    return tag(
        "tr",
        tag("th", cause.name or words.NO_PATTERN, scope="row"),
        tag("td", f"{cause.rows:,}", class_="n"),
        tag("td", bar(words.count(cause.rows, "row"), [(cause.rows / most, "different")]), class_="bars"),
        tag("td", words.kinds(cause.kinds)),
        tag("td", ", ".join(tables), tag("small", f"column {', '.join(columns)}") if columns else None, class_="text"),
        tag("td", ", ".join(f"{stage} ({rows:,})" if len(cause.stages) > 1 else stage
                            for stage, rows in cause.stages.most_common()), class_="text"),
    )  # fmt: skip


def tables(run: Run, anchors: dict[TableName, str]) -> Html:
    """Show every table with its strip; those that are not equal first, equal ones folded when there are many."""
    order = ["different", "undecided", "skipped", "equal"]
    ranked = sorted(run.tables, key=lambda table: (order.index(table.verdict), -table.proven, table.table))
    equal = sum(table.verdict == "equal" for table in ranked)
    first = len(ranked) - max(0, equal - _EQUAL)
    rest = None
    if ranked[first:]:
        name = f"{words.count(len(ranked) - first, 'more equal table')}"
        rest = tag("details", tag("summary", name), _tables(ranked[first:], anchors, name))
    return tag("section", tag("h2", "Tables"), _tables(ranked[:first], anchors, "Tables"), rest)


def _tables(results: list[TableResult], anchors: dict[TableName, str], name: str) -> Html:
    heads = head_row(
        "Table", "Verdict", "Proven different", "Where in the key space", ">Rows", ">On the follower", "Digest", ">Took"
    )
    return scroll(name, tag("thead", heads), tag("tbody", *(_table(result, anchors) for result in results)))


def _table(result: TableResult, anchors: dict[TableName, str]) -> Html:
    anchor = anchors.get(result.table)
    notes = [result.reason] if result.reason else []
    notes += [f"column {column} is not compared: {reason}" for column, reason in result.excluded]
    if result.undecided:
        notes.append(words.undecided(result.undecided))
    where: Content = strip(result.strip) if result.strip else "no key" if result.split == "no key" else ""
    compared = result.verdict != "skipped"
    return tag(
        "tr",
        tag("th", tag("a", str(result.table), href=f"#{anchor}") if anchor else str(result.table), scope="row"),
        tag("td", verdict_tag(result.verdict)),
        tag("td", words.kinds(words.proven(result)) or ("none" if result.verdict == "equal" else ""),
            *(tag("small", note) for note in notes), class_="text"),
        tag("td", where, class_="strips"),
        tag("td", f"{result.leader_rows:,}" if compared else None, class_="n"),
        tag("td", f"{result.follower_rows:,}" if compared else None, class_="n"),
        tag("td", tag("code", result.digest[:12], title=result.digest) if result.digest else None),
        tag("td", words.duration(result.seconds) if compared else None, class_="n"),
    )  # fmt: skip


def matrix(tally: Tally) -> Html | None:
    """Show which columns of changed rows differ, by cause."""
    if not tally.columns:
        return None
    total: Counter[str] = sum(tally.columns.values(), Counter())
    names = sorted((name for name, _ in total.most_common(_CAUSES)), key=lambda name: (not name, -total[name]))
    others = len(total) > _CAUSES
    ranked = sorted(tally.columns.items(), key=lambda item: (-item[1].total(), item[0]))
    most = max(max(counts.values()) for _, counts in ranked)
    heads = [f"^{name or words.NO_PATTERN}" for name in names] + ["^other causes"] * others
    rows = []
    for (table, column), counts in ranked[:_ROWS]:
        cells = [counts[name] for name in names] + ([counts.total() - sum(map(counts.__getitem__, names))] * others)
        rows.append(
            tag("tr", tag("th", tag("span", f"{table}.", class_="soft"), column, scope="row"),
                *(_heat(cell, most) for cell in cells))
        )  # fmt: skip
    left = len(ranked) - _ROWS
    return tag(
        "section", tag("h2", "Columns of changed rows"),
        scroll("Columns of changed rows, by cause", tag("thead", head_row("Column", *heads)), tag("tbody", *rows)),
        tag("p", f"{words.count(left, 'more column')} in differences.jsonl.", class_="note") if left > 0 else None,
    )  # fmt: skip


def _heat(rows: int, most: int) -> Html:
    """A cell in one of four shades."""
    shade = min(4, 1 + 4 * (rows.bit_length() - 1) // max(1, most.bit_length())) if rows else 0
    return tag("td", f"{rows:,}" if rows else "·", class_=f"n heat h{shade}")


def head_row(*names: str) -> Html:
    """Column headers; one of numbers begins with ">", one of the matrix with "^"."""
    classes = {">": "n", "^": "heat"}
    heads = [(name[1:], classes[name[0]]) if name[:1] in classes else (name, None) for name in names]
    return tag("tr", *(tag("th", text, scope="col", class_=kind) if text else tag("td") for text, kind in heads))


def scroll(name: str, *content: Content, class_: str | None = None) -> Html:
    """Show a table in a box of its own, which scrolls sideways where the page is narrow."""
    table = tag("table", *content, class_=class_, aria_label=name)
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=name)
