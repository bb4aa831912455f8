"""Copies tables beside those that a follower has, as they were at its own position, where its consumer goes on.

Rows are read as they are now, and the topic holds both images of every change: what was written behind the position is
taken back, the newest first, so that each key gets the image it had there. All is made beside the table it is for,
which is replaced when the new one is whole: until then a copy that cannot be made has changed nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from cdc_consumer.copy import definitions, moment
from cdc_consumer.copy.before.servers import existing_databases
from cdc_consumer.copy.beside.checks import check_names, naming
from cdc_consumer.copy.beside.discard import discard
from cdc_consumer.copy.beside.published import refuse_unpublished
from cdc_consumer.copy.beside.scope import built
from cdc_consumer.copy.beside.standing import standing
from cdc_consumer.copy.disturbed import Disturbed, table_begins
from cdc_consumer.copy.rounds import MOST_ROUNDS, Rounds
from cdc_consumer.copy.rows.load import Writer
from cdc_consumer.copy.state import CopiedTable, CopyMoment
from cdc_consumer.copy.window import CopiedKeys, Window
from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.schema import alters
from cdc_consumer.parity.schema.records import Schema, TableRecord
from cdc_consumer.sql import literals
from cdc_consumer.sql.positions import Mark
from cdc_consumer.sql.server_errors import LOCKED
from shared.errors import TRYING_HELPS, CdcError, FollowerError, LeaderError
from shared.events import Position
from shared.mysql import MySQLError, error_number, is_link_error
from shared.topic.walk import TopicWalk

logger = logging.getLogger(__name__)


class AtPosition(Rounds):
    """Makes the rows of some tables, or of a database, from whatever is there of them."""

    def refuse_leader(self, walk: TopicWalk) -> None:
        """Raise CdcError when the scope cannot be copied, before anything is begun."""
        mark = self._standing(walk)
        moment.refuse_late(walk, self._leader.visible().position)
        if self._scope.database in existing_databases(self._writer, self._databases):
            raise FollowerError(
                f"the follower has {self._scope.database} already; drop it there, or name its tables with --tables"
            )
        schema = self._refuse_schema()
        for name in self._scope.tables:
            if name not in schema.tables:
                raise LeaderError(f"--tables names {name}, a table that the leader does not have")
        if self._scope.database and self._scope.database not in schema.databases:
            raise LeaderError(f"--add names {self._scope.database}, a database that the leader does not have")
        if self._scope.database:
            begin = self._leader.visible().position
            refuse_unpublished(walk, self._scope.database, schema.tables, _place(mark), begin)
        self._refuse_triggers()
        self._refuse_altered(walk, mark, walk.next_offset())

    def run(self, walk: TopicWalk) -> None:
        """Copy until all rows are those of the follower's position, and keep that. Raises CdcError, Ended."""
        try:
            self._run(walk)
        except (CdcError, MySQLError) as error:
            if isinstance(error, TRYING_HELPS) or is_link_error(error) or error_number(error) in LOCKED:
                raise
            if not self._state.only():
                raise  # given up already
            raise FollowerError(
                f"the copy with {self._scope.option} has not ended; run it again, which goes on with it, or cdc-copy"
                " --give-up, which leaves the follower as it was before"
            ) from error

    def _run(self, walk: TopicWalk) -> None:
        mark = self._standing(walk)
        for _ in range(MOST_ROUNDS):
            read, defined = self._bounds(walk)
            schema = self._read_schema()
            self._refuse_altered(walk, mark, walk.next_offset())
            self._notes.note("phase", "tables")
            self._plan(schema, table_begins(walk, self._server.facts, schema.tables, read, defined), defined)
            self._notes.note("phase", "rows")
            self._copy_ranges(schema, walk)
            self._notes.note("phase", "window")
            stop = moment.wait_for_topic(walk, self._leader.position(), self._stopping)
            self._refuse_altered(walk, mark, stop)
            vain = self._read_in_vain(Disturbed(walk, self._server.facts, self._state.tables()), schema, stop)
            self._forget(vain)
            altered = self._altered_here()
            if not (altered or vain) and set(schema.tables) == set(self._state.tables()):
                self._settle_at(walk, schema, mark, stop)
                return
        raise LeaderError(f"tables without a key were written in each of {MOST_ROUNDS} rounds while they were read")

    def _into(self, name: TableName) -> TableName:
        return built(name, self._profile.follower.system_database, self._profile.topic.name)

    def _check_names(self, table: TableRecord) -> dict[str, str]:
        return check_names(table, self._into(table.name), self._writer)

    def _read_schema(self) -> Schema:
        found = super()._read_schema()
        tables = {name: table for name, table in found.tables.items() if self._scope.takes(name)}
        objects = {key: each for key, each in found.objects.items() if each.name.database == self._scope.database}
        named = {name.database for name in tables} | {self._scope.database}
        databases = {name: each for name, each in found.databases.items() if name in named}
        return replace(found, databases=databases, tables=tables, objects=objects)

    def _plan(self, schema: Schema, begins: Mapping[TableName, Position], defined: Position) -> None:
        definitions.refuse_uncopied(schema, self._version)
        self._writer.run(definitions.SESSION)
        self._plan_tables(schema, begins, defined)

    def _standing(self, walk: TopicWalk) -> Mark:
        return standing(self._writer, self._profile, walk)

    def _refuse_triggers(self) -> None:
        """Refuse to drop what somebody has made on the follower: the consumer makes no triggers."""
        for name in self._scope.tables:
            where = f"EVENT_OBJECT_SCHEMA = {literals.text(name.database)}"
            found = self._writer.rows(
                f"SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE {where}"
                f" AND EVENT_OBJECT_TABLE = {literals.text(name.table)}"
            )
            if found:
                raise FollowerError(
                    f"table {name} has a trigger on the follower, {found[0][0]}, which would be lost; drop it"
                )

    def _refuse_altered(self, walk: TopicWalk, mark: Mark, stop: int) -> None:
        """Raise LeaderError where a statement behind the position changed what is copied; of which nothing is left."""
        position = _place(mark)
        names = {*self._read_schema().tables, *self._scope.tables}
        there = {name: CopiedTable(name, "", position, position, position) for name in names}
        disturbed = Disturbed(walk, self._server.facts, there)
        named, _ = disturbed.redefined(position, stop)
        what = ", ".join(map(str, sorted(named)))
        if self._scope.database and self._scope.database in disturbed.databases(position, stop):
            what = what or self._scope.database
        if what:
            discard(self._writer, self._state, self._profile)
            raise LeaderError(
                f"{what} was altered on the leader behind the follower's position {position}, where it looked"
                " otherwise; nothing was changed: start cdc-consumer until it has passed that, stop it, and run this"
                " again (hold_ddl = true in [copy] lets such statements wait meanwhile)"
            )

    def _settle_at(self, walk: TopicWalk, schema: Schema, mark: Mark, stop: int) -> None:
        """Bring all rows to the position, and keep what is left: the new tables take the place of the old ones."""
        keys = {name: definitions.shape(table).key for name, table in schema.tables.items()}
        tables = {name: CopiedKeys(each, keys[name], self._into(name)) for name, each in self._state.tables().items()}
        here = mark.offset + 1
        writer = Writer(self._profile.follower, self._server.settings, local_files=False)
        try:
            window = Window(writer, tables, self._sql)
            # what the rows may not show yet and the follower has
            start = self._start(walk, here, [each.table.begin for each in tables.values() if each.key], anew=True)
            images = window.apply(moment.entries(walk, min(start, here), here), here)
            images += window.revert(entry for entry in walk.back(here, stop) if not entry.heartbeat)
            start = self._start(walk, here, [each.table.until for each in tables.values() if not each.key], anew=True)
            writer.run("BEGIN")
            window.settle_copies(moment.entries(walk, min(start, here), here))
            window.settle_copies(moment.entries(walk, here, stop), back=True)
            for sql in self._state.ending(CopyMoment(mark, ""), self._steps(schema, keys)):
                writer.run(sql)
            writer.run("COMMIT")
        finally:
            writer.close()
        logger.info("%d rows that were written meanwhile are as they were at the follower's position", images)

    def _steps(self, schema: Schema, keys: Mapping[TableName, tuple[str, ...]]) -> list[list[str]]:
        session = definitions.SESSION
        made = [replace(table, name=self._into(name)) for name, table in schema.tables.items()]
        steps = definitions.key_steps(made, {self._into(name): key for name, key in keys.items()})
        if self._scope.database:
            create = alters.create_database(schema.databases[self._scope.database])
            steps.append([session, *create.sql])
        for name, table in schema.tables.items():
            steps.append([session, f"DROP TABLE IF EXISTS {name.sql}"])
            steps.append([session, f"RENAME TABLE {self._into(name).sql} TO {name.sql}"])
            steps += [[session, sql] for sql in naming(table, self._into(name), self._writer)]
        return steps + definitions.object_steps(schema, self._version)


def _place(mark: Mark) -> Position:
    return Position(mark.file, mark.leader_offset)
