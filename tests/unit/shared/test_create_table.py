"""Tells which other databases a CREATE or ALTER TABLE names, however they are spelled, and whether it has a query."""

from __future__ import annotations

import pytest

from shared.statements.create_table import referenced_tables
from shared.statements.tokens import ANSI_QUOTES, Unreadable

OUTSIDE = [
    "ALTER TABLE a.t ADD FOREIGN KEY (id) REFERENCES v.x(id)",
    "ALTER TABLE t ADD CONSTRAINT c FOREIGN KEY f (id) REFERENCES `v`.`x` (id) ON DELETE CASCADE",
    "ALTER TABLE t ADD COLUMN c INT REFERENCES v.x (id)",
    "ALTER TABLE t ADD (c INT REFERENCES v.x (id), d INT)",
    "CREATE TABLE t (id INT, FOREIGN KEY (id) REFERENCES v . x (id))",
    "CREATE TABLE IF NOT EXISTS a.t (id INT references/**/v/* . */./**/x(id))",
    "CREATE TABLE t (id INT REFERENCES -- it.s\n v.x(id))",
    "CREATE TABLE t (id INT /*!80000 REFERENCES v.x(id) */)",
    "CREATE TABLE t (id INT REFERENCES /*!80000 v. */ x(id))",
    "/* x */ CREATE TABLE t (id INT COMMENT 'REFERENCES t(id)' REFERENCES v.x(id))",
    "CREATE TABLE t (a INT REFERENCES t(id), b INT REFERENCES `v`.x(id), c INT REFERENCES v.y(id))",
    "CREATE TABLE t (a INT) ENGINE=MERGE UNION=(v.x)",
    "CREATE TABLE t (a INT) UNION (own.x, `v`.`y`) INSERT_METHOD=LAST",
    "ALTER TABLE t UNION = (v.x), COMMENT 'UNION=(w.x)'",
    "CREATE TABLE a.t LIKE v.x",
    "CREATE TABLE IF NOT EXISTS t/**/(/**/like/**/`v`.x)",
]
WITHIN = [
    "CREATE TABLE t (id INT PRIMARY KEY, p INT REFERENCES t (id))",
    "CREATE TABLE v.t (id INT, FOREIGN KEY (id) REFERENCES `x` (id))",
    "ALTER TABLE t ADD FOREIGN KEY (id) REFERENCES x(id), COMMENT 'REFERENCES v.x(id)'",
    "CREATE TABLE t (id INT) /* REFERENCES v.x(id) */ COMMENT=\"REFERENCES v.x\"",
    "CREATE TABLE t (`REFERENCES` INT, v INT, CHECK (t.references > v.x))",
    "CREATE TABLE t (a VARCHAR(9) CHECK (a LIKE 'v.x' AND a LIKE (v.x)))",
    "CREATE TABLE v.t LIKE x",
    "DROP TABLE v.x",
    "CREATE TABLE t (a INT) UNION=(x, own.y) ENGINE=MERGE",
    "CREATE TABLE t (a INT) UNION=()",
    "CREATE TABLE t (`UNION` INT) COMMENT='UNION=(v.x)'",
]  # fmt: skip


def named(sql: str) -> set[str]:
    """The databases of the tables that a statement on a table of `own` names."""
    return {database or "own" for database, _ in referenced_tables(sql.encode(), 0, "own", "utf8mb4", 80036)}


@pytest.mark.parametrize("sql", OUTSIDE)
def test_a_database_that_is_named(sql: str) -> None:
    assert named(sql) - {"own"} == {"v"}


@pytest.mark.parametrize("sql", WITHIN)
def test_no_database_is_named(sql: str) -> None:
    assert named(sql) <= {"own"}


def test_names_of_several_databases_and_quotes() -> None:
    sql = b'CREATE TABLE t (a INT REFERENCES "v""1".x(id), b INT REFERENCES `v``2`.x(id), c INT REFERENCES a.t(id))'
    found = dict.fromkeys(database for database, _ in referenced_tables(sql, ANSI_QUOTES, "", "utf8mb4", 80036))
    assert tuple(found) == ('v"1', "v`2", "a")


def test_a_database_whose_name_cannot_be_known() -> None:
    with pytest.raises(Unreadable, match="the name of its database cannot be known"):
        referenced_tables(b"ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES `\xff`.x(a)", 0, "", "utf8mb4", 80036)
