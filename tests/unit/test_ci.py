"""CI runs what a person runs, on every server version the README speaks of."""

from __future__ import annotations

import os
from typing import Any

import yaml
from kit.programs import ROOT

JOB: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/test.yaml").read_text("utf-8"))["jobs"]["test"]


def test_every_version_is_run() -> None:
    versions = JOB["strategy"]["matrix"]["mysql"]
    assert versions == ["8.0", "8.4", "9.7"]
    assert f"written for {versions[0]} to {versions[-1]}" in (ROOT / "README.md").read_text("utf-8")
    assert JOB["env"] == {"CDC_MYSQL_IMAGE": "mysql:${{ matrix.mysql }}"}


def test_it_runs_the_one_command_there_is() -> None:
    commands = [step["run"] for step in JOB["steps"] if "run" in step]
    assert commands == [".ci/run"] and os.access(ROOT / ".ci/run", os.X_OK)
