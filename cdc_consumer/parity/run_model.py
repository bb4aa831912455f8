"""Defines a whole audit, its servers and its course, as frozen types: what run.json holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdc_consumer.parity.model import Difference, Omission, SchemaDifference, TableResult, Undecided, Verdict


@dataclass(frozen=True, slots=True)
class Round:
    """Sums up one round of settling suspects."""

    number: int
    #: seconds since the run began
    at: float
    suspects: int
    equal: int
    proven: int
    #: still open after it
    open: int
    #: seconds the follower took to reach the fence
    waited: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Measures a moment of the run, about one a second."""

    #: seconds since the run began
    at: float
    #: rows compared so far, both sides counted once
    rows: int
    suspects: int
    #: seconds the follower is behind; None when not known
    lag: float | None
    #: Threads_running of the leader; None when not known
    threads: int | None


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Tells what the report says of a server."""

    address: str
    version: str
    uuid: str
    #: leader's positions when the run began and ended; of the follower: how far it had applied
    started: str
    ended: str


@dataclass(slots=True)
class Run:
    """Holds a whole audit: what run.json holds and report.html shows."""

    #: name of its folder: 20261121T101500Z-4f2a
    id: str
    started: str
    ended: str
    profile: str
    #: SHA-256 of what is compared and how; two runs with the same one can be compared
    plan: str
    leader: ServerFacts
    follower: ServerFacts
    #: "local[2]"..., Spark's version, Java's version
    master: str
    spark: str
    java: str
    seconds: float
    tables: list[TableResult]
    differences: list[Difference]
    #: how many there are; `differences` may hold only the first of them
    total_differences: int
    undecided: list[Undecided]
    schema: list[SchemaDifference]
    rounds: list[Round]
    samples: list[Sample]
    #: leaves by duration: upper bound in milliseconds -> count
    leaf_milliseconds: dict[int, int]
    #: options that narrowed the run: {"tables": ..., "where": ..., "since": ...}
    options: dict[str, str]
    interrupted: bool = False
    #: what --repair did, "" without it
    repair: str = ""
    #: transactions that an operator has left out so far, in their order
    omissions: list[Omission] = field(default_factory=list)

    @property
    def verdict(self) -> Verdict:
        if self.total_differences or any(item.grade in COUNTED for item in self.schema):
            return "different"
        whole = all(table.verdict == "equal" for table in self.tables) and not self.undecided and not self.interrupted
        return "equal" if whole else "undecided"

    @property
    def exit_status(self) -> int:
        if self.interrupted:
            return 130
        return {"equal": 0, "different": 1}.get(self.verdict, 3)


#: grades of schema differences that make a follower different from its leader
COUNTED = frozenset({"breaking", "integrity", "behaviour", "performance"})
