"""Copies the rows, round by round, until they are those of one moment.

Ranges are read in any order and never twice. When none is left, a look into the topic tells whether a statement has
changed a definition since it was read: what it names is copied once more, in the next round. After a round without one
the window is applied, and the moment is kept with all that is left to make behind the rows.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial

from cdc_consumer.copy import definitions, moment
from cdc_consumer.copy.before.made import make_databases, refuse_others
from cdc_consumer.copy.before.rights import refuse_followers_account, refuse_leaders_account
from cdc_consumer.copy.before.servers import uses_gtids
from cdc_consumer.copy.before.unmet import tell_unmet
from cdc_consumer.copy.beside.scope import CopyScope
from cdc_consumer.copy.copy_tables import CopyTables, altered
from cdc_consumer.copy.disturbed import Disturbed, altered_since, table_begins
from cdc_consumer.copy.moment import Ended
from cdc_consumer.copy.profile import CopyProfile
from cdc_consumer.copy.report.notes import CopyNotes
from cdc_consumer.copy.report.progress import CopyProgress
from cdc_consumer.copy.rows.counted import other_counts
from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.copy.rows.task import Copied, CopySetup, CopyTask
from cdc_consumer.copy.runners import Runner
from cdc_consumer.copy.state import CopiedTable, CopyState
from cdc_consumer.copy.window import CopiedKeys, Window
from cdc_consumer.follower.server import Server
from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.rows.ranges import EVERYTHING, TableQueries
from cdc_consumer.parity.rows.split import split
from cdc_consumer.parity.schema.read import read_schema
from cdc_consumer.parity.schema.records import Schema, TableRecord
from cdc_consumer.parity.servers.pair import LeaderConnection
from cdc_consumer.parity.servers.throttle import window_closes, window_opens
from shared.errors import FollowerError, FollowerLinkError, LeaderError, TableMovedError
from shared.events import Position
from shared.filters import DatabaseFilter
from shared.mysql import server_version, variables
from shared.recovery import Stopping, sleep
from shared.topic.walk import TopicWalk

logger = logging.getLogger(__name__)

#: times that a copy begins anew with what statements have changed meanwhile
MOST_ROUNDS = 20
#: reads of a table without a key that show no moment, after which it is read under a lock; or, where it may not be
#: locked, after which one more in vain ends the copy
UNLOCKED_READS, VAIN_READS = 1, 4


class Rounds:
    """Makes the rows of a copy, from whatever is there of them."""

    def __init__(
        self, profile: CopyProfile, databases: DatabaseFilter, server: Server, writer: Writer, leader: LeaderConnection,
        runner: Runner, notes: CopyNotes, progress: CopyProgress, stopping: Stopping, scope: CopyScope,
    ) -> None:  # fmt: skip
        self._profile = profile
        self._databases = databases
        self._server = server
        self._writer = writer
        self._leader = leader
        self._runner = runner
        self._notes = notes
        self._progress = progress
        self._stopping = stopping
        self._scope = scope
        self._sql = CopyTables(profile.follower.system_database, profile.topic.name)
        self._state = CopyState(writer.connection, self._sql)
        self._version = leader.use(server_version)
        #: how often a table without a key was read in vain
        self._vain: dict[TableName, int] = {}

    def refuse_leader(self, walk: TopicWalk) -> None:
        """Raise CdcError when the topic, the leader or an account has what a copy would stop at, before it begins."""
        moment.refuse_late(walk, self._leader.visible().position)
        schema = self._refuse_schema()
        tell_unmet(self._databases, schema)

    def _refuse_schema(self) -> Schema:
        """Return what is to be copied. Raises CdcError where that, or the right to it, would stop the copy."""
        schema = self._read_schema()
        definitions.refuse_uncopied(schema, self._version)
        keyless = any(not definitions.shape(table).key for table in schema.tables.values())
        gtids, locks = uses_gtids(self._server, self._leader), keyless and self._profile.copy.lock_keyless
        refuse_leaders_account(self._leader, schema.databases, gtids=gtids, locks=locks)
        refuse_followers_account(self._writer, schema)
        return schema

    def run(self, walk: TopicWalk) -> None:
        """Copy until all rows are those of one moment, and keep that. Raises CdcError, Ended."""
        for _ in range(MOST_ROUNDS):
            read, defined = self._bounds(walk)
            schema = self._read_schema()
            self._notes.note("phase", "tables")
            self._plan(schema, table_begins(walk, self._server.facts, schema.tables, read, defined), defined)
            self._notes.note("phase", "rows")
            self._copy_ranges(schema, walk)
            self._notes.note("phase", "window")
            end, gtids = moment.executed(self._leader, gtids=uses_gtids(self._server, self._leader))
            stop = moment.wait_for_topic(walk, end, self._stopping)
            again = self._again(Disturbed(walk, self._server.facts, self._state.tables()), schema, defined, stop)
            if not (self._altered_here() or again):
                refuse_others(self._writer, self._state, self._databases, schema)
                self._settle(walk, schema, stop, end, gtids)
                return
        raise LeaderError(
            f"the leader was changed in each of {MOST_ROUNDS} rounds so that tables had to be copied once more;"
            " hold_ddl = true in [copy] lets statements that change definitions wait until the copy ends"
        )

    def _read_schema(self) -> Schema:
        named = self._profile.filters.include_dbs or ()
        found = self._leader.use(lambda connection: read_schema(connection, self._databases, named))
        takes = self._databases.takes
        tables = {name: table for name, table in found.tables.items() if takes(*name)}
        objects = {key: each for key, each in found.objects.items() if each.kind != "VIEW" or takes(*each.name)}
        return replace(found, tables=tables, objects=objects)

    def _bounds(self, walk: TopicWalk) -> tuple[Position, Position]:
        """Return up to where the leader's rows, and its definitions, show all to whoever reads them from now on."""
        visible = self._leader.visible()
        moment.refuse_late(walk, visible.position)
        if not visible.doubt:
            return visible.position, visible.position
        defined = self._leader.position()
        stop = moment.wait_for_topic(walk, defined, self._stopping)
        disturbed = Disturbed(walk, self._server.facts, {})
        disturbed.wait_for_definitions(self._leader, visible.position, stop)
        return visible.position, defined

    def _plan(self, schema: Schema, begins: Mapping[TableName, Position], defined: Position) -> None:
        """Make what is not on the follower as it is on the leader now, empty, and note its ranges."""
        definitions.refuse_uncopied(schema, self._version)
        refuse_others(self._writer, self._state, self._databases, schema)
        self._writer.run(definitions.SESSION)
        make_databases(self._writer, self._state, self._databases, schema)
        self._plan_tables(schema, begins, defined)

    def _plan_tables(self, schema: Schema, begins: Mapping[TableName, Position], defined: Position) -> None:
        planned = self._state.tables()
        anew = [
            table
            for name, table in schema.tables.items()
            if name not in planned or planned[name].definition != definitions.definition_hash(table)
        ]
        # all are dropped before one is made: a check, whose name is the only one in its database, may have moved
        for table in anew:
            if table.name in planned:
                self._notes.note("again", str(table.name))
            self._state.forget(table.name)
            self._writer.run(f"DROP TABLE IF EXISTS {self._into(table.name).sql}")
        for table in anew:
            try:
                self._plan_table(table, begins[table.name], defined)
            except TableMovedError:
                self._forget({table.name})

    def _plan_table(self, table: TableRecord, begin: Position, defined: Position) -> None:
        shape, name, into = definitions.shape(table), table.name, self._into(table.name)
        made = definitions.create_table(replace(table, name=into), shape.key, self._check_names(table))
        definitions.run(self._writer.connection, made)
        size = self._profile.copy.range_rows
        parts = split(TableQueries(shape), self._leader, table.rows, size)[0] if shape.key else [EVERYTHING]
        copied = CopiedTable(name, definitions.definition_hash(table), defined, begin, begin)
        self._state.plan(copied, [(part, table.rows // len(parts)) for part in parts])

    def _copy_ranges(self, schema: Schema, walk: TopicWalk) -> None:
        """Copy the ranges that are open, in the hours that the profile names."""
        while tasks := self._tasks(schema):
            window = self._profile.limits.window
            closes = window_closes(window, datetime.now())
            if closes is None:
                assert window is not None
                opens = window_opens(window, datetime.now())
                logger.info("rows are read from %s on", f"{opens:%H:%M}")
                sleep((opens - datetime.now()).total_seconds(), self._stopping)
            else:
                self._progress.begin(self._state.counts(), tasks)
                self._runner.run(tasks, self._setup(closes.timestamp()), partial(self._heard, walk), self._tick)
            if self._stopping():
                raise Ended

    def _tasks(self, schema: Schema) -> list[CopyTask]:
        found = []
        for each in self._state.open_ranges():
            table = schema.tables.get(name := each.table)
            shape = None if table is None else definitions.shape(table)
            if shape is None or any(bound and len(bound) != len(shape.key) for bound in each.part):
                raise altered(self._sql.range)
            found.append(CopyTask(shape, each.number, each.part, each.rows, self._locks(name), self._into(name)))
        return found

    def _setup(self, until: float) -> CopySetup:
        local = variables(self._writer.connection, "local_infile").get("local_infile") == "ON"
        if not local:
            logger.info("local_infile is OFF on the follower: rows are copied by INSERT, which takes longer")
        return CopySetup(self._profile, tuple(self._server.settings.items()), local, until)

    def _heard(self, walk: TopicWalk, copied: Copied) -> None:
        if copied.gone:
            raise FollowerLinkError(copied.error)
        if copied.error:
            known = self._state.tables().get(name := copied.task.shape.name)
            facts, stopping = self._server.facts, self._stopping
            if not (copied.moved or known is None or altered_since(walk, facts, self._leader, known, stopping)):
                raise FollowerError(copied.error)
            logger.info("%s", copied.error)
            self._forget({name}, "is not what it was")
            return
        self._progress.heard(copied)
        if self._stopping():
            raise Ended

    def _tick(self, rows: int) -> None:
        self._progress.tick(rows)
        if self._stopping():
            raise Ended

    def _into(self, name: TableName) -> TableName:
        """Return where a table is made on the follower."""
        return name

    def _check_names(self, table: TableRecord) -> dict[str, str]:
        """Return how checks are named there that have other names than on the leader."""
        return {}

    def _locks(self, name: TableName) -> bool:
        return self._profile.copy.lock_keyless and self._vain.get(name, 0) >= UNLOCKED_READS

    def _again(self, disturbed: Disturbed, schema: Schema, defined: Position, stop: int) -> bool:
        """Let what must be copied once more be planned again; True when there is something."""
        vain = self._read_in_vain(disturbed, schema, stop)
        changed, redefined = disturbed.redefined(defined, stop)
        self._forget(vain | changed)
        return redefined or bool(vain | changed) or set(schema.tables) != set(self._state.tables())

    def _altered_here(self) -> bool:
        """Let tables be copied once more of which the follower has other rows than came; True when there is one."""
        if self._state.window_offset() is not None:
            return False  # a part of the window is applied: rows have come and gone
        self._forget(found := other_counts(self._writer, self._state.copied(), self._into), "has other rows there")
        return bool(found)

    def _read_in_vain(self, disturbed: Disturbed, schema: Schema, stop: int) -> set[TableName]:
        """Return the tables without a key that show no moment. Raises LeaderError when nothing can make one do so."""
        keyless = {name for name, table in schema.tables.items() if not definitions.shape(table).key}
        for name in (vain := disturbed.unsettled(keyless, stop)):
            if not self._profile.copy.lock_keyless and self._vain.get(name, 0) >= VAIN_READS:
                raise LeaderError(
                    f"table {name} has no key, and was written each time while it was read; lock_keyless = true in"
                    " [copy] locks it against writes for some milliseconds"
                )
            self._vain[name] = self._vain.get(name, 0) + 1
        return vain

    def _forget(self, names: set[TableName], why: str = "was changed on the leader while it was copied") -> None:
        for name in names:
            logger.info("%s %s: it is copied once more", name, why)
            self._notes.note("again", str(name))
            self._state.forget(name)

    def _settle(self, walk: TopicWalk, schema: Schema, stop: int, end: Position, gtids: str) -> None:
        """Apply the window up to before `stop`, and keep the moment that the rows then are of."""
        keys = {name: definitions.shape(table).key for name, table in schema.tables.items()}
        tables = {name: CopiedKeys(table, keys[name], name) for name, table in self._state.tables().items()}
        writer = Writer(self._profile.follower, self._server.settings, local_files=False)
        try:
            window = Window(writer, tables, self._sql)
            start = self._start(walk, stop, [each.table.begin for each in tables.values() if each.key])
            written = self._progress.passing(moment.entries(walk, start, stop), start, stop)
            images = window.apply(written, stop)
            start = self._start(walk, stop, [each.table.until for each in tables.values() if not each.key], anew=True)
            writer.run("BEGIN")
            window.settle_copies(moment.entries(walk, start, stop))
            steps = definitions.steps(schema, keys, self._version)
            for sql in self._state.ending(moment.end_at(walk, stop, end, gtids), steps):
                writer.run(sql)
            writer.run("COMMIT")
        finally:
            writer.close()
        self._notes.warn_of_triggers(schema)
        logger.info("%d rows that were written meanwhile are as they were at %s", images, end)

    def _start(self, walk: TopicWalk, stop: int, begins: list[Position], *, anew: bool = False) -> int:
        """Return where the window begins: where the first of these tables does, or where it was applied up to."""
        if not begins:
            return stop
        start = moment.since(walk, min(begins))
        # a topic that gets routes has other offsets from then on
        passed = None if anew or walk.by_sequence else self._state.window_offset()
        return start if passed is None else max(start, passed)
