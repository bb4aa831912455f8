"""What ends a replay by name: servers, topics, accounts and limits that do not let it go on."""

from __future__ import annotations

import dataclasses
import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from fix_replay import COLUMNS, Stage, row
from kit.events import EventLog, consumer_profile
from kit.helpers import wait_until
from kit.programs import ENVIRONMENT

from cdc_consumer.replay import replay
from docker.local.mysql_servers import Server
from shared.errors import FollowerError, TopicMissingError, causes
from shared.profile import Filters, TopicSettings


def test_exit_statuses(gtid_stage: Stage, tmp_path: Path) -> None:
    stage = gtid_stage
    stage.create()
    stage.create()
    profile = stage.profile(tmp_path)

    def run(*arguments: str) -> tuple[int, list[str]]:
        command = [sys.executable, "-m", "cdc_consumer", *arguments]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=90)
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
    user = f"`{stage.database}`@`%`"
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
        with pytest.raises(FollowerError, match="SELECT command denied to user"):
            stage.replay(**account)
        stage.server.execute(f"GRANT ALL ON {stage.database}.* TO {user}", f"GRANT ALL ON {stage.system}.* TO {user}")
        stage.replay(**account)
        assert stage.position() == (1, 1)
    finally:
        stage.server.execute(f"DROP USER {user}")
