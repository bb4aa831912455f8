"""The path of an embedded topic, and processes that use it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest
from kit.programs import ENVIRONMENT, ROOT

#: of processes that write as the tests do
WITH_KIT = {**ENVIRONMENT, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "t.topic"


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Run Python text in a process of its own, with the names of the embedded topic at hand."""
    text = "import sys\nfrom pathlib import Path\nfrom shared.errors import *\nfrom shared.topic.embedded import *\n"
    text += "from kit.topic import sealed\n"
    return subprocess.Popen(
        [sys.executable, "-c", text + textwrap.dedent(program), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=WITH_KIT,
    )


def run(program: str, *arguments: object) -> str:
    with start(program, *arguments) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output


def alter(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(sql)
