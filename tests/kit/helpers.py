"""Waiting and comparing."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from docker.local.mysql_servers import Server
from kit.programs import Program
from shared.mysql import quote_name

T = TypeVar("T")

#: seconds that nothing takes but a failure, however busy the machine is
LONG = 90.0
#: seconds between two questions of whoever has waited for long
SELDOM = 0.1


def wait_until(
    check: Callable[[], T | None],
    message: str,
    *,
    timeout: float = LONG,
    alive: Iterable[Program] = (),
    pause: float = 0.02,
) -> T:
    """Call `check` until it returns something true, and return that.

    It is called every `pause` seconds, and less often the longer it takes: to ask a server costs what is waited for.
    Fails with `message` after `timeout` seconds, and at once when one of the programs in `alive` has ended.
    """
    began = time.monotonic()
    while True:
        found = check()
        if found:
            return found
        for program in alive:
            assert program.running, f"{message}: {program} ended with status {program.status}:\n{program.stderr}"
        waited = time.monotonic() - began
        assert waited < timeout, f"{message}: not within {timeout} s; last seen: {found!r}"
        time.sleep(max(pause, min(waited / 10, SELDOM)))


def tables_of(server: Server, database: str) -> list[str]:
    """Names of the tables and views in a database, sorted; [] when it does not exist."""
    query = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{database}' ORDER BY 1"
    return [name for (name,) in server.execute(query)]


def same_table(leader: Server, follower: Server, database: str, table: str) -> bool:
    """True when definition and checksum are equal; the cheap question to wait on."""
    return _facts(leader, database, table) == _facts(follower, database, table)


def assert_same_table(leader: Server, follower: Server, database: str, table: str) -> None:
    """Fail, naming the rows, unless definition, checksum and every value are equal."""
    theirs, ours = _facts(leader, database, table), _facts(follower, database, table)
    assert theirs[0] == ours[0], f"{database}.{table} is defined differently"
    if theirs[1] != ours[1]:
        expected, found = (_rows(server, database, table) for server in (leader, follower))
        missing = list((Counter(expected) - Counter(found)).elements())
        extra = list((Counter(found) - Counter(expected)).elements())
        raise AssertionError(
            f"{database}.{table}: checksums {theirs[1]} on the leader, {ours[1]} on the follower;"
            f" {len(expected)} and {len(found)} rows;\n missing: {missing[:5]}\n extra: {extra[:5]}"
            + ("" if missing or extra else "\n every value reads the same: it is stored differently")
        )


def gtids_in_binlog(server: Server) -> list[str]:
    """The GTIDs of a server's binlogs, in their order."""
    found: list[str] = []
    for file, *_ in server.execute("SHOW BINARY LOGS"):
        for event in server.execute(f"SHOW BINLOG EVENTS IN '{file}'"):
            if event[2] == "Gtid":
                found += re.findall(r"GTID_NEXT= '(.+)'", event[5])
    return found


def assert_same_database(leader: Server, follower: Server, database: str) -> None:
    """Fail unless both hold the same tables with the same content."""
    names = tables_of(leader, database)
    assert names == tables_of(follower, database)
    for name in names:
        assert_same_table(leader, follower, database, name)


def _facts(server: Server, database: str, table: str) -> tuple[str, Any]:
    """Definition and checksum; ("", None) for a table that does not exist."""
    if table not in tables_of(server, database):
        return "", None
    name = f"{quote_name(database)}.{quote_name(table)}"
    definition = server.execute(f"SHOW CREATE TABLE {name}")[0][1]
    ((_, checksum),) = server.execute(f"CHECKSUM TABLE {name}")
    if "KEY" in definition and "((" in definition:
        # MySQL's checksum takes in the hidden column of an index over an expression, and with it stray bytes
        checksum = Counter(_rows(server, database, table))
    # the next number to give is not data: a rollback moves it on the leader alone
    return re.sub(r" AUTO_INCREMENT=\d+", "", definition), checksum


def _rows(server: Server, database: str, table: str) -> list[str]:
    return [repr(row) for row in server.execute(f"SELECT * FROM {quote_name(database)}.{quote_name(table)}")]
