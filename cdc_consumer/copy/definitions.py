"""Makes the leader's databases and tables on the follower: what rows need at once, and everything else behind them.

A table begins with the key that its ranges are of, and none else: keys are cheaper to make of rows that are there, and
a unique one would clash with rows of different moments.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping

from cdc_consumer.parity.model import Shape, TableName
from cdc_consumer.parity.rows.plan import Skipped, shape_of
from cdc_consumer.parity.schema import alters, normal
from cdc_consumer.parity.schema.ddl import read_create_table
from cdc_consumer.parity.schema.needs import by_need
from cdc_consumer.parity.schema.normal import with_status
from cdc_consumer.parity.schema.records import ObjectRecord, Schema, TableRecord
from cdc_consumer.sql import literals
from cdc_consumer.sql.session import RELAXED_MODE, STRICT_MODE
from shared.errors import FollowerError, LeaderError
from shared.mysql import ER, Connection, MySQLError, error_number, quote_name, rows

#: in which the statements here run; PAD_CHAR_TO_FULL_LENGTH and the like would alter what they mean
SESSION = (
    f"SET SESSION sql_mode = {STRICT_MODE}, time_zone = '+00:00', foreign_key_checks = 0,"
    " collation_connection = utf8mb4_0900_ai_ci"
)
#: the next number to give, in a table's options: it is no part of a definition
_COUNTER = re.compile(r"\A((?:/\*!50100 TABLESPACE `(?:[^`]|``)+` \*/ )?ENGINE=\w+) AUTO_INCREMENT=(\d+)")
#: what a statement makes or alters
_TABLE = re.compile(r"(?:CREATE|ALTER) TABLE (`(?:[^`]|``)+`\.`(?:[^`]|``)+`) ")
#: an action of a foreign key that changes rows of another table
_CASCADE = re.compile(r" ON (?:DELETE|UPDATE) (?:CASCADE|SET NULL)")
#: from here on a leader writes into its binlog what foreign keys do
CASCADES_LOGGED = (9, 6)


def definition_hash(table: TableRecord) -> str:
    """Return the SHA-256, in hexadecimal, of all that is defined of a table."""
    options = read_create_table(table.definition).options
    return hashlib.sha256(literals.encode(table.definition.replace(options, _uncounted(options)))).hexdigest()


def _uncounted(options: str) -> str:
    return _COUNTER.sub(r"\1", options)


def shape(table: TableRecord) -> Shape:
    """Return the table as the copy sees it; its key tells any two rows apart, () where none does."""
    found = shape_of(table.name, table, table)
    if isinstance(found, Skipped):
        raise LeaderError(f"table {table.name} cannot be copied: {found.reason}")
    return found


def refuse_uncopied(schema: Schema, version: tuple[int, ...]) -> None:
    """Raise LeaderError for a table whose rows the topic and the copy cannot bring exactly."""
    for table in schema.tables.values():
        if table.engine != "InnoDB":
            raise LeaderError(
                f"table {table.name} of the leader is stored by {table.engine}, which shows no moment of it; run there:"
                f" ALTER TABLE {table.name.sql} ENGINE=InnoDB, or leave its database out"
            )
        if version < CASCADES_LOGGED and any(_CASCADE.search(each.definition) for each in table.constraints):
            raise LeaderError(
                f"table {table.name} has a foreign key that changes its rows by itself, which a leader before MySQL 9.6"
                " does not write into its binlog; load the follower by a dump instead (README, Where an empty topic"
                " begins)"
            )


def create_table(table: TableRecord, key: tuple[str, ...], check_names: Mapping[str, str]) -> str:
    """Return the statement that makes a table ready for rows; `key` are the columns of the key they are copied by.

    `check_names` has the names of those checks that get other ones than they have.
    """
    parts = read_create_table(table.definition)
    kept = {each.name for each in table.keys if each.name in _needed_keys(table, key)}
    checks = [
        f"CONSTRAINT {quote_name(check_names.get(name, name))}{line.removeprefix(f'CONSTRAINT {quote_name(name)}')}"
        for name, kind, line in parts.constraints
        if kind == "check"
    ]
    lines = [
        *map(_column, parts.columns.values()),
        *(line for name, line in parts.keys.items() if name in kept),
        *checks,
    ]
    return f"CREATE TABLE {table.name.sql} ({', '.join(lines)}) {_uncounted(parts.options)} {parts.partitioning}"


def run(connection: Connection, sql: str) -> None:
    """Run a statement that makes something, in `SESSION`; without strict mode where a table needs that.

    An ENUM or SET with values that its collation takes for one is made by no other session. Raises MySQLError, and
    FollowerError where the table does not come out as the statement says.
    """
    try:
        rows(connection, literals.encode(sql))
    except MySQLError as error:
        table = _TABLE.match(sql)
        if error_number(error) != ER.DUPLICATED_VALUE_IN_TYPE or table is None:
            raise
        rows(connection, f"SET SESSION sql_mode = {RELAXED_MODE}")
        try:
            rows(connection, literals.encode(sql))
        finally:
            rows(connection, f"SET SESSION sql_mode = {STRICT_MODE}")
            _refuse_other(connection, table[1], sql)


def _refuse_other(connection: Connection, table: str, sql: str) -> None:
    """Raise FollowerError where a table has a part otherwise than the statement says that made it."""
    found = [str(shown) for _, shown in rows(connection, f"SHOW CREATE TABLE {table}")]
    made = read_create_table(found[0])
    parts = [line for name, line in made.keys.items() if f"KEY {quote_name(name)} (" in sql]
    if sql.startswith("CREATE"):
        parts += [*map(_column, made.columns.values()), _uncounted(made.options), made.partitioning]
    for part in parts:
        if part not in sql:
            raise FollowerError(f"the follower makes table {table} otherwise than the leader, with {part[:200]}")


def _column(line: str) -> str:
    """Leave out a collation that a column has from its table: once it is named, SHOW CREATE names a character set."""
    clauses = normal.column_clauses(line)
    if "COLLATE" not in clauses or "CHARACTER" in clauses:
        return line
    named = clauses["COLLATE"]
    return line[: named[0].start].rstrip() + line[named[1].end :]


def _needed_keys(table: TableRecord, key: tuple[str, ...]) -> Iterator[str]:
    """Name the primary key, the key that rows are copied by, and one that a column that counts up must have."""
    if table.primary_key:
        yield "PRIMARY"
    elif key:
        yield next(each.name for each in table.keys if each.unique and each.whole and each.columns == key)
    for column in table.columns:
        if column.auto_increment and table.primary_key[:1] != (column.name,):
            yield from (each.name for each in table.keys if each.columns[:1] == (column.name,))


def steps(schema: Schema, keys: Mapping[TableName, tuple[str, ...]], version: tuple[int, ...]) -> list[list[str]]:
    """Return what is to be made behind the rows, in order, each as the statements of one session.

    The last statement of a step changes something; those before it set the session, or enter a database.
    """
    return [*key_steps(schema.tables.values(), keys), *object_steps(schema, version)]


def key_steps(tables: Iterable[TableRecord], keys: Mapping[TableName, tuple[str, ...]]) -> list[list[str]]:
    """Return, as `steps` does, what makes the keys that tables do not have yet; of `keys` each has its own."""
    return [[SESSION, sql] for table in tables for sql in _table_steps(table, keys[table.name])]


def object_steps(schema: Schema, version: tuple[int, ...]) -> list[list[str]]:
    """Return, as `steps` does, what needs more than one table, or none: foreign keys, views, routines and events."""
    found = [
        [SESSION, alters.alter_table(table.name, [f"ADD {each.definition}"])]
        for table in schema.tables.values()
        for each in table.constraints
        if each.kind == "foreign key"
    ]
    objects = [record for record in schema.objects.values() if record.kind != "TRIGGER"]
    order = {"LIBRARY": 0, "FUNCTION": 1, "PROCEDURE": 2, "VIEW": 3, "EVENT": 4}
    objects.sort(key=lambda record: order[record.kind])
    for record in _views_by_need(objects):
        database = schema.databases[record.name.database]
        step = _object_step(record, version)
        if (other := record.context.database_collation) in (None, database.collation):
            found.append(step)
        else:
            # what the body leaves to its database was decided when it was created
            entered = f"ALTER DATABASE {quote_name(database.name)} COLLATE {other}"
            found += [[entered, *step], [SESSION, *alters.alter_database(database).sql]]
    return found


def _table_steps(table: TableRecord, key: tuple[str, ...]) -> Iterator[str]:
    there = set(_needed_keys(table, key))
    parts = read_create_table(table.definition)
    missing = [line for name, line in parts.keys.items() if name not in there]
    together = [line for line in missing if not line.startswith("FULLTEXT")]
    if together:
        # keys of one kind stand in the order in which they came: what is behind a new one comes once more
        behind = list(parts.keys.items())[list(parts.keys.values()).index(together[0]) :]
        again = [name for name, _ in behind if name in there]
        yield alters.alter_table(
            table.name,
            [
                *(f"DROP KEY {quote_name(name)}" for name in again),
                *(f"ADD {line}" for name, line in behind if name in again or line in together),
            ],
        )
    # InnoDB makes one of these at a time
    yield from (alters.alter_table(table.name, [f"ADD {line}"]) for line in missing if line not in together)
    if counter := _COUNTER.search(parts.options):
        yield alters.alter_table(table.name, [f"AUTO_INCREMENT = {counter[2]}"])


def _views_by_need(objects: list[ObjectRecord]) -> list[ObjectRecord]:
    """Put each view behind those it reads."""
    views = {record.name: record for record in objects if record.kind == "VIEW"}
    found = by_need(views, lambda name: _named_in(views[name], views))
    ordered = (name for together in found for name in together)
    return [views[next(ordered)] if record.kind == "VIEW" else record for record in objects]


def _named_in(view: ObjectRecord, views: Mapping[TableName, ObjectRecord]) -> list[TableName]:
    return [name for name in views if name != view.name and quote_name(name.table) in view.definition]


def _object_step(record: ObjectRecord, version: tuple[int, ...]) -> list[str]:
    """Create a view, routine or event as it is, definer included; an event so that it does not run."""
    entered = [SESSION, f"USE {quote_name(record.name.database)}", *alters.enter(record.context)]
    if record.kind != "EVENT":
        return [*entered, record.definition]
    # one whose time has passed is not made, with a note that is no error
    status = "DISABLE ON REPLICA" if version >= (8, 2) else "DISABLE ON SLAVE"
    return [*entered, "SET SESSION timestamp = 1", with_status(record.definition, status)]
