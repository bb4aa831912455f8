"""The tutorial, played statement by statement between real servers by the real programs, and the first demo's tables."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fix_replication import Replicate, Replication
from kit.helpers import tables_of
from kit.tutorial import DATABASE, STATEMENTS

from docker.local.mysql_servers import Server

#: the tutorial's listing, B for the place in the leader's binlog; the database is written as it was created
EVENTS = """\
{"uri":"flv://mysql-srv1/flvDb","sequence":0,"bn_file":B,"operation":{"Query":"CREATE DATABASE flvDb"}}
{"uri":"flv://mysql-srv1/flvDb","sequence":1,"bn_file":B,"operation":{"Query":"CREATE TABLE pet (name VARCHAR(20), owner VARCHAR(20), species VARCHAR(20), sex CHAR(1), birth DATE)"}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":2,"bn_file":B,"columns":["name","owner","species","sex","birth"],"operation":{"Add":{"rows":[{"cols":[{"String":"Puffball"},{"String":"Diane"},{"String":"hamster"},{"String":"f"},{"Date":{"year":1999,"month":3,"day":30}}]}]}}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":3,"bn_file":B,"columns":["name","owner","species","sex","birth"],"operation":{"Add":{"rows":[{"cols":[{"String":"Jack"},{"String":"Peter"},{"String":"dog"},{"String":"m"},{"Date":{"year":1999,"month":3,"day":30}}]}]}}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":4,"bn_file":B,"columns":["name","owner","species","sex","birth"],"operation":{"Update":{"rows":[{"before_cols":[{"String":"Jack"},{"String":"Peter"},{"String":"dog"},{"String":"m"},{"Date":{"year":1999,"month":3,"day":30}}],"after_cols":[{"String":"Jack"},{"String":"Peter"},{"String":"dog"},{"String":"m"},{"Date":{"year":1989,"month":8,"day":31}}]}]}}}
{"uri":"flv://mysql-srv1/flvDb","sequence":5,"bn_file":B,"operation":{"Query":"ALTER TABLE pet ADD COLUMN last_vaccine DATE"}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":6,"bn_file":B,"columns":["name","owner","species","sex","birth","last_vaccine"],"operation":{"Delete":{"rows":[{"cols":[{"String":"Puffball"},{"String":"Diane"},{"String":"hamster"},{"String":"f"},{"Date":{"year":1999,"month":3,"day":30}},"Null"]}]}}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":7,"bn_file":B,"columns":["name","owner","species","sex","birth","last_vaccine"],"operation":{"Add":{"rows":[{"cols":[{"String":"Spot"},{"String":"Jane"},{"String":"dog"},{"String":"m"},{"Date":{"year":2010,"month":11,"day":2}},"Null"]}]}}}
{"uri":"flv://mysql-srv1/flvDb/pet","sequence":8,"bn_file":B,"columns":["name","owner","species","sex","birth","last_vaccine"],"operation":{"Update":{"rows":[{"before_cols":[{"String":"Spot"},{"String":"Jane"},{"String":"dog"},{"String":"m"},{"Date":{"year":2010,"month":11,"day":2}},"Null"],"after_cols":[{"String":"Spot"},{"String":"Jane"},{"String":"dog"},{"String":"m"},{"Date":{"year":2010,"month":11,"day":2}},{"Date":{"year":2020,"month":6,"day":10}}]}]}}}
""".splitlines()
PET = """\
+------+-------+---------+------+------------+--------------+
| name | owner | species | sex  | birth      | last_vaccine |
+------+-------+---------+------+------------+--------------+
| Jack | Peter | dog     | m    | 1989-08-31 | NULL         |
| Spot | Jane  | dog     | m    | 2010-11-02 | 2020-06-10   |
+------+-------+---------+------+------------+--------------+
"""
#: what a name with a place in the binlog looks like in a record
PLACE = re.compile(rb'\{"fileName":"([^"]+)","offset":(\d+)\}')


@pytest.fixture
def flvdb(replicate: Replicate, leader: Server, follower: Server) -> Iterator[Replication]:
    """Both programs running between servers without flvDb."""
    _drop(leader, follower)
    replication = replicate(leader, follower, [DATABASE])
    yield replication.start()
    replication.kill()
    _drop(leader, follower)


def _drop(leader: Server, follower: Server) -> None:
    for server in (leader, follower):
        server.execute(f"DROP DATABASE IF EXISTS {DATABASE}", f"DROP DATABASE IF EXISTS {DATABASE}_cdc")


def step(replication: Replication, statement: str) -> None:
    """Play one statement and compare the servers."""
    replication.play(statement)
    replication.catch_up()
    replication.same()


def as_mysql_prints(rows: list[tuple[object, ...]]) -> list[str]:
    """The rows of PET's table in its layout."""
    widths = [len(name) for name in PET.splitlines()[1].split("|")[1:-1]]
    cells = [["NULL" if value is None else str(value) for value in row] for row in rows]
    return ["|" + "|".join(f" {c:<{w - 1}}" for c, w in zip(row, widths, strict=True)) + "|" for row in cells]


def test_the_tutorial(flvdb: Replication) -> None:
    for statement in STATEMENTS:
        step(flvdb, statement)
        assert (DATABASE,) in flvdb.follower.execute("SHOW DATABASES")
        assert tables_of(flvdb.follower, DATABASE) == ([] if "DATABASE" in statement else ["pet"])
    for server in (flvdb.leader, flvdb.follower):
        assert as_mysql_prints(server.execute(f"SELECT * FROM {DATABASE}.pet")) == PET.splitlines()[3:-1]
    flvdb.stop()

    records = [record for record in flvdb.records() if b'"operation":"Heartbeat"' not in record]
    shown = [PLACE.sub(b"B", record, count=1) for record in records]
    for record, line in zip(shown, EVENTS, strict=True):
        wanted = line.encode()
        # cut after `operation`; our own keys follow
        assert record[: len(wanted) - 1] + b"}" == wanted
        assert record[len(wanted) - 1 :].startswith(b',"')


def test_the_places_in_the_binlog_are_real(flvdb: Replication) -> None:
    """`bn_file` names the file and the byte where the leader's SHOW BINLOG EVENTS has the statement or the rows."""
    for statement in STATEMENTS:
        flvdb.play(statement)
    flvdb.catch_up()
    kinds = ["Query", "Query", "Write_rows", "Write_rows", "Update_rows", "Query", "Delete_rows", "Write_rows"]
    events = flvdb.events()
    for event, kind in zip(events, [*kinds, "Update_rows"], strict=True):
        file, offset = event["bn_file"]["fileName"], event["bn_file"]["offset"]
        ((_, found, found_kind, *_),) = flvdb.leader.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {offset} LIMIT 1")
        assert (found, found_kind) == (offset, kind)


def year(*years: int | None) -> list[object]:
    return [{"cols": ["Null" if one is None else {"Year": one}]} for one in years]


#: a row of user before and after its UPDATE
ALICE = [{"String": "Alice"}, {"String": "Adams"}, {"String": "f"}, {"Date": {"year": 1983, "month": 2, "day": 4}}]
CLARK = [{"String": "Alice"}, {"String": "Clark"}, {"String": "f"}, {"Date": {"year": 1984, "month": 2, "day": 29}}]
#: a statement and its operation: its rows, its text, Query for a text that is the statement itself, None for no event
DEMO: list[tuple[str, object]] = [
    ("CREATE TABLE user (first_name VARCHAR(20), last_name VARCHAR(20), sex CHAR(1), birth DATE)", "Query"),
    ("INSERT INTO user VALUES ('Alice', 'Adams', 'f', '1983-02-04')", {"Add": {"rows": [{"cols": ALICE}]}}),
    ("INSERT INTO user (first_name) VALUES ('Zoë')", {"Add": {"rows": [{"cols": [{"String": "Zoë"}, *["Null"] * 3]}]}}),
    (
        "UPDATE user SET last_name = 'Clark', birth = '1984-02-29' WHERE first_name = 'Alice'",
        {"Update": {"rows": [{"before_cols": ALICE, "after_cols": CLARK}]}},
    ),
    ("DELETE FROM user WHERE birth < '1990-01-01'", {"Delete": {"rows": [{"cols": CLARK}]}}),
    ("DELETE FROM user WHERE first_name = 'nobody'", None),
    ("CREATE TABLE year (y YEAR)", "Query"),
    ("INSERT INTO year VALUES (1998)", {"Add": {"rows": year(1998)}}),
    (
        "INSERT INTO year VALUES (1999), (2003), (1901), (2155), (0), (NULL), (1998)",
        {"Add": {"rows": year(1999, 2003, 1901, 2155, 0, None, 1998)}},
    ),
    ('DELETE FROM year WHERE y LIKE "19%"', {"Delete": {"rows": year(1998, 1999, 1901, 1998)}}),
    ('DELETE FROM year WHERE y LIKE "19%"', None),
    (
        "UPDATE year SET y = y + 1 WHERE y = 2003",
        {"Update": {"rows": [{"before_cols": [{"Year": 2003}], "after_cols": [{"Year": 2004}]}]}},
    ),
    ("DROP TABLE year", {"Query": "DROP TABLE `year` /* generated by server */"}),
    ("DROP TABLE user", {"Query": "DROP TABLE `user` /* generated by server */"}),
]


def test_the_other_tables_of_the_first_demo(flvdb: Replication) -> None:
    step(flvdb, f"CREATE DATABASE {DATABASE}")
    for statement, operation in DEMO:
        known = len(flvdb.events())
        step(flvdb, statement)
        wanted = {"Query": statement} if operation == "Query" else operation
        assert [event["operation"] for event in flvdb.events()[known:]] == ([wanted] if wanted else [])
    flvdb.stop()
