"""report.html: whole, self-contained, and nothing a server holds can become markup."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from kit.report import HOSTILE, ORDERS, different_run, equal_run, order, text, undecided_run
from kit.report_strategies import any_run

from cdc_consumer.parity.model import Difference, Evidence, TableName, TableResult
from cdc_consumer.parity.report import schemas
from cdc_consumer.parity.report.html import page
from cdc_consumer.parity.report.markup import Html, escape, tag
from cdc_consumer.parity.report.svg import strip_words, timeline
from cdc_consumer.parity.report.tally import ALL_CARDS, GROUP_CARDS, TABLE_CARDS, tally
from cdc_consumer.parity.report.values import harmless
from cdc_consumer.parity.report.words import sentence
from cdc_consumer.parity.run_model import Round, Run, Sample

ELEMENTS = frozenset(
    re.findall(
        r"\w+",
        "a article b body code dd details div dl dt fieldset figcaption figure h1 h2 h3 h4 h5 head header html i input label "
        "legend li main mark meta ol p path pre rect section small span style summary svg table tbody td th thead title tr ul",
    )
)
VOID = {"meta", "input"}


class Page(HTMLParser):
    """Reads a page strictly: every element known and closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.style = ""
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {*VOID, "rect", "path"}
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.style += data
        else:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] or "" for _, attributes in self.elements if name in attributes]


def read(run: Run) -> Page:
    source = page(run, tally(run.differences))
    source.encode("utf-8")
    return Page(source)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=60, deadline=None)
@given(any_run())
def test_whatever_names_and_values_hold_they_stay_text(run: Run) -> None:
    found = read(run)
    for _, attributes in found.elements:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("src", "style", "srcdoc", "action")
        ]
    assert all(link.startswith("#") for link in found.attributes("href"))
    assert "".join([*found.texts, *found.attributes("title")]).replace("\n", "").isprintable()
    whole = "".join(found.texts)
    said = (sentence(item.text.removeprefix(schemas.name(item)).strip()) for item in run.schema)
    for name in (run.id, *(str(table.table) for table in run.tables), *said):
        assert harmless(name).strip() in whole or harmless(name).replace("\n", "") in whole.replace("\n", "")


@pytest.mark.parametrize(
    "run", [different_run(), equal_run(), undecided_run()], ids=["different", "equal", "undecided"]
)
def test_a_page_needs_nothing_but_itself_and_is_accessible(run: Run) -> None:
    found = read(run)
    ids = found.attributes("id")
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in found.attributes("href")} <= set(ids)
    policy = next(a["content"] or "" for name, a in found.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert base64.b64encode(hashlib.sha256(found.style.encode()).digest()).decode() in policy
    assert not re.search(r"url\(|@import|https?:", found.style)
    headings = [int(name[1]) for name, _ in found.elements if re.fullmatch("h[1-5]", name)]
    assert headings[0] == 1 and headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    for name, attributes in found.elements:
        assert name != "svg" or attributes.get("aria-label")
        assert name != "th" or attributes.get("scope")
        assert name != "table" or attributes.get("aria-label")


def test_the_first_screen_answers() -> None:
    whole = "".join(read(different_run()).texts)
    assert "The follower differs from its leader: 274 rows of 3 tables and 3 schema differences." in whole
    assert (
        "232 rows have one cause: a block of rows is missing, id 1201 to 1432. They were published but not applied."
        in whole
    )
    assert whole.index("232 rows have one cause") < whole.index("Causes") < whole.index("How to read this")
    whole = "".join(read(equal_run()).texts)
    assert "The follower equals its leader: 10 tables, 593,925 rows." in whole
    assert "438 rows differed at first and were merely late." in whole
    whole = "".join(read(equal_run(options={"tables": "shop.orders"})).texts)
    assert "The follower equals its leader in the part compared: 10 tables" in whole
    assert "Only a part was compared: --tables shop.orders." in whole
    whole = "".join(read(different_run(total_differences=400)).texts)
    assert "These are the first 274 rows of 400." in whole


def test_cards_are_limited_and_the_rest_is_told() -> None:
    whole = read(different_run())
    assert f"{232 - GROUP_CARDS} more rows of this kind in differences.jsonl." in whole.texts
    evidence = Evidence("idle", "a:1", "a:2", "a:3", "a:2", 2)
    for tables, most in ((1, TABLE_CARDS), (40, ALL_CARDS)):
        found = tally(
            Difference(TableName("d", f"t{number % tables}"), "missing", {}, {}, None, None, None, evidence, cause=str(number // tables % 9))
            for number in range(9_000)
        )  # fmt: skip
        assert sum(map(len, found.cards.values())) == most
        assert found.rows == 9_000 == sum(cause.rows for cause in found.causes)


def test_a_row_that_reads_the_same_is_explained() -> None:
    assert "Every value reads the same" in "".join(read(different_run()).texts)


def test_hostile_values_are_seen() -> None:
    row = order(1, note=text(HOSTILE))
    run = different_run(
        differences=[
            Difference(ORDERS, "extra", {"id": text(HOSTILE)}, None, row, None, "f" * 64, Evidence("idle", *"abcd", 1))
        ]
    )
    assert any(
        "</script></style><img src=x onerror=alert(1)>\"'&<!--⟨NUL⟩⟨ESC⟩[31m⟨U+202E⟩⟨LF⟩" in part
        for part in read(run).texts
    )


def test_markup_is_escaped_unless_it_is_markup() -> None:
    assert escape("<b>\x00\ud800") == "&lt;b&gt;⟨NUL⟩⟨U+D800⟩"
    assert (
        tag("p", "<", Html("<b>"), 1, None, class_='"', hidden=True, id=None)
        == '<p class="&quot;" hidden="">&lt;<b>1</p>'
    )


def test_a_strip_is_told_in_words() -> None:
    assert strip_words([0, 0]) == "no row differs in any of 2 parts of the key space"
    assert strip_words([1, 0, 3, 4]) == "rows differ in 3 of 4 parts of the key space: 1 (1 row), 3 to 4 (7 rows)"
    assert strip_words([1, 0] * 20).endswith("and 12 more places")


def test_a_timeline_is_interrupted_where_nothing_is_known() -> None:
    assert timeline("", [1.0, 2.0, None, None, 1.0], 2.0).count('class="line"') == 2
    assert timeline("", [None, None], 0.0).count("<path") == 0


def test_a_run_of_hours_and_of_thousands_of_tables_stays_small() -> None:
    run = equal_run(
        samples=[Sample(float(at), at * 1_000, 0, None, None) for at in range(36_000)],
        rounds=[Round(number, 1.0, 1, 1, 0, 0, 1.0) for number in range(20)],
    )
    run.tables = [
        TableResult(TableName("shop", f"t{n}"), leader_rows=1, follower_rows=1, strip=(0,) * 64) for n in range(2_000)
    ]
    assert len(page(run, tally([]))) < 2_500_000


def luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_can_be_read_in_both_schemes() -> None:
    schemes = re.findall(r":root \{(.*?)\}", read(equal_run()).style, re.DOTALL)[:2]
    assert len(schemes) == 2
    for scheme in schemes:
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", scheme))
        pairs = [
            (ink, ground)
            for ink in ("ink", "soft", "equal", "different", "undecided", "skipped")
            for ground in ("paper", "raised")
        ]
        for ink, ground in [*pairs, ("ink", "mark")]:
            light, dark = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)
