"""Plans what is compared: of every table the columns and the key both sides share, and the ranges that tasks read."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from cdc_consumer.parity.model import Column, Shape, TableName
from cdc_consumer.parity.rows.ranges import EVERYTHING, TableQueries
from cdc_consumer.parity.rows.split import split
from cdc_consumer.parity.rows.task import Task
from cdc_consumer.parity.schema.ddl import tokens
from cdc_consumer.parity.schema.read import ColumnRecord, Schema, TableRecord
from cdc_consumer.parity.servers.connection import ServerConnection
from shared.errors import AuditError, ProfileError, ServerGoneError
from shared.filters import DatabaseFilter

#: types whose literals MySQL compares with the column in the column's own order
KEY_TYPES = frozenset(
    {
        "tinyint", "smallint", "mediumint", "int", "bigint", "bit", "decimal", "year", "date", "time", "datetime",
        "timestamp", "char", "varchar", "binary", "varbinary", "tinytext", "text", "tinyblob", "blob",
    }
)  # fmt: skip
#: functions of which each call, or each server, gives something else. NOW() is none: what it moves is looked at again
_CHANGING = frozenset(
    {
        "BENCHMARK", "CONNECTION_ID", "CURRENT_ROLE", "CURRENT_USER", "DATABASE", "FOUND_ROWS", "GET_LOCK",
        "IS_FREE_LOCK", "IS_USED_LOCK", "LAST_INSERT_ID", "LOAD_FILE", "RAND", "RANDOM_BYTES", "RELEASE_ALL_LOCKS",
        "RELEASE_LOCK", "ROW_COUNT", "SCHEMA", "SESSION_USER", "SLEEP", "SYSTEM_USER", "USER", "UUID", "UUID_SHORT",
        "VERSION",
    }
)  # fmt: skip
#: tasks for each of Spark's cores, so that the last ones end at about the same time
TASKS_PER_CORE = 8


@dataclass(frozen=True, slots=True)
class Sizes:
    """Says how finely tables are cut."""

    #: fewer would cost more round trips, more would make a busy table's leaves differ
    leaf_rows: int = 2000
    #: rows of a task at least and at most, about a second of work
    task_rows: tuple[int, int] = (20_000, 250_000)


SIZES = Sizes()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Names a table that cannot be compared."""

    table: TableName
    reason: str


def refuse_unknown(filters: DatabaseFilter, databases: Collection[str], tables: Collection[TableName]) -> None:
    """Raises ProfileError for what the profile names and nothing is compared of, and when there is nothing to compare.

    `databases` are those of both servers, `tables` their tables and views, without what the filters leave out.
    """
    for key, names in filters.unmet(databases, tables).items():
        raise ProfileError(
            f"filters.{key} names {names}, of which there is nothing to compare: neither server has it, or the other"
            " filters leave it out"
        )
    if not databases:
        raise ProfileError("filters.exclude_dbs leaves no database to compare")
    if not tables and "exclude_tables" in filters.told:
        raise ProfileError("filters.exclude_tables leaves no table to compare")


def check_where(where: str, shapes: Iterable[Shape], follower: ServerConnection) -> None:
    """Raises ProfileError when --where is no condition on the rows of one of the tables, or not the same twice."""
    own = list(tokens(where))
    for token, after in zip_longest(own, own[1:]):
        if token.text.startswith("@") or (token.word in _CHANGING and after is not None and after.text == "("):
            raise ProfileError(
                f"--where asks for {token.text}, which need not be the same on both servers, nor twice: each would"
                " choose rows of its own; let it depend on the columns alone"
            )
    for shape in shapes:
        try:
            follower.rows(TableQueries(shape, where).nothing())
        except ServerGoneError:
            raise
        except AuditError as error:
            raise ProfileError(f"--where cannot be asked of {shape.name}: {error}") from None


