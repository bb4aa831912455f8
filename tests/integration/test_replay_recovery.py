"""What may break while replaying, and passes: locks, links, servers, the program itself."""

from __future__ import annotations

import itertools
import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pymysql
import pytest
from fix_mysql import StartServer
from fix_replay import COLUMNS, Stage, row
from kit.events import EventLog, consumer_profile
from kit.helpers import wait_until
from kit.programs import ENVIRONMENT, run_program

from cdc_consumer.replay import replay
from docker.local.mysql_servers import FOLLOWER
from shared.errors import FollowerError, causes


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


def test_the_lock_of_a_dead_session_is_taken_over(gtid_stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server may believe in sessions of ours long after their links broke, also in one that never got an answer."""
    from cdc_consumer.follower.server import open_server
    from shared.filters import DatabaseFilter

    monkeypatch.setattr("cdc_consumer.follower.lock.LOCK_WAIT", 0)
    stage = gtid_stage
    stage.create()
    profile = consumer_profile(stage.server, stage.log, stage.system)
    databases = DatabaseFilter(profile.filters, stage.system)
    first = open_server(profile, databases, set())
    tried: set[int] = set()
    with pytest.raises(FollowerError, match=rf"if its machine is gone .*KILL {first.id}\b"):
        open_server(profile, databases, tried)
    assert len(tried) == 1  # the answer that it has the lock might have been lost
    ours = {*tried, first.id}
    second = open_server(profile, databases, ours)
    assert ours == {second.id}
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


def test_gtids_that_are_switched_off_meanwhile(own_server: StartServer, tmp_path: Path, database: str) -> None:
    server, log = own_server(options=FOLLOWER), EventLog(tmp_path, gtids=True)
    stage = Stage(server, log, database)
    stage.create()
    stage.replay()
    with Background(stage) as background:
        log.add(stage.table, COLUMNS, row(1))
        background.until(lambda: stage.position()[1] == log.sequence, "it is applied under its GTID")
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
            server.execute(f"SET GLOBAL gtid_mode = {mode}")
        log.add(stage.table, COLUMNS, row(2))
        background.until(lambda: stage.position()[1] == log.sequence, "it is applied without one")
    assert background.error is None
    log.close()


def test_killed_consumers(stage: Stage, tmp_path: Path, seed: int) -> None:
    """kill -9 soon after an event was met, with statements that commit by themselves in between."""
    stage.create()
    for number in range(120):
        stage.log.add(stage.table, COLUMNS, *[row(number * 10 + index) for index in range(10)])
        if number % 6 == 0:
            stage.log.ddl(f"ALTER TABLE t ADD c{number} INT DEFAULT 1", stage.database)
    profile = stage.profile(tmp_path)
    random, killed = Random(seed), 0
    for events in itertools.count(5, 10):
        death = ("cdc_consumer.replay:Attempt._apply", f"{random.uniform(0, 0.05):.3f}", events)
        child = run_program("cdc_consumer", profile, "--exit-at-end", death=death)
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL, child.stderr
        killed += 1
    assert killed
    assert stage.position()[1] == stage.log.sequence
    assert stage.rows(columns="COUNT(*), SUM(id), SUM(c114)") == [(1200, sum(range(1200)), 1200)]


def start(profile: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cdc_consumer", str(profile), *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_what_is_whole(gtid_stage: Stage, tmp_path: Path, number: int) -> None:
    stage = gtid_stage
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1))
    child = start(stage.profile(tmp_path))
    try:
        wait_until(lambda: stage.server.execute(f"SHOW DATABASES LIKE '{stage.database}'"), "the database arrives")
        with stage.log.transaction(end=False):
            stage.log.rows("Add", stage.table, COLUMNS, [row(2)])
        wait_until(lambda: stage.position()[1] == 2, "the whole transaction arrives")
        time.sleep(0.1)
        child.send_signal(number)
        _, stderr = child.communicate(timeout=60)
        assert child.returncode == 0
    finally:
        child.kill()
    assert "no end in the topic yet" in stderr
    assert stage.rows() == [(1, "x")]
