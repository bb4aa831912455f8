"""Several clients that write two tables of a leader at once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from random import Random

from docker.local.mysql_servers import Server


def write_at_once(leader: Server, database: str, seed: int, writers: Sequence[int] = range(4)) -> None:
    """Let several clients write tables `t` (id, name) and `n` (id, n), so that the clock tells something.

    Rows are each writer's own, but for three of `n`; transactions are small and larger ones.
    """

    def write(number: int) -> None:
        random = Random(seed + number)
        for index in range(60):
            first = number * 100_000 + index * 100
            rows = random.choice([1, 1, 1, 40, 90])
            values = ", ".join(f"({first + row}, REPEAT('x', {random.randrange(400)}))" for row in range(rows))
            statements = [f"INSERT INTO t VALUES {values}"]
            statements += [f"UPDATE t SET name = 'y' WHERE id = {first}"] * random.randrange(2)
            statements += [f"UPDATE n SET n = n + 1 WHERE id = {random.randrange(3)}"] * random.randrange(2)
            statements += [f"DELETE FROM t WHERE id = {first}"] * random.randrange(2)
            together = random.random() < 0.5
            leader.execute(*(["BEGIN", *statements, "COMMIT"] if together else statements), database=database)

    threads = [threading.Thread(target=write, args=(number,)) for number in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
