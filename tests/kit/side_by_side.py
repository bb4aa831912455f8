"""What the tests of several sessions on one follower share."""

from __future__ import annotations

from fix_replication import Replication

ORDERS = ("leader", "independent")
TABLE = "(id INT PRIMARY KEY, name VARCHAR(400))"


def parallel(order: str, workers: int = 4) -> dict[str, dict[str, object]]:
    """The consumer's profile for so many sessions."""
    return {"apply": {"workers": workers, "order": order}}


def fill(replication: Replication, rows: int = 40) -> int:
    """A table of so many rows on both sides; the sequence that the follower has come to."""
    values = ", ".join(f"({number}, 'old{number}')" for number in range(rows))
    replication.play(
        f"CREATE TABLE t {TABLE}", f"INSERT INTO t VALUES {values}", "CREATE TABLE p (id INT PRIMARY KEY)",
        f"INSERT INTO p VALUES {', '.join(f'({number})' for number in range(rows))}",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))",
    )  # fmt: skip
    replication.replicate()
    return replication.sequence()


def on_follower(replication: Replication, *statements: str) -> None:
    """Run statements that no replica of the follower hears of."""
    replication.follower.execute("SET sql_log_bin = 0", *statements, database=replication.database)


def sessions(replication: Replication) -> list[int]:
    """The connections beside the consumer's first one."""
    locks = ", ".join(f"IS_USED_LOCK('{replication.system_database}.events {number}')" for number in range(1, 5))
    return [number for number in replication.follower.execute(f"SELECT {locks}")[0] if number]
