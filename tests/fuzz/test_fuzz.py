"""A short run of each target; `make fuzz` makes long ones."""

from __future__ import annotations

import pytest

from fuzz.run import fuzz
from fuzz.targets import TARGETS, load_target

#: inputs of each target, about two seconds of them
RUNS = {"events": 500, "packets": 6000, "rows": 2000, "json": 6000, "payloads": 500, "records": 4000, "profiles": 500,
        "merged": 1000, "statements": 500}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_unaltered_is_read(name: str) -> None:
    target = load_target(name)
    for seed in target.seeds():
        target.check(seed)


@pytest.mark.parametrize("name", RUNS)
def test_what_is_altered_is_read_or_refused_by_name(name: str) -> None:
    totals = fuzz(name, RUNS[name], number=1)
    assert totals.inputs == RUNS[name]
    assert not totals.failures, totals.failures
    assert totals.exact
    assert totals.refused


def test_failures_are_told() -> None:
    """Of a target that fails in every way."""
    totals = fuzz("broken_target:broken", 12, number=1)
    assert totals.inputs == 12
    kinds = {what.split(" ")[0] for what in totals.failures}
    assert kinds == {"TooSlowError", "MemoryError", "KeyError", "died"}
