"""Writes what is hardest to copy, all the time, into tables of its own."""

from __future__ import annotations

import random
import threading

from docker.local.mysql_servers import Server
from kit.helpers import wait_until
from kit.programs import Program

#: equal in the collation, different in bytes; unique values that change places; rows that move between ranges
TABLES = (
    "CREATE TABLE swap (id INT PRIMARY KEY, place INT NOT NULL, UNIQUE (place))",
    "CREATE TABLE cased (name VARCHAR(20) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, n INT, twice INT AS (n * 2) STORED)",
    "CREATE TABLE pairs (a INT, b CHAR(3), note TEXT, PRIMARY KEY (a, b))",
    "CREATE TABLE wide (id BIGINT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(100), KEY (note))",
    "CREATE TABLE loose (n INT, note VARCHAR(20))",
)
ROWS = 400


def fill(server: Server, database: str) -> None:
    numbers = range(ROWS)
    server.execute(
        *TABLES,
        "INSERT INTO swap VALUES " + ", ".join(f"({n}, {n})" for n in numbers),
        "INSERT INTO cased (name, n) VALUES " + ", ".join(f"('name{n}', {n})" for n in numbers),
        "INSERT INTO pairs VALUES " + ", ".join(f"({n % 20}, 'x{n // 20}', NULL)" for n in numbers),
        "INSERT INTO wide (note) VALUES " + ", ".join(f"('row {n}')" for n in range(60 * ROWS)),
        "INSERT INTO loose VALUES " + ", ".join(f"({n % 50}, 'same')" for n in numbers),
        # so many ranges, whatever the server has counted by itself until now
        "ANALYZE TABLE swap, cased, pairs, wide, loose",
        database=database,
    )


class Swapper:
    """Writes what is hardest to copy, all the time."""

    def __init__(self, server: Server, database: str, seed: int, *, first: int = 0) -> None:
        """`first` is more than another one has changed before: new keys are made of it."""
        self._server, self._database, self._random = server, database, random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._failures: list[BaseException] = []
        self.changes = first

    def _run(self) -> None:
        try:
            with self._server.connect(self._database, autocommit=True) as connection, connection.cursor() as cursor:
                while not self._stopping.wait(0.05):
                    for sql in self._change():
                        cursor.execute(sql)
                    self.changes += 1
        except BaseException as error:
            self._failures.append(error)

    def _change(self) -> list[str]:
        pick = self._random.randrange
        one, other, far = pick(ROWS), pick(ROWS), 1_000_000 + self.changes
        return self._random.choice(
            (
                [
                    f"SELECT place INTO @one FROM swap WHERE id = {one}", f"SELECT place INTO @other FROM swap WHERE id = {other}",
                    "BEGIN", f"UPDATE swap SET place = -1 WHERE id = {one}", f"UPDATE swap SET place = @one WHERE id = {other}",
                    f"UPDATE swap SET place = @other WHERE id = {one}", "COMMIT",
                ],
                [f"UPDATE cased SET name = IF(BINARY name = UPPER(name), LOWER(name), UPPER(name)), n = {far} WHERE name = 'name{one}'"],
                [f"UPDATE IGNORE pairs SET a = {pick(20)}, note = REPEAT('x', {pick(500)}) WHERE a = {pick(20)} AND b = 'x{pick(20)}'"],
                [f"UPDATE wide SET id = {far} WHERE id = {one + 1}", f"INSERT IGNORE INTO wide VALUES ({one + 1}, 'back')"],
                [f"DELETE FROM wide WHERE id > {60 * ROWS} LIMIT 2", f"INSERT INTO wide (note) VALUES ('new {one}')"],
                [f"INSERT INTO loose VALUES ({pick(9)}, 'more')", f"DELETE FROM loose WHERE n = {pick(50)} LIMIT 1"],
            )
        )  # fmt: skip

    def go_on(self, changes: int, *alive: Program) -> None:
        """Wait until it has made so many more changes."""
        wanted = self.changes + changes
        wait_until(lambda: self._failures or self.changes > wanted, "the leader is written", alive=alive)

    def __enter__(self) -> Swapper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(30)
        if self._failures:
            raise self._failures[0]
