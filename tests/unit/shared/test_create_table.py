"""Tells which databases the foreign keys of a CREATE or ALTER TABLE name, however they are spelled."""

from __future__ import annotations

import pytest

from shared.statements.create_table import referenced_databases
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
]
WITHIN = [
    "CREATE TABLE t (id INT PRIMARY KEY, p INT REFERENCES t (id))",
    "CREATE TABLE v.t (id INT, FOREIGN KEY (id) REFERENCES `x` (id))",
    "ALTER TABLE t ADD FOREIGN KEY (id) REFERENCES x(id), COMMENT 'REFERENCES v.x(id)'",
    "CREATE TABLE t (id INT) /* REFERENCES v.x(id) */ COMMENT=\"REFERENCES v.x\"",
    "CREATE TABLE t (`REFERENCES` INT, v INT, CHECK (t.references > v.x))",
    "CREATE TABLE a.t LIKE v.x",
    "DROP TABLE v.x",
]  # fmt: skip


@pytest.mark.parametrize("sql", OUTSIDE)
def test_a_database_that_is_named(sql: str) -> None:
    assert referenced_databases(sql.encode(), 0, "utf8mb4", 80036) == ("v",)


@pytest.mark.parametrize("sql", WITHIN)
def test_no_database_is_named(sql: str) -> None:
    assert referenced_databases(sql.encode(), 0, "utf8mb4", 80036) == ()


def test_names_of_several_databases_and_quotes() -> None:
    sql = b'CREATE TABLE t (a INT REFERENCES "v""1".x(id), b INT REFERENCES `v``2`.x(id), c INT REFERENCES a.t(id))'
    assert referenced_databases(sql, ANSI_QUOTES, "utf8mb4", 80036) == ('v"1', "v`2", "a")


def test_a_database_whose_name_cannot_be_known() -> None:
    with pytest.raises(Unreadable, match="the name of its database cannot be known"):
        referenced_databases(b"ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES `\xff`.x(a)", 0, "utf8mb4", 80036)
