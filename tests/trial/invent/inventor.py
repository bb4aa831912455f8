"""Invents scripts: sessions with settings, definitions and changes of rows, the same for the same seed.

The inventor keeps in mind what it believes is on the leader. Where it is wrong a statement fails there, and no harm is
done: what failed is not replicated.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from trial.invent.changes import Changes, Table
from trial.invent.columns import NUMBER, derived, key, plain
from trial.invent.settings import setting
from trial.script import FIRST, Step

SESSIONS = (FIRST, FIRST, FIRST, "second", "third")
DATABASES = ("test", "test", "d1", "d2")
CHARACTER_SETS = ("utf8mb4", "latin1", "gbk", "utf8mb3", "utf16", "sjis", "ascii", "utf8mb4 COLLATE utf8mb4_0900_bin")


def invent(random: Random, length: int) -> list[Step]:
    """About `length` statements of several sessions."""
    return _Inventor(random, length).steps


class _Inventor(Changes):
    def __init__(self, random: Random, length: int) -> None:
        super().__init__(random)
        self.say("CREATE DATABASE d1")
        self.say(f"CREATE DATABASE d2 CHARACTER SET {random.choice(CHARACTER_SETS)}")
        for _ in range(2):
            self.create()
        while len(self.steps) < length:
            self.session = random.choice(SESSIONS)
            self.one()
        for session in dict.fromkeys(SESSIONS):
            self.steps.append(Step(session, b"COMMIT"))

    def one(self) -> None:
        """One change, or a few that belong together."""
        dml = (self.insert, self.insert, self.insert, self.update, self.update, self.delete, self.several, self.odd)
        ddl = (
            self.create,
            self.alter,
            self.alter,
            self.alter,
            self.copy,
            self.move,
            self.stored,
            self.view,
            self.database,
        )
        kinds: tuple[tuple[Callable[[], None], ...], ...] = (
            (self.configure,),
            dml,
            ddl,
            (self.transaction,),
            (self.prepared,),
        )
        self.random.choice(self.random.choices(kinds, (12, 45, 26, 12, 4))[0])()

    # sessions

    def configure(self) -> None:
        self.say(setting(self.random))

    def transaction(self) -> None:
        self.say(self.random.choice(("BEGIN", "START TRANSACTION", "START TRANSACTION WITH CONSISTENT SNAPSHOT")))
        for _ in range(self.random.randint(1, 4)):
            savepoint = self.chance(0.3)
            if savepoint:
                self.say("SAVEPOINT `s p`")
            self.random.choice((self.insert, self.update, self.delete))()
            if savepoint:
                self.say(self.random.choice(("ROLLBACK TO `s p`", "RELEASE SAVEPOINT `s p`")))
        self.say(self.random.choice(("COMMIT", "COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "COMMIT")))

    def prepared(self) -> None:
        before = len(self.steps)
        self.random.choice((self.insert, self.update, self.delete, self.alter))()
        text = (self.steps.pop().sql or b"").decode()
        del self.steps[before:]
        escaped = text.replace("\\", "\\\\").replace("'", "''")
        self.say(f"PREPARE p FROM '{escaped}'")
        self.say("EXECUTE p")

    # tables

    def create(self) -> None:
        name = f"{self.random.choice(DATABASES)}.{self.name('t')}"
        columns = [plain(self.random, f"c{number}") for number in range(self.random.randint(1, 5))]
        kind = self.random.choice(("none", "number", "number", "composite", "composite", "unique"))
        keys: list[str] = []
        if kind == "number":
            columns.insert(0, NUMBER)
            keys = ["id"]
        elif kind in ("composite", "unique"):
            more = [key(self.random, f"k{number}") for number in range(self.random.randint(1, 3))]
            columns[0:0] = more
            keys = [column.name for column in more]
        for number in range(self.random.choice((0, 0, 1, 2))):
            found = derived(self.random, f"g{number}", columns)
            columns += [found] if found else []
        table = Table(name, columns, keys)
        lines = [column.definition for column in columns]
        lines += [f"{'UNIQUE KEY u' if kind == 'unique' else 'PRIMARY KEY'} ({', '.join(keys)})"] if keys else []
        lines += [f"KEY ({column.name})" for column in columns if column.derived and self.chance(0.4)]
        self.say(f"CREATE TABLE {name} ({', '.join(lines)}){self.options()}{self.partitions(table)}")
        self.tables.append(table)
        self.tables = self.tables[-7:]

    def options(self) -> str:
        return self.random.choice(
            ("", "", "", " ENGINE=InnoDB", " ROW_FORMAT=COMPRESSED", " COMMENT='ein ''Kommentar'", " AUTO_INCREMENT=100",
             f" DEFAULT CHARSET={self.random.choice(CHARACTER_SETS)}", " STATS_PERSISTENT=0")
        )  # fmt: skip

    def partitions(self, table: Table) -> str:
        if table.key != ["id"] or not self.chance(0.3):
            return ""
        table.parts = self.random.choice(
            (" PARTITION BY HASH (id) PARTITIONS 3", " PARTITION BY KEY (id) PARTITIONS 2",
             " PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (3), PARTITION p1 VALUES LESS THAN MAXVALUE)")
        )  # fmt: skip
        return table.parts

    def alter(self) -> None:
        table = self.table()
        added = plain(self.random, self.name("a"))
        made = derived(self.random, self.name("g"), table.columns)
        victim = self.random.choice(table.columns)
        column = f"ADD COLUMN {added.definition}{self.random.choice(('', ' FIRST', f' AFTER {victim.name}'))}"
        choices = [
            (column, [added]), (column, [added]), (f"ADD COLUMN {added.definition}, ALGORITHM=COPY", [added]),
            (f"DROP COLUMN {victim.name}", None), (f"MODIFY {victim.name} {plain(self.random, 'x').case.type}", []),
            (f"CONVERT TO CHARACTER SET {self.random.choice(CHARACTER_SETS)}", []), ("ENGINE=InnoDB", []),
            (f"ADD INDEX {self.name('i')} ({victim.name})", []), (f"ADD INDEX {self.name('i')} ({victim.name}(3))", []),
            (f"ADD UNIQUE {self.name('u')} ({victim.name})", []), (f"COMMENT = '{self.random.choice(('é', 'x'))}'", []),
            (f"ALTER COLUMN {victim.name} SET INVISIBLE", []), (f"RENAME COLUMN {victim.name} TO {victim.name}", []),
            ("AUTO_INCREMENT = 1000", []), ("FORCE", []), ("REMOVE PARTITIONING", []), ("TRUNCATE PARTITION p0", []),
            ("PARTITION BY KEY () PARTITIONS 2", []), (f"ADD CHECK ({victim.name} IS NOT NULL OR 1)", []),
            ("ADD COLUMN own INT NOT NULL AUTO_INCREMENT UNIQUE", []), (f"ADD KEY {self.name('f')} ((CAST({victim.name} AS CHAR(9))))", []),
        ]  # fmt: skip
        if made:
            choices += [(f"ADD COLUMN {made.definition}", [made])] * 2
        change, new = self.random.choice(choices)
        self.say(f"ALTER TABLE {table.name} {change}")
        if new is None and len(table.columns) > 1:
            table.columns.remove(victim)
        table.columns += new or []

    def copy(self) -> None:
        source = self.table()
        name = f"{self.random.choice(DATABASES)}.{self.name('t')}"
        columns = ", ".join(column.name for column in source.columns)
        options = self.options()
        self.say(
            self.random.choice(
                (f"CREATE TABLE {name} LIKE {source.name}", f"CREATE TABLE {name}{options} AS SELECT * FROM {source.name}",
                 f"CREATE TABLE {name}{options} SELECT {columns} FROM {source.name} LIMIT 3",
                 f"CREATE TABLE {name} (extra INT DEFAULT 3){options} IGNORE SELECT * FROM {source.name}",
                 f"CREATE TEMPORARY TABLE {name} AS SELECT * FROM {source.name}")
            )
        )  # fmt: skip
        if "TEMPORARY" not in (self.steps[-1].sql or b"").decode():
            self.tables.append(Table(name, [column for column in source.columns if not column.derived]))

    def move(self) -> None:
        table = self.table()
        if self.chance(0.3) and len(self.tables) > 3:
            self.say(f"DROP TABLE {table.name}")
            self.tables.remove(table)
        elif self.chance(0.3):
            self.say(f"TRUNCATE TABLE {table.name}")
        else:
            name = f"{self.random.choice(DATABASES)}.{self.name('r')}"
            self.say(
                f"{self.random.choice((f'RENAME TABLE {table.name} TO', f'ALTER TABLE {table.name} RENAME'))} {name}"
            )
            table.name = name

    # what is stored beside tables

    def stored(self) -> None:
        table, name = self.table(), self.random.choice(("s1", "s2"))
        insert = self.insertion(table, "INSERT IGNORE", 1)
        home = table.name.partition(".")[0]
        self.say(
            self.random.choice(
                (f"CREATE PROCEDURE {home}.{name}() BEGIN {insert}; SELECT 'é'; END",
                 f"CREATE FUNCTION {home}.f{name}(a INT) RETURNS VARCHAR(20) DETERMINISTIC RETURN CONCAT(a, 'x\\'y')",
                 f"CALL {home}.{name}()", f"DROP PROCEDURE IF EXISTS {home}.{name}", f"ALTER PROCEDURE {home}.{name} COMMENT 'c'",
                 f"CREATE EVENT {home}.e{name} ON SCHEDULE EVERY 1 YEAR DISABLE DO {insert}",
                 f"ALTER EVENT {home}.e{name} COMMENT 'x'", f"DROP EVENT IF EXISTS {home}.e{name}",
                 f"CREATE TRIGGER {home}.t{name} {self.random.choice(('BEFORE', 'AFTER'))} DELETE ON {table.name} FOR EACH ROW SET @x = 1",
                 f"CREATE TRIGGER {home}.{self.name('t')} AFTER UPDATE ON {table.name} FOR EACH ROW BEGIN {self.insertion(self.table(), 'INSERT IGNORE', 1)}; END",
                 f"DROP TRIGGER IF EXISTS {home}.t{name}", f"SELECT {home}.f{name}(1)")
            )
        )  # fmt: skip

    def view(self) -> None:
        table, name = self.table(), f"{self.random.choice(DATABASES)}.v{self.random.randrange(3)}"
        column = self.random.choice(table.columns).name
        self.say(
            self.random.choice(
                (f"CREATE OR REPLACE VIEW {name} AS SELECT {column} AS a, 'é\\'' AS b FROM {table.name}",
                 f"CREATE VIEW {name} AS SELECT * FROM {table.name} WHERE {column} IS NOT NULL WITH CHECK OPTION",
                 f"ALTER VIEW {name} AS SELECT COUNT(*) AS n FROM {table.name}", f"DROP VIEW IF EXISTS {name}",
                 f"CREATE ALGORITHM=MERGE SQL SECURITY INVOKER VIEW {name} AS SELECT CAST({column} AS CHAR) AS x FROM {table.name}")
            )
        )  # fmt: skip

    def database(self) -> None:
        name = self.random.choice(("d1", "d2", "d3"))
        charset = self.random.choice(CHARACTER_SETS)
        self.say(
            self.random.choice(
                (f"USE {name}", "USE test", f"ALTER DATABASE {name} CHARACTER SET {charset}", f"ALTER DATABASE CHARACTER SET {charset}",
                 f"CREATE DATABASE d3 CHARACTER SET {charset}", "DROP DATABASE d3", f"CREATE TABLE {name}.plain{self.numbers} (a CHAR(3))")
            )
        )  # fmt: skip

    def odd(self) -> None:
        table = self.table()
        columns = ", ".join(column.name for column in table.written[:3])
        self.say(
            self.random.choice(
                (f"LOAD DATA LOCAL INFILE 'tests/trial/rows.tsv' IGNORE INTO TABLE {table.name} CHARACTER SET utf8mb4 ({columns})",
                 f"LOCK TABLES {table.name} WRITE", "UNLOCK TABLES", f"ANALYZE TABLE {table.name}", "FLUSH BINARY LOGS",
                 f"CREATE TEMPORARY TABLE test.tmp{self.random.randrange(2)} (a INT)", "DROP TEMPORARY TABLE IF EXISTS test.tmp0",
                 f"DROP TABLE IF EXISTS {table.name}x, test.none", f"OPTIMIZE TABLE {table.name}")
            )
        )  # fmt: skip
