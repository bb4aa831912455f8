"""Keeps what a run has found so far in one SQLite file: how a run is resumed, and why memory stays flat."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cdc_consumer.parity.differences import difference_of
from cdc_consumer.parity.model import STRIP_CELLS, Difference, Key, TableResult
from cdc_consumer.parity.rows.leaves import Compared
from cdc_consumer.parity.rows.ranges import Range
from cdc_consumer.parity.rows.task import Outcome, Task
from shared.errors import AuditError

NAME = "audit.sqlite"

_TABLES = """
CREATE TABLE run (plan TEXT NOT NULL, began TEXT NOT NULL);
CREATE TABLE part (
    id INTEGER PRIMARY KEY, shape INTEGER NOT NULL, low TEXT, high TEXT, expected INTEGER NOT NULL,
    first REAL NOT NULL, last REAL NOT NULL, done INTEGER NOT NULL DEFAULT 0,
    leader_rows INTEGER, follower_rows INTEGER, leaves INTEGER, dirty_leaves INTEGER, digest TEXT, seconds REAL,
    milliseconds TEXT, error TEXT
);
CREATE TABLE suspect (
    id INTEGER PRIMARY KEY, shape INTEGER NOT NULL, key TEXT NOT NULL, place REAL NOT NULL,
    state TEXT NOT NULL DEFAULT 'open', rounds INTEGER NOT NULL DEFAULT 0, reason TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX suspect_key ON suspect (shape, key);
CREATE INDEX suspect_state ON suspect (state, id);
CREATE TABLE split (shape INTEGER PRIMARY KEY, method TEXT NOT NULL);
CREATE TABLE difference (id INTEGER PRIMARY KEY, shape INTEGER NOT NULL, place REAL NOT NULL, kind TEXT, record TEXT);
"""


@dataclass(slots=True)
class Suspect:
    """Names a key that was not equal when it was read."""

    id: int
    #: index of its table
    shape: int
    key: Key
    #: in the table's key space, 0.0 to 1.0
    place: float
    rounds: int
    #: "open", "equal", "proven" or "undecided"
    state: str = "open"
    reason: str = ""


class State:
    """Keeps all of it in one file that the driver alone writes."""

    def __init__(self, folder: Path, plan: str, began: str, *, resumed: bool) -> None:
        """Raises AuditError when a run is resumed that compared something else."""
        self._db = sqlite3.connect(folder / NAME, isolation_level=None, check_same_thread=False)
        self._db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
        if not resumed:
            self._db.executescript(_TABLES)
            self._db.execute("INSERT INTO run VALUES (?, ?)", (plan, began))
            return
        try:
            ((found, self.began),) = self._db.execute("SELECT plan, began FROM run")
        except (sqlite3.Error, ValueError) as error:
            raise AuditError(f"{folder} holds no run that can be resumed") from error
        if found != plan:
            raise AuditError(
                f"the run in {folder} compared something else: the profile, the options or a table changed since;"
                " start a new one without --resume"
            )
        # what a server that was away, or a consumer that did not run, left undecided may be decided now
        self._db.execute("UPDATE part SET done = 0, error = NULL WHERE error <> ''")
        self._db.execute("UPDATE suspect SET state = 'open', rounds = 0, reason = '' WHERE state = 'undecided'")

    def close(self) -> None:
        self._db.close()

    # ranges

    def plan(self, shape: int, tasks: Iterable[Task], method: str) -> None:
        """Remember what is to be read of a table, and how it was cut: see `TableResult.split`."""
        self._db.execute("BEGIN")
        for task in tasks:
            self._add(shape, task.part, task.expected_rows, task.place)
        self._db.execute("INSERT INTO split VALUES (?, ?)", (shape, method))
        self._db.execute("COMMIT")

    def _add(self, shape: int, part: Range, expected: int, place: tuple[float, float]) -> None:
        self._db.execute(
            "INSERT INTO part (shape, low, high, expected, first, last) VALUES (?, ?, ?, ?, ?, ?)",
            (shape, _text(part.low), _text(part.high), expected, *place),
        )

    def planned(self, shape: int) -> bool:
        return bool(self._db.execute("SELECT 1 FROM part WHERE shape = ? LIMIT 1", (shape,)).fetchone())

    def forget(self, shape: int) -> None:
        """Forget what was found of a table that changed its definition: it says nothing."""
        self._db.execute("BEGIN")
        for table in ("part", "split", "suspect", "difference"):
            self._db.execute(f"DELETE FROM {table} WHERE shape = ?", (shape,))
        self._db.execute("COMMIT")

    def give_up(self, shape: int, reason: str) -> None:
        """Give up a table that cannot be read."""
        self._db.execute(
            "INSERT INTO part (shape, expected, first, last, done, error) VALUES (?, 0, 0, 1, 1, ?)", (shape, reason)
        )

    def open_parts(self) -> list[tuple[int, int, Range, int, tuple[float, float]]]:
        """Return what is still to be read, large tables first: id, table, range, expected rows, place."""
        rows = self._db.execute(
            "SELECT id, shape, low, high, expected, first, last FROM part WHERE NOT done"
            " ORDER BY expected DESC, shape, first"
        )
        return [(row[0], row[1], Range(_key(row[2]), _key(row[3])), row[4], (row[5], row[6])) for row in rows]

    def keep(self, outcomes: Sequence[tuple[int, Outcome]]) -> None:
        """Keep outcomes, by table, in one transaction."""
        self._db.execute("BEGIN")
        for shape, outcome in outcomes:
            self._keep(shape, outcome)
        self._db.execute("COMMIT")

    def _keep(self, shape: int, outcome: Outcome) -> None:
        task, found = outcome.task, outcome.compared
        first, last = task.place
        if outcome.rest == task.part:
            return  # not begun
        if outcome.rest is not None:
            share = min(found.follower_rows / max(task.expected_rows, 1), 0.99)
            middle = first + (last - first) * share
            self._add(shape, outcome.rest, max(task.expected_rows - found.follower_rows, 1), (middle, last))
        self._db.execute(
            "UPDATE part SET done = 1, leader_rows = ?, follower_rows = ?, leaves = ?, dirty_leaves = ?, digest = ?,"
            " seconds = ?, milliseconds = ?, error = ? WHERE id = ?",
            (
                found.leader_rows, found.follower_rows, found.leaves, found.dirty_leaves, f"{found.digest:064x}",
                outcome.seconds, json.dumps(found.milliseconds), outcome.error, task.number,
            ),
        )  # fmt: skip
        self.suspect(shape, ((key, first + (last - first) * place) for key, place in found.suspects))

    def milliseconds(self) -> dict[int, int]:
        """Leaves by upper bound of their duration."""
        total = Compared()
        for (text,) in self._db.execute("SELECT milliseconds FROM part WHERE milliseconds IS NOT NULL"):
            for bound, count in json.loads(text).items():
                total.milliseconds[int(bound)] = total.milliseconds.get(int(bound), 0) + count
        return total.milliseconds

    # suspects

    def suspect(self, shape: int, keys: Iterable[tuple[Key, float]]) -> None:
        self._db.executemany(
            "INSERT OR IGNORE INTO suspect (shape, key, place) VALUES (?, ?, ?)",
            ((shape, _text(key), place) for key, place in keys),
        )

    def open_suspects(self, after: int, limit: int) -> list[Suspect]:
        """Return those still open whose id is greater, in the order of their ids."""
        rows = self._db.execute(
            "SELECT id, shape, key, place, rounds FROM suspect WHERE state = 'open' AND id > ? ORDER BY id LIMIT ?",
            (after, limit),
        )
        return [Suspect(row[0], row[1], _key(row[2]) or (), row[3], row[4]) for row in rows]

    def count(self, state: str) -> int:
        return int(self._db.execute("SELECT COUNT(*) FROM suspect WHERE state = ?", (state,)).fetchone()[0])

    def undecided(self, limit: int) -> list[Suspect]:
        rows = self._db.execute(
            "SELECT id, shape, key, place, rounds, state, reason FROM suspect WHERE state IN ('undecided', 'open')"
            " ORDER BY id LIMIT ?",
            (limit,),
        )
        return [Suspect(row[0], row[1], _key(row[2]) or (), *row[3:]) for row in rows]

    def settle(self, suspects: Sequence[Suspect], differences: Sequence[tuple[Suspect, Difference]]) -> None:
        """Keep what a round has decided, in one transaction."""
        self._db.execute("BEGIN")
        self._db.executemany(
            "UPDATE suspect SET state = ?, rounds = ?, reason = ? WHERE id = ?",
            ((each.state, each.rounds, each.reason, each.id) for each in suspects),
        )
        self._db.executemany(
            "INSERT INTO difference (shape, place, kind, record) VALUES (?, ?, ?, ?)",
            ((each.shape, each.place, found.kind, json.dumps(found.record())) for each, found in differences),
        )
        self._db.execute("COMMIT")

    def reopen(self) -> None:
        """Open what was proven again after a repair: it is to be settled anew."""
        self._db.execute("BEGIN")
        self._db.execute("DELETE FROM difference")
        self._db.execute("UPDATE suspect SET state = 'open', rounds = 0, reason = '' WHERE state = 'proven'")
        self._db.execute("COMMIT")

    # differences

    def differences(self, shape: int | None = None) -> Iterator[Difference]:
        """Yield all that are proven, by table in the order of their keys."""
        where = "" if shape is None else f" WHERE shape = {int(shape)}"
        for (record,) in self._db.execute(f"SELECT record FROM difference{where} ORDER BY shape, place, id"):
            yield difference_of(json.loads(record))

    def summarize(self, shape: int, result: TableResult) -> TableResult:
        """Return the table's result with everything that is known of it."""
        query = (
            "SELECT COALESCE(SUM(leader_rows), 0), COALESCE(SUM(follower_rows), 0), COALESCE(SUM(leaves), 0),"
            " COALESCE(SUM(dirty_leaves), 0), COALESCE(SUM(seconds), 0), COUNT(*), SUM(NOT done), MAX(error) FROM part"
            " WHERE shape = ?"
        )
        leader, follower, leaves, dirty, seconds, parts, left, error = self._db.execute(query, (shape,)).fetchone()
        digest = 0
        whole = parts and not left
        for (text,) in self._db.execute("SELECT digest FROM part WHERE shape = ? AND done", (shape,)):
            digest ^= int(text or "0", 16)
        states = dict(self._db.execute("SELECT state, COUNT(*) FROM suspect WHERE shape = ? GROUP BY state", (shape,)))
        kinds = dict(self._db.execute("SELECT kind, COUNT(*) FROM difference WHERE shape = ? GROUP BY kind", (shape,)))
        (split,) = self._db.execute("SELECT COALESCE(MAX(method), '') FROM split WHERE shape = ?", (shape,)).fetchone()
        strip = [0] * STRIP_CELLS
        for (place,) in self._db.execute("SELECT place FROM difference WHERE shape = ?", (shape,)):
            strip[min(int(place * STRIP_CELLS), STRIP_CELLS - 1)] += 1
        open_ones = states.get("undecided", 0) + states.get("open", 0)
        result = replace(
            result, leader_rows=leader, follower_rows=follower, leaves=leaves, dirty_leaves=dirty, seconds=seconds,
            digest=f"{digest:064x}" if whole else "", suspects=sum(states.values()), undecided=open_ones,
            split=split, strip=tuple(strip),
            missing=kinds.get("missing", 0), extra=kinds.get("extra", 0), changed=kinds.get("changed", 0),
            copies=kinds.get("copies", 0),
        )  # fmt: skip
        if result.verdict == "skipped":
            return result
        if result.proven:
            result.verdict = "different"
        elif error or left or open_ones or result.reason:
            result.verdict = "undecided"
        result.reason = result.reason or error or (f"{left} of {parts} ranges were not read" if left else "")
        return result


def _text(key: Key | None) -> str | None:
    return None if key is None else json.dumps(key)


def _key(text: str | None) -> Key | None:
    return None if text is None else tuple(json.loads(text))
