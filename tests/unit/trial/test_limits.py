"""Stops that Limits name: each pattern has its words there, and what nothing names is a fault."""

from __future__ import annotations

import pytest
from trial.limits import LIMITS, is_fault, limit_of, limits_text
from trial.verdict import DIFFERS, EQUAL, STOPPED, Verdict


@pytest.mark.parametrize("words", [words for _, words in LIMITS])
def test_the_words_are_in_limits(words: str) -> None:
    assert words in limits_text()


def test_a_stop_is_known_by_its_sentence() -> None:
    known = Verdict(STOPPED, sentences=("cdc-producer: rows at b.1:4 belong to an XA transaction, which may",))
    assert limit_of(known) == "XA transactions on replicated databases"
    assert not is_fault(known)
    assert is_fault(Verdict(STOPPED, sentences=("cdc-consumer: table test.t does not exist", *known.sentences)))


def test_a_stop_of_native_replication_counts_where_the_error_is_the_same() -> None:
    said = ("cdc-consumer: CREATE TABLE t: the follower refuses it: Unknown thing 'x' (1)",)
    assert not is_fault(Verdict(STOPPED, sentences=said, native="stops: Error 'Unknown thing 'x'' on query. Default"))
    assert is_fault(Verdict(STOPPED, sentences=said, native="stops: Error 'Another' on query. Default"))


def test_silence_is_a_fault_and_equality_none() -> None:
    assert is_fault(Verdict(DIFFERS))
    assert not is_fault(Verdict(EQUAL))
