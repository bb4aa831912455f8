"""Invented changes of rows: of one table, of two, in transactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from trial.invent.columns import Column
from trial.script import FIRST, Step


@dataclass(slots=True)
class Table:
    """What the inventor believes of a table."""

    name: str
    columns: list[Column]
    key: list[str] = field(default_factory=list)
    parts: str = ""

    @property
    def written(self) -> list[Column]:
        return [column for column in self.columns if not column.derived]


class Changes:
    """Statements of the sessions of one script, over tables that are believed to be there."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.steps: list[Step] = []
        self.session = FIRST
        self.tables: list[Table] = []
        self.numbers = 0

    def say(self, statement: str) -> None:
        self.steps.append(Step(self.session, statement.strip().encode()))

    def name(self, prefix: str) -> str:
        self.numbers += 1
        return f"{prefix}{self.numbers}"

    def table(self) -> Table:
        return self.random.choice(self.tables)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def insertion(self, table: Table, verb: str, rows: int) -> str:
        columns = (
            table.written if self.chance(0.8) else table.written[: self.random.randint(1, len(table.written) or 1)]
        )
        lines = [", ".join(column.value(self.random) for column in columns) for _ in range(rows)]
        names = ", ".join(column.name for column in columns)
        return f"{verb} INTO {table.name} ({names}) VALUES {', '.join(f'({line})' for line in lines)}"

    def insert(self) -> None:
        table = self.table()
        verb = self.random.choice(("INSERT", "INSERT", "INSERT IGNORE", "INSERT IGNORE", "REPLACE"))
        text = self.insertion(table, verb, self.random.choice((1, 1, 2, 5)))
        if verb == "INSERT" and self.chance(0.3):
            column = self.random.choice(table.columns)
            text += f" ON DUPLICATE KEY UPDATE {column.name} = {column.value(self.random)}"
        self.say(text)

    def update(self) -> None:
        table = self.table()
        column = self.random.choice(table.written or table.columns)
        value = column.value(self.random)
        if column.case.type == "JSON" and self.chance(0.6):
            path = self.random.choice(("'$.a'", "'$[0]'", "'$.b.c'"))
            value = self.random.choice(
                (f"JSON_SET({column.name}, {path}, 1.50)", f"JSON_REMOVE({column.name}, {path})",
                 f"JSON_REPLACE({column.name}, {path}, CAST(3 AS UNSIGNED))", f"JSON_ARRAY_APPEND({column.name}, '$', 'x')")
            )  # fmt: skip
        ignore = self.random.choice(("", " IGNORE"))
        self.say(f"UPDATE{ignore} {table.name} SET {column.name} = {value}{self.where(table)}")

    def delete(self) -> None:
        table = self.table()
        self.say(f"DELETE FROM {table.name}{self.where(table)}")

    def where(self, table: Table) -> str:
        column = self.random.choice(table.columns)
        value = self.random.choice(column.case.values)
        test = self.random.choice((f"{column.name} IS NOT NULL", f"{column.name} <=> {value}", "1"))
        return f" WHERE {test}{self.random.choice(('', ' LIMIT 1', f' ORDER BY {column.name} LIMIT 2'))}"

    def several(self) -> None:
        """Statements over two tables."""
        one, two = self.table(), self.table()
        column, other = self.random.choice(one.columns), self.random.choice(two.columns)
        value = column.value(self.random)
        self.say(
            self.random.choice(
                (f"UPDATE {one.name} a, {two.name} b SET a.{column.name} = {value}", f"DELETE a, b FROM {one.name} a JOIN {two.name} b",
                 f"UPDATE IGNORE {one.name} a JOIN {two.name} b ON a.{column.name} = b.{other.name} SET a.{column.name} = {value}",
                 f"INSERT IGNORE INTO {one.name} ({column.name}) SELECT {other.name} FROM {two.name}",
                 f"REPLACE INTO {one.name} SELECT * FROM {one.name}",
                 f"DELETE a FROM {one.name} a LEFT JOIN {two.name} b ON a.{column.name} = b.{other.name} WHERE b.{other.name} IS NULL")
            )
        )  # fmt: skip
