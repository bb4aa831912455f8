"""Threads that change a leader at random, with everything that may be in a binlog of rows.

The seed decides what each thread does; how the threads meet each other, and a leader that is killed, it does not.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from random import Random

import pymysql

from docker.local.mysql_servers import Server
from kit.random_changes import TYPES, WEIGHTS, RandomChanges
from shared.mysql import Connection, is_link_error

#: threads meet each other: timeouts, deadlocks, tables and columns that are not there yet, or no longer, and values
#: that one thread doubles while another adds a unique index
EXPECTED = {1050, 1051, 1054, 1060, 1061, 1062, 1066, 1072, 1091, 1146, 1205, 1213, 1412, 1451, 1452, 1684, 1859}

TABLES = (
    f"CREATE TABLE keyed (id INT AUTO_INCREMENT PRIMARY KEY, {TYPES})",
    f"CREATE TABLE bag ({TYPES})",
    "CREATE TABLE parent (id INT PRIMARY KEY, name VARCHAR(20))",
    "CREATE TABLE child (id INT AUTO_INCREMENT PRIMARY KEY, parent INT,"
    " FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)",
)


class RandomWriter:
    """Changes some databases of a leader, used with `with`; leaving it raises what a thread should not have met."""

    def __init__(
        self, leader: Server, databases: Sequence[str], outside: str, seed: int, threads: int = 3, *,
        definitions: bool = True, copies: bool = True, pause: float = 0.01,
    ) -> None:  # fmt: skip
        """`outside` is one more database that some of the transactions write too; without `definitions` only rows.

        Without `copies` no rows of the table without a key change that may have equal ones beside them.

        Between two of its changes a thread lets `pause` seconds pass, on average.
        """
        self._pause, self._copies = pause, copies
        self.leader = leader
        self._weights = WEIGHTS if definitions else (*WEIGHTS[:-1], 0)
        self.outside = outside
        self.databases = tuple(databases)
        self.done: Counter[str] = Counter()
        self.expected: Counter[int] = Counter()
        self._unexpected: list[BaseException] = []
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(f"{seed}/{number}",), daemon=True) for number in range(threads)
        ]

    def create(self) -> None:
        """The databases and the tables that are always there."""
        for name in self.databases:
            self.leader.execute(f"CREATE DATABASE {name}")
            self.leader.execute(*TABLES, database=name)
        self.leader.execute(f"CREATE DATABASE {self.outside}", f"CREATE TABLE {self.outside}.noise (n INT)")

    def __enter__(self) -> RandomWriter:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)
        self.check()

    def check(self) -> None:
        if self._unexpected:
            raise self._unexpected[0]

    def _run(self, seed: str) -> None:
        random = Random(seed)
        connection: Connection | None = None
        while not self._stopping.wait(random.expovariate(1 / self._pause)):
            try:
                if connection is None:
                    connection = self.leader.connect(charset="utf8mb4", autocommit=True)
                    # a table in use by another thread is not worth waiting for
                    connection.cursor().execute("SET lock_wait_timeout = 2, innodb_lock_wait_timeout = 2")
                # what an error left of the change before
                connection.cursor().execute("ROLLBACK")
                changes = RandomChanges(connection, random, self.databases, self.outside, self._copies)
                self.done[changes.one(self._weights)] += 1
            except Exception as error:
                if is_link_error(error):
                    connection = None
                elif isinstance(error, pymysql.err.MySQLError) and error.args[0] in EXPECTED:
                    self.expected[error.args[0]] += 1
                else:
                    self._unexpected.append(error)
                    return
