"""The replay of a topic into a real follower."""

from __future__ import annotations

from pathlib import Path

import pytest
from fix_replay import COLUMNS, Stage, row
from kit.events import EventLog

from shared.errors import CdcError, DivergedError, EventError, FollowerError, OffsetGoneError, SequenceError, causes
from shared.profile import Filters


def test_rows_arrive_and_the_position_with_them(stage: Stage) -> None:
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1, "one"), row(2, None), row(3, "it's \\ \x00 名"))
    stage.log.update(stage.table, COLUMNS, (row(1, "one"), row(1, "uno")), (row(2, None), row(20, "two")))
    stage.log.delete(stage.table, COLUMNS, row(3, "it's \\ \x00 名"))
    stage.replay()
    assert stage.rows() == [(1, "uno"), (20, "two")]
    assert stage.position() == (4, 4)


def test_a_second_run_continues(stage: Stage) -> None:
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    stage.replay()
    stage.log.add(stage.table, COLUMNS, row(2, "b"))
    stage.replay()
    stage.replay()
    assert stage.rows() == [(1, "a"), (2, "b")]
    assert stage.position() == (3, 3)


def test_the_order_of_a_transaction_is_kept(stage: Stage) -> None:
    stage.create()
    with stage.log.transaction():
        stage.log.rows("Add", stage.table, COLUMNS, [row(1, "a"), row(2, "b")])
        stage.log.rows("Add", stage.table, COLUMNS, [row(3, "c")])
        stage.log.rows("Delete", stage.table, COLUMNS, [row(1, "a")])
        stage.log.rows("Add", stage.table, COLUMNS, [row(1, "again")])
        stage.log.rows("Update", stage.table, COLUMNS, [(row(1, "again"), row(4, "moved"))])
        stage.log.rows("Add", stage.table, COLUMNS, [row(1, "third")])
        stage.log.rows("Delete", stage.table, COLUMNS, [row(2, "b")])
        stage.log.rows("Delete", stage.table, COLUMNS, [row(3, "c")])
    stage.replay()
    assert stage.rows() == [(1, "third"), (4, "moved")]


def test_a_transaction_without_end_is_not_applied(stage: Stage) -> None:
    stage.create()
    with stage.log.transaction(end=False):
        stage.log.rows("Add", stage.table, COLUMNS, [row(1, "a")])
    stage.replay()
    assert stage.rows() == []
    assert stage.position() == (1, 1)


def test_repeats_are_dropped(stage: Stage) -> None:
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    stage.log.append(*stage.log.records())
    stage.log.add(stage.table, COLUMNS, row(2, "b"))
    stage.replay()
    assert stage.rows() == [(1, "a"), (2, "b")]
    assert stage.position() == (6, 3)


def test_a_gap_stops(stage: Stage) -> None:
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    stage.log.sequence += 2
    stage.log.add(stage.table, COLUMNS, row(2, "b"))
    with pytest.raises(SequenceError, match="topic offset 3 holds sequence 5 where 3 must follow"):
        stage.replay()
    assert stage.rows() == [(1, "a")], "what was whole is committed"
    assert stage.position() == (2, 2)


def test_a_record_that_is_no_event_stops(stage: Stage) -> None:
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    stage.log.append(b"{}")
    with pytest.raises(EventError, match="topic events offset 3 is not an event"):
        stage.replay()
    assert stage.rows() == [(1, "a")]


def test_heartbeats_move_the_position(stage: Stage) -> None:
    stage.log.heartbeat()
    stage.replay()
    assert stage.position() == (0, -1)
    stage.create()
    stage.log.heartbeat()
    stage.log.heartbeat()
    stage.replay()
    assert stage.position() == (4, 1)
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    stage.replay()
    assert stage.position() == (5, 2)


