"""run.json and schema.json keep the shape they promise."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from kit.report import different_run, equal_run, undecided_run
from kit.report_strategies import any_run

from cdc_consumer.parity.model import Kind, Stage, Verdict
from cdc_consumer.parity.report.run_json import run_json, schema_json
from cdc_consumer.parity.report.tally import tally
from cdc_consumer.parity.run_model import Run

NUMBER = (int, float)
NAME = {"database": str, "table": str}
SERVER = dict.fromkeys(("address", "version", "uuid", "started", "ended"), str)
KINDS = dict.fromkeys(get_args(Kind), int)
GRADES = dict.fromkeys(("breaking", "integrity", "behaviour", "performance", "cosmetic", "expected"), int)
SECONDS = (*NUMBER, type(None))
#: a type or several, one of several texts as a set, a list of one shape as [shape], an object by its keys, and as
#: {str: shape} one with any keys
SHAPE = {
    "version": {2},
    "run": {
        **dict.fromkeys(("id", "started", "ended", "profile", "plan", "master", "spark", "java"), str),
        "seconds": NUMBER, "options": {str: str}, "repair": str, "interrupted": bool, "verdict": {*get_args(Verdict)},
        "exit_status": {0, 1, 3, 130},
    },
    "leader": SERVER, "follower": SERVER,
    "totals": {
        "tables": dict.fromkeys(get_args(Verdict), int), "rows": {"leader": int, "follower": int}, "different": KINDS,
        "undecided": int, "schema": GRADES, "lag": {"least": SECONDS, "most": SECONDS},
    },
    "tables": [{
        **NAME, "verdict": {*get_args(Verdict)}, "reason": str, "rows": {"leader": int, "follower": int}, "leaves": int,
        "dirty_leaves": int, "suspects": int, "different": KINDS, "undecided": int, "digest": str, "split": str,
        "excluded": [{"column": str, "reason": str}], "seconds": NUMBER, "rows_per_second": (int, type(None)), "strip": [int],
    }],
    "causes": [{"cause": str, "rows": int, "different": KINDS, "stages": {str: int}, "tables": [{**NAME, "rows": int}]}],
    "undecided": [{**NAME, "key": {str: str}, "reason": str}],
    "left_out": [{
        "first": int, "last": int, **dict.fromkeys(("position", "side", "reason", "account", "decided"), str),
        **dict.fromkeys(("gtid", "instead"), (str, type(None))),
    }],
    "rounds": [{"number": int, "at": NUMBER, "suspects": int, "equal": int, "proven": int, "open": int, "waited": NUMBER}],
    "samples": [{"at": NUMBER, "rows": int, "suspects": int, "lag": SECONDS, "threads": (int, type(None))}],
    "leaves": [{"milliseconds": int, "leaves": int}],
}  # fmt: skip
TEXT = (str, type(None))
SCHEMA = {
    "version": {2}, "run": str,
    "differences": [{
        "grade": {*GRADES}, **dict.fromkeys(("object", "database", "parent", "name", "text", "fix"), str), "leader": TEXT, "follower": TEXT,
    }],
}  # fmt: skip


def misshapen(value: Any, shape: Any, at: str = "$") -> list[str]:
    """Where a value is not of a shape."""
    if isinstance(shape, set):
        return [] if value in shape else [f"{at} is {value!r}"]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{at} is no list"]
        return [fault for n, item in enumerate(value) for fault in misshapen(item, shape[0], f"{at}[{n}]")]
    if not isinstance(shape, dict):
        return (
            []
            if isinstance(value, shape) and (shape is bool or not isinstance(value, bool))
            else [f"{at} is {value!r}"]
        )
    if not isinstance(value, dict):
        return [f"{at} is no object"]
    if list(shape) == [str]:
        shape = dict.fromkeys(value, shape[str])
    if list(value) != list(shape) and set(value) != set(shape):
        return [f"{at} has {sorted(value)}, not {sorted(shape)}"]
    return [fault for key, item in value.items() for fault in misshapen(item, shape[key], f"{at}.{key}")]


def test_the_shape_can_be_violated() -> None:
    whole = json.loads(run_json(different_run(), tally([])))
    assert misshapen(whole, SHAPE) == []
    for path, value in (
        (("version",), 1),
        (("run", "verdict"), "unknown"),
        (("tables", 0, "leaves"), "1"),
        (("totals", "more"), 1),
    ):
        broken = json.loads(json.dumps(whole))
        inner = broken
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = value
        assert len(misshapen(broken, SHAPE)) == 1


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=60)
@given(any_run())
def test_every_run_has_the_shape(run: Run) -> None:
    written = run_json(run, tally(run.differences))
    assert written.isascii()
    assert misshapen(json.loads(written), SHAPE) == []
    assert misshapen(json.loads(schema_json(run)), SCHEMA) == []


@pytest.mark.parametrize(
    "run", [different_run(), equal_run(), undecided_run()], ids=["different", "equal", "undecided"]
)
def test_the_sums_agree(run: Run) -> None:
    found = tally(run.differences)
    whole = json.loads(run_json(run, found))
    assert whole["run"]["exit_status"] == {"equal": 0, "different": 1, "undecided": 3}[whole["run"]["verdict"]]
    assert (
        sum(whole["totals"]["different"].values())
        == run.total_differences
        == sum(cause["rows"] for cause in whole["causes"])
    )
    assert sum(whole["totals"]["tables"].values()) == len(whole["tables"])
    assert whole["totals"]["different"] == {
        kind: sum(t["different"][kind] for t in whole["tables"]) for kind in get_args(Kind)
    }
    for cause in whole["causes"]:
        assert cause["rows"] == sum(cause["different"].values()) == sum(cause["stages"].values())
        assert cause["rows"] == sum(table["rows"] for table in cause["tables"])
        assert {*cause["stages"]} <= {*get_args(Stage)}
