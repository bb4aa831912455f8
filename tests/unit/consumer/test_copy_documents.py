"""How a JSON document is asked for all that its text does not tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdc_consumer.copy.rows.documents import QUERY_CHARACTERS, QUERY_SELECTS, Document, facts
from cdc_consumer.parity.model import Column, Shape, TableName


def test_queries_are_few_however_many_values() -> None:
    column = Column("id", "int", "int", None, False, False, False)
    shape, asked = Shape(TableName("d", "t"), (column,), ("id",), ()), list[str]()

    def select(sql: str) -> Sequence[tuple[Any, ...]]:
        asked.append(sql)
        return []

    def of(paths: list[str], documents: int = 1) -> list[str]:
        asked.clear()
        values = tuple((path, "1") for path in paths)
        assert (
            facts(shape, [Document("j", (str(key),), "", values) for key in range(documents)], select)
            == [[]] * documents
        )
        assert all(len(sql) < 2 * QUERY_CHARACTERS and sql.count("UNION") < QUERY_SELECTS for sql in asked)
        return asked

    assert len(of([f"$[{number}]" for number in range(20_000)])) == 1
    assert 3 < len(of([f'$."{"x" * 1000}{number}"' for number in range(1000)])) < 8
    assert len(of(["$.price", "$.at"], 1000)) == 2000 // QUERY_SELECTS + 1
