"""Makes the follower a clone of the leader, and finds the moment in the topic that the clone shows.

MySQL removes all that the follower had, takes the leader's files, and restarts. Whatever is killed, the server itself
keeps how that went: a clone that is whole, and that nobody has written to since, only lacks its position.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace

from cdc_consumer.copy import definitions, moment
from cdc_consumer.copy.before.consent import require_consent
from cdc_consumer.copy.clone.refusals import refuse_clone
from cdc_consumer.copy.clone.status import CloneStatus, progress, read_status
from cdc_consumer.copy.moment import Ended
from cdc_consumer.copy.profile import CopyProfile
from cdc_consumer.copy.report.notes import CopyNotes
from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.copy.state import CopyState
from cdc_consumer.follower.preflight import probe
from cdc_consumer.parity.schema.read import read_schema
from cdc_consumer.parity.schema.records import Schema
from cdc_consumer.parity.servers.connection import ServerConnection
from cdc_consumer.parity.servers.pair import LeaderConnection
from cdc_consumer.sql import literals
from cdc_consumer.sql.packets import leave
from shared.errors import FollowerError, FollowerLinkError
from shared.filters import SYSTEM_DATABASES, DatabaseFilter
from shared.mysql import (
    MySQLError,
    connect,
    error_number,
    error_text,
    is_link_error,
    quote_account,
    quote_name,
    rows,
    server_version,
    variables,
)
from shared.recovery import Stopping, sleep
from shared.topic.walk import TopicWalk

logger = logging.getLogger(__name__)

#: MySQL's number for: the clone is there, and nobody restarts the server, which stops
NOT_SUPERVISED = 3707
#: and of the leader: it has been asked for as many clones as it makes at a time
TOO_MANY_CLONES = 3634
#: seconds in which a follower that was cloned must be back, between two looks at it, and between two lines in the log
RESTART_SECONDS, LOOK_SECONDS, TELL_SECONDS = 600.0, 0.2, 10.0
#: bytes of a binlog file that holds no transaction, at most, where there are no GTIDs
EMPTY_BINLOG = 250


class Restarted(Exception):
    """Tells that the follower is another server now: all connections to it are to be opened anew."""


class Cloning:
    """Brings a follower to the moment that a clone of the leader shows."""

    def __init__(
        self, profile: CopyProfile, databases: DatabaseFilter, leader: LeaderConnection, writer: Writer,
        notes: CopyNotes, stopping: Stopping,
    ) -> None:  # fmt: skip
        self._profile = profile
        self._databases = databases
        self._leader = leader
        self._writer = writer
        self._notes = notes
        self._stopping = stopping
        #: the leader's address as the follower reaches it
        self._source = profile.copy.clone_from or f"{profile.leader.host}:{profile.leader.port}"

    def status(self) -> CloneStatus | None:
        """Ask for the follower's last clone. Raises Restarted when one was under way, and has ended meanwhile."""
        status = read_status(self._writer.rows)
        if status is None or status.session is None:
            return status
        logger.info("the follower is being cloned already, as an earlier run has asked it to")
        self._wait_for_end(status.began, None)
        raise Restarted

    def is_there(self, status: CloneStatus | None) -> bool:
        """Tell whether the follower is a clone of this leader that nobody has written to since."""
        if status is None or not status.whole or status.source != self._source:
            return False
        executed, logged = self._writer.rows("SELECT @@GLOBAL.gtid_executed, @@GLOBAL.log_bin")[0]
        if status.gtids or executed:
            return "".join(executed.split()) == status.gtids
        return bool(logged) and all(size <= EMPTY_BINLOG for _, size, *_ in self._writer.rows("SHOW BINARY LOGS"))

    def make(self, walk: TopicWalk, *, gtids: bool, replaces: bool) -> None:
        """Make the follower a clone. Raises CdcError, Ended, and at the end Restarted."""
        moment.refuse_late(walk, self._leader.visible().position)
        self._leader.use(
            lambda leader: refuse_clone(self._profile, self._databases, leader, self._writer.connection, gtids=gtids)
        )
        self._allow_source()
        if replaces:
            require_consent(
                f"all databases, accounts and grants of the follower {self._profile.follower}", self._stopping
            )
        before = read_status(self._writer.rows)
        logger.warning(
            "the follower %s becomes a clone of %s: its databases, accounts and grants go, and it restarts",
            self._profile.follower, self._source,
        )  # fmt: skip
        statement = _Statement(self._profile, self._source)
        self._wait_for_end(None if before is None else before.began, statement)
        raise Restarted

    def _allow_source(self) -> None:
        """Let the follower clone from this address, until it restarts."""
        known = variables(self._writer.connection, "clone_valid_donor_list").get("clone_valid_donor_list") or ""
        if self._source not in known.split(","):
            listed = ",".join(filter(None, [known, self._source]))
            change = f"SET GLOBAL clone_valid_donor_list = {literals.text(listed)}"
            probe(self._writer.connection, change, "SYSTEM_VARIABLES_ADMIN")

    # until the follower is back

    def _wait_for_end(self, before: str | None, statement: _Statement | None) -> None:
        """Wait until the follower is a clone, and answers.

        `before` is when the clone before this one began; without a `statement` it is when this one did.
        """
        deadline, told = time.monotonic() + RESTART_SECONDS, time.monotonic()
        while True:
            if self._stopping():
                self._end()
                raise Ended
            ended = statement is None or not statement.running
            if ended and statement is not None and statement.error is not None:
                self._judge(statement.error, before)
                statement.error = None
            status, words = self._look()
            if status is not None and (statement is None or status.began != before):
                if status.whole:
                    return
                if ended and status.session is None:
                    raise _failed(status)
            if not ended or (status is not None and status.session is not None):
                deadline = time.monotonic() + RESTART_SECONDS
            if time.monotonic() - told > TELL_SECONDS and words:
                told = time.monotonic()
                logger.info("%s", words)
            if time.monotonic() > deadline:
                raise FollowerError(
                    f"the follower {self._profile.follower} was cloned, and did not come back within"
                    f" {RESTART_SECONDS:.0f} s; start it, and run this again, which goes on"
                )
            sleep(LOOK_SECONDS, self._stopping)

    def _look(self) -> tuple[CloneStatus | None, str]:
        """Ask how far the clone is; None of a server that does not answer."""
        try:
            connection = connect(self._profile.follower, read_timeout=TELL_SECONDS)
        except (MySQLError, OSError) as error:
            if not is_link_error(error):
                raise
            return None, "the follower does not answer while it restarts; where nothing restarts it, start it"
        try:
            return read_status(lambda sql: rows(connection, sql)), progress(lambda sql: rows(connection, sql))
        except (MySQLError, OSError) as error:
            if not is_link_error(error):
                raise
            return None, ""
        finally:
            leave(connection)

    def _judge(self, error: BaseException, before: str | None) -> None:
        """Say what became of a statement that has ended with an error, unless that is the restart."""
        if error_number(error) == NOT_SUPERVISED:
            logger.warning("the follower is cloned and stops, as nothing supervises it: start it now")
            return
        if is_link_error(error):
            return
        if f" {TOO_MANY_CLONES} " in error_text(error):
            raise FollowerLinkError(
                "the leader still waits for a follower that it was being cloned to, this one perhaps"
                " (clone_donor_timeout_after_network_failure, in minutes)"
            )
        status, _ = self._look()
        if status is None or status.began == before or not status.dropped:
            raise FollowerError(
                f"MySQL does not clone the leader, and nothing on the follower was changed: {error_text(error)};"
                " --help names the grants that it takes"
            ) from None
        raise _failed(replace(status, error=error_text(error)))

    def _end(self) -> None:
        """End a clone that is under way, as the program was asked to stop."""
        status, _ = self._look()
        if status is None or status.session is None:
            return
        connection = connect(self._profile.follower)
        try:
            rows(connection, f"KILL {status.session:d}")
        except MySQLError as error:
            logger.debug("it has ended meanwhile: %s", error_text(error))
        finally:
            leave(connection)
        logger.warning("the clone is not finished, and what the follower had is gone: run this again")

    # behind it

    def keep(self, status: CloneStatus, walk: TopicWalk, state: CopyState) -> None:
        """Find the clone's moment in the topic, and note it with all that is left to do. Raises CdcError, Ended."""
        assert status.position is not None
        moment.refuse_late(walk, status.position)
        stop = moment.wait_for_topic(walk, status.position, self._stopping)
        schema, steps = self._left()
        state.begin()
        self._notes.note("run")
        self._notes.warn_of_triggers(schema)
        self._writer.run("BEGIN")
        for sql in state.ending(moment.end_at(walk, stop, status.position, ""), steps):
            self._writer.run(sql)
        self._writer.run("COMMIT")
        logger.info("the follower is a clone of %s at %s", status.source, status.position)

    def _left(self) -> tuple[Schema, list[list[str]]]:
        """Return the schema, and what makes it a follower's: no triggers, no events that run, nothing more."""
        own = ServerConnection("follower", self._profile.follower)
        try:
            schema = own.use(lambda connection: read_schema(connection, self._databases))
            version = own.use(server_version)
            databases = [name for (name,) in own.rows("SHOW DATABASES")]
        finally:
            own.close()
        more = set(databases) - SYSTEM_DATABASES - set(schema.databases) - {self._profile.follower.system_database}
        steps = [[definitions.SESSION, f"DROP DATABASE IF EXISTS {quote_name(name)}"] for name in sorted(more)]
        objects = {key: each for key, each in schema.objects.items() if each.kind in ("EVENT", "TRIGGER")}
        steps += [[definitions.SESSION, f"DROP {each.kind} IF EXISTS {each.name.sql}"] for each in objects.values()]
        events = replace(schema, tables={}, objects=objects)
        return schema, [*steps, *definitions.steps(events, {}, version)]


