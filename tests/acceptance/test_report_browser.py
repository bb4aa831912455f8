"""report.html in a real browser: from a file, without network, on a phone, in the dark, on paper."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from kit.report import different_run, equal_run, long_run, undecided_run

from cdc_consumer.parity.report.write import write_report
from cdc_consumer.parity.run_model import Run

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
RUNS: dict[str, Callable[[], Run]] = {
    "different": different_run,
    "equal": equal_run,
    "undecided": undecided_run,
    "long": long_run,
}
#: a page that holds the report in a frame of a given width, and writes down what it measures there
FRAME = """<!DOCTYPE html><title>waiting</title><iframe src="report.html" style="width:{width}px;height:900px;border:0"></iframe>
<script>
onload = () => {{
  const page = document.querySelector("iframe").contentDocument, view = page.defaultView
  const shown = (element) => view.getComputedStyle(element).display !== "none"
  const kinds = [...page.querySelectorAll(".choice input")].map((box) => {{
    const kind = box.id.replace("show-", ""), groups = [...page.querySelectorAll(".group." + kind)]
    const before = groups.every(shown)
    box.click()
    return [kind, groups.length, before, !groups.some(shown)]
  }})
  const wide = [...page.body.querySelectorAll("*")].filter((element) =>
    !element.closest(".scroll, svg, .hidden") && element.getBoundingClientRect().right > view.innerWidth + 0.5)
  document.title = JSON.stringify({{
    width: view.innerWidth, needed: page.documentElement.scrollWidth, wide: wide.map((element) => element.outerHTML.slice(0, 80)),
    scrolling: [...page.querySelectorAll(".scroll")].some((box) => box.scrollWidth > box.clientWidth), kinds,
    requests: view.performance.getEntriesByType("resource").map((entry) => entry.name),
    paper: view.getComputedStyle(page.body).backgroundColor, styled: page.styleSheets.length,
  }})
}}
</script>"""
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-default-apps", "--hide-scrollbars", "--enable-logging=stderr",
    # the browser's own wish to call home is nobody's business here
    "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip

pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"no browser on PATH: {', '.join(NAMES)}")


def run_browser(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Let the browser do one thing with a page; its console goes to stderr."""
    assert BROWSER is not None
    home = page.parent / "browser"
    command = [BROWSER, *QUIET, f"--user-data-dir={home}", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)


def browse(page: Path, *options: str) -> str:
    """What the browser printed; it had nothing to complain about."""
    done = run_browser(page, *options)
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout


def measure(folder: Path, width: int, *options: str) -> dict[str, Any]:
    frame = folder / "frame.html"
    frame.write_text(FRAME.format(width=width))
    dom = browse(frame, "--allow-file-access-from-files", "--dump-dom", *options)
    found = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert found is not None and found[1] != "waiting", dom
    measured: dict[str, Any] = json.loads(unescape(found[1]))
    return measured


class Links(HTMLParser):
    """Every address and every element of a page as the browser understood it."""

    def __init__(self, dom: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.elements: set[str] = set()
        self.feed(dom)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        names = ("href", "src", "srcset", "data", "poster", "action", "background", "xlink:href")
        self.addresses += [value or "" for name, value in attrs if name in names]


@pytest.fixture(params=RUNS)
def report(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write_report(RUNS[request.param](), tmp_path)
    return tmp_path


def test_a_browser_opens_it_from_a_file_without_a_word_and_without_a_request(report: Path) -> None:
    found = Links(browse(report / "report.html", "--dump-dom"))
    assert all(address.startswith("#") for address in found.addresses)
    assert not found.elements & {"script", "img", "iframe", "object", "embed", "link", "base", "form", "video", "audio"}
    assert found.elements >= {"h1", "main", "table", "svg"}
    assert measure(report, 800)["requests"] == []


def test_its_policy_refuses_whatever_it_does_not_hold_itself(tmp_path: Path) -> None:
    write_report(equal_run(), tmp_path)
    page = tmp_path / "report.html"
    smuggled = """<img src="https://example.org/x.png"><script>document.title = "ran"</script><p style="color:red">"""
    page.write_text(page.read_text().replace("</main>", f"{smuggled}</main>"))
    done = run_browser(page, "--dump-dom")
    assert "<title>ran" not in done.stdout
    assert len(re.findall("CONSOLE.*Content Security Policy", done.stderr)) == 3, done.stderr


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_never_wider_than_its_window(report: Path, width: int) -> None:
    measured = measure(report, width)
    assert measured["width"] == width
    assert measured["needed"] <= width, measured["wide"]
    assert measured["wide"] == []
    assert measured["styled"] == 1
    # the wide tables are there, in boxes of their own
    assert measured["scrolling"] or width > 360


def test_check_boxes_choose_the_kinds_without_a_script(tmp_path: Path) -> None:
    write_report(different_run(), tmp_path)
    kinds = measure(tmp_path, 1280)["kinds"]
    assert [kind for kind, *_ in kinds] == ["missing", "extra", "changed", "copies"]
    for kind, groups, before, hidden in kinds:
        assert groups and before and hidden, kind


def test_it_follows_the_reader_into_the_dark(tmp_path: Path) -> None:
    write_report(different_run(), tmp_path)
    light, dark = (
        measure(tmp_path, 800, f"--blink-settings=preferredColorScheme={scheme}")["paper"] for scheme in (1, 0)
    )
    assert (light, dark) == ("rgb(252, 252, 251)", "rgb(19, 21, 24)")


def test_it_prints(report: Path) -> None:
    pdf = report / "report.pdf"
    browse(report / "report.html", "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf.read_bytes()))
    assert 2 <= pages <= 24