def chosen(names: Iterable[TableName], patterns: Sequence[str]) -> list[TableName]:
    """Choose the tables that a pattern ("db.table", with * and ?) names; all without patterns. Raises ProfileError."""
    tables = sorted(names)
    for pattern in patterns:
        if not any(fnmatch.fnmatchcase(str(table), pattern) for table in tables):
            raise ProfileError(f"--tables {pattern} names no table of the filters; tables are named database.table")
    return [table for table in tables if not patterns or any(fnmatch.fnmatchcase(str(table), p) for p in patterns)]


def shapes(leader: Schema, follower: Schema, tables: Iterable[TableName]) -> tuple[list[Shape], list[Skipped]]:
    """Return each table's shape, or why it has none."""
    found, skipped = [], []
    for name in tables:
        result = shape_of(name, leader.tables.get(name), follower.tables.get(name))
        if isinstance(result, Shape):
            found.append(result)
        else:
            skipped.append(result)
    return found, skipped


def shape_of(name: TableName, leader: TableRecord | None, follower: TableRecord | None) -> Shape | Skipped:
    """Return what both sides of a table have in common."""
    if leader is None or follower is None:
        return Skipped(name, f"it exists on the {'follower' if leader is None else 'leader'} only")
    leader_columns = {column.name: column for column in leader.columns}
    follower_columns = {column.name: column for column in follower.columns}
    columns, excluded = [], []
    for column in leader.columns:
        twin = follower_columns.get(column.name)
        reason = "on the leader only" if twin is None else _exclusion(column, twin)
        if twin is None or reason:
            excluded.append((column.name, reason))
        else:
            columns.append(_column(column, twin))
    excluded += [(column, "on the follower only") for column in follower_columns if column not in leader_columns]
    if not columns:
        return Skipped(name, "both sides have no column in common")
    return Shape(name, tuple(columns), _key(leader, follower), tuple(excluded))


def _exclusion(leader: ColumnRecord, follower: ColumnRecord) -> str:
    if "VIRTUAL" in (leader.generated, follower.generated):
        return "virtual: computed from the others; the schema comparison covers its expression"
    return ""


def _column(leader: ColumnRecord, follower: ColumnRecord) -> Column:
    converted = (leader.type, leader.charset) != (follower.type, follower.charset)
    charset = leader.charset if leader.charset == follower.charset else "utf8mb4"
    if None in (leader.charset, follower.charset):
        charset = None
    return Column(
        leader.name, leader.type, leader.data_type, charset, leader.nullable or follower.nullable,
        bool(leader.generated), converted,
    )  # fmt: skip


def _key(leader: TableRecord, follower: TableRecord) -> tuple[str, ...]:
    """The first key both sides have whose order both sides agree on."""
    leader_columns = {column.name: column for column in leader.columns}
    follower_columns = {column.name: column for column in follower.columns}
    other = {frozenset(key) for key in (follower.primary_key, *follower.unique_keys) if key}

    def orders(name: str) -> bool:
        one, two = leader_columns[name], follower_columns[name]
        same = (one.type, one.charset, one.collation) == (two.type, two.charset, two.collation)
        return same and one.data_type in KEY_TYPES and "VIRTUAL" not in (one.generated, two.generated)

    for key in (leader.primary_key, *leader.unique_keys):
        if key and frozenset(key) in other and all(map(orders, key)):
            return key
    return ()


def tasks(
    shape: Shape, record: TableRecord, follower: ServerConnection, cores: int, sizes: Sizes, where: str
) -> tuple[list[Task], str]:
    """Return the ranges of one table as tasks numbered from 0, and how they were found: see TableResult.split."""
    if not shape.key:
        return [Task(0, shape, EVERYTHING, record.rows, where, sizes.leaf_rows, (0.0, 1.0))], "no key"
    least, most = sizes.task_rows
    wanted = min(max(record.rows // (cores * TASKS_PER_CORE), least), most)
    ranges, method = split(TableQueries(shape, where), follower, record.rows, wanted)
    places = [index / len(ranges) for index in range(len(ranges) + 1)]
    expected = max(record.rows // len(ranges), 1)
    return [
        Task(number, shape, part, expected, where, sizes.leaf_rows, (places[number], places[number + 1]))
        for number, part in enumerate(ranges)
    ], method
