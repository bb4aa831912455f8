"""A leader that already has data, a follower that has none, and the copy between them, for one test."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from fix_mysql import StartServer
from fix_replication import Replicate, Replication
from kit.programs import Program, run_program
from kit.topic import shared_table

from docker.local.mysql_servers import FOLLOWER, PLAIN, Server

MODULE = "cdc_consumer.copy"


class Copying:
    """A replication whose producer begins where a copy needs it, and the profile of the copy."""

    def __init__(self, replication: Replication, databases: Sequence[str], **profile: Mapping[str, Any]) -> None:
        self.replication = replication
        self.leader, self.follower = replication.leader, replication.follower
        self.database = databases[0]
        self.profile = replication.folder / "copy.toml"
        address = {"user": "root", "host": self.leader.host, "port": self.leader.port}
        own = {"host": self.follower.host, "port": self.follower.port, "system_database": replication.system_database}
        tables: dict[str, Mapping[str, Any]] = {
            "leader": address, "follower": {**address, **own}, "filters": {"include_dbs": list(databases)},
            "topic": shared_table(replication.topic), "leader.tls": {"mode": "off"}, "follower.tls": {"mode": "off"},
            "copy": {"range_rows": 100}, "report": {"path": str(replication.folder / "reports")}, **profile,
        }  # fmt: skip
        lines = []
        for name, keys in tables.items():
            lines.append(f"[{name}]")
            # JSON's strings, numbers and lists are TOML's too
            lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        self.profile.write_text("\n".join(lines) + "\n")
        self.program = Program(MODULE, self.profile)

    def run(self, *arguments: str, timeout: float = 180.0) -> subprocess.CompletedProcess[str]:
        """Run the copy to its end."""
        return run_program(MODULE, self.profile, *arguments, timeout=timeout)

    def copy(self, *arguments: str) -> None:
        """Run the copy to its end; it must end with status 0."""
        result = self.run(*arguments)
        assert result.returncode == 0, result.stderr

    def refused(self, *words: str, arguments: Sequence[str] = ()) -> None:
        """Run the copy, which must end with status 1 and one line that holds all these words."""
        result = self.run(*arguments)
        assert result.returncode == 1, result.stderr
        lines = [line for line in result.stderr.splitlines() if line.startswith("cdc-copy: ")]
        assert len(lines) == 1 and "Traceback" not in result.stderr, result.stderr
        assert all(word in lines[0] for word in words), lines[0]

    def killed(self, target: str, when: str, count: int, *, arguments: Sequence[str] = ()) -> None:
        """Run the copy until it dies at this call of a function: see kit/kill_at.py."""
        death = (f"{MODULE}.{target}", when, count)
        result = run_program(MODULE, self.profile, *arguments, death=death)
        where = f"{when} {target} {count}"
        assert result.returncode == -9, f"it was not killed {where}: {result.returncode}\n{result.stderr}"

    def follow(self) -> None:
        """Start the consumer and wait until it has caught up; then both servers must hold the same."""
        self.replication.consumer.start()
        self.replication.catch_up()
        self.replication.same()

    def same_gtids(self) -> None:
        """Both servers must have executed the same transactions, if they have GTIDs."""
        theirs, ours = (server.value("SELECT @@GLOBAL.gtid_executed") for server in (self.leader, self.follower))
        assert "".join(theirs.split()) == "".join(ours.split())


@contextmanager
def written(copy: Copying, statements: Sequence[str]) -> Iterator[list[int]]:
    """Write the leader all the time; yields what counts the rounds."""
    ending, done, failures = threading.Event(), [0], list[BaseException]()

    def write() -> None:
        try:
            with copy.leader.connect(copy.database) as connection, connection.cursor() as cursor:
                while not ending.wait(0.05):
                    for sql in statements:
                        cursor.execute(sql)
                    done[0] += 1
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield done
    finally:
        ending.set()
        thread.join()
    assert not failures, failures


Copies = Callable[..., Copying]


@pytest.fixture
def copies(replicate: Replicate, leader: Server, own_server: StartServer, database: str) -> Copies:
    """Makes copies into a follower of this test alone: copies([database]); the producer runs."""

    def make(
        *, plain: bool = False, source: Server | None = None, start: str = "copy", options: Sequence[str] = (),
        routes: Mapping[str, str] | None = None, others: Sequence[str] = (), **profile: Mapping[str, Any],
    ) -> Copying:  # fmt: skip
        source = source or leader
        follower = own_server([*(PLAIN if plain else FOLLOWER), "--local-infile=ON", *options], 12)
        own = {} if routes is None else {"producer": {"topic.routes": routes}}
        replication = replicate(source, follower, [database, *others], start=start, **own)
        replication.producer.start()
        return Copying(replication, [database, *others], **profile)

    return make
