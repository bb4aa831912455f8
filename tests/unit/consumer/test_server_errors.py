"""What a server's error means, and what it advises."""

from __future__ import annotations

import pymysql
import pytest

from cdc_consumer.sql.server_errors import translate
from shared.errors import DivergedError, FollowerBusyError, FollowerError


@pytest.mark.parametrize(
    ("number", "kind", "skips"),
    [
        (1062, DivergedError, True), (1105, FollowerError, True),
        # these are not about the transaction that meets them
        (1142, FollowerError, False), (1227, FollowerError, False), (1197, FollowerError, False), (1203, FollowerError, False), (1226, FollowerError, False),
        (1205, FollowerBusyError, False), (1781, FollowerBusyError, False), (1114, FollowerError, False),
    ],
)  # fmt: skip
def test_who_is_advised_to_leave_a_transaction_out(number: int, kind: type[FollowerError], skips: bool) -> None:
    error = translate(pymysql.err.OperationalError(number, "why"), "COMMIT of sequence 8", "; --skip")
    assert type(error) is kind
    assert "COMMIT of sequence 8" in str(error) and "why" in str(error)
    assert ("--skip" in str(error)) == skips
