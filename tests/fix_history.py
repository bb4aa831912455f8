"""A topic written by hand, two tables in it, and what an audit reads of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kit.events import EventLog, integer, string

from cdc_consumer.parity.model import Column, Shape, TableName
from cdc_consumer.parity.witness.history import History
from shared.events import Position

TABLE = TableName("db", "t")
OTHER = TableName("db2", "t")
ID = Column("id", "int", "int", None, False, False)
NAME = Column("name", "varchar(9)", "varchar", "utf8mb4", True, False)
SHAPES = {name: Shape(name, (ID, NAME), ("id",)) for name in (TABLE, OTHER)}
NAMES = ("id", "name")
KEYS = [(str(number),) for number in range(4)]


def row(number: int, name: str = "a") -> list[Any]:
    return [integer(number), string(name)]


def literals(number: int, name: str = "a") -> tuple[str, str]:
    return str(number), f"_utf8mb4 x'{name.encode().hex()}'"


def position(log: EventLog) -> Position:
    return Position(log._file, log._offset)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    log = EventLog(tmp_path)
    yield log
    log.close()


@contextmanager
def reading(log: EventLog, shapes: dict[TableName, Shape] | None = None) -> Iterator[History]:
    with History(log.settings, shapes or SHAPES) as found:
        yield found
