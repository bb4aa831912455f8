"""Keys of every kind: an audit of random rows finds what a comparison in Python finds, and ranges hold each key once."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any, NamedTuple

import pytest
from fix_parity import Audited, Parity
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cdc_consumer.parity.canonical import SESSION
from cdc_consumer.parity.model import Difference, Shape, TableName
from cdc_consumer.parity.rows.plan import shape_of
from cdc_consumer.parity.rows.ranges import TableQueries, inside
from cdc_consumer.parity.rows.split import split
from cdc_consumer.parity.schema.read import read_tables
from cdc_consumer.parity.servers.connection import ServerConnection
from docker.local.mysql_servers import Server
from shared.profile import Database, DatabaseTls

#: without shrinking, which would take minutes
RANDOM = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
#: values of an SQL literal
Literals = st.SearchStrategy[str]
#: columns of the key (or of a row), as text that is the same exactly when they are
Exact = tuple[str | None, ...]


def quoted(text: str, charset: str = "utf8mb4") -> str:
    return f"_{charset} x'{text.encode({'latin1': 'cp1252'}.get(charset, 'utf-8')).hex()}'"


TWINS = st.text("aAbBzßéÉe\u0301 ", max_size=4)
TEXTS = TWINS | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
OCTETS = st.binary(max_size=4) | st.binary(min_size=16, max_size=16)
INTEGERS = st.integers(-30, 30) | st.integers(-(2**31), 2**31 - 1)


class KeyCase(NamedTuple):
    #: of CREATE TABLE
    definition: str
    #: one strategy for each column of the key
    values: tuple[Literals, ...]
    #: what brings each column of it into the form of `exact`
    columns: tuple[str, ...] = ("LOWER(HEX(k))",)
    #: how the rows are compared: "key", or "copies" of rows
    by: str = "key"


TEXT = "CAST(k AS CHAR)"
CASES = {
    "by_integer": KeyCase("k INT PRIMARY KEY", (INTEGERS.map(str),), (TEXT,)),
    "by_unsigned": KeyCase(
        "k BIGINT UNSIGNED PRIMARY KEY", ((st.integers(2**64 - 40, 2**64 - 1) | st.integers(0, 2**64 - 1)).map(str),), (TEXT,)
    ),
    "by_descending": KeyCase("k INT, PRIMARY KEY (k DESC)", (INTEGERS.map(str),), (TEXT,)),
    "by_unique": KeyCase("k INT NOT NULL, UNIQUE (k)", (INTEGERS.map(str),), (TEXT,)),
    "by_insensitive": KeyCase("k VARCHAR(9) PRIMARY KEY", (TEXTS.map(quoted),)),
    "by_sensitive": KeyCase("k VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY", (TEXTS.map(quoted),)),
    "by_padded": KeyCase(
        "k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY",
        (st.text("aAbBzßéÉ ~", max_size=5).map(lambda text: quoted(text, "latin1")),),
    ),
    "by_char": KeyCase("k CHAR(3) PRIMARY KEY", (TWINS.map(lambda text: quoted(text[:3])),)),
    "by_binary": KeyCase("k BINARY(16) PRIMARY KEY", (OCTETS.map(lambda octets: f"x'{octets.hex()}'"),)),
    "by_varbinary": KeyCase("k VARBINARY(20) PRIMARY KEY", (OCTETS.map(lambda octets: f"x'{octets.hex()}'"),)),
    "by_prefix": KeyCase("k TINYBLOB NOT NULL, PRIMARY KEY (k(2))", (OCTETS.map(lambda octets: f"x'{octets.hex()}'"),)),
    "by_decimal": KeyCase("k DECIMAL(20,3) PRIMARY KEY", (st.decimals(-(10**16), 10**16, places=3).map("{:f}".format),), (TEXT,)),
    "by_moment": KeyCase("k DATETIME(6) PRIMARY KEY", (st.datetimes(datetime(1000, 1, 1)).map("'{}'".format),), (TEXT,)),
    "by_stamp": KeyCase(
        "k TIMESTAMP(3) PRIMARY KEY", (st.datetimes(datetime(1971, 1, 1), datetime(2037, 1, 1)).map("'{}'".format),), (TEXT,)
    ),
    "by_day": KeyCase("k DATE PRIMARY KEY", (st.dates(date(1000, 1, 1)).map("'{}'".format) | st.just("'0000-00-00'"),), (TEXT,)),
    "by_clock": KeyCase("k TIME(3) PRIMARY KEY", (st.integers(-8385959, 8385959).map(str),), (TEXT,)),
    "by_year": KeyCase("k YEAR PRIMARY KEY", ((st.integers(1901, 2155) | st.just(0)).map(str),), (TEXT,)),
    "by_bits": KeyCase("k BIT(20) PRIMARY KEY", (st.integers(0, 2**20 - 1).map(str),), ("CAST(CAST(k AS UNSIGNED) AS CHAR)",)),
    "by_pair": KeyCase(
        "k INT, l VARCHAR(9), PRIMARY KEY (l, k)", (st.integers(-2, 2).map(str), TEXTS.map(quoted)), ("LOWER(HEX(l))", TEXT)
    ),
    "by_triple": KeyCase(
        "k BINARY(3), l DECIMAL(5,2), m YEAR, PRIMARY KEY (m, l, k)",
        (st.binary(max_size=3).map(lambda octets: f"x'{octets.hex()}'"), st.decimals(-9, 9, places=2).map(str), st.sampled_from(["0", "1999", "2024"])),
        ("CAST(m AS CHAR)", "CAST(l AS CHAR)", "LOWER(HEX(k))"),
    ),
    "by_double": KeyCase("k DOUBLE PRIMARY KEY", (st.floats(-1e9, 1e9).map(repr),), (), "copies"),
    "by_enum": KeyCase("k ENUM('b', 'a', 'c') PRIMARY KEY", (st.sampled_from(["'a'", "'b'", "'c'"]),), (), "copies"),
    "by_nullable": KeyCase("k INT NULL, UNIQUE (k)", ((st.integers(0, 9).map(str) | st.just("NULL")),), (), "copies"),
    "by_keyless": KeyCase("k INT", (st.integers(0, 2).map(str),), (), "copies"),
}  # fmt: skip

#: the columns every table has besides
OTHERS = {"v": "VARCHAR(9)", "d": "DOUBLE", "n": "BIGINT"}
VALUES: Mapping[str, Literals] = {
    "v": st.none().map(lambda _: "NULL") | st.sampled_from(["''", "'a'", "'A'", "'a '", "'á'"]),
    "d": st.sampled_from(["NULL", "0e0", "-0e0", "0.1", "0.10000000000000002", "1e308"]),
    "n": st.sampled_from(["NULL", "0", "1", "-1"]),
}
EXACT = {"v": "LOWER(HEX(v))", "d": "LOWER(HEX(POINT(d, 0)))", "n": "CAST(n AS CHAR)"}

#: the rows of a table as each side has them
Sides = tuple[list[str], list[str]]


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Sides]:
    """Rows of some of the tables."""
    names = draw(st.lists(st.sampled_from(sorted(CASES)), min_size=6, max_size=6, unique=True))
    return {table: draw(sides(CASES[table])) for table in names}


def sides(case: KeyCase) -> st.SearchStrategy[Sides]:
    """Most rows are the same on both sides."""
    others = st.tuples(*VALUES.values())
    row = st.tuples(
        st.tuples(*case.values), others, st.sampled_from(["same"] * 4 + ["missing", "extra", "changed"]), others
    )

    def split_up(rows: list[Any]) -> Sides:
        leader, follower = [], []
        for key, values, fate, altered in rows:
            if fate != "extra":
                leader.append(f"({', '.join([*key, *values])})")
            if fate != "missing":
                follower.append(f"({', '.join([*key, *(altered if fate == 'changed' else values)])})")
        return leader, follower

    return st.lists(row, min_size=12, max_size=40).map(split_up)


def create(parity: Parity) -> None:
    others = ", ".join(f"{name} {kind}" for name, kind in OTHERS.items())
    for server in (parity.leader, parity.follower):
        server.execute(
            "SET sql_mode = ''",
            *(f"CREATE TABLE {table} ({case.definition}, {others})" for table, case in CASES.items()),
            database=parity.database,
        )


def fill(parity: Parity, rows: Mapping[str, Sides]) -> None:
    for side, server in enumerate((parity.leader, parity.follower)):
        statements = []
        for table, own in rows.items():
            statements.append(f"DELETE FROM {table}")
            if own[side]:
                # of keys that compare equal the first stays
                statements.append(f"INSERT IGNORE INTO {table} VALUES {', '.join(own[side])}")
        statements.append(f"ANALYZE TABLE {', '.join(rows)}")
        server.execute(
            "SET NAMES utf8mb4", "SET sql_mode = '', time_zone = '+00:00'", *statements, database=parity.database
        )


def by_key(parity: Parity, server: Server, table: str) -> dict[Exact, Exact]:
    keys = CASES[table].columns
    found = server.execute(
        "SET time_zone = '+00:00'",
        f"SELECT {', '.join([*keys, *EXACT.values()])} FROM {table}",
        database=parity.database,
    )
    return {row[: len(keys)]: row[len(keys) :] for row in found}


def by_row(parity: Parity, server: Server, table: str) -> Counter[Exact]:
    key = {"by_double": "LOWER(HEX(POINT(k, 0)))", "by_enum": "LOWER(HEX(k))"}.get(table, TEXT)
    return Counter(server.execute(f"SELECT {', '.join([key, *EXACT.values()])} FROM {table}", database=parity.database))


def expected(parity: Parity, table: str) -> dict[Exact, tuple[Any, ...]]:
    """Key -> kind and differing columns; of a table without a usable key row -> kind and how many each side has."""
    if CASES[table].by == "copies":
        theirs, ours = (by_row(parity, server, table) for server in (parity.leader, parity.follower))
        return {
            row: (
                "copies" if theirs[row] and ours[row] else "missing" if theirs[row] else "extra",
                theirs[row],
                ours[row],
            )
            for row in theirs | ours
            if theirs[row] != ours[row]
        }
    one, other = (by_key(parity, server, table) for server in (parity.leader, parity.follower))
    result: dict[Exact, tuple[Any, ...]] = {}
    for key in one.keys() | other.keys():
        if key not in other:
            result[key] = ("missing",)
        elif key not in one:
            result[key] = ("extra",)
        elif one[key] != other[key]:
            result[key] = (
                "changed",
                *(name for name, a, b in zip(OTHERS, one[key], other[key], strict=True) if a != b),
            )
    return result


def exact(literal: str, double: bool = False) -> str | None:
    """What the server's expressions above make of the value that a literal stands for."""
    if literal == "NULL":
        return None
    if double:
        # the server's text of POINT(d, 0): four bytes of SRID, one of byte order, four of type
        return "00000000" + "01" + "01000000" + struct.pack("<dd", float(literal), 0.0).hex()
    octets = re.fullmatch(r"(?:_\w+ )?x'([0-9a-f]*)'", literal)
    return octets[1] if octets else literal.strip("'")


