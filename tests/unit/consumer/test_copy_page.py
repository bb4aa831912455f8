"""copy.html: whole, with nothing but itself, and no name of a server becomes markup; and the line of progress."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from html.parser import HTMLParser

import pytest

from cdc_consumer.copy.report.notes import Note
from cdc_consumer.copy.report.page import PHASES, CopyCourse, page
from cdc_consumer.copy.report.progress import CopyProgress, CopySteps
from cdc_consumer.copy.rows.task import Copied, CopyTask
from cdc_consumer.copy.state import CopiedRows, CopyMoment
from cdc_consumer.parity.model import Omission, Shape, TableName
from cdc_consumer.parity.rows.ranges import EVERYTHING
from cdc_consumer.sql.positions import Mark

HOSTILE = "</script></style><img src=x onerror=alert(1)>\"'&<!--\x00\x1b[31m\u202e\n"
NAME = TableName(HOSTILE, HOSTILE)


class Elements(HTMLParser):
    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def course(names: str) -> CopyCourse:
    name = TableName(names, names)
    notes = [Note("run", "", 0.0), *(Note("phase", phase, float(at)) for at, phase in enumerate(PHASES))]
    return CopyCourse(
        names, names, names, CopyMoment(Mark(7, 5, "binlog.000001", 99, names, 1), names), [CopiedRows(name, 10, 2)], {name: 5.0},
        [*notes, Note("again", str(name), 9.0), Note("warning", names, 9.5)],
        [Omission(1, 2, "binlog.000001:4", None, "follower", names, names, names, "2026-01-01")], "equal", names,
    )  # fmt: skip


def test_names_stay_text() -> None:
    hostile, plain = (page(course(names)) for names in (HOSTILE, "plain"))
    assert [tag for tag, _ in Elements(hostile).found] == [tag for tag, _ in Elements(plain).found]
    assert not {name for _, attributes in Elements(hostile).found for name in attributes} & {"onerror", "src", "href"}
    style = re.search("<style>(.*)</style>", plain, re.DOTALL)
    assert style and base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode() in plain


def test_the_line_says_rate_time_and_what_is_left() -> None:
    tasks = [CopyTask(Shape(TableName("d", f"t{n % 5}"), (), ("id",), ()), n, EVERYTHING, 100) for n in range(10)]
    progress = CopyProgress(io.StringIO())
    progress.begin((0, 1000), tasks)
    progress._began -= 10
    progress.heard(Copied(tasks[0], 100, 2.0))
    assert re.fullmatch(
        r"\[##\.{18}\] 100 of about 1,000 rows, 10 rows/s, about 1 min 30 s left;"
        r" left: (d\.t\d \(about 200 rows in 2 ranges\), ){2}d\.t\d \(about 200 rows in 2 ranges\) and 2 tables more", progress.line(),
    )  # fmt: skip
    assert progress.rates() == {TableName("d", "t0"): 50.0}
    progress.tick(150)
    assert "150 of about" in progress.line()


def test_indexes_take_as_long_as_their_tables_have_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    name = TableName("d", "t")
    statements = [
        f"ALTER TABLE {name.sql} ADD KEY (a)",
        f"ALTER TABLE {name.sql} ADD CONSTRAINT c FOREIGN KEY",
        "CREATE VIEW v",
    ]
    steps = CopySteps(statements, {name: 7000})
    assert "step 1 of 3" in steps.line(3.0) and "left" not in steps.line(3.0)
    steps.number, steps._began = 1, steps._began - 80
    assert steps.line(0.0).endswith("since 0.0 s, about 20 s left")
