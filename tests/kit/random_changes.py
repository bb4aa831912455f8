"""One change after the other at random: of rows, of several rows in a transaction, of definitions."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from shared.mysql import Connection

#: rows of the tables stay below these, so that a scan for a row without key stays cheap
KEYED_ROWS, BAG_ROWS = 1500, 150

COLUMNS = "name, amount, happened, doc, raw, kind, score"
TYPES = """name VARCHAR(60), amount DECIMAL(20,6) NOT NULL, happened DATETIME(6), doc JSON, raw VARBINARY(40),
    kind ENUM('a', 'b', 'ç'), score DOUBLE"""
WORDS = (
    "",
    "x",
    "it's",
    'say "no"',
    "back\\slash",
    "nul\0nul",
    "naïve Zoë",
    "日本語",
    "🐬🐬",
    "trailing  ",
    "%s {} `q`",
)
#: of changes, and how often each of them
KINDS, WEIGHTS = ("rows", "transaction", "big", "definition"), (55, 36, 1, 8)
#: definitions of columns that come and go
ADDED = ("INT", "INT NOT NULL DEFAULT 7", "VARCHAR(30) DEFAULT 'é'", "DATETIME DEFAULT CURRENT_TIMESTAMP", "JSON")


class RandomChanges:
    """One random change over one connection."""

    def __init__(
        self, connection: Connection, random: Random, databases: Sequence[str], outside: str, copies: bool
    ) -> None:
        self._connection = connection
        self._copies = copies
        self.random = random
        self.databases = databases
        self.outside = outside

    def execute(self, sql: str, values: Any = None) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, values)

    def database(self) -> str:
        return self.random.choice(self.databases)

    def one(self, weights: Sequence[int]) -> str:
        """Make one change and name it."""
        (kind,) = self.random.choices(KINDS, weights)
        if kind == "rows":
            change = self._rows()
            change()
            return change.__name__
        if kind == "transaction":
            return self._transaction()
        if kind == "big":
            self.big()
        else:
            self.execute(self._definition())
        return kind

    def _rows(self) -> Callable[[], None]:
        return self.random.choice(
            (
                self.insert,
                self.insert,
                self.repeat,
                self.update,
                self.update_bag if self._copies else self.update,
                self.delete,
                self.replace,
                self.family,
            )
        )

    def _transaction(self) -> str:
        commits = self.random.random() < 0.75
        self.execute("BEGIN")
        for _ in range(self.random.randint(2, 6)):
            undone = self.random.random() < 0.15
            if undone:
                self.execute("SAVEPOINT s")
            self._rows()()
            if self.random.random() < 0.2:
                self.execute(f"INSERT INTO {self.outside}.noise VALUES (1)")
            if undone:
                self.execute("ROLLBACK TO SAVEPOINT s")
        self.execute("COMMIT" if commits else "ROLLBACK")
        return "commit" if commits else "rollback"

    def row(self) -> list[Any]:
        """Values of COLUMNS."""
        random = self.random
        return [
            random.choice((None, random.choice(WORDS) + str(random.randrange(100)))),
            random.choice((0, -1, random.randrange(-(10**19), 10**19) / 10**6)),
            random.choice((None, "0001-01-01 00:00:00.000001", f"2024-02-29 {random.randrange(24)}:59:59.5")),
            random.choice((None, json.dumps({"k": [random.randrange(9), 1.5, random.choice(WORDS), None]}))),
            random.choice((None, random.randbytes(random.randrange(12)), b"\0\0")),
            random.choice((None, "a", "b", "ç")),
            random.choice((None, 0.0, 0.1, random.uniform(-1e300, 1e300))),
        ]

    def _insert(self, verb: str, table: str, rows: Sequence[Sequence[Any]]) -> None:
        marks = ", ".join(["(%s, %s, %s, %s, %s, %s, %s)"] * len(rows))
        self.execute(
            f"{verb} INTO {self.database()}.{table} ({COLUMNS}) VALUES {marks}",
            [value for row in rows for value in row],
        )

    # changes of rows

    def insert(self) -> None:
        self._insert("INSERT", "keyed", [self.row() for _ in range(self.random.choice((1, 1, 3, 40)))])

    def repeat(self) -> None:
        """The same row several times, where no key tells them apart."""
        self._insert("INSERT", "bag", [self.row()] * self.random.randint(1, 3))

    def update(self) -> None:
        change = self.random.choice(("amount = amount + 1, name = %s", "name = %s, id = id + 1000000", "doc = %s"))
        value = json.dumps(self.random.choice(WORDS)) if "doc" in change else self.random.choice(WORDS)
        where = f"MOD(id, 11) = {self.random.randrange(11)} ORDER BY id DESC LIMIT {self.random.choice((1, 30))}"
        self.execute(f"UPDATE {self.database()}.keyed SET {change} WHERE {where}", [value])

    def update_bag(self) -> None:
        database, limit = self.database(), self.random.randint(1, 4)
        if self.random.random() < 0.5:
            self.execute(f"UPDATE {database}.bag SET amount = amount + 1 LIMIT {limit}")
        else:
            self.execute(f"DELETE FROM {database}.bag LIMIT {limit}")

    def delete(self) -> None:
        database = self.database()
        if self.random.random() < 0.5:
            self.execute(f"DELETE FROM {database}.keyed WHERE MOD(id, 13) = {self.random.randrange(13)} LIMIT 20")
            return
        for table, most in (("keyed", KEYED_ROWS), ("bag", BAG_ROWS))[: 2 if self._copies else 1]:
            with self._connection.cursor() as cursor:
                cursor.execute(f"SELECT COUNT(*) FROM {database}.{table}")
                ((count,),) = cursor.fetchall()
            if count > most:
                self.execute(f"DELETE FROM {database}.{table} LIMIT {count - most}")

    def replace(self) -> None:
        values = (self.random.randrange(1, 60), self.random.choice(WORDS))
        verb, end = self.random.choice(
            (("REPLACE", ""), ("INSERT", " ON DUPLICATE KEY UPDATE name = CONCAT(LEFT(parent.name, 9), '+')"))
        )
        self.execute(f"{verb} INTO {self.database()}.parent (id, name) VALUES (%s, %s){end}", values)

    def family(self) -> None:
        """Rows that follow their parent by foreign key."""
        database, number = self.database(), self.random.randrange(1, 60)
        self.execute(f"INSERT IGNORE INTO {database}.parent (id, name) VALUES ({number}, 'p')")
        self.execute(f"INSERT INTO {database}.child (parent) VALUES ({number}), ({number}), (NULL)")
        self.execute(
            self.random.choice(
                (
                    f"UPDATE {database}.parent SET id = {number + 60} WHERE id = {number}",
                    f"DELETE FROM {database}.parent WHERE id IN ({number}, {number + 60})",
                    f"DELETE FROM {database}.child WHERE parent IS NULL LIMIT 5",
                )
            )
        )

    def big(self) -> None:
        """A statement of many binlog events."""
        database, count = self.database(), self.random.randint(500, 3000)
        self.execute(
            f"INSERT INTO {database}.keyed (name, amount) WITH RECURSIVE n (i) AS"
            f" (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
            f" SELECT /*+ SET_VAR(cte_max_recursion_depth = 5000) */ REPEAT('ä', MOD(i, 60)), i FROM n"
        )
        self.execute(f"UPDATE {database}.keyed SET score = id, name = 'big' ORDER BY id DESC LIMIT {count // 4}")
        self.execute(f"DELETE FROM {database}.keyed ORDER BY id DESC LIMIT {count}")

    # changes of definitions

    def _definition(self) -> str:
        random, database, other = self.random, self.database(), self.database()
        table = f"{database}.{random.choice(('keyed', 'bag', 'parent', 's0', 's1', 's2', 's3'))}"
        scratch, another = (f"{name}.s{random.randrange(4)}" for name in (database, other))
        column, index = f"x{random.randrange(3)}", f"i{random.randrange(3)}"
        return random.choice(
            (
                f"ALTER TABLE {table} ADD COLUMN {column} {random.choice(ADDED)} {random.choice(('', 'FIRST'))}",
                f"ALTER TABLE {table} DROP COLUMN {column}",
                f"CREATE INDEX {index} ON {table} (name)",
                f"DROP INDEX {index} ON {table}",
                f"CREATE TABLE {scratch} (id INT AUTO_INCREMENT PRIMARY KEY, {TYPES})",
                f"CREATE TABLE {scratch} LIKE {database}.bag",
                f"CREATE TABLE {scratch} AS SELECT * FROM {database}.keyed LIMIT 30",
                f"DROP TABLE {scratch}",
                f"DROP TABLE IF EXISTS {scratch}, {another}",
                f"RENAME TABLE {scratch} TO {another}",
                f"RENAME TABLE {scratch} TO {database}.swap, {another} TO {scratch}, {database}.swap TO {another}",
                f"TRUNCATE TABLE {random.choice((scratch, f'{database}.bag'))}",
                f"INSERT INTO {scratch} ({COLUMNS}) SELECT {COLUMNS} FROM {other}.keyed LIMIT 20",
                f"CREATE OR REPLACE VIEW {database}.v AS SELECT id, {random.randrange(9)} AS n FROM {database}.keyed",
                f"ALTER TABLE {table} COMMENT '{random.randrange(100)}'",
            )
        )
