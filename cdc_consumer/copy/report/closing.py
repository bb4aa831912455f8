"""Ends a run of cdc-copy: audits what was copied when that is wanted, and writes copy.html."""

from __future__ import annotations

import logging
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

from cdc_consumer.copy.copy_tables import CopyTables
from cdc_consumer.copy.profile import CopyProfile
from cdc_consumer.copy.report.notes import CopyNotes, NoteKind
from cdc_consumer.copy.report.page import CopyCourse, write_page
from cdc_consumer.copy.report.progress import CopyProgress
from cdc_consumer.copy.report.proof import prove
from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.copy.state import CopyMoment, CopyState
from cdc_consumer.parity.cli import Audit
from cdc_consumer.parity.folders import choose_folder, private
from cdc_consumer.parity.options import Options
from cdc_consumer.parity.report import words
from cdc_consumer.parity.run_model import Run
from cdc_consumer.parity.servers.pair import FollowerConnection
from shared.errors import AuditError, CdcError, FollowerError
from shared.profile_table import expand
from shared.recovery import Stopping

logger = logging.getLogger(__name__)


def conclude(
    profile: CopyProfile, name: str, moment: CopyMoment, progress: CopyProgress, audit: Audit | None,
    tables: tuple[str, ...], stopping: Stopping,
) -> None:  # fmt: skip
    """Prove the copy by `audit`, unless that is None, and write its page.

    `name` is the one of the profile's file; `tables` are patterns of those that were copied, all when there is none.
    Raises FollowerError when the copy is not proven, CdcErrors of the audit.
    """
    mark = moment.mark
    logger.info(
        "the follower is the leader at %s:%d (topic offset %d); cdc-consumer goes on from there",
        mark.file, mark.leader_offset, mark.offset,
    )  # fmt: skip
    run, folder, failure = None, None, None
    if audit is not None:
        try:
            _note(profile, "phase", "audit")
            run, folder = prove(audit, profile, Options(tables, unmet=True), name, stopping)
            if not run.interrupted:
                _note(profile, "audit", run.verdict)
        except CdcError as error:
            failure = error
    page = _write(profile, moment, progress, run, folder)
    if failure is not None:
        raise failure
    if run is not None and run.interrupted:
        logger.info("the audit was interrupted; the same command audits the copy anew")
    elif run is not None:
        _tell(run, page)


def _tell(run: Run, page: Path | None) -> None:
    """Say what the audit has found. Raises FollowerError unless it proves the copy."""
    where = "" if page is None else f" ({page.with_name('report.html')})"
    if run.verdict == "equal":
        logger.info("the audit proves it: %s%s", words.headline(run), where)
        return
    raise FollowerError(f"the copy is made, and its audit does not prove it: {words.headline(run).rstrip('.')}{where}")


def _note(profile: CopyProfile, kind: NoteKind, what: str) -> None:
    with closing(_writer(profile)) as writer:
        CopyNotes(writer.connection, _tables(profile)).note(kind, what)


def _write(
    profile: CopyProfile, moment: CopyMoment, progress: CopyProgress, run: Run | None, folder: Path | None
) -> Path | None:
    """Write the page beside the audit's, or in a folder of its own; None when it cannot be written."""
    course = _course(profile, moment, progress, run)
    try:
        with private():
            if folder is None:
                reports = expand(profile.report.path, "report.path")
                folder, _ = choose_folder(reports, None, datetime.now(timezone.utc))
            page = write_page(course, folder)
    except (AuditError, OSError) as error:
        logger.warning("the page of the copy could not be written: %s", error)
        return None
    logger.info("what was copied: %s", page)
    return page


def _course(profile: CopyProfile, moment: CopyMoment, progress: CopyProgress, run: Run | None) -> CopyCourse:
    follower = FollowerConnection(profile.follower, profile.follower.system_database, profile.topic.identity)
    with closing(_writer(profile)) as writer, closing(follower):
        return CopyCourse(
            str(profile.leader), str(profile.follower), profile.topic.name, moment,
            CopyState(writer.connection, _tables(profile)).copied(),
            progress.rates(),
            CopyNotes(writer.connection, _tables(profile)).read(), follower.omissions(),
            None if run is None else run.verdict, "" if run is None else words.headline(run),
        )  # fmt: skip


def _writer(profile: CopyProfile) -> Writer:
    return Writer(profile.follower, {}, local_files=False)


def _tables(profile: CopyProfile) -> CopyTables:
    return CopyTables(profile.follower.system_database, profile.topic.name)
