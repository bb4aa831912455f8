"""One script on a leader, through the programs to a follower and through native replication to another."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from kit.programs import binlog_end, run_program, write_profiles

from cdc_consumer.profile import Apply
from shared.events import Position
from trial.contents import contents
from trial.play import Played, play
from trial.script import Step
from trial.servers import PASSWORD, USER, Servers, connect_raw
from trial.verdict import Verdict, judge

#: of the consumer, on the follower
SYSTEM_DATABASE = "fluvio_cdc"
#: seconds for one program
PATIENCE = 120.0
#: what several sessions are compared with
ONE_BY_ONE = Apply(workers=1)


class Place(NamedTuple):
    """Where a follower begins to differ: the transaction, and the statement that made it."""

    gtid: str
    session: str
    statement: str

    def __str__(self) -> str:
        text = " ".join(self.statement.split())
        return f"{self.gtid} ({self.session}): {text if len(text) < 300 else text[:300] + ' ...'}"


@dataclass(frozen=True, slots=True)
class Tried:
    """What one run of a script gave."""

    verdict: Verdict
    played: Played
    steps: Sequence[Step]
    #: (position, transaction) of each transaction of the leader, in order
    transactions: Sequence[tuple[Position, str]]

    @property
    def refused(self) -> int:
        """How many statements the leader itself did not run."""
        return sum(map(bool, self.played.errors))

    def place(self, index: int) -> Place:
        """Of a step: the first transaction it wrote, with all that its session had done for it."""
        ends = [Position("binlog.0", 0), *self.played.ends]
        gtid = next((name for at, name in self.transactions if at >= ends[index]), "no transaction")
        session = self.steps[index].session
        statements: list[bytes] = []
        for number in range(index, -1, -1):
            if self.steps[number].session == session:
                # what moved the binlog before ended another transaction
                if number < index and ends[number] < ends[number + 1]:
                    break
                statements.insert(0, self.steps[number].sql or b"")
        return Place(gtid, session, b"; ".join(statements).decode("utf-8", "backslashreplace"))

    def stop(self) -> Place | None:
        """Where the program that stopped says that it did; None when it names no position."""
        for sentence in self.verdict.sentences:
            for position in re.findall(r"\bbinlog\.\d+:\d+", sentence):
                index = self.played.step_at(Position.parse(position))
                if index is not None:
                    return self.place(index)
        return None


class Trial:
    """Tries scripts one after the other on the same servers."""

    def __init__(self, servers: Servers, folder: Path, apply: Apply = ONE_BY_ONE) -> None:
        """`apply` says how the consumer changes the follower, as in its profile."""
        self.servers = servers
        self._folder = folder
        self._apply = asdict(apply)

    def run(self, steps: Sequence[Step]) -> Tried:
        """Play a script on empty servers, replicate it both ways, and compare."""
        servers = self.servers
        servers.reset()
        shutil.rmtree(self._folder, ignore_errors=True)
        played = play(servers.leader, steps)
        end = Position.parse(binlog_end(servers.leader))
        sentences = self._programs()
        native = servers.oracle(end)
        verdict = judge(
            contents(servers.leader),
            contents(servers.follower, without=[SYSTEM_DATABASE]),
            contents(servers.native),
            sentences,
            native.error,
        )
        return Tried(verdict, played, steps, self._transactions())

    def _programs(self) -> tuple[str, ...]:
        """Run both to the end; what those that stopped say, the consumer first, for it stops at an earlier place."""
        account = {"user": USER, "password": PASSWORD}
        profiles = write_profiles(
            self._folder, self.servers.leader, self.servers.follower, start="earliest",
            system_database=SYSTEM_DATABASE, producer={"database": account}, consumer={"database": account, "apply": self._apply},
        )  # fmt: skip
        said = [_run(f"cdc_{name}", getattr(profiles, name)) for name in ("producer", "consumer")]
        return tuple(filter(None, reversed(said)))

    def _transactions(self) -> list[tuple[Position, str]]:
        """Position and GTID of each transaction; without GTIDs its position names it."""
        found: list[tuple[Position, str]] = []
        with connect_raw(self.servers.leader) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            for file, *_ in list(cursor.fetchall()):
                cursor.execute(f"SHOW BINLOG EVENTS IN '{file}'")
                for _, at, _, _, _, text in cursor.fetchall():
                    gtid = re.fullmatch(r"SET @@SESSION.GTID_NEXT= '(.*)'", text)
                    if gtid:
                        name = f"{file}:{at}" if gtid[1] == "ANONYMOUS" else gtid[1]
                        found.append((Position(file, at), name))
        return found


def _run(module: str, profile: Path) -> str:
    """Run a program to the end; "" when it got there, else what it said."""
    try:
        done = run_program(module, profile, "--exit-at-end", timeout=PATIENCE)
    except subprocess.TimeoutExpired as late:
        lines = bytes(late.stderr or b"").decode(errors="replace").splitlines()
        return f"{module.replace('_', '-')}: no end within {PATIENCE:.0f} s; last: {lines[-1] if lines else 'nothing'}"
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines() or ["nothing"]
    return lines[-1] if "Traceback" not in done.stderr else f"{module.replace('_', '-')}: traceback: {lines[-1]}"
