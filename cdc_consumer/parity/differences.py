"""Writes and reads differences.jsonl: one `Difference.record()` a line, written while the audit runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from cdc_consumer.parity.model import Difference, Evidence, KeyEvent, TableName

#: its name in the folder of a run
FILE = "differences.jsonl"


def write_difference(file: TextIO, difference: Difference) -> None:
    """Append one line; the text is ASCII, whatever names hold."""
    file.write(json.dumps(difference.record(), separators=(",", ":")) + "\n")


def read_differences(path: Path) -> Iterator[Difference]:
    """Yield the differences of a file, in its order.

    A last line without its end was never written wholly and is left out. Raises ValueError, KeyError or TypeError for
    a line that is no difference.
    """
    with path.open(encoding="ascii", newline="\n") as file:
        for line in file:
            if line.endswith("\n"):
                yield difference_of(json.loads(line))


def difference_of(record: Mapping[str, Any]) -> Difference:
    """Make a difference of a line's record."""
    evidence = dict(record["evidence"])
    evidence["events"] = tuple(KeyEvent(**event) for event in evidence["events"])
    fields = {name: value for name, value in record.items() if name not in ("database", "columns")}
    fields["table"] = TableName(record["database"], record["table"])
    fields["evidence"] = Evidence(**evidence)
    fields["copies"] = record["copies"] and tuple(record["copies"])
    return Difference(**fields)


def without_values(difference: Difference) -> Difference:
    """Return the same without the values of its rows; the key and the hashes stay, and which columns differ.

    A value becomes "=" where both sides agree, else "L" on the leader and "F" on the follower.
    """
    differs = set(difference.columns)
    return replace(
        difference,
        leader=_withheld(difference.leader, differs, "L"),
        follower=_withheld(difference.follower, differs, "F"),
    )


def _withheld(row: Mapping[str, str] | None, differs: set[str], side: str) -> dict[str, str] | None:
    return None if row is None else {name: side if name in differs else "=" for name in row}
