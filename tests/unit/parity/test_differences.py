"""differences.jsonl gives back what was written."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from kit.report import differences
from kit.report_strategies import any_difference

from cdc_consumer.parity.differences import read_differences, without_values, write_difference
from cdc_consumer.parity.model import Difference


def lines(found: list[Difference]) -> str:
    file = io.StringIO()
    for difference in found:
        write_difference(file, difference)
    return file.getvalue()


@given(st.lists(any_difference(), max_size=5))
def test_what_was_written_is_read(found: list[Difference]) -> None:
    written = lines(found)
    assert written.isascii()
    assert [json.loads(line) for line in written.splitlines()] == [json.loads(json.dumps(d.record())) for d in found]
    assert reread(written) == found


def reread(written: str) -> list[Difference]:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="ascii") as file:
        file.write(written)
        file.flush()
        return list(read_differences(Path(file.name)))


def test_a_last_line_that_was_never_finished_is_left_out(tmp_path: Path) -> None:
    found = list(differences())[:3]
    path = tmp_path / "differences.jsonl"
    path.write_text(lines(found)[:-5])
    assert list(read_differences(path)) == found[:2]


@given(any_difference())
def test_without_values_nothing_of_the_rows_is_left_but_which_columns_differ(difference: Difference) -> None:
    bare = without_values(difference)
    assert bare.columns == difference.columns
    assert (bare.key, bare.leader_hash, bare.kind) == (difference.key, difference.leader_hash, difference.kind)
    for row, whole in ((bare.leader, difference.leader), (bare.follower, difference.follower)):
        assert (row is None) == (whole is None)
        assert set((row or {}).values()) <= {"=", "L", "F"}
        assert list(row or {}) == list(whole or {})
    assert without_values(bare) == bare
    assert reread(lines([bare])) == [bare]
