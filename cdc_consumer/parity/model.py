"""Defines what the audit finds, as frozen types; the report, the repair and the resumed run all read these.

A value or a key is written as an SQL literal the server itself made (`canonical.literal`): ASCII text that is exact in
the session `canonical.SESSION` sets up, the same text on both servers for the same bytes:

    NULL   -12   169.09   28806.56333333333   '2022-02-23 11:22:00.000000'   _utf8mb4 x'6162'   x'00ff'
    CAST(CONVERT(x'7b7d' USING utf8mb4) AS JSON)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, TypeAlias

from shared.mysql import quote_name

#: of a table, and of a whole run
Verdict = Literal["equal", "different", "undecided", "skipped"]
#: of one row: only the leader has it, only the follower has it, both have it; or a table without a key holds another
#: number of copies of it
Kind = Literal["missing", "extra", "changed", "copies"]
#: which part of the replication failed, as the topic tells
Stage = Literal[
    "never published",
    "published but not applied",
    "applied wrongly, or changed on the follower afterwards",
    "follower written by a stranger",
    "unknown",
]


#: literals of a row's key columns, in the key's order; of a table without a key what stands for one: its row's hash, or
#: the literals of all columns
Key: TypeAlias = tuple[str, ...]
#: how much a difference of the schemas matters, see SchemaDifference.grade; worst first
Grade = Literal["breaking", "integrity", "behaviour", "performance", "cosmetic", "expected"]


def kind_of(leader: object | None, follower: object | None) -> Kind:
    """Tell the kind of a difference by which side has the row; None stands for no row."""
    if follower is None:
        return "missing"
    return "extra" if leader is None else "changed"


class TableName(NamedTuple):
    """Names a table with its database."""

    database: str
    table: str

    @property
    def sql(self) -> str:
        return f"{quote_name(self.database)}.{quote_name(self.table)}"

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


@dataclass(frozen=True, slots=True)
class Column:
    """Describes a column that both sides have and the row audit compares, as the leader's
    information_schema.COLUMNS tells.
    """

    name: str
    #: COLUMN_TYPE, for example "int unsigned"
    type: str
    #: DATA_TYPE, for example "int"
    data_type: str
    #: character set of a text; where the sides have different ones "utf8mb4", which values are converted to; else None
    charset: str | None
    #: on either side
    nullable: bool
    #: STORED generated: compared, never written by a repair
    generated: bool
    #: the sides define it differently, so values are brought to one form before they are compared
    converted: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """Describes a table as the row audit sees it: what both sides have in common."""

    name: TableName
    #: in the leader's order
    columns: tuple[Column, ...]
    #: names of the columns that identify a row on both sides (primary key, else a unique key without NULL); () without
    key: tuple[str, ...]
    #: columns left out, and why
    excluded: tuple[tuple[str, str], ...] = ()

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)


class KeyEvent(NamedTuple):
    """Names an event of the topic that wrote a row."""

    sequence: int
    #: topic offset
    offset: int
    #: "Add", "Update" or "Delete"
    operation: str
    #: binlog file:offset on the leader where its binlog event starts
    position: str
    gtid: str | None
    #: when the leader committed it, microseconds since 1970
    time: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Says why a difference is believed. Positions are the leader's, as file:offset."""

    #: "no event": nothing wrote the key between `before` and `after`; "after-image": the follower's row is not the
    #: last image the topic holds of it at `follower`; "idle": the leader wrote nothing at all in between
    proof: Literal["no event", "after-image", "idle"]
    #: up to where the leader's rows showed everything when they were first read, of the fence the follower had to
    #: reach, and after the leader's second read
    before: str
    fence: str
    after: str
    #: the follower's position in the snapshot its row was read from
    follower: str
    #: settle rounds it took
    rounds: int
    #: last events of the topic that wrote the key, oldest first
    events: tuple[KeyEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Holds one row that is proven different."""

    table: TableName
    kind: Kind
    #: key column -> literal; empty for a table without a key
    key: Mapping[str, str]
    #: whole rows, column -> literal; None where the row is not there
    leader: Mapping[str, str] | None
    follower: Mapping[str, str] | None
    #: SHA-256 of the canonical row in hexadecimal, None where the row is not there
    leader_hash: str | None
    follower_hash: str | None
    evidence: Evidence
    stage: Stage = "unknown"
    #: what kind of damage this looks like, from causes.py; "" when none was recognised
    cause: str = ""
    #: leader's and follower's number of this row, of kind "copies" only
    copies: tuple[int, int] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Return columns whose values differ; all of them when one side has no row."""
        one, other = self.leader, self.follower
        if one is None or other is None:
            return tuple(one or other or ())
        return tuple(name for name in one if one[name] != other[name])

    def record(self) -> dict[str, Any]:
        """Return the line of differences.jsonl."""
        evidence = {**_fields(self.evidence), "events": [event._asdict() for event in self.evidence.events]}
        return {
            **_fields(self), "table": self.table.table, "database": self.table.database, "columns": self.columns,
            "evidence": evidence,
        }  # fmt: skip


def _fields(of: Difference | Evidence) -> dict[str, Any]:
    """By name. (`asdict` would copy every value, which takes longer than all else that is done with a difference.)"""
    return {field.name: getattr(of, field.name) for field in fields(of)}


@dataclass(frozen=True, slots=True)
class Omission:
    """Tells of one transaction of the leader that an operator decided to leave out, as the follower keeps it."""

    #: sequences of its first and its last event
    first: int
    last: int
    #: binlog file:offset on the leader where its last binlog event starts
    position: str
    gtid: str | None
    #: where it was decided: "follower" or "leader"
    side: str
    reason: str
    #: statements that ran in its place, None for none
    instead: str | None
    #: who decided it, as the follower's server knows them, and when: UTC
    account: str
    decided: str


@dataclass(frozen=True, slots=True)
class Undecided:
    """Names a row, or a whole table when `key` is empty, that could be proven neither equal nor different."""

    table: TableName
    key: Mapping[str, str]
    reason: str


@dataclass(slots=True)
class TableResult:
    """Holds what is known of one table; complete when the run ends."""

    table: TableName
    verdict: Verdict = "equal"
    #: why it was skipped or is undecided
    reason: str = ""
    leader_rows: int = 0
    follower_rows: int = 0
    leaves: int = 0
    dirty_leaves: int = 0
    suspects: int = 0
    missing: int = 0
    extra: int = 0
    changed: int = 0
    copies: int = 0
    undecided: int = 0
    #: XOR of the leader's row hashes in hexadecimal: equal tables have equal digests
    digest: str = ""
    #: how the ranges were found: "integer", "probe", "one range" or "no key"
    split: str = ""
    excluded: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    #: differing rows in each of STRIP_CELLS equal parts of the key space, in key order
    strip: tuple[int, ...] = ()

    @property
    def proven(self) -> int:
        return self.missing + self.extra + self.changed + self.copies


#: parts of the key space a report shows
STRIP_CELLS = 64


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """One thing the two schemas do not have in common."""

    #: "breaking": replication or rows break; "integrity": a constraint is missing; "behaviour": something runs
    #: differently; "performance": an index; "cosmetic": nothing that matters; "expected": the consumer made it so
    grade: Grade
    #: "table", "column", "key", "foreign key", "check", "partition", "view", "trigger", "event", "routine", "database"
    object: str
    database: str
    #: table, view, routine... it belongs to; "" for a database
    parent: str
    #: name of the column, key...; "" for the parent itself
    name: str
    #: what differs, one sentence
    text: str
    #: definitions for people, None where the object is not there
    leader: str | None
    follower: str | None
    #: SQL that would make the follower like the leader, "" when there is none
    fix: str = ""