def told(result: Audited, table: str) -> dict[Exact, tuple[Any, ...]]:
    """The audit's findings in the form of `expected`."""
    found: dict[Exact, tuple[Any, ...]] = {}
    for difference in (each for each in result.differences if each.table.table == table):
        name, what = (_row if CASES[table].by == "copies" else _key)(difference)
        assert name not in found, f"{name} of {table} is reported twice"
        found[name] = what
    return found


def _key(difference: Difference) -> tuple[Exact, tuple[Any, ...]]:
    columns = difference.columns if difference.kind == "changed" else ()
    return tuple(exact(literal) for literal in difference.key.values()), (difference.kind, *columns)


def _row(difference: Difference) -> tuple[Exact, tuple[Any, ...]]:
    row = difference.leader or difference.follower or {}
    doubles = {"d", *(["k"] if difference.table.table == "by_double" else [])}
    assert difference.copies is not None
    return tuple(exact(value, name in doubles) for name, value in row.items()), (difference.kind, *difference.copies)


def test_findings_are_those_of_a_comparison_in_python(parity: Parity) -> None:
    create(parity)

    @RANDOM
    @given(tables())
    def check(rows: dict[str, Sides]) -> None:
        fill(parity, rows)
        planted = {table: expected(parity, table) for table in rows}
        result = parity.audit(*(f"--tables={parity.database}.{table}" for table in rows))
        assert {table: told(result, table) for table in rows} == planted, result.err
        assert result.status == (1 if any(planted.values()) else 0)
        for table in rows:
            assert (result.table(table)["split"] == "no key") == (CASES[table].by == "copies")

    check()


