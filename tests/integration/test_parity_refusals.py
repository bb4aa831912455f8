"""What keeps an audit from running: one clear sentence, and exit status 4."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from fix_parity import Parity
from kit.events import EventLog

from cdc_consumer.parity import canonical
from cdc_consumer.parity.model import Shape
from cdc_consumer.parity.servers import connection as servers
from docker.local.mysql_servers import Server
from shared.mysql import quote_name

# what keeps it from running


@pytest.fixture
def account(leader: Server, follower: Server, database: str) -> Iterator[Callable[..., str]]:
    """Makes an account on both servers: account(what it may on the leader, what it may on the follower)."""
    name = database.replace("test_", "user_")

    def make(theirs: Sequence[str], ours: Sequence[str]) -> str:
        for server, grants in ((leader, theirs), (follower, ours)):
            server.execute(
                f"DROP USER IF EXISTS {name}", f"CREATE USER {name}", *(f"GRANT {grant} TO {name}" for grant in grants)
            )
        return name

    yield make
    for server in (leader, follower):
        server.execute(f"DROP USER IF EXISTS {name}")


def test_the_privileges_that_help_names_are_enough_and_each_is_needed(
    account: Callable[..., str], damaged: Parity, database: str
) -> None:
    both = [f"SELECT, SHOW VIEW, TRIGGER, EVENT ON {database}.*", "SHOW_ROUTINE ON *.*"]
    theirs, ours = [*both, "REPLICATION CLIENT ON *.*"], [*both, f"SELECT ON {database}_cdc.*"]
    damaged.be_current()
    name = account(theirs, ours)
    damaged.change(leader={"user": name}, follower={"user": name})
    assert damaged.audit().kinds() == {("a", "changed"), ("b", "missing"), ("other", "copies")}
    for missing, word in zip(theirs, ("SHOW VIEW", "SHOW_ROUTINE", "REPLICATION CLIENT"), strict=True):
        account([each for each in theirs if each != missing], ours)
        damaged.audit().assert_refused(4, word, str(damaged.leader))
    for missing, word in zip(ours, ("SHOW VIEW", "SHOW_ROUTINE", "table 'position'"), strict=True):
        account(theirs, [each for each in ours if each != missing])
        damaged.audit().assert_refused(4, word, str(damaged.follower))


def test_a_wrong_password(damaged: Parity) -> None:
    damaged.change(leader={"password": "wrong"})
    damaged.audit().assert_refused(4, f"leader {damaged.leader}", "Access denied")


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_server_that_does_not_answer(role: str, damaged: Parity, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "PATIENCE", 0.1)
    damaged.change(**{role: {"port": 1}})
    damaged.audit().assert_refused(4, f"the {role} 127.0.0.1:1 does not answer")


def test_a_follower_where_no_consumer_has_run(damaged: Parity) -> None:
    damaged.change(follower={"system_database": "nosuch_cdc"})
    damaged.audit().assert_refused(4, "nosuch_cdc", "has the consumer ever run there?")
    damaged.change(follower={"system_database": damaged.system_database}, topic={"name": "others", "path": "/nowhere"})
    damaged.audit().assert_refused(4, "others", "it has events")


def test_one_server_is_not_its_own_follower(damaged: Parity) -> None:
    damaged.change(leader={"port": damaged.follower.port})
    damaged.audit().assert_refused(4, "the same server_uuid")


def test_the_topic_is_of_another_leader(damaged: Parity, tmp_path: Path) -> None:
    damaged.be_current()
    log = EventLog(tmp_path / "topics")
    log.heartbeat("another-server")
    log.close()
    damaged.change(topic={"name": "events", "path": str(tmp_path / "topics")})
    damaged.audit().assert_refused(4, "topic events holds what the server another-server wrote", "[leader]")


def test_a_topic_that_is_not_there(damaged: Parity, tmp_path: Path) -> None:
    damaged.change(topic={"name": "events", "path": str(tmp_path / "nowhere")})
    damaged.audit().assert_refused(4, "nowhere/events.topic does not exist")


def test_a_wrong_table_leaves_no_folder(damaged: Parity) -> None:
    damaged.audit("--tables=nosuch.*").assert_refused(2, "nosuch.*")
    assert not damaged.folders()


def test_a_folder_that_cannot_be_written(damaged: Parity, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    damaged.change(report={"path": str(tmp_path / "file")})
    damaged.audit().assert_refused(4, "cannot write", str(tmp_path / "file"))


def test_a_bad_profile(damaged: Parity) -> None:
    damaged.change(limits={"leader_threads": 0})
    damaged.audit().assert_refused(2, "limits.leader_threads", str(damaged.profile))


# the hash itself


def careless(form: str, end: int | None = None) -> Callable[..., str]:
    """A row's text made of each value in this form, without the columns from `end` on."""

    def row_text(shape: Shape, replaced: dict[str, str] | None = None) -> str:
        columns = {column.name: quote_name(column.name) for column in shape.columns} | (replaced or {})
        return f"CONCAT_WS('#', {', '.join(form.format(column) for column in list(columns.values())[:end])})"

    return row_text


@pytest.mark.parametrize(
    ("row_text", "column", "value"),
    [
        (careless("{}", -1), "INT", "7"),
        (careless("IFNULL(HEX({}), '')"), "VARCHAR(9)", "NULL"),
        # the text of a FLOAT has six digits
        (careless("QUOTE({})"), "FLOAT", "16777216"),
        (careless("QUOTE(TRIM({}))"), "VARCHAR(9)", "'a'"),
        (careless("FORMAT({}, 9)"), "DOUBLE", "0.1"),
    ],
)
def test_a_hash_that_overlooks_something_is_not_trusted(
    row_text: Callable[..., str], column: str, value: str, parity: Parity, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [f"CREATE TABLE t (id INT PRIMARY KEY, c {column})", f"INSERT INTO t VALUES (1, {value})"]
    for server in (parity.leader, parity.follower):
        server.execute(*both, database=parity.database)
    assert parity.audit().status == 0
    monkeypatch.setattr(canonical, "row_text", row_text)
    parity.audit().assert_refused(4, "does not see column c", "defect")
