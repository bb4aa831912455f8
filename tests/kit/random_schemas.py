"""Statements that create a random schema."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

NUMBERS = [
    "int",
    "int unsigned NOT NULL DEFAULT 5",
    "bigint",
    "date NOT NULL",
    "decimal(10,2) COMMENT 'x'",
    "tinyint(1)",
    "year",
    "int INVISIBLE",
]
TEXTS = [
    "varchar(20)",
    "varchar(20) CHARACTER SET latin1",
    "varchar(30) COLLATE utf8mb4_bin NOT NULL",
    "text",
    "char(9) DEFAULT 'it''s\\\\'",
    "varchar(20) CHARACTER SET utf8mb3",
]
OTHERS = [
    "json DEFAULT (json_array('a', 1))", "timestamp NULL DEFAULT '2020-01-01 00:00:00'", "bit(3) DEFAULT b'101'",
    "datetime(3) DEFAULT now(3) ON UPDATE now(3)", "binary(4) DEFAULT 0x00ff", "enum('a','b''c') CHARACTER SET latin1",
    "point SRID 4326", "int AS (n + 1) STORED COMMENT 'y'", "int AS (n + 1)", "int AS (n * 2) INVISIBLE", "varchar(40) DEFAULT (uuid())",
    "int(5) zerofill", "double NOT NULL", "set('x','y')", "longblob",
]  # fmt: skip
KEYS = [
    "KEY kn (n)", "UNIQUE KEY un (n, k)", "UNIQUE KEY kn (k, n)", "KEY ks (s(5) DESC)", "KEY ks (s(6), n)", "KEY kx ((n + 1))", "KEY (k) INVISIBLE",
    "KEY kc (k) COMMENT 'c'", "UNIQUE KEY uk (k)", "KEY kd (k DESC, n)",
]  # fmt: skip
CHECKS = [
    "CHECK (s <> 'A')",
    "CONSTRAINT chk CHECK (s <> 'a')",
    "CONSTRAINT chk CHECK (s <> 'a') NOT ENFORCED",
    "CONSTRAINT named CHECK (n IS NOT NULL)",
]
OPTIONS = [
    "COMMENT = 'it''s'",
    "STATS_PERSISTENT = 1",
    "ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 8",
    "DEFAULT CHARSET = latin1",
    "ROW_FORMAT = REDUNDANT",
]
PARTITIONS = [
    "", "", "", "PARTITION BY HASH (k) PARTITIONS 3", "PARTITION BY KEY (k) PARTITIONS 2",
    "PARTITION BY RANGE (k) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)",
]  # fmt: skip
OBJECTS = [
    "CREATE VIEW a AS SELECT k FROM t", "CREATE VIEW b AS SELECT k, 'é' AS s FROM t WHERE k > 1", "CREATE TABLE b (x int)",
    "CREATE PROCEDURE p() BEGIN SELECT 'a\\'b'; END", "CREATE PROCEDURE p(a int) SELECT a", "CREATE FUNCTION a() RETURNS int NO SQL RETURN 1",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01 00:00:00' DISABLE DO DO 1", "CREATE EVENT e ON SCHEDULE EVERY 2 DAY STARTS '2030-01-01 00:00:00' DO DO 1",
]  # fmt: skip


def subset(items: Sequence[str], size: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(items), max_size=size, unique_by=name_in)


def name_in(definition: str) -> str:
    """What only one of them can be called; a view counts as a table."""
    words = definition.replace("VIEW", "TABLE").replace("UNIQUE KEY", "KEY").partition("(")[0].split()
    return " ".join(words[:3]) if len(words) > 1 else definition


@st.composite
def schemas(draw: st.DrawFn) -> list[str]:
    """Statements that create a table t, perhaps one that refers to it, and other objects."""
    kind = draw(st.sampled_from(["int", "bigint", "int unsigned"]))
    key = draw(st.sampled_from(["PRIMARY KEY (k)", "PRIMARY KEY (k, n)", ""]))
    partition = draw(st.sampled_from(PARTITIONS))
    others = [other for other in OTHERS if not (partition and other.startswith("point"))]
    columns = [
        f"k {kind} NOT NULL{' AUTO_INCREMENT' if key and draw(st.booleans()) else ''}",
        f"n {draw(st.sampled_from(NUMBERS))}",
        f"s {draw(st.sampled_from(TEXTS))}",
        *(f"{name} {draw(st.sampled_from(others))}" for name in draw(st.lists(st.sampled_from("xyz"), unique=True))),
    ]
    columns = draw(st.permutations(columns))
    lines = [*columns, *([key] if key else []), *draw(subset(KEYS, 4)), *draw(subset(CHECKS, 2))]
    options = draw(st.lists(st.sampled_from(OPTIONS), max_size=2, unique_by=lambda option: option.split()[0]))
    statements = [f"CREATE TABLE t ({', '.join(lines)}) {' '.join(options)} {partition}"]
    if key and not partition and draw(st.booleans()):
        action = draw(st.sampled_from(["", "ON DELETE CASCADE"]))
        statements.append(f"CREATE TABLE c (id int PRIMARY KEY, k {kind}, FOREIGN KEY (k) REFERENCES t (k) {action})")
    return [*statements, *draw(subset(OBJECTS, 4))]
