"""Takes back what an unfinished copy of some tables, or of a database, has made: the follower never used it."""

from __future__ import annotations

import logging
from contextlib import ExitStack

from cdc_consumer.copy.beside.scope import built, scope_from
from cdc_consumer.copy.copy_tables import CopyTables
from cdc_consumer.copy.profile import CopyProfile
from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.copy.state import CopyState
from cdc_consumer.follower.server import open_server
from shared.errors import FollowerError
from shared.filters import DatabaseFilter
from shared.mysql import MySQLError, error_text
from shared.recovery import Stopping

logger = logging.getLogger(__name__)


def give_up(profile: CopyProfile, stopping: Stopping) -> None:
    """Let an unfinished copy of this kind never have been. Raises FollowerError where there is none to give up."""
    databases = DatabaseFilter(profile.filters, profile.follower.system_database)
    with ExitStack() as stack:
        server = open_server(profile.consumer(), databases, set(), stopping)
        stack.callback(server.close)
        try:
            writer = Writer(profile.follower, server.settings, local_files=False)
            stack.callback(writer.close)
            _give_up(writer, profile)
        except (MySQLError, OSError) as error:
            raise FollowerError(f"the follower {profile.follower}: {error_text(error)}") from error


def _give_up(writer: Writer, profile: CopyProfile) -> None:
    state = CopyState(writer.connection, CopyTables(profile.follower.system_database, profile.topic.name))
    phase, scope = state.phase(), scope_from(state.only())
    if phase in (None, "done"):
        raise FollowerError("no copy into this follower is unfinished: there is nothing to give up")
    if not scope.partial:
        raise FollowerError(
            "the copy that has not ended is of everything, and dropped what was there: run it again, which goes on"
            " with it, or with --replace, which begins anew"
        )
    if phase == "ending":
        raise FollowerError(
            f"the copy with {scope.option} puts its tables in their places already: run that again, which ends it"
        )
    discard(writer, state, profile)
    logger.info("the copy with %s is given up: the follower is as it was before", scope.option)


def drop_unfinished(writer: Writer, state: CopyState, profile: CopyProfile) -> None:
    """Drop the tables that such a copy has made beside those they are for."""
    for name in state.made() if state.only() else ():
        unfinished = built(name, profile.follower.system_database, profile.topic.name)
        writer.run(f"DROP TABLE IF EXISTS {unfinished.sql}")


def discard(writer: Writer, state: CopyState, profile: CopyProfile) -> None:
    """Drop them, and forget the copy, if there is one."""
    if state.only():
        drop_unfinished(writer, state, profile)
        state.give_up()
