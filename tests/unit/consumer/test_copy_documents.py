"""How a JSON document is asked for all that its text does not tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdc_consumer.copy.rows.documents import facts
from cdc_consumer.parity.model import Column, Shape, TableName


def test_queries_are_few_however_many_values() -> None:
    column = Column("id", "int", "int", None, False, False, False)
    shape, asked = Shape(TableName("d", "t"), (column,), ("id",), ()), list[str]()

    def select(sql: str) -> Sequence[tuple[Any, ...]]:
        asked.append(sql)
        return []

    facts(shape, "j", ("1",), [f"$[{number}]" for number in range(20_000)], select)
    assert len(asked) == 2 and all(len(sql) < 1 << 20 for sql in asked)
    facts(shape, "j", ("1",), [f'$."{"x" * 1000}{number}"' for number in range(1000)], select)
    assert 4 < len(asked) < 10