class _Statement:
    """Runs CLONE in a thread and a session of its own: it answers when all is there, or not at all."""

    def __init__(self, profile: CopyProfile, source: str) -> None:
        self.error: BaseException | None = None
        self._connection = connect(profile.follower)
        self._sql = _clone(profile, source)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            rows(self._connection, "SET SESSION sql_mode = ''")
            rows(self._connection, literals.encode(self._sql))
        except (MySQLError, OSError) as error:
            self.error = error
        finally:
            leave(self._connection)

    @property
    def running(self) -> bool:
        return self._thread.is_alive()


def _clone(profile: CopyProfile, source: str) -> str:
    leader = profile.leader
    host, _, port = source.rpartition(":")
    account = quote_account(leader.user, host)
    ssl = "" if leader.tls is None else " REQUIRE NO SSL" if leader.tls.mode == "off" else " REQUIRE SSL"
    return f"CLONE INSTANCE FROM {account}:{int(port):d} IDENTIFIED BY {literals.text(leader.secret())}{ssl}"


def _failed(status: CloneStatus) -> FollowerError:
    words = f"the clone has failed, and what the follower had is gone: {status.error or 'its server has ended'}"
    if status.error and "interrupted" not in status.error:
        return FollowerError(f"{words}; mend that, and run this again")
    return FollowerLinkError(f"{words}; it begins anew")
