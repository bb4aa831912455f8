"""Writes the files of a report, each there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from cdc_consumer.parity.report.html import page
from cdc_consumer.parity.report.run_json import run_json, schema_json
from cdc_consumer.parity.report.tally import Tally, tally_of
from cdc_consumer.parity.run_model import Run


def write_report(run: Run, folder: Path) -> Tally:
    """Write run.json, schema.json and report.html into the folder of the run, which has its differences.jsonl.

    A report that is there already is replaced. Returns what `closing` needs too. Raises OSError.
    """
    tally = tally_of(run, folder)
    replace_file(folder / "run.json", run_json(run, tally))
    replace_file(folder / "schema.json", schema_json(run))
    replace_file(folder / "report.html", page(run, tally))
    return tally


def replace_file(path: Path, text: str) -> None:
    """Write beside it first: whoever reads at this moment sees the old file or the new one. Raises OSError."""
    new = path.with_name(f".{path.name}.new")
    with new.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
