"""The targets: what reads bytes from outside, each with the oracle that judges what came of an input."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from fuzz.blocks import load_seeds


class WrongResult(Exception):
    """The input was read, and what came of it is not what its bytes say."""


class Target(NamedTuple):
    """`check` returns when the result is exact and raises CdcError when the input is refused by name.

    Anything else is a failure: any other exception, WrongResult, too much time or memory.
    """

    check: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


#: name -> module and function; what they import is imported when they are called for, so that it can be instrumented
TARGETS = {
    "events": ("leader_targets", "events"),
    "packets": ("leader_targets", "packets"),
    "rows": ("leader_targets", "rows"),
    "json": ("leader_targets", "json_values"),
    "payloads": ("leader_targets", "payloads"),
    "records": ("topic_targets", "records"),
    "profiles": ("topic_targets", "profiles"),
    "merged": ("routed_targets", "merged"),
    "statements": ("statement_targets", "statements"),
}


def load_target(name: str) -> Target:
    """`name` is one of TARGETS, or "module:function"."""
    module, function = TARGETS.get(name) or name.split(":")
    found = importlib.import_module(f"fuzz.{module}")
    seeds = getattr(found, f"seeds_of_{function}", partial(load_seeds, name))
    return Target(getattr(found, function), seeds)
