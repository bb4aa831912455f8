"""Columns and values for invented tables: every type, and the values that are odd in it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from kit.type_cases import CASES, JSONS, Case

#: values of a type that make a script slow and find nothing new
LARGE = ("T6_text", "T6_longtext", "T16_longblob", "T17_enum300", "T20_enum_long", "T21_set64", "T15_varbinary")
KINDS: tuple[Case, ...] = (
    *(case for case in CASES if case.id not in LARGE),
    Case("json", "JSON", JSONS.values[:-2]),
    Case("json_number", "JSON", ["JSON_OBJECT('price', 9.99, 'n', 1)", '\'{"a": [1, 2.5, "x"], "b": {}}\'']),
    Case("float_digits", "FLOAT(10,5)", ["99999.999999", "0.1", "-7"]),
    Case("double_digits", "DOUBLE(12,2)", ["9999999999.994", "-0.005"]),
    Case("enum_escaped", r"ENUM('a\\b','c','d''e')", ["1", "2", "3"]),
    Case("enum_wide", "ENUM('🎉','x')", ["1", "2"]),
    Case("name", "VARCHAR(40) COLLATE utf8mb4_0900_as_cs", ["'a'", "'A '", "'ﬀ'", "''"]),
    Case("text", "TEXT", ["'text'", "REPEAT('é', 300)", "''"]),
    Case("blob", "BLOB", ["x'00FF'", "''", "REPEAT(x'61', 400)"]),
    Case("zerofill", "INT(6) ZEROFILL", ["1", "42"]),
)
#: of a key: short, and never NULL
KEYS: tuple[Case, ...] = (
    Case("k_int", "INT", [str(number) for number in (-5, 0, 1, 2, 3, 4, 5, 6, 7, 8)]),
    Case("k_char", "VARCHAR(20)", ["'a'", "'B'", "'é'", "''", "'x y'", "'z'"]),
    Case("k_time", "TIME", ["'09:00:00'", "'10:00:00'", "'-01:00:00'"]),
    Case("k_date", "DATE", ["'2024-01-01'", "'2024-02-29'", "'1999-12-31'"]),
    Case("k_decimal", "DECIMAL(8,2)", ["1.10", "2.5", "0", "-1"]),
    Case("k_datetime", "DATETIME(3)", ["'2024-01-01 10:00:00.5'", "'2024-01-01 10:00:00'"]),
    Case("k_binary", "BINARY(4)", ["'a'", "x'6100'", "x'FF'"]),
    Case("k_enum", "ENUM('x','y','z')", ["1", "2", "3"]),
    Case("k_bit", "BIT(8)", ["0", "1", "255"]),
    Case("k_timestamp", "TIMESTAMP", ["'2020-01-01 03:00:00'", "'2030-06-01 00:00:00'"]),
)
#: expressions over a column of some type, by words of that type
DERIVED = (
    ("TIMESTAMP", "VARCHAR(40)", "DATE_FORMAT({0}, '%Y-%m-%d %H')"), ("JSON", "VARCHAR(60)", "{0}->>'$.a'"),
    ("JSON", "VARCHAR(20)", "JSON_TYPE({0})"), ("INT", "BIGINT", "{0} + 1"), ("CHAR", "VARCHAR(3)", "LEFT({0}, 3)"),
    ("CHAR", "VARCHAR(90)", "CONCAT({0}, '!')"), ("DATE", "INT", "YEAR({0})"), ("DECIMAL", "DOUBLE", "{0} / 3"),
    ("ENUM", "INT", "{0} + 0"), ("CHAR", "INT", "LENGTH({0})"), ("CHAR", "VARCHAR(2)", "{0}"), ("INT", "TINYINT", "{0}"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an invented table; `derived` is the expression of a generated one."""

    name: str
    case: Case
    derived: str = ""
    attributes: str = ""

    @property
    def definition(self) -> str:
        if self.derived:
            return f"{self.name} {self.case.type} AS ({self.derived}) {self.attributes}"
        return f"{self.name} {self.case.type} {self.attributes}"

    def value(self, random: Random) -> str:
        """An expression of a value."""
        if "NOT NULL" not in self.attributes and random.random() < 0.15:
            return "NULL"
        return random.choice(self.case.values) if random.random() < 0.93 else "DEFAULT"


NUMBER = Column("id", Case("id", "INT", ["NULL", "1", "2", "3"]), attributes="AUTO_INCREMENT")


def plain(random: Random, name: str) -> Column:
    """A column of any type."""
    case = random.choice(KINDS)
    choices = ["", "", "", "NULL", "INVISIBLE", "COMMENT 'it''s'"]
    if case.type.startswith(("TIMESTAMP", "DATETIME")) and "(" not in case.type:
        choices += ["DEFAULT CURRENT_TIMESTAMP", "NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP"]
    if case.type.startswith(("INT", "BIGINT", "DECIMAL")):
        choices += ["NOT NULL", "DEFAULT 7", "NOT NULL DEFAULT 0"]
    if "CHAR(" in case.type:
        choices += ["NOT NULL", "DEFAULT 'é'", "DEFAULT (UPPER('x'))"]
    if case.type == "JSON":
        choices += ["DEFAULT (JSON_ARRAY(1))"]
    return Column(name, case, attributes=random.choice(choices))


def key(random: Random, name: str) -> Column:
    """A column that may be in a primary key."""
    return Column(name, random.choice(KEYS), attributes="NOT NULL")


def derived(random: Random, name: str, columns: list[Column]) -> Column | None:
    """A generated column over one of these; None where none of them suits."""
    fits = [
        (column, type, expression)
        for column in columns
        for word, type, expression in DERIVED
        if word in column.case.type and not column.derived
    ]
    if not fits:
        return None
    column, type, expression = random.choice(fits)
    kind = random.choice(("STORED", "STORED", "VIRTUAL"))
    return Column(name, Case("derived", type, ["DEFAULT"]), expression.format(column.name), kind)