@pytest.mark.parametrize("known_before", [True, False])
def test_the_leader_itself_is_refused(stage: Stage, known_before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is written, or as soon as the topic tells whose it is."""
    stage.log.heartbeat(stage.server.value("SELECT @@server_uuid"))
    stage.create()
    stage.log.heartbeat("")
    if not known_before:
        monkeypatch.setattr("cdc_consumer.replay.leader_of_topic", lambda reader, name: "")
    with pytest.raises(FollowerError, match="is the leader whose changes topic events holds"):
        stage.replay()
    found = stage.server.execute(f"SHOW DATABASES LIKE '{stage.database}%'")
    assert found == ([] if known_before else [(stage.system,)])


def test_another_topic_of_the_same_name_is_refused(stage: Stage, tmp_path: Path) -> None:
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    stage.replay()
    first = stage.log
    stage.log = EventLog(tmp_path / "new", seed=77)
    stage.create()
    with pytest.raises(OffsetGoneError, match="topic events ends at offset 2, and the follower has applied offset 2"):
        stage.replay()
    stage.log.add(stage.table, COLUMNS, row(1, "a"), row(2, "b"))
    stage.log.add(stage.table, COLUMNS, row(3, "c"))
    if first.gtid is not None:
        with pytest.raises(OffsetGoneError, match="offset 2 of topic events holds sequence 2"):
            stage.replay()
    stage.log.close()
    assert stage.rows() == [(1, "a")]


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM {} WHERE id = 2", "UPDATE {} SET id = 20 WHERE id = 2"],
)
@pytest.mark.parametrize("kind", ["Update", "Delete"])
def test_a_row_that_is_not_there_stops(stage: Stage, damage: str, kind: str) -> None:
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1, "a"), row(2, "b"), row(3, "c"))
    stage.replay()
    stage.server.execute(damage.format(stage.table))
    before = stage.rows()
    with stage.log.transaction():
        images = [row(1, "a"), row(2, "b"), row(3, "c")]
        stage.log.rows("Add", stage.table, COLUMNS, [row(9, "x")])
        stage.log.rows(kind, stage.table, COLUMNS, images if kind == "Delete" else [(one, one) for one in images])
    with pytest.raises(DivergedError, match=rf"{kind} of {stage.table} \(id=2\), sequence 4 \(topic offset 4\)"):
        stage.replay()
    assert stage.rows() == before
    assert stage.position() == (2, 2)


def test_a_row_that_is_there_already_stops(stage: Stage) -> None:
    stage.create()
    stage.replay()
    stage.server.execute(f"INSERT INTO {stage.table} VALUES (2, 'mine')")
    stage.log.add(stage.table, COLUMNS, row(1, "a"), row(2, "b"))
    with pytest.raises(DivergedError, match="Duplicate entry '2'"):
        stage.replay()
    assert stage.rows() == [(2, "mine")]


def test_filters(stage: Stage) -> None:
    other = f"{stage.database}_other"
    stage.filters = Filters(include_dbs=(stage.database,))
    stage.create()
    stage.log.ddl(f"CREATE DATABASE {other}", other)
    stage.log.ddl("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))", other)
    with stage.log.transaction():
        stage.log.rows("Add", f"{other}.t", COLUMNS, [row(1, "not here")])
        stage.log.rows("Add", stage.table, COLUMNS, [row(1, "here")])
    stage.log.add(f"{other}.t", COLUMNS, row(2, "not here"))
    stage.log.ddl(f"CREATE TABLE {stage.table}2 LIKE {stage.table}", other, [stage.database])
    stage.replay()
    assert stage.rows() == [(1, "here")]
    assert stage.rows("t2") == []
    assert stage.server.execute(f"SHOW DATABASES LIKE '{other}'") == []
    assert stage.position() == (7, 7)
    stage.log.ddl(f"RENAME TABLE {other}.t TO {stage.database}.r", other, [other, stage.database])
    with pytest.raises(FollowerError, match="writes databases of which some take part"):
        stage.replay()


def test_two_consumers_of_one_topic(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_consumer.follower.lock.LOCK_WAIT", 0)
    stage.create()
    holder = stage.server.connect()
    with holder.cursor() as cursor:
        cursor.execute(f"SELECT GET_LOCK('{stage.system}.events', 0)")
    with pytest.raises(FollowerError, match="another consumer is replaying this topic"):
        stage.replay()
    holder.close()
    stage.replay()
    assert stage.position() == (1, 1)


def test_nothing_of_ours_is_a_gtid(gtid_stage: Stage) -> None:
    stage = gtid_stage
    own = stage.server.value("SELECT @@server_uuid")
    before = stage.server.value("SELECT @@GLOBAL.gtid_executed")
    stage.create()
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    stage.log.heartbeat()
    stage.replay()
    now = stage.server.value("SELECT @@GLOBAL.gtid_executed")
    new = stage.server.value(f"SELECT GTID_SUBTRACT('{now}', '{before}')")
    assert own not in new
    assert new.split(":")[1] == "1-3"


def test_messages_are_one_line(stage: Stage) -> None:
    stage.log.add(stage.table, COLUMNS, row(1, "a"))
    with pytest.raises(CdcError) as caught:
        stage.replay()
    assert causes(caught.value).startswith(
        f"sequence 0 (topic offset 0): table {stage.table} does not exist on the follower; create it there"
        " as it was on the leader (run cdc-copy, if nothing has filled this follower yet, with --add for a database that joins a pair), or leave"
    )