@pytest.fixture
def reader(follower: Server) -> Iterator[ServerConnection]:
    found = ServerConnection("follower", Database("root", follower.host, follower.port, tls=DatabaseTls("off")))
    yield found
    found.close()


def test_the_ranges_of_a_table_hold_every_key_once(parity: Parity, reader: ServerConnection) -> None:
    """As both servers say, in their order of the keys; also the keys that only the leader has."""
    create(parity)

    @RANDOM
    @given(tables())
    def check(rows: dict[str, Sides]) -> None:
        fill(parity, rows)
        for table in rows:
            if CASES[table].by == "key":
                _check_ranges(parity, reader, table, len(rows[table][1]))

    check()


def _check_ranges(parity: Parity, reader: ServerConnection, table: str, rows: int) -> None:
    name = TableName(parity.database, table)
    with parity.follower.connect() as connection:
        record = read_tables(connection, [name])[name]
    shape = shape_of(name, record, record)
    assert isinstance(shape, Shape)
    ranges, method = split(TableQueries(shape), reader, rows, 3)
    assert (method == "one range") == (len(ranges) == 1)
    tests = [" AND ".join(inside(shape.key, part)) or "TRUE" for part in ranges]
    count = " + ".join(f"({test})" for test in tests)
    number = " + ".join(f"{index} * ({test})" for index, test in enumerate(tests))
    order = ", ".join(shape.key)
    for server in (parity.leader, parity.follower):
        found = server.execute(
            *SESSION, f"SELECT {count}, {number} FROM {table} ORDER BY {order}", database=parity.database
        )
        assert {each for each, _ in found} <= {1}, ranges
        numbers = [each for _, each in found]
        assert numbers == sorted(numbers), ranges
