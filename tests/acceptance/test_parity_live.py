"""Audits of servers that are written all the time, by a consumer that lags: no false alarm, and every planted row."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fix_parity import Parity, parity_of
from fix_replication import Replicate, Replication
from kit.programs import ROOT, Program, binlog_end
from kit.random_writer import RandomWriter

from cdc_consumer.parity.rows.plan import Sizes
from docker.local.mysql_servers import Server
from shared.events import Position

#: of the row that is written all the time
HOT = 0
#: the writer leaves these rows alone
COLD = range(1, 301)
#: seconds for which the consumer stands still, and then may catch up; between two changes at random, so that it does; and
#: between two of the rows that are written all the time
LAG, PAUSE, HOT_PAUSE = 0.5, 0.03, 0.01
#: so small that every table has several tasks
SMALL = Sizes(leaf_rows=40, task_rows=(150, 150))
TABLES = (
    "CREATE TABLE things (id INT PRIMARY KEY, note VARCHAR(40), n INT NOT NULL)",
    "CREATE TABLE loose (id INT, note VARCHAR(40), n INT NOT NULL)",
)


class Busy:
    """Writes both tables all the time, one row of each above all, and lets the consumer stand still again and again."""

    def __init__(self, replication: Replication) -> None:
        self._replication = replication
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._write), threading.Thread(target=self._lag)]
        self._failures: list[BaseException] = []
        #: changes of the hot rows
        self.changes = 0

    def _write(self) -> None:
        try:
            with self._replication.leader.connect(self._replication.database) as connection:
                while not self._stopping.is_set():
                    self._change(connection.cursor())
        except BaseException as error:
            self._failures.append(error)

    def _change(self, cursor: object) -> None:
        self.changes += 1
        number = self.changes
        statements = [
            f"UPDATE things SET n = {number} WHERE id = {HOT}",
            # there and back again: the row is alike before and after
            f"UPDATE things SET note = IF(note = 'one', 'two', 'one') WHERE id = {HOT - 1}",
            f"UPDATE loose SET n = {number} WHERE id = {HOT}",
        ]
        if number % 5 == 0:
            statements += [
                f"REPLACE INTO things VALUES ({1000 + number % 200}, 'busy', {number})",
                f"DELETE FROM things WHERE id = {1000 + (number * 7) % 200}",
                f"INSERT INTO loose VALUES ({1000 + number % 50}, 'busy', {number % 3})",
                f"DELETE FROM loose WHERE id = {1000 + (number * 7) % 50} LIMIT 1",
            ]
        for statement in statements:
            cursor.execute(statement)
        self._stopping.wait(HOT_PAUSE)

    def _lag(self) -> None:
        replication, pid = self._replication, self._replication.consumer.pid
        while not self._stopping.is_set():
            os.kill(pid, signal.SIGSTOP)
            self._stopping.wait(LAG)
            file, _, offset = binlog_end(replication.leader).partition(":")
            os.kill(pid, signal.SIGCONT)
            while not Position(file, int(offset)) <= replication.applied() and not self._stopping.wait(0.05):
                pass

    def __enter__(self) -> Busy:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)
        if self._failures:
            raise self._failures[0]


def running(
    replicate: Replicate, leader: Server, follower: Server, database: str, apply: dict[str, object], *,
    blind: bool = False,
) -> Replication:  # fmt: skip
    """Both tables on both sides, and both programs running; a second database for a random writer.

    A `blind` consumer does not notice what somebody changes on its follower.
    """
    heartbeat = {"database": {"heartbeat_seconds": 0.3}}
    databases = [database, f"{database}_random"]
    replication = replicate(leader, follower, databases, producer=heartbeat, consumer={"apply": apply})
    if blind:
        path = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
        replication.consumer = Program("kit.blind_consumer", replication.profiles.consumer, env=path)
    replication.play(f"CREATE DATABASE {database}")
    rows = ", ".join(f"({number}, 'row {number}', {number % 7})" for number in (HOT - 1, HOT, *COLD))
    replication.play(*TABLES, f"INSERT INTO things VALUES {rows}", f"INSERT INTO loose VALUES {rows}")
    replication.start()
    replication.catch_up()
    return replication


@pytest.fixture
def live(replicate: Replicate, leader: Server, follower: Server, database: str) -> Replication:
    """Rows go by SQL: a trigger that damages a row does not see what is applied by the leader's own binlog events."""
    return running(replicate, leader, follower, database, {"rows": "sql"}, blind=True)


