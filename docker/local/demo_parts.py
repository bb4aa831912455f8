"""Holds what the demo plays with: what its leader has from before, the tutorial, and the profiles it makes."""

from __future__ import annotations

import json
from pathlib import Path

from docker.local.mysql_servers import Server

ROOT = Path(__file__).resolve().parents[2]
DATABASE = "flvDb"
TUTORIAL = (
    "CREATE DATABASE flvDb",
    "CREATE TABLE pet (name VARCHAR(20), owner VARCHAR(20), species VARCHAR(20), sex CHAR(1), birth DATE)",
    "INSERT INTO pet VALUES ('Puffball','Diane','hamster','f','1999-03-30')",
    "INSERT INTO pet VALUES ('Jack','Peter','dog','m','1999-03-30')",
    "UPDATE pet SET birth = '1989-08-31' WHERE name = 'Jack'",
    "ALTER TABLE pet ADD COLUMN last_vaccine DATE",
    "DELETE from pet where name='Puffball'",
    "INSERT INTO pet VALUES ('Spot', 'Jane', 'dog', 'm', '2010-11-2', Null)",
    "UPDATE pet SET last_vaccine='2020-6-10' WHERE name='Spot'",
)
#: of the table that the leader has from before
BEFORE, ROWS = "shop", 20_000
#: the last one lets the topic begin behind them
FIRST = (
    "SET sql_log_bin = 0",
    f"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, LOCK TABLES ON {BEFORE}.* TO 'fluvio'@'%'",
    "SET sql_log_bin = 1",
    f"CREATE DATABASE {BEFORE}",
    f"CREATE TABLE {BEFORE}.orders (id INT AUTO_INCREMENT PRIMARY KEY, customer VARCHAR(20), amount DECIMAL(8, 2),"
    " placed DATETIME, KEY (customer))",
    f"SET SESSION cte_max_recursion_depth = {ROWS}",
    f"INSERT INTO {BEFORE}.orders (customer, amount, placed) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1"
    f" FROM n WHERE i < {ROWS}) SELECT CONCAT('customer ', i % 100), i / 7, '2026-01-01' + INTERVAL i MINUTE FROM n",
    f"ANALYZE TABLE {BEFORE}.orders",
    "FLUSH BINARY LOGS",
)
#: the servers whose ports the profile of a role names, as it is shipped
_PORTS = {"leader": 3080, "follower": 3090}
_NAMED = {
    "producer": ["leader"],
    "consumer": ["follower"],
    "copy": ["leader", "follower"],
    "parity": ["leader", "follower"],
}


class DemoError(Exception):
    """The demo cannot go on; the text is for people."""


def make_profile(role: str, folder: Path, servers: dict[str, Server], reports: Path) -> Path:
    """Write the profile this project ships with the servers' ports, a topic in `folder`, and both databases."""
    changes = [(f"port = {_PORTS[each]} ", f"port = {servers[each].port} ") for each in _NAMED[role]]
    changes.append(('"~/mysql-cdc/topics"', json.dumps(str(folder / "topics"))))
    changes.append((f'include_dbs = ["{DATABASE}"]', f'include_dbs = ["{DATABASE}", "{BEFORE}"]'))
    if role == "producer":
        changes.append(('# start = "earliest"', 'start = "copy"'))
    if role == "copy":
        changes.append(("# [report]\n# path = ", "[report]\npath = "))
    if role in ("copy", "parity"):
        changes.append(('"~/mysql-cdc/reports"', json.dumps(str(reports))))
    text = (ROOT / "profiles" / f"{role}_profile.toml").read_text()
    for old, new in changes:
        if text.count(old) != 1:
            raise DemoError(f"profiles/{role}_profile.toml should hold {old!r} once")
        text = text.replace(old, new)
    path = folder / f"{role}_profile.toml"
    path.write_text(text)
    return path
