"""Statements and a real leader: what we read from the text is what the leader knew when it wrote the binlog."""

from __future__ import annotations

import secrets
import struct
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from kit.statement_script import RUNNER, SCRIPT, SESSIONS, Script, Session
from pymysql.charset import charset_by_id
from pymysql.err import MySQLError
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import QueryEvent

from docker.local.mysql_servers import Server
from shared.statements.heads import read_statement


class Logged(NamedTuple):
    """One Query binlog event."""

    sql: bytes
    database: str
    sql_mode: int
    charset: str
    #: None when the leader did not record them
    recorded: frozenset[str] | None


def logged(leader: Server, file: str, offset: int, thread: int) -> Iterator[Logged]:
    """The statements one session logged since that position, without the marks of transactions."""
    settings = {"host": leader.host, "port": leader.port, "user": "root", "password": "", "ssl_disabled": True}
    stream = BinLogStreamReader(
        connection_settings=settings, server_id=secrets.randbelow(1 << 31), only_events=[QueryEvent],
        resume_stream=True, log_file=file, log_pos=offset,
    )  # fmt: skip
    try:
        for event in stream:
            if event.slave_proxy_id != thread:
                continue
            # the library decodes the text with losses; these are its bytes
            body = event.packet.packet._data[20 : 20 + event.event_size]
            sql = body[13 + struct.unpack_from("<H", body, 11)[0] + body[8] + 1 :]
            if sql not in (b"BEGIN", b"COMMIT"):
                names = getattr(event, "mts_accessed_db_names", None)
                recorded = None if names is None else frozenset(name.decode() for name in names)
                charset = charset_by_id(event.character_set_client).name
                yield Logged(sql, event.schema.decode(), event.sql_mode, charset, recorded)
    finally:
        stream.close()


@pytest.fixture(scope="module")
def counts(pytestconfig: pytest.Config) -> Iterator[Counter[str]]:
    counts = Counter[str]()
    yield counts
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(
            f"\n{counts['read']} statements read, {counts['recorded']} of them compared with what the leader recorded"
        )


@pytest.fixture(autouse=True)
def resting_scheduler(leader: Server) -> Iterator[None]:
    """A scheduler that is reading an event while it is renamed has been seen to make it unknown."""
    leader.execute("SET GLOBAL event_scheduler = OFF")
    yield
    leader.execute("SET GLOBAL event_scheduler = ON")


@pytest.mark.filterwarnings("ignore:'db' is deprecated:DeprecationWarning")  # the library's own
@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: "-".join(str(part) for part in session if part))
def test_the_databases_are_those_the_leader_recorded(leader: Server, session: Session, counts: Counter[str]) -> None:
    with leader.connect() as connection:
        script = Script(leader, connection, session)
        steps = [(line[:2].strip(), line[3:].format(**script.words)) for line in SCRIPT.strip().splitlines()]
        try:
            script.prepare()
            file, offset = leader.execute("show binary log status")[0][:2]
            for _, sql in steps:
                try:
                    script.step(sql)
                except MySQLError as error:
                    pytest.fail(f"{sql}: {error}")
        finally:
            script.close()
        events = [event for event in logged(leader, file, offset, connection.thread_id()) if RUNNER not in event.sql]
    assert len(events) == len(steps)
    for (writes, sql), event in zip(steps, events, strict=True):
        expected = frozenset(script.names[name] for name in writes)
        statement = read_statement(event.sql, event.sql_mode, event.database, event.charset)
        assert frozenset(statement.databases) == expected, (sql, event)
        assert event.recorded in (None, expected), (sql, event)
        counts["read"] += 1
        counts["recorded"] += event.recorded is not None
