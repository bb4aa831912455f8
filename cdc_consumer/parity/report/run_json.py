"""Writes run.json and schema.json: a whole run for machines.

The shape is stable: a change that takes something away or gives it another meaning raises `VERSION`; keys may be added.

    {"version": 2,
     "run": {"id", "started", "ended", "seconds", "profile", "plan", "master", "spark", "java", "options": {NAME: TEXT},
             "repair": TEXT, "interrupted", "verdict", "exit_status"},
     "leader": SERVER, "follower": SERVER,              SERVER: {"address", "version", "uuid", "started", "ended"}
     "totals": {"tables": {VERDICT: n}, "rows": {"leader", "follower"}, "different": {KIND: n}, "undecided": n,
                "schema": {GRADE: n}, "lag": {"least", "most"}},    seconds, null when not known
     "tables": [{"database", "table", "verdict", "reason", "rows": {"leader", "follower"}, "leaves", "dirty_leaves",
                 "suspects", "different": {KIND: n}, "undecided", "digest", "split",
                 "excluded": [{"column", "reason"}], "seconds", "rows_per_second", "strip": [n, ..]}],
     "causes": [{"cause", "rows", "different": {KIND: n}, "stages": {STAGE: n},
                 "tables": [{"database", "table", "rows"}]}],
     "undecided": [{"database", "table", "key": {COLUMN: LITERAL}, "reason"}],
     "left_out": [{"first", "last", "position", "gtid", "side", "reason", "instead", "account", "decided"}],
     "rounds": [{"number", "at", "suspects", "equal", "proven", "open", "waited"}],
     "samples": [{"at", "rows", "suspects", "lag", "threads"}],
     "leaves": [{"milliseconds", "leaves"}]}            duration up to

`digest`, 64 hexadecimal digits, certifies what a table held: two runs with the same `plan` that found the same rows
give the same digest. It is "" for a table that was not read whole. Totals of VERDICT, KIND and GRADE name every one of
them, also with 0. `left_out` has the transactions that operators ever decided to leave out. Times are seconds, `at`
since the run began. Differing rows are in differences.jsonl. schema.json is

    {"version": 2, "run": ID,
     "differences": [{"grade", "object", "database", "parent", "name", "text", "leader", "follower", "fix"}]}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TypeAlias, get_args

from cdc_consumer.parity.model import Kind, TableName, TableResult, Verdict
from cdc_consumer.parity.report import words
from cdc_consumer.parity.report.tally import Cause, Tally
from cdc_consumer.parity.run_model import Run

VERSION = 2

Object: TypeAlias = dict[str, Any]


def run_json(run: Run, tally: Tally) -> str:
    """The text of run.json; `tally` is of all differences of `run`."""
    return _text(
        {
            "version": VERSION,
            "run": {
                "id": run.id, "started": run.started, "ended": run.ended, "seconds": run.seconds,
                "profile": run.profile, "plan": run.plan, "master": run.master, "spark": run.spark, "java": run.java,
                "options": run.options, "repair": run.repair, "interrupted": run.interrupted, "verdict": run.verdict,
                "exit_status": run.exit_status,
            },
            "leader": asdict(run.leader),
            "follower": asdict(run.follower),
            "totals": _totals(run),
            "tables": [_table(table) for table in run.tables],
            "causes": [_cause(cause) for cause in tally.causes],
            "undecided": [
                {**_name(item.table), "key": dict(item.key), "reason": item.reason} for item in run.undecided
            ],
            "left_out": [asdict(item) for item in run.omissions],
            "rounds": [asdict(item) for item in run.rounds],
            "samples": [asdict(item) for item in run.samples],
            "leaves": [{"milliseconds": at, "leaves": n} for at, n in sorted(run.leaf_milliseconds.items())],
        }
    )  # fmt: skip


def schema_json(run: Run) -> str:
    """Return the text of schema.json."""
    return _text({"version": VERSION, "run": run.id, "differences": [asdict(item) for item in run.schema]})


def _text(value: Object) -> str:
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def _totals(run: Run) -> Object:
    lags = [sample.lag for sample in run.samples if sample.lag is not None]
    proven: Counter[Kind] = Counter()
    for table in run.tables:
        proven.update(words.proven(table))
    return {
        "tables": _counts(words.verdicts(run), get_args(Verdict)),
        "rows": {
            "leader": sum(table.leader_rows for table in run.tables),
            "follower": sum(table.follower_rows for table in run.tables),
        },
        "different": _counts(proven, get_args(Kind)),
        "undecided": len(run.undecided),
        "schema": _counts(Counter(item.grade for item in run.schema), words.GRADES),
        "lag": {"least": min(lags, default=None), "most": max(lags, default=None)},
    }


def _counts(counts: Counter[Any], names: Iterable[str]) -> Object:
    return {name: counts[name] for name in names}


def _name(table: TableName) -> Object:
    return {"database": table.database, "table": table.table}


def _table(table: TableResult) -> Object:
    return {
        **_name(table.table),
        "verdict": table.verdict, "reason": table.reason,
        "rows": {"leader": table.leader_rows, "follower": table.follower_rows},
        "leaves": table.leaves, "dirty_leaves": table.dirty_leaves, "suspects": table.suspects,
        "different": _counts(words.proven(table), get_args(Kind)), "undecided": table.undecided,
        "digest": table.digest, "split": table.split,
        "excluded": [{"column": column, "reason": reason} for column, reason in table.excluded],
        "seconds": table.seconds,
        "rows_per_second": round(table.leader_rows / table.seconds) if table.seconds >= 0.001 else None,
        "strip": list(table.strip),
    }  # fmt: skip


def _cause(cause: Cause) -> Object:
    return {
        "cause": cause.name, "rows": cause.rows, "different": _counts(cause.kinds, get_args(Kind)),
        "stages": dict(cause.stages),
        "tables": [{**_name(table), "rows": rows} for table, rows in cause.tables.most_common()],
    }  # fmt: skip
