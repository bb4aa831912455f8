"""Puts the steps that mend a schema into an order in which each finds what it needs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.schema.alters import (
    SESSION,
    Phase,
    SchemaStep,
    add_constraint,
    alter_table,
    drop_constraint,
)
from cdc_consumer.parity.schema.needs import by_need
from cdc_consumer.parity.schema.normal import referenced_table
from cdc_consumer.parity.schema.records import ConstraintRecord, Schema


class Mend(NamedTuple):
    """Holds one statement of a schema's repair, or several that belong together, and what they are good for."""

    #: each needs SESSION and leaves it as it was
    sql: tuple[str, ...]
    #: sentences of the differences it mends
    mends: tuple[str, ...]
    #: what it removes with all that is in it
    loses: tuple[str, ...] = ()
    #: it cannot run before somebody has run one above it that loses something
    waits: bool = False


def shown(steps: Sequence[SchemaStep]) -> str:
    """Steps as text for people and the mysql client."""
    statements = (sql for unit in _units(steps) for sql in _sql(unit) if sql != SESSION)
    return "\n".join(map(delimited, statements))


def delimited(sql: str) -> str:
    """Return a statement with its end, as the mysql client needs it."""
    if ";" not in sql:
        return f"{sql};"
    end = ";;"
    while end in sql:
        end += ";"
    return f"DELIMITER {end}\n{sql}{end}\nDELIMITER ;"


def mends(steps: Sequence[SchemaStep], leader: Schema, follower: Schema) -> list[Mend]:
    """Return all steps as statements, one ALTER TABLE for each table and phase. Run SESSION before them."""
    units = list(_units([*steps, *_around(steps, leader, follower)]))
    held, lost = _held_tables(units, leader, follower), _lost_tables(steps)
    result = []
    for unit in units:
        loses = tuple(step.loses for step in unit if step.loses)
        waits = not loses and _waits(unit[0], held, lost)
        if waits and unit[0].whole is not None:
            held.add(unit[0].whole)
        result.append(Mend(_sql(unit), tuple(dict.fromkeys(step.mends for step in unit)), loses, waits))
    return result


def _units(steps: Sequence[SchemaStep]) -> Iterator[Sequence[SchemaStep]]:
    """Steps that are one statement, or one step of several statements, in an order that runs."""
    for phase in Phase:
        now = [step for step in steps if step.phase is phase]
        for step in _views(now) if phase is Phase.CREATE_VIEW else now:
            if step.table is None:
                yield (step,)
        altered: defaultdict[TableName, list[SchemaStep]] = defaultdict(list)
        for step in now:
            if step.table is not None:
                altered[step.table].append(step)
        yield from altered.values()


def _sql(unit: Sequence[SchemaStep]) -> tuple[str, ...]:
    table = unit[0].table
    if table is None:
        return unit[0].sql
    clauses = dict.fromkeys(clause for step in unit for clause in step.sql)
    return (alter_table(table, clauses, max((step.last for step in unit), key=bool)),)


def _around(steps: Sequence[SchemaStep], leader: Schema, follower: Schema) -> Iterator[SchemaStep]:
    """Take away for a while the foreign keys that stay: MySQL changes no column and drops no key under one.

    Those of a table that is to go are taken away for good: somebody may keep the table.
    """
    altered = {
        step.table for step in steps if step.phase in (Phase.ALTER_TABLE, Phase.DROP_COLUMN, Phase.ORDER_COLUMNS)
    }
    gone = {(step.table, step.sql) for step in steps if step.phase is Phase.DROP_FOREIGN_KEY}
    lost = _lost_tables(steps)
    for table, constraint, referenced in _foreign_keys(follower):
        drop = drop_constraint(table, constraint)
        if not altered & {table, referenced} or (drop.table, drop.sql) in gone:
            continue
        name = f"foreign key {table}.{constraint.name}"
        yield drop._replace(mends=f"{name} would be in the way of what follows")
        if table not in lost:
            add = add_constraint(leader.tables[table], constraint, named=True)
            yield add._replace(mends=f"{name} is put back")


def _foreign_keys(schema: Schema) -> Iterator[tuple[TableName, ConstraintRecord, TableName]]:
    """Each with its table and the table it refers to."""
    for table in schema.tables.values():
        for constraint in table.constraints:
            if constraint.kind == "foreign key":
                yield table.name, constraint, referenced_table(table.name, constraint.definition)


def _lost_tables(steps: Iterable[SchemaStep]) -> set[TableName]:
    return {step.whole for step in steps if step.phase is Phase.DROP_TABLE and step.whole is not None}


def _held_tables(units: Iterable[Sequence[SchemaStep]], leader: Schema, follower: Schema) -> set[TableName]:
    """The tables that wait for a statement which loses a column beside other changes, and those bound to them."""
    altered = [unit for unit in units if unit[0].phase is Phase.ALTER_TABLE]
    held = [step.table for unit in altered for step in unit if step.table is not None and step.loses]
    bound: defaultdict[TableName, set[TableName]] = defaultdict(set)
    for schema in (leader, follower):
        for table, _, referenced in _foreign_keys(schema):
            bound[table].add(referenced)
            bound[referenced].add(table)
    return {name for together in by_need(held, lambda name: bound[name]) for name in together}


def _waits(step: SchemaStep, held: Collection[TableName], lost: Collection[TableName]) -> bool:
    """Whether a statement needs one of the held tables as it will be, or the name of a table that is to go."""
    if step.phase is Phase.CREATE_VIEW:
        return step.whole in lost or any(name.sql in sql for name in held for sql in step.sql)
    return step.table in held or (step.phase is Phase.CREATE_TABLE and step.whole in held)


def _views(steps: Sequence[SchemaStep]) -> list[SchemaStep]:
    """Each view after those it names."""
    every = {step.whole: step for step in steps}

    def named(name: TableName | None) -> list[TableName | None]:
        return [each for each in every if each and each != name and any(each.sql in sql for sql in every[name].sql)]

    return [every[name] for together in by_need(every, named) for name in together]