@contextmanager
def busy(replication: Replication, seed: int) -> Iterator[Parity]:
    """The audit of a replication whose leader is written at random, and whose consumer lags."""
    database = replication.database
    writer = RandomWriter(
        replication.leader,
        [f"{database}_random"],
        f"{database}_outside",
        seed,
        threads=1,
        definitions=False,
        # the consumer begins anew to look closer at them, and does not where it finds the trigger that damages rows
        copies=False,
        pause=PAUSE,
    )
    writer.create()
    # a busy machine may take long to bring the follower that far
    limits = {"fence_seconds": 300}
    parity = parity_of(replication, [database, f"{database}_random"], limits=limits)
    with writer, Busy(replication):
        yield parity


def strange(server: Server, database: str, *statements: str) -> None:
    """Write one side only."""
    server.execute("SET sql_log_bin = 0", *statements, database=database)


def plant(replication: Replication) -> None:
    """Every kind of damage, in rows that nobody writes, and a trigger that damages the row that is written always."""
    leader, follower, database = replication.leader, replication.follower, replication.database
    replication.play("UPDATE things SET note = 'new' WHERE id = 12", "UPDATE loose SET note = 'new' WHERE id = 12")
    replication.catch_up()
    strange(
        follower, database,
        "UPDATE things SET note = 'strange' WHERE id = 10", "DELETE FROM things WHERE id = 11",
        "UPDATE things SET note = 'row 12' WHERE id = 12", "INSERT INTO things VALUES (500, 'strange', 1)",
        "DELETE FROM loose WHERE id = 10", "INSERT INTO loose SELECT * FROM loose WHERE id = 11",
        "INSERT INTO loose VALUES (500, 'strange', 1)",
        "CREATE TRIGGER damage BEFORE UPDATE ON things FOR EACH ROW"
        f" SET NEW.note = IF(NEW.id = {HOT}, 'damaged', NEW.note)",
    )  # fmt: skip
    strange(
        leader, database, "UPDATE things SET n = n + 1 WHERE id = 13", "INSERT INTO things VALUES (501, 'unlogged', 1)",
        "INSERT INTO loose VALUES (501, 'unlogged', 1)",
    )  # fmt: skip


#: of the table with a key what must be found: kind and stage
THINGS = {
    "10": ("changed", "applied wrongly, or changed on the follower afterwards"),
    "11": ("missing", "published but not applied"),
    "12": ("changed", "published but not applied"),
    "13": ("changed", "never published"),
    "500": ("extra", "follower written by a stranger"),
    "501": ("missing", "never published"),
    str(HOT): ("changed", "applied wrongly, or changed on the follower afterwards"),
}
#: and of the one without, by the row
LOOSE = {
    "10": ("missing", "published but not applied"),
    "11": ("copies", "follower written by a stranger"),
    "500": ("extra", "follower written by a stranger"),
    "501": ("missing", "never published"),
}


def test_only_what_was_planted_is_found(live: Replication, seed: int, audits: int) -> None:
    with busy(live, seed) as parity:
        for _ in range(audits):
            clean = parity.audit(sizes=SMALL)
            assert (clean.differences, clean.run["undecided"]) == ([], []), clean.err
            assert clean.status == 0, clean.out + clean.err
        plant(live)
        for audited in (parity.audit(sizes=SMALL) for _ in range(audits)):
            assert audited.status == 1, audited.err
            found = {
                (each.table.table, (each.leader or each.follower or {})["id"]): (each.kind, each.stage)
                for each in audited.differences
            }
            things = {("things", id_): what for id_, what in THINGS.items()}
            assert found == things | {("loose", id_): what for id_, what in LOOSE.items()}, audited.err
            assert len(found) == len(audited.differences)
            assert audited.run["undecided"] == []
            by_row = {(each.table.table, *each.key.values()): each for each in audited.differences}
            assert [event.operation for event in by_row["things", "12"].evidence.events] == ["Add", "Update"]
            # a quick audit looks twice between two changes of the row
            assert by_row["things", str(HOT)].evidence.proof in ("after-image", "idle")
            assert {d.evidence.proof for d in audited.differences} <= {"after-image", "idle", "no event"}


def test_a_follower_that_is_ahead_of_its_position_is_equal(
    replicate: Replicate, leader: Server, follower: Server, database: str, seed: int
) -> None:
    """Its transactions are committed as they are done, and a row may show one behind the position."""
    side_by_side = {"workers": 4, "order": "independent"}
    with busy(running(replicate, leader, follower, database, side_by_side), seed) as parity:
        clean = parity.audit(sizes=SMALL)
        assert (clean.differences, clean.run["undecided"], clean.status) == ([], [], 0), clean.out + clean.err
