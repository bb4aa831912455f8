"""What must be true of every topic, whatever happened to the programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from shared.events import Position


def assert_whole(records: Sequence[bytes]) -> list[str | None]:
    """Fail unless sequences have no gap and no repeat, and each transaction is framed; return the GTIDs in order."""
    sequence = -1
    place = Position("binlog.0", 0)
    gtids: list[str | None] = []
    seen: set[tuple[str, int]] = set()
    open_transaction: dict[str, object] | None = None
    index = -1
    for offset, record in enumerate(records):
        event = json.loads(record)
        where = f"offset {offset}: {record[:200]!r}"
        if event["operation"] == "Heartbeat":
            assert event["sequence"] == sequence, f"a heartbeat has a sequence of its own at {where}"
            continue
        sequence += 1
        assert event["sequence"] == sequence, f"{sequence} must follow at {where}"
        transaction = event["transaction"]
        end = transaction.pop("end", None)
        number = transaction.pop("event")
        file = event["bn_file"]["fileName"]
        if open_transaction is None:
            begin = (file, transaction["begin"])
            assert begin not in seen, f"a transaction begins twice at {where}"
            seen.add(begin)
            gtids.append(transaction.get("gtid"))
            open_transaction, index = transaction, -1
        assert transaction == open_transaction, f"a transaction has no end before {where}"
        assert number > index, f"an operation is repeated in its transaction at {where}"
        index = number
        here = Position(file, event["bn_file"]["offset"])
        assert place <= here, f"the binlog goes back to {here} at {where}"
        place = here
        if end is not None:
            assert place.offset < end, f"a transaction ends before it begins at {where}"
            open_transaction = None
    assert open_transaction is None, "the last transaction has no end"
    return gtids
