"""The last lines on the terminal, and the files of a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from kit.report import WRONGLY, differences, different_run, equal_run, undecided_run
from kit.report_strategies import any_run

from cdc_consumer.parity.differences import FILE, write_difference
from cdc_consumer.parity.report.closing import LINES, closing
from cdc_consumer.parity.report.write import write_report
from cdc_consumer.parity.run_model import Round, Run


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=60)
@given(any_run())
def test_whatever_was_found_it_is_few_lines_that_cannot_harm_a_terminal(run: Run) -> None:
    lines = closing(run, Path("/no/such/folder"))
    assert 2 <= len(lines) <= LINES == 15
    assert all(line.isprintable() and len(line) < 2_000 for line in lines)


def test_a_difference_is_told_with_its_causes_and_what_to_do(tmp_path: Path) -> None:
    for name in (FILE, "repair.sql"):
        (tmp_path / name).touch()
    assert closing(different_run(), tmp_path) == [
        "The follower differs from its leader: 274 rows of 3 tables and 3 schema differences.",
        "  232 rows have one cause: a block of rows is missing, id 1201 to 1432. They were published but not applied.",
        f"  31 rows have one cause: placed is 1 hour later. They were {WRONGLY}.",
        "  and 5 more in the report",
        "  ≠ shop.orders  different: 232 missing, 1 extra, 35 changed",
        "  ≠ shop.customers  different: 4 changed",
        "  ≠ shop.visits  different: 2 copies",
        "  / shop.archive  skipped: engine MyISAM takes no part in transactions",
        "  ? shop.counters  undecided: 1 row is written faster than the follower can be read",
        f"  report      {tmp_path}/report.html",
        f"  rows        {tmp_path}/differences.jsonl",
        f"  repair      {tmp_path}/repair.sql",
        "Next: find what failed, read repair.sql, then run it on the follower, or the audit with --repair.",
    ]


def test_the_schema_is_repaired_before_the_rows(tmp_path: Path) -> None:
    for name in ("repair.sql", "schema-repair.sql"):
        (tmp_path / name).touch()
    lines = closing(different_run(), tmp_path)
    assert f"  schema      {tmp_path}/schema-repair.sql" in lines and len(lines) <= LINES
    assert "read schema-repair.sql and repair.sql, then run them on the follower" in lines[-1]
    (tmp_path / "repair.sql").unlink()
    assert (
        lines[-1] != closing(different_run(), tmp_path)[-1] and "--repair" not in closing(different_run(), tmp_path)[-1]
    )
    (tmp_path / "schema-repair.sql").unlink()
    assert closing(different_run(), tmp_path)[-1] == "Next: open the report and find what failed."


def test_what_was_repaired_was_not_late(tmp_path: Path) -> None:
    run = equal_run(rounds=[Round(1, 3.1, 42, 37, 5, 0, 2.0), Round(2, 6.2, 5, 5, 0, 0, 2.1)])
    assert "  37 rows differed at first and were merely late." in closing(run, tmp_path)


def test_equal_is_said_in_one_line(tmp_path: Path) -> None:
    assert closing(equal_run(), tmp_path) == [
        "The follower equals its leader: 10 tables, 593,925 rows.",
        "  438 rows differed at first and were merely late.",
        f"  report      {tmp_path}/report.html",
    ]


def test_an_open_end_is_no_difference(tmp_path: Path) -> None:
    lines = closing(undecided_run(), tmp_path)
    assert lines[:3] == [
        "Nothing is proven different, but the follower is not proven equal.",
        "  1 case is undecided: written faster than the follower can be read: 9 rounds and still hot.",
        "  1 table is skipped: engine MyISAM takes no part in transactions.",
    ]
    assert not any("differs" in line for line in lines)
    interrupted = closing(undecided_run(interrupted=True), tmp_path)
    assert interrupted[0].startswith("Interrupted: ")
    assert (
        interrupted[-1]
        == "Next: the same command with --resume 20261121T101500Z-4f2a continues where this run stopped."
    )


def test_causes_are_of_all_rows_also_of_those_a_run_does_not_hold(tmp_path: Path) -> None:
    found = list(differences())
    with (tmp_path / FILE).open("w") as file:
        for difference in found:
            write_difference(file, difference)
    run = different_run(differences=found[:10], total_differences=len(found))
    assert closing(run, tmp_path)[1:4] == closing(different_run(), tmp_path)[1:4]
    assert closing(run, tmp_path, write_report(run, tmp_path)) == closing(run, tmp_path)
    assert sum(cause["rows"] for cause in json.loads((tmp_path / "run.json").read_text())["causes"]) == len(found)


def test_a_report_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    write_report(equal_run(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "run.json", "schema.json"]
    before = (tmp_path / "run.json").read_text()
    (tmp_path / ".run.json.new").mkdir()
    with pytest.raises(IsADirectoryError):
        write_report(different_run(), tmp_path)
    assert (tmp_path / "run.json").read_text() == before
