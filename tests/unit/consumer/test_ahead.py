"""What ended before its turn, in a topic that was written anew since, or has got routes."""

from __future__ import annotations

import pytest

from cdc_consumer.parallel.ahead import Ahead
from cdc_consumer.sql.positions import Mark
from cdc_consumer.transactions import Step
from shared.errors import FollowerError
from shared.events import Event, Position, Query, Transaction

#: the transaction of sequence 7, which stood at offset 12 between heartbeats
ENDED = {7: Mark(12, 7, "binlog.000001", 90, None, 5)}
EVENT = Event(7, Position("binlog.000001", 50), Query(b"", "", (), {}), Transaction(None, 40, 5, (0, 1)), 1, 90)


@pytest.mark.parametrize("offset", [12, 7, 9])
def test_the_same_transaction_may_stand_at_another_offset(offset: int) -> None:
    assert Ahead(ENDED).passes(Step(EVENT, offset, True, True))


@pytest.mark.parametrize(
    "other",
    [
        # of another moment, place or GTID
        EVENT._replace(transaction=Transaction(None, 40, 6, (0, 1))),
        EVENT._replace(end=91),
        EVENT._replace(position=Position("binlog.000002", 50)),
        EVENT._replace(transaction=Transaction("a:1", 40, 5, (0, 1))),
    ],
)
def test_another_transaction_of_the_same_sequence_is_refused(other: Event) -> None:
    with pytest.raises(FollowerError, match="another transaction there"):
        Ahead(ENDED).passes(Step(other, 12, True, True))
