"""Writes the SQL files that mend what a run found, and does what --repair asks for."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cdc_consumer.parity import canonical
from cdc_consumer.parity.differences import FILE, read_differences
from cdc_consumer.parity.model import SchemaDifference, Shape
from cdc_consumer.parity.repair.apply import RepairResult, repair
from cdc_consumer.parity.repair.files import Header, write_files, write_schema_file
from cdc_consumer.parity.repair.plan import Plan
from cdc_consumer.parity.repair.proof import Proof
from cdc_consumer.parity.schema.compare import schema_mends
from cdc_consumer.parity.schema.records import Schema
from cdc_consumer.sql.server_errors import translate
from shared.mysql import Connection, MySQLError, connect, rows, variables
from shared.profile import Database


def write_repair(
    folder: Path, follower: Database, system_database: str, shapes: Sequence[Shape], proof: Proof
) -> None:  # fmt: skip
    """Write repair.sql and undo.sql of the run's differences that still hold."""
    with _plan(folder, follower, system_database, shapes, proof) as (plan, hides, _):
        write_files(plan, folder, Header(folder.name, str(follower), hides, proof.still))


def write_schema_repair(
    folder: Path, follower: Database, definitions: tuple[Schema, Schema], differences: Container[SchemaDifference]
) -> None:
    """Write schema-repair.sql, of these differences between the leader's schema and the follower's, if SQL mends any.

    Raises FollowerError.
    """
    mends = schema_mends(*definitions, differences)
    if not mends:
        return
    try:
        with connect(follower) as connection:
            hides = _hides_own_writes(connection)
        write_schema_file(mends, folder, Header(folder.name, str(follower), hides))
    except (MySQLError, OSError) as error:
        raise translate(error, "preparing the repair of the schema") from error


def repair_follower(
    folder: Path, follower: Database, system_database: str, shapes: Sequence[Shape], proof: Proof,
    say: Callable[[str], None],
) -> RepairResult:  # fmt: skip
    """Make the run's changes on the follower, rehearsed first. Raises FollowerError."""
    with _plan(folder, follower, system_database, shapes, proof) as (plan, hides, connection):
        say(f"repairing {len(plan):,} rows of {len(plan.tables)} tables")
        result = repair(connection, plan, hides_own_writes=hides, proof=proof)
    say(f"repaired {result.repaired:,} rows; {result.moved:,} had moved, {result.failed:,} could not be repaired")
    return result


@contextmanager
def _plan(
    folder: Path, follower: Database, system_database: str, shapes: Sequence[Shape], proof: Proof
) -> Iterator[tuple[Plan, bool, Connection]]:
    """The plan, whether the follower's binlog must not see it, and a connection of its own to apply it with."""
    try:
        with connect(follower) as reading, connect(follower) as writing:
            for statement in canonical.SESSION:
                rows(reading, statement)
            hides = _hides_own_writes(reading)
            by_name = {shape.name: shape for shape in shapes}
            proof.look(lambda sql: rows(reading, sql))
            with Plan(reading, read_differences(folder / FILE), by_name, system_database, proof.doubt) as plan:
                yield plan, hides, writing
    except (MySQLError, OSError) as error:
        raise translate(error, "preparing the repair") from error


def _hides_own_writes(connection: Connection) -> bool:
    """Whether the follower's binlog must not see a repair: there it would be a transaction the leader does not know."""
    found = variables(connection, "gtid_mode", "log_bin")
    return found.get("log_bin") == "ON" and found.get("gtid_mode") in ("ON", "ON_PERMISSIVE")
