"""Steps in an order that runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from cdc_consumer.parity.model import TableName
from cdc_consumer.parity.schema.alters import (
    SESSION,
    Phase,
    Step,
    add_constraint,
    alter_table,
    drop_constraint,
    drop_table,
)
from cdc_consumer.parity.schema.normal import referenced_table
from cdc_consumer.parity.schema.records import Schema


def shown(steps: Sequence[Step]) -> str:
    """Steps as text for people and the mysql client."""
    statements = (sql for sql in _statements(steps) if sql != SESSION)
    return "\n".join(f"DELIMITER ;;\n{sql};;\nDELIMITER ;" if ";" in sql else f"{sql};" for sql in statements)


def ordered(steps: Sequence[Step], leader: Schema, follower: Schema) -> list[str]:
    """All steps as statements, one ALTER TABLE for each table and phase, beginning with SESSION; [] without steps."""
    own = [*steps, *_around(steps, leader, follower)]
    return [SESSION, *_statements(own)] if own else []


def _statements(steps: Sequence[Step]) -> Iterator[str]:
    for phase in Phase:
        now = [step for step in steps if step.phase is phase]
        for step in _by_need(now) if phase is Phase.CREATE_VIEW else now:
            if step.table is None:
                yield from step.sql
        yield from _merged(now)


def _merged(steps: Iterable[Step]) -> Iterator[str]:
    clauses: defaultdict[TableName, list[str]] = defaultdict(list)
    last: dict[TableName, str] = {}
    for step in steps:
        if step.table is not None:
            clauses[step.table] += step.sql
            last[step.table] = step.last or last.get(step.table, "")
    for table, own in clauses.items():
        yield alter_table(table, dict.fromkeys(own), last[table])


def _around(steps: Sequence[Step], leader: Schema, follower: Schema) -> Iterator[Step]:
    """Take away for a while the foreign keys that stay: MySQL changes no column and drops no key under one."""
    altered = {step.table for step in steps if step.phase in (Phase.ALTER_TABLE, Phase.ORDER_COLUMNS)}
    gone = {(step.table, step.sql) for step in steps if step.phase is Phase.DROP_FOREIGN_KEY}
    dropped = {step.sql for step in steps if step.phase is Phase.DROP_TABLE}
    for table in follower.tables.values():
        for constraint in table.constraints:
            if constraint.kind != "foreign key" or drop_table(table.name).sql in dropped:
                continue
            drop = drop_constraint(table.name, constraint)
            if (
                altered & {table.name, referenced_table(table.name, constraint.definition)}
                and (drop.table, drop.sql) not in gone
            ):
                yield drop
                yield add_constraint(leader.tables[table.name], constraint, named=True)


def _by_need(views: Iterable[Step]) -> list[Step]:
    """Each view after those it names."""
    waiting = {step.creates: step for step in views}
    done: list[Step] = []

    def take(step: Step) -> None:
        del waiting[step.creates]
        for name, other in list(waiting.items()):
            if name in waiting and name is not None and any(name.sql in statement for statement in step.sql):
                take(other)
        done.append(step)

    while waiting:
        take(next(iter(waiting.values())))
    return done
