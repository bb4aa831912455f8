"""Chooses the folder of a run, a new one in the reports or that of a run to go on with, and keeps it from others."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from cdc_consumer.parity.state import NAME
from shared.errors import AuditError

#: what others may not do with what is written: anything
NOT_OTHERS, FOLDER_MODE = 0o077, 0o700


@contextmanager
def private() -> Iterator[None]:
    """Keep what this process, and those it starts, write meanwhile for its user alone: values of rows are in it."""
    before = os.umask(NOT_OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def choose_folder(reports: Path, resume: str | None, started: datetime) -> tuple[Path, bool]:
    """Choose the folder, and tell whether it holds a run to resume: one of this name, or in this folder.

    Raises AuditError.
    """
    folder = reports / f"{started:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"
    if resume is not None:
        given = Path(resume).expanduser()
        folder = given if given.is_dir() else reports / resume
        if not folder.is_dir():
            raise AuditError(f"no run to resume at {given} or {folder}")
    try:
        folder.mkdir(parents=True, exist_ok=resume is not None)
        folder.chmod(FOLDER_MODE)
    except OSError as error:
        raise AuditError(f"cannot write a report to {folder}: {error.strerror}") from None
    return folder, resume is not None


def discard_unused(folder: Path) -> None:
    """Remove the folder of a run that was refused before it began."""
    if not (folder / NAME).exists():
        shutil.rmtree(folder, ignore_errors=True)
