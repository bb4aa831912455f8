"""Writes copy.html: one page that needs nothing but itself, in the style of the audit's and by its means."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

from cdc_consumer.copy.report.notes import Note
from cdc_consumer.copy.state import CopiedRows, CopyMoment
from cdc_consumer.parity.model import Omission, TableName, Verdict
from cdc_consumer.parity.report.course import left_out
from cdc_consumer.parity.report.html import document
from cdc_consumer.parity.report.markup import Content, Html, tag
from cdc_consumer.parity.report.overview import head_row, number_tile, scroll
from cdc_consumer.parity.report.svg import bar
from cdc_consumer.parity.report.words import SIGNS, count, duration
from cdc_consumer.parity.report.write import replace_file

NAME = "copy.html"
#: phase -> what it is
PHASES = {
    "tables": "databases and tables are made, and cut into ranges",
    "rows": "ranges are read from the leader",
    "window": "what was written meanwhile gets its last image",
    "ending": "keys, foreign keys, views, routines, events and the position are made",
    "done": "the consumer may start",
    "audit": "the audit compares both servers",
}


@dataclass(frozen=True, slots=True)
class CopyCourse:
    """Holds what the page tells."""

    leader: str
    follower: str
    topic: str
    #: where the copy ended
    moment: CopyMoment
    tables: list[CopiedRows]
    #: of each table, how many rows a second were copied, where this run of the program did it
    rates: dict[TableName, float]
    notes: list[Note]
    omissions: list[Omission]
    #: of the audit, None without one; and what it said
    verdict: Verdict | None = None
    audit: str = ""

    def of(self, kind: str) -> list[Note]:
        """Return the notes of one kind."""
        return [note for note in self.notes if note.kind == kind]

    @property
    def seconds(self) -> float:
        """Tell how long the copy took, from its first note to its last."""
        return self.notes[-1].at - self.notes[0].at if self.notes else 0.0


def write_page(course: CopyCourse, folder: Path) -> Path:
    """Write the page into a folder; return its path. Raises OSError."""
    replace_file(folder / NAME, page(course))
    return folder / NAME


def page(course: CopyCourse) -> str:
    """Return the whole document."""
    main = tag(
        "main", _tiles(course), _warnings(course), left_out(course.omissions), _tables(course), _phases(course),
        _facts(course),
    )  # fmt: skip
    return document(f"{_sign(course)} copy of {course.leader}", _headline(course), main)


def _sign(course: CopyCourse) -> str:
    return SIGNS[course.verdict or "equal"]


def _headline(course: CopyCourse) -> Html:
    rows = sum(table.rows for table in course.tables)
    what = f"{count(len(course.tables), 'table')}, {count(rows, 'row')}"
    reasons = [
        f"The audit: {course.audit}" if course.verdict else "It was not audited: audit = true in [copy] does that."
    ]
    reasons += [f"{count(len(course.of('warning')), 'warning')} below."] if course.of("warning") else []
    verdict = course.verdict or "skipped"
    return tag(
        "header",
        tag("p", "Initial copy", class_="eyebrow"),
        tag(
            "h1", tag("span", _sign(course), class_="glyph", aria_hidden="true"),
            tag("span", f"The follower was filled from its leader: {what}."),
        ),
        tag("ul", *(tag("li", reason) for reason in reasons), class_="reasons"),
        tag("p", "Leader ", tag("code", course.leader), " and follower ", tag("code", course.follower),
            f", topic {course.topic}, ", tag("span", duration(course.seconds), class_="whole-word"), class_="when"),
        class_=f"head v-{verdict}",
    )  # fmt: skip


def _tiles(course: CopyCourse) -> Html:
    rows, again = sum(table.rows for table in course.tables), len(course.of("again"))
    ranges, runs = sum(table.ranges for table in course.tables), len(course.of("run"))
    took = sum(end.at - begin.at for begin, end in pairwise(course.notes) if _phase(course, begin) == "rows")
    rate = f"{rows / took:,.0f} rows/s while ranges were read" if took else ""
    return tag(
        "section", tag("h2", "In numbers", class_="hidden"),
        tag(
            "dl",
            number_tile("Tables", len(course.tables), "with their keys, views, routines and events"),
            number_tile("Rows", rows, rate),
            number_tile("Ranges", ranges, "each with the mark that it is there"),
            number_tile("Copied once more", again, "tables, changed meanwhile" if again else "none"),
            number_tile("Attempts", runs, "one goes on where the last one was" if runs > 1 else "nothing broke it"),
            class_="tiles",
        ),
    )  # fmt: skip


def _phase(course: CopyCourse, note: Note) -> str:
    """Return the phase that goes on behind a note."""
    before = [each.words for each in course.notes[: course.notes.index(note) + 1] if each.kind == "phase"]
    return before[-1] if before else ""


def _warnings(course: CopyCourse) -> Html | None:
    found = course.of("warning")
    if not found:
        return None
    return tag("section", tag("h2", "Warnings"), tag("ul", *(tag("li", note.words) for note in found)))


def _tables(course: CopyCourse) -> Html:
    again = Counter(note.words for note in course.of("again"))
    most = max((table.rows for table in course.tables), default=0) or 1
    body = [
        tag(
            "tr",
            tag("th", str(table.name), scope="row"),
            tag("td", f"{table.rows:,}", class_="n"),
            tag("td", bar(count(table.rows, "row"), [(table.rows / most, "plain")]), class_="bars"),
            tag("td", f"{table.ranges:,}", class_="n"),
            tag("td", f"{course.rates[table.name]:,.0f}" if table.name in course.rates else None, class_="n"),
            tag("td", count(again[str(table.name)], "time") if again[str(table.name)] else None, class_="n"),
        )
        for table in sorted(course.tables, key=lambda table: (-table.rows, table.name))
    ]
    heads = head_row("Table", ">Rows", "", ">Ranges", ">Rows/s", ">Copied once more")
    return tag(
        "section", tag("h2", "Tables"),
        tag("p", "Rows are those that ranges brought; what was written meanwhile was changed afterwards. Rows a second "
            "are of one reader, of what the last run of the program has copied.", class_="note"),
        scroll("Tables", tag("thead", heads), tag("tbody", *body)),
    )  # fmt: skip


def _phases(course: CopyCourse) -> Html:
    first = course.notes[0].at if course.notes else 0.0
    rows = []
    for number, note in enumerate(course.notes):
        if note.kind in ("warning", "again"):
            continue
        later = [each.at for each in course.notes[number + 1 :] if each.kind in ("run", "phase", "audit")]
        what = {"run": "an attempt begins", "audit": "the audit has ended"}.get(note.kind) or PHASES.get(note.words, "")
        rows.append(
            tag("tr", tag("th", note.words or note.kind, scope="row"), tag("td", what, class_="text"),
                tag("td", _time(note.at)), tag("td", duration(note.at - first), class_="n"),
                tag("td", duration(later[0] - note.at) if later else None, class_="n"))
        )  # fmt: skip
    heads = head_row("Phase", "What it is", "Began", ">After", ">Took")
    return tag("section", tag("h2", "Phases"), scroll("Phases", tag("thead", heads), tag("tbody", *rows)))


def _facts(course: CopyCourse) -> Html:
    mark = course.moment.mark
    facts: dict[str, Content] = {
        "Position of the leader": f"{mark.file}:{mark.leader_offset}", "Topic offset": str(mark.offset),
        "Sequence": str(mark.sequence), "Transaction": mark.gtid or "no GTID",
        "Committed": "unknown" if mark.committed is None else _time(mark.committed / 1e6),
        "GTIDs the leader had executed": course.moment.gtids or "none",
    }  # fmt: skip
    return tag(
        "section", tag("h2", "The moment that the follower showed"),
        tag("p", "Where the copy ended: the consumer goes on behind it.", class_="note"),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", tag("code", text))) for name, text in facts.items()),
            class_="whole facts"),
    )  # fmt: skip


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
