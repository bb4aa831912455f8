"""What cannot be copied exactly is refused before anything is changed."""

from __future__ import annotations

from fix_copy import Copies

from docker.local.mysql_servers import Server


def test_one_server_is_not_its_own_follower(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT PRIMARY KEY)")
    copy = copies()
    text = copy.profile.read_text()
    copy.profile.write_text(text.replace(str(copy.follower.port), str(leader.port)))
    for arguments in ([], ["--replace"]):
        copy.refused("the same server_uuid", arguments=arguments)
    text = text.replace(str(leader.port), "PORT").replace(str(copy.follower.port), str(leader.port))
    copy.profile.write_text(text.replace("PORT", str(copy.follower.port)))
    copy.refused("holds what the server", "wrote", arguments=["--replace"])
    assert leader.execute(f"SHOW TABLES FROM {database}") == [("t",)]


def test_a_topic_that_begins_too_late(copies: Copies, plain_leader: Server, database: str) -> None:
    plain_leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT PRIMARY KEY)")
    copy = copies(plain=True, source=plain_leader, start="latest")
    copy.refused("does not reach back", "FLUSH BINARY LOGS")
    plain_leader.execute("FLUSH BINARY LOGS", f"INSERT INTO {database}.t VALUES (1)")
    copy.copy()
    copy.follow()


def test_another_history(copies: Copies, leader: Server, database: str) -> None:
    leader.execute(f"CREATE DATABASE {database}")
    copy = copies()
    uuid = leader.value("SELECT @@server_uuid")
    copy.follower.execute(f"SET GLOBAL gtid_purged = '+{uuid}:999999'")
    copy.refused(f"{uuid}:999999", "another history", "RESET BINARY LOGS AND GTIDS")


def test_what_cannot_be_copied(copies: Copies, leader: Server, database: str) -> None:
    """It is refused before what the follower has is dropped."""
    leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT) ENGINE = MyISAM")
    copy = copies()
    copy.refused(f"{database}.t", "MyISAM", "ENGINE=InnoDB")
    copy.follower.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.kept (a INT)")
    copy.refused(f"{database}.t", "MyISAM", arguments=("--replace",))
    assert copy.follower.execute(f"SHOW TABLES FROM {database}") == [("kept",)]


def test_a_table_without_a_key_that_may_not_be_locked(copies: Copies, plain_leader: Server, database: str) -> None:
    """Without GTIDs nothing tells which part of the current binlog file a snapshot shows."""
    plain_leader.execute(f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT)")
    copy = copies(plain=True, source=plain_leader, copy={"lock_keyless": False})
    plain_leader.execute(f"INSERT INTO {database}.t VALUES (1), (1)")
    copy.refused(f"{database}.t", "has no key", "lock_keyless")
