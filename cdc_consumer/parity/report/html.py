"""Writes report.html: one page that needs no script and nothing but itself, in a file, on paper and on a phone."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from cdc_consumer.parity.report import cards, words
from cdc_consumer.parity.report.course import course, left_out
from cdc_consumer.parity.report.markup import Html, tag
from cdc_consumer.parity.report.overview import causes, headline, matrix, tables, tiles, verdict_tag
from cdc_consumer.parity.report.schemas import schemas
from cdc_consumer.parity.report.tally import Tally
from cdc_consumer.parity.run_model import Run


def page(run: Run, tally: Tally) -> str:
    """The whole document; `tally` is of all its differences."""
    main = tag(
        "main", tiles(run), left_out(run.omissions), causes(run, tally), tables(run, cards.anchors(tally)),
        matrix(tally), cards.rows(tally), cards.undecided(run), schemas(run), course(run), _reading(),
    )  # fmt: skip
    title = f"{words.SIGNS[run.verdict]} {run.verdict}: parity audit {run.id}"
    return document(title, headline(run, tally), main)


def document(title: str, header: Html, main: Html) -> str:
    """Put a page together, which has its style in itself."""
    style = files(__package__).joinpath("report.css").read_text("utf-8")
    head = tag(
        "head", tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Html(style)),
    )  # fmt: skip
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', header, main), lang='en')}\n"


def _policy(style: str) -> str:
    """Nothing may load or run but this one style sheet."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _reading() -> Html:
    """How to read the verdicts."""
    verdicts = (tag("div", tag("dt", verdict_tag(name)), tag("dd", text)) for name, text in words.VERDICTS.items())
    kinds = (tag("div", tag("dt", name), tag("dd", words.sentence(text))) for name, text in words.KINDS.items())
    stages = (tag("div", tag("dt", name), tag("dd", text)) for name, text in words.STAGES.items())
    grades = (tag("div", tag("dt", name), tag("dd", words.sentence(text))) for name, text in words.GRADES.items())
    return tag(
        "section", tag("h2", "How to read this"),
        tag("dl", *verdicts, class_="terms"),
        tag("h3", "Kinds of rows"), tag("dl", *kinds, class_="terms"),
        tag("h3", "What failed, as the topic tells"), tag("dl", *stages, class_="terms"),
        tag("h3", "Grades of the schema"), tag("dl", *grades, class_="terms"),
        tag("h3", "Signs"),
        tag("p", "Differing characters are marked and underlined. ␣ is a space at either end or one that differs, "
            "⟨LF⟩ a line feed, ⟨U+200B⟩ a character that cannot be seen, ⟨xFF⟩ a byte that is no character."),
        tag("p", "The digest of a table is the XOR of its row hashes, or their sum where the table has no key: equal "
            "tables have equal digests. It is a certificate that later runs can be compared with; run.json has all of "
            "its digits. A table that was not read whole has none."),
    )  # fmt: skip
