"""The least that the profile of each program needs, for tests to change, and the keys that it may have."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import Any

PRODUCER = """\
mysql_resource_name = "mysql-srv1"
[database]
user = "fluvio"
password = "secret"
[filters]
include_dbs = ["flvDb"]
[topic]
name = "events"
"""
UUID = "6b377eb2-e57a-11f1-9bfd-02fc00000001"
CONSUMER = PRODUCER.partition("\n")[2]
PARITY = """\
[leader]
user = "fluvio"
[follower]
user = "fluvio"
[filters]
include_dbs = ["flvDb"]
"""


def written(folder: Path, text: str) -> Path:
    """Write a profile into the folder; returns its path."""
    path = folder / "given.toml"
    path.write_text(text)
    return path


def fields_of(kind: type[Any]) -> list[tuple[dataclasses.Field[Any], str]]:
    """All keys of a profile, those of its tables included, with the class that has them."""
    found = []
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        inner = next(
            (option for option in (hints[field.name], *typing.get_args(hints[field.name])) if _is_table(option)), None
        )
        found += fields_of(inner) if inner else [(field, kind.__name__)]
    return found


def _is_table(hint: Any) -> bool:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)
