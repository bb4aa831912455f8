"""Writes the last lines on the terminal: the verdict, why, where to read more, and what to do next."""

from __future__ import annotations

from pathlib import Path

from cdc_consumer.parity.differences import FILE
from cdc_consumer.parity.model import TableResult
from cdc_consumer.parity.repair.files import REPAIR as ROW_REPAIR
from cdc_consumer.parity.repair.files import SCHEMA as SCHEMA_REPAIR
from cdc_consumer.parity.report import words
from cdc_consumer.parity.report.tally import Tally, tally_of
from cdc_consumer.parity.report.values import visible
from cdc_consumer.parity.run_model import Run

#: most lines it ever takes
LINES = 15
#: of them for reasons and for tables
_REASONS = 3
_TABLES = 5
#: a longer line is cut: what it says is in the report
_WIDTH = 160


def closing(run: Run, folder: Path, tally: Tally | None = None) -> list[str]:
    """Return at most `LINES` lines without control characters, whatever names hold.

    `tally` is what `write_report` returned; without it the differences are counted again.
    """
    lines = [words.headline(run)]
    lines += _first(words.reasons(run, tally or tally_of(run, folder)), _REASONS, "more in the report")
    unequal = sorted(
        (table for table in run.tables if table.verdict != "equal"),
        key=lambda table: (-table.proven, table.verdict, table.table),
    )
    lines += _first([_table(table) for table in unequal], _TABLES, "more tables in the report")
    lines += _first([words.left_out(run)] if run.omissions else [], 1, "")
    lines += [f"  {what:<12}{folder / name}" for what, name in _files(run, folder)]
    lines += _next(run, folder)
    return [visible(line) for line in lines]


def _first(texts: list[str], most: int, more: str) -> list[str]:
    shown = texts if len(texts) <= most else texts[: most - 1]
    left = len(texts) - len(shown)
    if left:
        shown = [*shown, f"and {left:,} {more}"]
    return [f"  {text[:_WIDTH]}{'…' if len(text) > _WIDTH else ''}" for text in shown]


def _table(table: TableResult) -> str:
    said = words.kinds(words.proven(table)) or table.reason
    if not said and table.undecided:
        said = words.undecided(table.undecided)
    return f"{words.SIGNS[table.verdict]} {table.table}  {table.verdict}{': ' if said else ''}{said}"


def _files(run: Run, folder: Path) -> list[tuple[str, str]]:
    files = [("rows", FILE), ("repair", ROW_REPAIR)] if run.total_differences else []
    files.append(("schema", SCHEMA_REPAIR))
    return [("report", "report.html"), *((what, name) for what, name in files if (folder / name).exists())]


def _next(run: Run, folder: Path) -> list[str]:
    if run.interrupted:
        return [f"Next: the same command with --resume {run.id} continues where this run stopped."]
    if run.verdict == "different":
        repairs = [name for what, name in _files(run, folder) if what in ("repair", "schema")]
        if not repairs:
            return ["Next: open the report and find what failed."]
        repairs.sort(key=SCHEMA_REPAIR.__ne__)  # rows go into tables
        there = "on the follower, or the audit with --repair" if ROW_REPAIR in repairs else "on the follower"
        return [f"Next: find what failed, read {words.listed(repairs)}, then run {_them(repairs)} {there}."]
    if run.verdict == "undecided":
        return ["Next: the report gives each reason; run the audit again when it is gone, --tables narrows it."]
    return []


def _them(files: list[str]) -> str:
    return "it" if len(files) == 1 else "them"
