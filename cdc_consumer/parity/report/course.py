"""Shows how the run went: throughput, lag, settling, the time that leaves took; and the facts of both servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median

from cdc_consumer.parity.model import Omission
from cdc_consumer.parity.report import words
from cdc_consumer.parity.report.markup import Html, tag
from cdc_consumer.parity.report.overview import scroll
from cdc_consumer.parity.report.svg import bar, timeline
from cdc_consumer.parity.report.values import visible
from cdc_consumer.parity.run_model import Run, Sample

#: points of a timeline; longer runs show the highest value of each of so many parts
_POINTS = 240

_Values = list[float | None]


def course(run: Run) -> Html:
    """Show the whole part."""
    return tag("section", tag("h2", "The run"), _timelines(run), _settling(run), _leaves(run), _facts(run), id="run")


def left_out(omissions: Sequence[Omission]) -> Html | None:
    """Show the transactions that operators have left out; None when there is none."""
    if not omissions:
        return None
    heads = ("Sequences", "Transaction", "Decided", "Why", "Ran in its place")
    body = []
    for item in omissions:
        decided = f"{item.decided} at the {item.side} by {item.account}"
        cells = (
            f"{item.first} to {item.last}",
            item.gtid or item.position,
            decided,
            item.reason,
            item.instead or "nothing",
        )
        body.append(tag("tr", *(tag("td", tag("code", visible(text))) for text in cells)))
    return tag(
        "section", tag("h2", "Left out by decision"),
        tag("p", "Transactions of the leader that an operator decided not to apply. What they wrote is compared like "
            "all else: where it is missing still, its rows are among the differences.", class_="note"),
        scroll("Transactions left out", tag("thead", tag("tr", *(tag("th", head, scope="col") for head in heads))),
               tag("tbody", *body)),
    )  # fmt: skip


def _timelines(run: Run) -> Html | None:
    samples = sorted(run.samples, key=lambda sample: sample.at)
    if len(samples) < 2:
        return None
    series: list[tuple[str, Callable[[float], str], _Values]] = [
        ("Rows compared per second", lambda value: f"{value:,.0f}", _rates(samples)),
        ("Follower's lag", words.duration, [sample.lag for sample in samples]),
        ("Rows under suspicion", lambda value: f"{value:,.0f}", [sample.suspects for sample in samples]),
        ("Leader's running threads", lambda value: f"{value:,.0f}", [sample.threads for sample in samples]),
    ]
    last = words.duration(samples[-1].at)
    return tag("div", *(_timeline(name, write, values, last) for name, write, values in series), class_="charts")


def _rates(samples: Sequence[Sample]) -> _Values:
    """Rows per second up to each sample; of the first since the run began."""
    rates: _Values = []
    rows, at = 0, 0.0
    for sample in samples:
        rates.append(max(0, sample.rows - rows) / (sample.at - at) if sample.at >= at + 0.001 else None)
        rows, at = sample.rows, sample.at
    return rates


def _timeline(title: str, write: Callable[[float], str], values: _Values, last: str) -> Html | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    top = max(known)
    summary = f"median {write(median(known))}, peak {write(top)}"
    return tag(
        "figure",
        tag("figcaption", tag("b", title), " ", tag("span", summary)),
        timeline(f"{title} over {last}: {summary}", _thinned(values), top),
        tag("div", tag("span", "0"), tag("span", last), class_="axis", aria_hidden="true"),
    )


def _thinned(values: _Values) -> _Values:
    if len(values) <= _POINTS:
        return values
    edges = [len(values) * part // _POINTS for part in range(_POINTS + 1)]
    parts = (values[first:end] for first, end in pairwise(edges))
    return [max((value for value in part if value is not None), default=None) for part in parts]


def _settling(run: Run) -> Html | None:
    """What became of the suspects, round by round."""
    if not run.rounds:
        return None
    most = max(1, *(item.suspects for item in run.rounds))
    body = []
    for item in run.rounds:
        parts = {"equal": item.equal, "different": item.proven, "undecided": item.open}
        label = ", ".join(f"{rows:,} {name}" for name, rows in parts.items())
        body.append(
            tag("tr", tag("th", item.number, scope="row"), tag("td", words.duration(item.at), class_="n"),
                tag("td", words.duration(item.waited), class_="n"), tag("td", f"{item.suspects:,}", class_="n"),
                tag("td", bar(label, [(rows / most, name) for name, rows in parts.items()]), class_="bars"),
                *(tag("td", f"{rows:,}", class_="n") for rows in parts.values()))
        )  # fmt: skip
    heads = [tag("th", text, scope="col", class_="n") for text in ("Began at", "Waited", "Suspects")]
    legend = {"equal": "Equal", "different": "Proven", "undecided": "Open"}
    legends = [
        tag("th", tag("span", class_=f"swatch {name}", aria_hidden="true"), text, scope="col", class_="n")
        for name, text in legend.items()
    ]
    head = tag("tr", tag("th", "Round", scope="col"), *heads, tag("td"), *legends)
    return tag(
        "div", tag("h3", "Settling"),
        tag("p", "A row that differs at first is only a suspect: on a live follower most are merely late. Each round "
            "waits until the follower has reached a fence, then reads them again on both sides.", class_="note"),
        scroll("Settling, round by round", tag("thead", head), tag("tbody", *body)),
    )  # fmt: skip


def _leaves(run: Run) -> Html | None:
    """How long the queries of a leaf took."""
    total = sum(run.leaf_milliseconds.values())
    if not total:
        return None
    bounds = sorted(run.leaf_milliseconds)
    most = max(run.leaf_milliseconds.values())
    body = [
        tag("tr", tag("th", f"to {bound:,} ms", scope="row", class_="n"),
            tag("td", bar(f"{leaves:,} leaves took up to {bound:,} ms", [(leaves / most, "plain")]), class_="bars"),
            tag("td", f"{leaves:,}", class_="n"))
        for bound, leaves in ((bound, run.leaf_milliseconds[bound]) for bound in bounds)
    ]  # fmt: skip
    half, most_of = (_quantile(run, bounds, share * total) for share in (0.5, 0.99))
    return tag(
        "div", tag("h3", "Time per leaf"),
        tag("p", f"A leaf is a range of rows that both sides hash at once. Half of the {total:,} leaves took at most "
            f"{half:,} ms, 99 of 100 at most {most_of:,} ms.", class_="note"),
        scroll("Leaves by duration", tag("tbody", *body), class_="narrow"),
    )  # fmt: skip


def _quantile(run: Run, bounds: list[int], leaves: float) -> int:
    seen = 0
    for bound in bounds:
        seen += run.leaf_milliseconds[bound]
        if seen >= leaves:
            break
    return bound


def _facts(run: Run) -> Html:
    servers = {"Leader": run.leader, "Follower": run.follower}
    rows = {
        "Address": [server.address for server in servers.values()],
        "MySQL": [server.version for server in servers.values()],
        "server_uuid": [server.uuid for server in servers.values()],
        "Position at the start": [server.started for server in servers.values()],
        "Position at the end": [server.ended for server in servers.values()],
    }
    facts = {
        "Run": run.id, "Profile": run.profile, "Plan": run.plan, "Started": run.started, "Ended": run.ended,
        "Took": words.duration(run.seconds), "Narrowed by": words.options(run) or "nothing",
        "Repair": run.repair or "none",
        "Spark": f"{run.spark}, {run.master}, Java {run.java}", "Exit status": str(run.exit_status),
    }  # fmt: skip
    heads = tag("tr", tag("td"), *(tag("th", name, scope="col") for name in servers))
    body = (tag("tr", tag("th", name, scope="row"), *(tag("td", tag("code", text)) for text in texts))
            for name, texts in rows.items())  # fmt: skip
    return tag(
        "div", tag("h3", "Facts"), scroll("Both servers", tag("thead", heads), tag("tbody", *body)),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", tag("code", text))) for name, text in facts.items()),
            class_="whole facts"),
    )  # fmt: skip
