"""An audit that was interrupted is gone on with, and only for what it compared."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from fix_damaged_pair import FEW, ROWS, assert_found, replicated
from fix_parity import parity_of
from fix_replication import Replication
from kit.helpers import wait_until


def parts(folder: Path) -> dict[int, float]:
    """The ranges a run has read, and the seconds each took; none before it has begun to tell."""
    with closing(sqlite3.connect(folder / "audit.sqlite")) as state:
        if not state.execute("SELECT 1 FROM sqlite_master WHERE name = 'part'").fetchall():
            return {}
        return dict(state.execute("SELECT id, seconds FROM part WHERE done AND seconds IS NOT NULL"))


def test_an_interrupted_audit_goes_on(replication: Replication) -> None:
    replicated(replication, large=ROWS)
    parity = parity_of(replication, [replication.database], limits={"rows_per_second": 3_000})
    program = parity.start("--cores", "2")
    (folder,) = wait_until(parity.folders, "the audit begins", alive=[program])
    wait_until(lambda: (folder / "audit.sqlite").exists() and parts(folder), "a wave ends", alive=[program])
    os.killpg(program.pid, signal.SIGINT)
    assert program.wait() == 130, program.stderr
    assert "Traceback" not in program.stderr
    read = parts(folder)

    parity.change(limits={"rows_per_second": None})
    resumed = parity.program("--cores", "2", "--resume", folder.name)
    assert_found(replace(resumed, folder=folder), "large", "small", "loose")
    assert read.items() <= parts(folder).items()
    assert parity.found(program).run["totals"]["rows"]["leader"] == ROWS + 2 * FEW


def test_a_run_is_resumed_only_for_what_it_compared(replication: Replication) -> None:
    replicated(replication)
    parity = parity_of(replication, [replication.database])
    first = parity.audit("--tables", "*.small")
    assert_found(first, "small")
    assert first.folder is not None
    assert parity.audit("--tables", "*.small", "--resume", first.folder.name).status == 1
    refused = [parity.audit("--resume", first.folder.name)]
    replication.play("ALTER TABLE small ADD COLUMN more INT")
    replication.catch_up()
    refused.append(parity.audit("--tables", "*.small", "--resume", first.folder.name))
    refused.append(parity.audit("--resume", "20200101T000000Z-0000"))
    for audited, words in zip(refused, ("compared something else", "compared something else", "no run"), strict=True):
        assert (audited.status, audited.err.count("\n")) == (4, 1), audited.err
        assert words in audited.err
