"""What may break while replaying: locks, links, servers, limits."""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymysql
import pytest
from fix_mysql import StartServer
from fix_replay import Stage
from kit.events import EventLog, consumer_profile, integer, string
from kit.helpers import wait_until
from kit.programs import ENVIRONMENT

from cdc_consumer.replay import replay
from docker.local.mysql_servers import FOLLOWER, Server
from shared.errors import FollowerError, TopicMissingError, causes
from shared.profile import Filters, TopicSettings

COLUMNS = ("id", "name")


def row(number: int, name: str | None = "x") -> list[Any]:
    return [integer(number), string(name)]


class Background:
    """A replay in a thread that runs until it is stopped."""

    def __init__(self, stage: Stage, **database: Any) -> None:
        self._profile = consumer_profile(stage.server, stage.log, stage.system, stage.filters, **database)
        self._stop = False
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            replay(self._profile, lambda: self._stop, exit_at_end=False)
        except Exception as error:
            self.error = error

    def until(self, check: Callable[[], Any], message: str, timeout: float = 30.0) -> None:
        """Wait until the check is true; fail at once when the replay has ended with an error."""

        def checked() -> Any:
            if self.error is not None:
                raise AssertionError(f"{message}: the replay has stopped") from self.error
            return check()

        wait_until(checked, message, timeout=timeout)

    def __enter__(self) -> Background:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        self._thread.join(30)
        assert not self._thread.is_alive()


def count(stage: Stage) -> int:
    return int(stage.server.value(f"SELECT COUNT(*) FROM {stage.table}"))


def test_a_locked_row_is_waited_for_and_tried_again(gtid_stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage = gtid_stage
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1))
    stage.replay()
    with stage.log.transaction():
        stage.log.rows("Add", stage.table, COLUMNS, [row(2)])
        stage.log.rows("Update", stage.table, COLUMNS, [(row(1), row(1, "y"))])
    other = stage.server.connect(autocommit=False)
    other.query(f"UPDATE {stage.table} SET name = 'z' WHERE id = 1")
    with caplog.at_level(logging.INFO), Background(stage, lock_wait_seconds=1) as background:
        background.until(lambda: "trying again" in caplog.text, "the lock wait ends")
        assert "Lock wait timeout" in caplog.text
        other.rollback()
        background.until(lambda: count(stage) == 2, "the transaction is tried again")
    other.close()
    assert background.error is None
    assert stage.rows() == [(1, "y"), (2, "x")]


