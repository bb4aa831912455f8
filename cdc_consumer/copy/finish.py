"""Ends a copy: what is made behind the rows, the GTIDs the follower shall know as executed, and the position.

Each step can be repeated: one that ran, and whose mark was lost, finds its object there.
"""

from __future__ import annotations

import logging

from cdc_consumer.copy import definitions
from cdc_consumer.copy.moment import Ended
from cdc_consumer.copy.report.progress import CopyProgress, CopySteps
from cdc_consumer.copy.rows.load import session
from cdc_consumer.copy.state import CopyMoment, CopyState
from cdc_consumer.follower.server import Server
from cdc_consumer.sql import literals
from shared.errors import FollowerError
from shared.mysql import ER, Connection, MySQLError, error_number, error_text, rows
from shared.recovery import Stopping

logger = logging.getLogger(__name__)

#: MySQL's numbers for: a key, a table or view, a routine, a database, an event, a foreign key, a library of this name
#: exists, a check does not
ALREADY = frozenset(
    {ER.DUP_KEYNAME, ER.TABLE_EXISTS_ERROR, ER.SP_ALREADY_EXISTS, ER.DB_CREATE_EXISTS, 1537, 1826, 6501, 3821}
)


def finish(
    console: Connection, server: Server, state: CopyState, progress: CopyProgress, stopping: Stopping
) -> CopyMoment:
    """Make what is left to make; the consumer may start then. Return the moment the follower shows. Raises Ended."""
    steps = state.open_steps()
    course = CopySteps([statements[-1] for _, statements in steps], {each.name: each.rows for each in state.copied()})
    for course.number, (number, statements) in enumerate(steps):
        if stopping():
            raise Ended
        with progress.step(course):
            _run(console, statements, again=course.number == 0)
        state.step_done(number)
    moment = state.moment()
    if moment.gtids:
        take_gtids(console, moment.gtids)
    server.worker(0, None, frozenset()).own.advance(moment.mark)
    state.done()
    return moment


def _run(console: Connection, statements: list[str], *, again: bool) -> None:
    """Run one step; `again`: a killed attempt may have run it."""
    *before, change = statements
    try:
        for sql in before:
            rows(console, literals.encode(sql))
        definitions.run(console, change)
    except MySQLError as error:
        if not again or error_number(error) not in ALREADY:
            if error_number(error) == 0:
                raise
            raise FollowerError(
                f"the follower refuses what the leader has: {error_text(error)}; make it take this (an account that is"
                f" missing, a privilege) and run this again, which goes on with it: {' '.join(change.split())[:300]}"
            ) from error
        logger.info("done before: %s", change[:100])
    finally:
        rows(console, session({}))


def take_gtids(console: Connection, gtids: str) -> None:
    """Let the follower know these transactions as executed; those it knows already stay."""
    ((missing,),) = rows(console, f"SELECT GTID_SUBTRACT({literals.text(gtids)}, @@GLOBAL.gtid_executed)")
    missing = "".join(missing.split())
    if missing:
        rows(console, f"SET GLOBAL gtid_purged = {literals.text('+' + missing)}")
