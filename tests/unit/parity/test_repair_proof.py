"""Which changes still rest on what the audit proved, as a topic that is written meanwhile tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest

from cdc_consumer.parity.model import Column, Shape, TableName
from cdc_consumer.parity.repair import proof as proof_module
from cdc_consumer.parity.repair.proof import Proof
from cdc_consumer.parity.repair.statements import Change, Image
from cdc_consumer.parity.witness.answers import Written
from cdc_consumer.parity.witness.history import History
from shared.errors import HistoryError
from shared.events import Position

TABLE = TableName("shop", "t")
KEYED = Shape(TABLE, (Column("id", "int", "int", None, False, False), Column("v", "int", "int", None, True, False)), ("id",))  # fmt: skip
HEAP = Shape(TABLE, KEYED.columns, ())
NOWHERE: frozenset[str] = frozenset()


class Topic:
    """A history that holds these."""

    def __init__(self, *written: Written) -> None:
        self.all = list(written)
        self.failure = ""

    def begin(self, position: Position) -> int:
        return 0

    def written(self, start: int) -> Iterator[Written]:
        if self.failure:
            raise HistoryError(self.failure)
        yield from (each for each in self.all if each.offset >= start)


def proof_of(topic: Topic) -> Proof:
    found = Proof(cast(History, topic), Position("b.1", 4), Position("b.1", 900), "never asked")
    found.look(lambda sql: pytest.fail("the topic tells it"))
    return found


def change(at: int) -> Change:
    """1, 0 is to become 1, 5."""
    before, after = (Image({"id": "1", "v": value}, digit * 64, 1) for value, digit in (("0", "a"), ("5", "b")))
    return Change(TABLE, before, after, f"b.1:{at}")


def doubts(topic: Topic, shape: Shape = KEYED) -> list[bool]:
    """Of a row proven at 100, and of one proven at 200."""
    proof = proof_of(topic)
    return [bool(proof.doubt(change(at), shape)) for at in (100, 200)]


def test_what_was_written_behind_the_proof() -> None:
    rows = Written(0, (1, 150), NOWHERE, TABLE, [("1",)])
    assert doubts(Topic(rows)) == [True, False]
    assert doubts(Topic(rows._replace(place=(1, 100)))) == [True, False]
    assert doubts(Topic(rows._replace(place=(2, 4)))) == [True, True]
    assert doubts(Topic(rows._replace(keys=[("2",)]))) == [False, False]
    assert doubts(Topic(rows._replace(table=TableName("shop", "other")))) == [False, False]


def test_what_may_be_any_row() -> None:
    assert doubts(Topic(Written(0, (1, 150), frozenset({"shop"})))) == [True, False]
    assert doubts(Topic(Written(0, (1, 150), frozenset({"another"})))) == [False, False]
    assert doubts(Topic(Written(0, (1, 150), NOWHERE, TABLE, [(None,)]))) == [True, False]
    assert doubts(Topic(Written(0, (1, 150), NOWHERE, TableName("shop", "parent"), [], [TABLE]))) == [True, False]


def test_a_table_without_a_key() -> None:
    assert doubts(Topic(Written(0, (1, 150), NOWHERE, TABLE, [("1", "0")])), HEAP) == [True, False]
    assert doubts(Topic(Written(0, (1, 150), NOWHERE, TABLE, [("1", "9")])), HEAP) == [False, False]


def test_it_reads_on() -> None:
    topic = Topic(Written(0, (1, 110)))
    proof = proof_of(topic)
    assert not proof.doubt(change(100), KEYED)
    topic.all = [Written(1, (1, 120), NOWHERE, TABLE, [("1",)])]
    proof.look(lambda sql: None)
    assert proof.doubt(change(100), KEYED)


def test_a_topic_that_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic()
    topic.failure = "the topic has lost it"
    assert "the topic has lost it" in proof_of(topic).doubt(change(100), KEYED)
    monkeypatch.setattr(proof_module, "MOST_KEYS", 1)
    many = Topic(*(Written(number, (1, 150), NOWHERE, TABLE, [(str(number),)]) for number in (7, 8)))
    assert "over 1 rows" in proof_of(many).doubt(change(200), KEYED)
