"""A commit that hangs between the leader's binlog and its tables: the follower is right, and the leader shows less."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from fix_mysql import StartServer
from fix_parity import Audited, Parity, parity_of
from fix_replication import Replicate, Replication
from kit.helpers import wait_until

from cdc_consumer.parity.servers import pair
from cdc_consumer.parity.servers.pair import LeaderConnection
from cdc_consumer.parity.suspects import settle
from docker.local.mysql_servers import LEADER, PLAIN, Server
from shared.events import Position
from shared.profile import Database, DatabaseTls

#: by GTIDs on the leader
OPTIONS = {True: LEADER, False: ("--binlog-row-metadata=FULL", *PLAIN)}
TABLES = [
    "CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(20))", "CREATE TABLE keyless (note VARCHAR(20))",
    "CREATE TABLE top (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO keyless VALUES ('a'), ('b')",
]  # fmt: skip


def end(leader: Server) -> Position:
    """Where the leader writes next; what other tests ask does not answer while a commit hangs."""
    file, offset, *_ = leader.execute("SHOW BINARY LOG STATUS")[0]
    return Position(file, int(offset))


@contextmanager
def hanging(replication: Replication, *statements: str) -> Iterator[None]:
    """Run statements in one transaction that is committed in the leader's binlog and on the follower, in its tables when this ends.

    Semi-synchronous replication waits for a replica that will never come: between the two, where every commit is for a
    moment, and for long where a disk stalls.
    """
    leader = replication.leader
    before, options = end(leader), {"database": replication.database}
    thread = threading.Thread(target=leader.execute, args=("BEGIN", *statements, "COMMIT"), kwargs=options, daemon=True)
    leader.execute("SET GLOBAL rpl_semi_sync_source_enabled = 1")
    try:
        thread.start()
        edge = wait_until(lambda: end(leader) if before < end(leader) else None, "the transaction is in the binlog")
        wait_until(lambda: edge <= replication.applied(), "the follower has it")
        yield
        assert thread.is_alive()
    finally:
        leader.execute("SET GLOBAL rpl_semi_sync_source_enabled = 0")
        thread.join(10)


@pytest.fixture(params=[True, False], ids=["gtids", "plain"])
def gtids(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def slow(
    gtids: bool, replicate: Replicate, own_server: StartServer, follower: Server, database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Replication:  # fmt: skip
    """Both programs, from a leader whose commits can be made to hang."""
    monkeypatch.setattr(pair, "COMMIT_SECONDS", 0.1)
    monkeypatch.setattr(settle, "REST", 0.0)
    leader = own_server(OPTIONS[gtids], server_id=11)
    leader.execute(
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
        "SET GLOBAL rpl_semi_sync_source_timeout = 600000",
    )
    replication = replicate(leader, follower, [database], producer={"database": {"heartbeat_seconds": 0.1}})
    replication.play(f"CREATE DATABASE {database}")
    replication.play(*TABLES)
    replication.start()
    replication.catch_up()
    return replication


def audit(replication: Replication, *arguments: str) -> tuple[Parity, Audited]:
    parity = parity_of(replication, [replication.database], limits={"fence_seconds": 20})
    return parity, parity.audit(*arguments)


def reasons(audited: Audited) -> set[str]:
    return {each["reason"] for each in audited.run["undecided"]} | {
        table["reason"] for table in audited.run["tables"] if table["reason"]
    }


def test_rows_whose_commit_hangs_are_not_different(slow: Replication, gtids: bool) -> None:
    changes = ["UPDATE t SET note = 'new' WHERE id = 1", "INSERT INTO t VALUES (4, 'd')", "DELETE FROM t WHERE id = 2"]
    with hanging(slow, *changes):
        assert slow.leader.value(f"SELECT note FROM {slow.database}.t WHERE id = 1") == "a"
        assert slow.follower.value(f"SELECT note FROM {slow.database}.t WHERE id = 1") == "new"
        _, audited = audit(slow)
        assert audited.differences == [] and audited.status == 0, audited.out
        assert not (audited.folder / "repair.sql").exists()
    slow.same()


def test_rows_without_a_key_whose_commit_hangs_stay_undecided(slow: Replication, gtids: bool) -> None:
    with hanging(slow, "INSERT INTO keyless VALUES ('c')", "DELETE FROM keyless WHERE note = 'a'"):
        _, audited = audit(slow)
        assert (audited.status, audited.differences) == (3, []), audited.out
        words = "a commit hangs on the leader" if gtids else "without GTIDs"
        assert all(words in reason for reason in reasons(audited)), reasons(audited)
    slow.catch_up()
    slow.same()


def test_nothing_is_proven_without_a_topic_while_a_commit_hangs(slow: Replication, gtids: bool) -> None:
    """The leader writes nothing at all, and still shows an older row than its binlog holds."""
    with hanging(slow, "UPDATE t SET note = 'new' WHERE id = 1"):
        parity = Parity(
            slow.folder / "parity", slow.leader, slow.follower, [slow.database], system_database=slow.system_database
        )
        parity.keep_position(str(slow.applied()))
        audited = parity.audit()
        assert (audited.status, audited.differences) == (3, []), audited.out
        assert all("[topic]" in reason for reason in reasons(audited)), reasons(audited)


def test_a_row_that_is_wrong_is_found_beside_a_commit_that_hangs(slow: Replication, gtids: bool) -> None:
    """Also one whose own commit hangs; but then the leader's row is no row to repair it with."""
    slow.follower.execute(
        "SET sql_log_bin = 0", "UPDATE t SET note = 'damage' WHERE id IN (1, 3)", database=slow.database
    )
    with hanging(slow, "INSERT INTO top VALUES (7)"):
        _, audited = audit(slow)
        assert audited.found() == {"t": {("1",): ("changed", "note"), ("3",): ("changed", "note")}}, audited.out
        assert audited.status == 1


def test_a_table_whose_creation_hangs_is_not_different(slow: Replication, gtids: bool) -> None:
    with hanging(slow, "CREATE TABLE another (id INT PRIMARY KEY)"):
        _, audited = audit(slow)
        assert (audited.status, audited.schema) == (3, []), audited.out
        words = "a commit hangs on the leader" if gtids else "without GTIDs"
        assert all(words in reason for reason in reasons(audited)), reasons(audited)


@pytest.fixture
def connection(slow: Replication) -> Iterator[LeaderConnection]:
    address = Database(host=slow.leader.host, port=slow.leader.port, user="root", tls=DatabaseTls(mode="off"))
    with ExitStack() as stack:
        found = LeaderConnection(address)
        stack.callback(found.close)
        yield found


def test_a_binlog_file_begins_when_all_of_the_last_one_shows(
    slow: Replication, gtids: bool, connection: LeaderConnection
) -> None:
    """What the bound without GTIDs rests on: no look at the leader tells of the next file while a commit hangs."""
    first = connection.position()
    seen: list[Position] = []
    with hanging(slow, "UPDATE t SET note = 'new' WHERE id = 1"):
        flush = threading.Thread(target=slow.leader.execute, args=("FLUSH BINARY LOGS",))
        flush.start()
        look = threading.Thread(target=lambda: seen.append(connection.position()))
        wait_until(lambda: _flushing(slow.leader), "the leader is about to begin a file")
        look.start()
        look.join(1.0)
        assert all(position.number == first.number for position in seen)
        assert flush.is_alive()
    flush.join()
    look.join()
    assert connection.position().number == first.number + 1


def _flushing(leader: Server) -> bool:
    return any("FLUSH" in str(row[7]) for row in leader.execute("SHOW PROCESSLIST"))
