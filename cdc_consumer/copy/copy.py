"""Makes a whole copy, in order: nothing in its way, the rows, and what is left to make behind them.

An attempt goes on where the state on the follower says; whatever breaks it, the next one does the same.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack, closing
from typing import get_args

from cdc_consumer.copy.before.consent import require_consent
from cdc_consumer.copy.before.servers import existing_databases, refuse_other_history, uses_gtids
from cdc_consumer.copy.before.topic import open_copied_topic
from cdc_consumer.copy.beside.at_position import AtPosition
from cdc_consumer.copy.beside.discard import drop_unfinished
from cdc_consumer.copy.beside.scope import CopyScope, scope_from
from cdc_consumer.copy.clone.clone import Cloning, Restarted
from cdc_consumer.copy.copy_tables import CopyTables, altered
from cdc_consumer.copy.finish import finish
from cdc_consumer.copy.moment import Ended
from cdc_consumer.copy.profile import CopyProfile
from cdc_consumer.copy.report.notes import CopyNotes
from cdc_consumer.copy.report.progress import CopyProgress
from cdc_consumer.copy.rounds import Rounds
from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.copy.runners import Runner
from cdc_consumer.copy.state import CopyMoment, CopyPhase, CopyState
from cdc_consumer.follower.preflight import probe_purging
from cdc_consumer.follower.server import Server, open_server
from cdc_consumer.follower.tables import table_exists
from cdc_consumer.parity.servers.identity import refuse_one_server, require_leaders_topic
from cdc_consumer.parity.servers.pair import LeaderConnection
from cdc_consumer.sql.server_errors import LOCKED
from shared.errors import TRYING_HELPS, FollowerError, FollowerLinkError
from shared.filters import DatabaseFilter
from shared.mysql import MySQLError, error_number, error_text, is_link_error, quote_name
from shared.profile import Filters
from shared.recovery import Recovery, Stopping
from shared.topic.walk import TopicWalk

logger = logging.getLogger(__name__)


def copy(
    profile: CopyProfile, runner: Runner, stopping: Stopping, progress: CopyProgress, scope: CopyScope, *,
    replace: bool = False,
) -> CopyMoment | None:  # fmt: skip
    """Copy until the follower is whole; return the moment it shows, None when asked to stop before.

    `replace` drops what the follower has of the databases. Raises CdcError.
    """
    run = Copy(profile, runner, stopping, progress, scope, replace)
    recovery = Recovery(stopping)
    while not stopping():
        try:
            with ExitStack() as stack:
                attempt = run.attempt(stack)
                recovery.reached()
                return attempt.run()
        except TRYING_HELPS as error:
            recovery.pause(error)
        except (MySQLError, OSError) as error:
            if not is_link_error(error) and error_number(error) not in LOCKED:
                raise FollowerError(f"the follower {profile.follower}: {error_text(error)}") from error
            recovery.pause(FollowerLinkError(f"the follower {profile.follower}: {error_text(error)}"))
        except Restarted:
            logger.info("the follower is there again")
        except Ended:
            return None
    return None


class Copy:
    """Makes one run of the program: attempts, until one comes to the end."""

    def __init__(
        self, profile: CopyProfile, runner: Runner, stopping: Stopping, progress: CopyProgress, scope: CopyScope,
        replace: bool,
    ) -> None:  # fmt: skip
        self.profile = profile
        self.runner = runner
        self.stopping = stopping
        self.progress = progress
        self.scope = scope
        self.databases = DatabaseFilter(profile.filters, profile.follower.system_database)
        scope.check(self.databases, profile.copy.method)
        #: whether what the follower has is to be dropped, once
        self.replaces = replace
        #: connection ids of the sessions that may hold the lock
        self._previous: set[int] = set()

    def attempt(self, stack: ExitStack) -> CopyAttempt:
        """Open everything; `stack` closes it again."""
        profile = self.profile
        server = open_server(profile.consumer(), self.databases, self._previous, self.stopping)
        stack.callback(server.close)
        writer = Writer(profile.follower, server.settings, local_files=False)
        stack.callback(writer.close)
        leader = LeaderConnection(profile.leader, statement_seconds=profile.limits.statement_seconds)
        stack.callback(leader.close)
        with leader.at_once():
            leader.position()
            refuse_one_server(leader.rows, writer.rows)
        if profile.copy.hold_ddl:
            holder = stack.enter_context(closing(LeaderConnection(profile.leader)))
            # it says nothing until the copy ends
            holder.rows("SET SESSION wait_timeout = 31536000")
            holder.rows("LOCK INSTANCE FOR BACKUP")
        return CopyAttempt(self, server, writer, leader, stack)


class CopyAttempt:
    """Brings a copy from where it is to its end, or until something breaks."""

    def __init__(self, run: Copy, server: Server, writer: Writer, leader: LeaderConnection, stack: ExitStack) -> None:
        self._run = run
        self._profile = run.profile
        self._server = server
        self._writer = writer
        self._leader = leader
        self._stack = stack
        self._tables = CopyTables(run.profile.follower.system_database, run.profile.topic.name)
        self._state = CopyState(writer.connection, self._tables)
        self._notes = CopyNotes(writer.connection, self._tables)

    def run(self) -> CopyMoment:
        """Copy what is left. Raises CdcError, Ended."""
        phase = self._state.phase()
        scope = self._run.scope
        if phase not in (None, *get_args(CopyPhase)) and not self._run.replaces:
            raise altered(self._tables.copy)
        if phase not in (None, "done"):
            self._refuse_other_scope()
        begins = self._run.replaces or phase in (None, "new") or (scope.partial and phase == "done")
        if phase == "done" and not begins:
            if self._profile.copy.audit and not any(note.kind == "audit" for note in self._notes.read()):
                logger.info("the copy has ended already, and was not audited")
                return self._state.moment()
            raise FollowerError(
                "the copy into this follower has ended already, and the consumer goes on from there; --replace drops"
                " what the follower has and begins anew"
            )
        if not begins:
            self._state.make()  # what a copy of an earlier version had no use for
        if phase != "ending" or begins:
            if self._profile.copy.method == "clone":
                self._clone()
            else:
                self._copy_rows(phase, begins)
        self._notes.note("phase", "ending")
        moment = finish(self._writer.connection, self._server, self._state, self._run.progress, self._run.stopping)
        self._notes.note("phase", "done")
        return moment

    def _copy_rows(self, phase: CopyPhase | None, begins: bool) -> None:
        if begins and not self._run.scope.partial:
            self._refuse_follower(phase)
        rounds, walk = self._rounds(), self._open_topic()
        if begins:
            rounds.refuse_leader(walk)
            self._begin()
        self._notes.note("run")
        rounds.run(walk)

    def _clone(self) -> None:
        """Make a clone, or go on behind one that is there. Raises CdcError, Ended, Restarted."""
        run = self._run
        cloning = Cloning(run.profile, run.databases, self._leader, self._writer, self._notes, run.stopping)
        status = cloning.status()
        there = not run.replaces and cloning.is_there(status)
        if not there and not run.replaces:
            everything = Filters(exclude_dbs=())
            self._refuse_occupied(DatabaseFilter(everything, run.profile.follower.system_database))
        walk = self._open_topic()
        if there:
            assert status is not None
            cloning.keep(status, walk, self._state)
            return
        try:
            cloning.make(walk, gtids=uses_gtids(self._server, self._leader), replaces=run.replaces)
        except Restarted:
            run.replaces = False
            raise

    def _open_topic(self) -> TopicWalk:
        walk = open_copied_topic(self._profile.topic, self._run.stopping, self._stack)
        require_leaders_topic(walk, self._leader.rows)
        return walk

    def _rounds(self) -> Rounds:
        run = self._run
        kind = AtPosition if run.scope.partial else Rounds
        return kind(
            run.profile,
            run.databases,
            self._server,
            self._writer,
            self._leader,
            run.runner,
            self._notes,
            run.progress,
            run.stopping,
            run.scope,
        )

    def _refuse_other_scope(self) -> None:
        """Raise FollowerError where a copy has not ended that is of something else."""
        kept, scope = scope_from(self._state.only()), self._run.scope
        if kept != scope and (scope.partial or not self._run.replaces):
            raise FollowerError(
                f"a copy with {kept.option} into this follower has not ended: run that again, which goes on with it, or"
                " --replace with neither, which copies everything anew"
                + (", or --give-up, which leaves the follower as it was before" if kept.partial else "")
            )

    def _begin(self) -> None:
        """Note that a copy begins, and drop what is there: nothing stands in its way. Raises FollowerError, Ended."""
        drop_unfinished(self._writer, self._state, self._profile)
        if self._run.scope.partial:
            self._begin_beside()
            return
        there = existing_databases(self._writer, self._run.databases)
        if self._run.replaces and there:
            require_consent(f"{', '.join(there)} on the follower {self._profile.follower}", self._run.stopping)
        self._state.begin()
        if self._has_positions():
            self._writer.run(f"DELETE FROM {self._tables.database}.`position` WHERE topic = {self._tables.topic}")
        for name in there:
            self._writer.run(f"DROP DATABASE {quote_name(name)}")
        self._state.planned()
        self._run.replaces = False

    def _begin_beside(self) -> None:
        """Note that a copy of some tables begins: what is there stays until it is replaced."""
        scope = self._run.scope
        if scope.tables:
            named = ", ".join(map(str, scope.tables))
            require_consent(f"{named} on the follower {self._profile.follower} when copied anew", self._run.stopping)
        self._state.begin(scope.kept)
        self._state.planned()
        self._run.replaces = False

    def _refuse_follower(self, phase: CopyPhase | None) -> None:
        if not self._run.replaces and phase is None:
            self._refuse_occupied(self._run.databases)
        if uses_gtids(self._server, self._leader):
            probe_purging(self._writer.connection)
            refuse_other_history(self._writer.connection, self._leader)

    def _refuse_occupied(self, databases: DatabaseFilter) -> None:
        topic = self._profile.topic.name
        if existing := existing_databases(self._writer, databases):
            raise FollowerError(
                f"the follower has {', '.join(existing)} already; --replace drops that and copies it from the leader"
            )
        if self._has_positions() and self._writer.rows(
            f"SELECT 1 FROM {self._tables.database}.`position` WHERE topic = {self._tables.topic} AND topic_offset >= 0"
        ):
            raise FollowerError(
                f"the consumer has applied topic {topic} to this follower already; --replace forgets that and copies"
                " everything from the leader"
            )

    def _has_positions(self) -> bool:
        return table_exists(self._writer.rows, (self._profile.follower.system_database, "position"))
