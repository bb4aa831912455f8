"""Chooses the folder of a run: a new one in the reports, or that of a run to go on with."""

from __future__ import annotations

import secrets
import shutil
from datetime import datetime
from pathlib import Path

from cdc_consumer.parity.state import NAME
from shared.errors import AuditError


def choose_folder(reports: Path, resume: str | None, started: datetime) -> tuple[Path, bool]:
    """Choose the folder, and tell whether it holds a run to resume: one of this name, or in this folder.

    Raises AuditError.
    """
    if resume is not None:
        given = Path(resume).expanduser()
        folder = given if given.is_dir() else reports / resume
        if not folder.is_dir():
            raise AuditError(f"no run to resume at {given} or {folder}")
        return folder, True
    folder = reports / f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise AuditError(f"cannot write a report to {folder}: {error.strerror}") from None
    return folder, False


def discard_unused(folder: Path) -> None:
    """Remove the folder of a run that was refused before it began."""
    if not (folder / NAME).exists():
        shutil.rmtree(folder, ignore_errors=True)
