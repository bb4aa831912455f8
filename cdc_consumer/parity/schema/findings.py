"""Describes one difference between two schemas, with the steps that would remove it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from cdc_consumer.parity.model import Grade, SchemaDifference, TableName
from cdc_consumer.parity.schema.alters import SchemaStep
from cdc_consumer.parity.schema.order import shown

#: worst first
GRADES: tuple[Grade, ...] = ("breaking", "integrity", "behaviour", "performance", "cosmetic", "expected")


class Finding(NamedTuple):
    """Holds a difference, and the steps that remove it."""

    grade: Grade
    #: "table", "column"... as SchemaDifference.object
    object: str
    #: what it belongs to; without a table the database itself
    parent: TableName
    #: "" for the parent itself
    name: str
    #: what is said of it: "is missing on the follower"
    text: str
    #: definitions, None where it is not there
    leader: str | None
    follower: str | None
    steps: tuple[SchemaStep, ...] = ()

    @property
    def difference(self) -> SchemaDifference:
        path = ".".join(part for part in (*self.parent, self.name) if part)
        return SchemaDifference(
            self.grade, self.object, self.parent.database, self.parent.table, self.name,
            f"{self.object} {path} {self.text}", self.leader, self.follower, shown(self.steps),
        )  # fmt: skip


def worst(grades: Iterable[Grade]) -> Grade:
    """Return the worst of some grades."""
    return min(grades, key=GRADES.index)


class Defined(Protocol):
    """Has a definition."""

    @property
    def definition(self) -> str: ...


def definition(record: Defined | None) -> str | None:
    """Return the definition of what is there; None of what is not."""
    return None if record is None else record.definition