def test_a_lock_that_never_ends_is_named(gtid_stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = gtid_stage
    monkeypatch.setattr("cdc_consumer.next_attempt.ATTEMPTS", 2)
    stage.create()
    stage.replay()
    stage.log.ddl("ALTER TABLE t ADD c INT", stage.database)
    other = stage.server.connect(autocommit=False)
    other.query(f"SELECT * FROM {stage.table}")
    with pytest.raises(FollowerError) as caught:
        stage.replay(lock_wait_seconds=1)
    assert "tried 2 times in vain: ALTER TABLE t ADD c INT" in causes(caught.value)
    other.close()
    stage.replay()
    assert stage.position() == (2, 2)


def test_killed_sessions(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """The session is killed again and again, at any moment; every row arrives once."""
    stage.create()
    stage.replay()
    done = 600
    caplog.clear()
    with caplog.at_level(logging.INFO), Background(stage) as background:
        # the first connection is not tried twice
        background.until(lambda: "replaying topic" in caplog.text, "it is connected")
        for number in range(done):
            with stage.log.transaction():
                stage.log.rows("Add", stage.table, COLUMNS, [row(number)])
                stage.log.rows("Update", stage.table, COLUMNS, [(row(number), row(number, "y"))])
            if number % 40 == 20:
                kill_consumer(stage)
        background.until(lambda: stage.position()[1] == stage.log.sequence, "the end is reached", timeout=60)
    assert background.error is None
    assert stage.rows() == [(number, "y") for number in range(done)]
    assert "trying again until it is reached" in caplog.text
    assert "reached again" in caplog.text


def kill_consumer(stage: Stage) -> None:
    holder = stage.server.value(f"SELECT IS_USED_LOCK('{stage.system}.events')")
    if holder is not None:
        try:
            stage.server.execute(f"KILL {holder}")
        except pymysql.err.MySQLError as error:
            assert error.args[0] == 1094


def test_the_lock_of_a_dead_session_is_taken_over(gtid_stage: Stage) -> None:
    """The server may believe in a session of ours long after its link broke."""
    from cdc_consumer.follower.server import open_server
    from shared.filters import DatabaseFilter

    stage = gtid_stage
    stage.create()
    profile = consumer_profile(stage.server, stage.log, stage.system)
    databases = DatabaseFilter(profile.filters, stage.system)
    first = open_server(profile, databases, None)
    second = open_server(profile, databases, first.id)
    assert second.id != first.id
    second.close()
    first.close()


@pytest.mark.parametrize("gtids", [True, False])
def test_a_killed_server(gtids: bool, own_server: StartServer, tmp_path: Path, database: str) -> None:
    server = own_server(options=FOLLOWER if gtids else ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"])
    log = EventLog(tmp_path, gtids=gtids)
    stage = Stage(server, log, database)
    stage.create()
    stage.replay()
    with Background(stage) as background:
        background.until(lambda: server.value(f"SELECT IS_USED_LOCK('{stage.system}.events')"), "it is connected")
        for number in range(300):
            log.add(stage.table, COLUMNS, row(number))
            if number == 150:
                log.ddl("ALTER TABLE t ADD c INT DEFAULT 1", database)
            if number % 100 == 50:
                server.kill()
                server.start()
        background.until(lambda: stage.position()[1] == log.sequence, "the end is reached", timeout=90)
    assert background.error is None
    assert stage.rows(columns="COUNT(*), SUM(id)") == [(300, sum(range(300)))]
    log.close()


def test_killed_consumers(stage: Stage, tmp_path: Path) -> None:
    """kill -9 at any moment, with statements that commit by themselves in between."""
    stage.create()
    for number in range(120):
        stage.log.add(stage.table, COLUMNS, *[row(number * 10 + index) for index in range(10)])
        if number % 6 == 0:
            stage.log.ddl(f"ALTER TABLE t ADD c{number} INT DEFAULT 1", stage.database)
    profile = write_profile(tmp_path / "p.toml", stage)
    delay = 0.25
    while True:
        child = start(profile, "--exit-at-end")
        try:
            assert child.wait(delay) == 0, child.stderr and child.stderr.read()
            break
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            delay += 0.06
        finally:
            assert child.stderr is not None
            child.stderr.close()
    assert delay > 0.3, "it was killed at least once"
    assert stage.position()[1] == stage.log.sequence
    assert stage.rows(columns="COUNT(*), SUM(id), SUM(c114)") == [(1200, sum(range(1200)), 1200)]


def write_profile(path: Path, stage: Stage) -> Path:
    path.write_text(
        f'[database]\nhost = "{stage.server.host}"\nport = {stage.server.port}\nuser = "root"\n'
        f'system_database = "{stage.system}"\n[filters]\nexclude_dbs = []\n'
        f'[topic]\nname = "{stage.log.settings.name}"\npath = "{stage.log.settings.path}"\n'
    )
    return path


def start(profile: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cdc_consumer", str(profile), *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_what_is_whole(gtid_stage: Stage, tmp_path: Path, number: int) -> None:
    stage = gtid_stage
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1))
    child = start(write_profile(tmp_path / "p.toml", stage))
    try:
        wait_until(lambda: stage.server.execute(f"SHOW DATABASES LIKE '{stage.database}'"), "the database arrives")
        with stage.log.transaction(end=False):
            stage.log.rows("Add", stage.table, COLUMNS, [row(2)])
        wait_until(lambda: stage.position()[1] == 2, "the whole transaction arrives")
        time.sleep(0.1)
        child.send_signal(number)
        _, stderr = child.communicate(timeout=10)
        assert child.returncode == 0
    finally:
        child.kill()
    assert "no end in the topic yet" in stderr
    assert stage.rows() == [(1, "x")]


def test_exit_statuses(gtid_stage: Stage, tmp_path: Path) -> None:
    stage = gtid_stage
    stage.create()
    stage.create()
    profile = write_profile(tmp_path / "p.toml", stage)

    def run(*arguments: str) -> tuple[int, list[str]]:
        command = [sys.executable, "-m", "cdc_consumer", *arguments]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=30)
        assert done.stdout == "" or "--help" in arguments
        return done.returncode, (done.stderr or done.stdout).splitlines()

    status, lines = run(str(profile), "--exit-at-end")
    assert status == 1
    assert lines[-1].startswith("cdc-consumer: CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20)) in database")
    assert not any("Traceback" in line for line in lines)
    assert run(str(tmp_path / "none.toml"))[0] == 2
    assert run()[0] == 2
    status, lines = run("--help")
    assert status == 0
    assert any("exit status" in line for line in lines)


def test_a_server_that_is_not_there_is_named_at_once(tmp_path: Path) -> None:
    log = EventLog(tmp_path)
    profile = consumer_profile(Server("127.0.0.1", 1), log, "c_cdc")
    with pytest.raises(FollowerError) as caught:
        replay(profile, lambda: False, exit_at_end=False)
    assert causes(caught.value).startswith("cannot connect to the follower 127.0.0.1:1 as root: ")
    log.close()


def test_a_wrong_password_is_named_at_once(gtid_stage: Stage) -> None:
    with pytest.raises(FollowerError) as caught:
        gtid_stage.replay(password="wrong")
    assert "Access denied" in causes(caught.value)


def test_a_topic_that_is_not_there(gtid_stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    import dataclasses

    stage = gtid_stage
    settings = TopicSettings(name="other", path=stage.log.settings.path)
    profile = dataclasses.replace(consumer_profile(stage.server, stage.log, stage.system), topic=settings)
    with pytest.raises(TopicMissingError):
        replay(profile, lambda: False, exit_at_end=True)
    stop: list[bool] = []
    with caplog.at_level(logging.INFO):
        thread = threading.Thread(target=replay, args=(profile, lambda: bool(stop), False))
        thread.start()
        wait_until(lambda: "waiting for the topic" in caplog.text, "it waits")
        log = EventLog(Path(settings.path), name="other", seed=int(stage.database[-8:], 16))
        log.ddl(f"CREATE DATABASE {stage.database}", stage.database)
        wait_until(lambda: stage.server.execute(f"SHOW DATABASES LIKE '{stage.database}'"), "the topic is replayed")
        stop.append(True)
        thread.join(10)
        assert not thread.is_alive()
    assert caplog.text.count("waiting for the topic") == 1
    log.close()


def test_a_statement_too_large_for_the_follower(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create("(id INT PRIMARY KEY, name LONGTEXT)")
    packet = stage.server.value("SELECT @@GLOBAL.max_allowed_packet")
    stage.log.add(stage.table, COLUMNS, row(1))
    stage.log.add(stage.table, COLUMNS, row(2, "y" * (1 << 21)))
    try:
        stage.server.execute(f"SET GLOBAL max_allowed_packet = {1 << 20}")
        with pytest.raises(
            FollowerError, match=r"bytes and the follower takes 1048576; run on it: SET PERSIST max_all"
        ):
            stage.replay()
        assert stage.rows() == [(1, "x")], "the transaction before it is committed"
    finally:
        stage.server.execute(f"SET GLOBAL max_allowed_packet = {packet}")
    stage.replay()
    assert stage.rows(columns="id, LENGTH(name)") == [(1, 1), (2, 1 << 21)]


def test_a_read_only_follower_is_named(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create()
    try:
        stage.server.execute("SET GLOBAL super_read_only = ON")
        with pytest.raises(FollowerError, match="SET GLOBAL super_read_only = OFF"):
            stage.replay()
    finally:
        stage.server.execute("SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
    stage.replay()


def test_missing_privileges_are_named(stage: Stage) -> None:
    stage.create()
    stage.filters = Filters(include_dbs=(stage.database,))
    user = f"'{stage.database}'@'%'"
    account = {"user": stage.database, "password": "secret"}
    wanted = ["SESSION_VARIABLES_ADMIN", "REPLICATION_APPLIER" if stage.gtids else "PROCESS"]
    stage.server.execute(f"CREATE USER {user} IDENTIFIED BY 'secret'")
    try:
        for privilege in wanted:
            if privilege != "REPLICATION_APPLIER":  # the first one is enough for GTIDs
                with pytest.raises(FollowerError) as caught:
                    stage.replay(**account)
                assert f"GRANT {privilege} ON *.* TO {user}" in str(caught.value)
            stage.server.execute(f"GRANT {privilege} ON *.* TO {user}")
        with pytest.raises(FollowerError, match=r"Access denied .* to database"):
            stage.replay(**account)
        stage.server.execute(f"GRANT ALL ON {stage.database}.* TO {user}", f"GRANT ALL ON {stage.system}.* TO {user}")
        stage.replay(**account)
        assert stage.position() == (1, 1)
    finally:
        stage.server.execute(f"DROP USER {user}")
