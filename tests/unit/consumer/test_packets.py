"""Answers to statements, read in whatever pieces they arrive."""

from __future__ import annotations

import io
import socket
from itertools import islice
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.sql.packets import Answers, accepted
from shared.mysql import MySQLError, is_link_error

OK = b"\x07\0\0\1\0\0\0\2\0\0\0"
REFUSED = b"\x0b\0\0\2\xff\x08\x04#HY000no"


def reading(data: bytes) -> SimpleNamespace:
    return SimpleNamespace(_rfile=io.BufferedReader(io.BytesIO(data)))


def test_each_statement_is_answered_once() -> None:
    connection = reading(OK * 3)
    assert list(islice(accepted(connection), 2)) == [(0, 0)] * 2
    # the rest is left to whoever reads next
    assert connection._rfile.read() == OK


def test_a_refusal_is_that_of_the_server() -> None:
    answers = accepted(reading(OK + REFUSED))
    next(answers)
    with pytest.raises(MySQLError, match="no") as caught:
        next(answers)
    assert caught.value.args[0] == 1032


@pytest.mark.parametrize("cut", range(5))
def test_a_link_that_ends_is_no_answer(cut: int) -> None:
    answers = accepted(reading(OK + OK[:cut]))
    next(answers)
    with pytest.raises(MySQLError) as caught:
        next(answers)
    assert is_link_error(caught.value)


@given(count=st.integers(0, 20), cuts=st.lists(st.integers(1, 40)))
def test_pieces_of_any_size(count: int, cuts: list[int]) -> None:
    near, far = socket.socketpair()
    with near, far:
        answers, data, found = Answers(SimpleNamespace(_sock=near)), OK * count, 0
        for cut in [*cuts, len(data)]:
            if piece := data[:cut]:
                far.sendall(piece)
                data = data[cut:]
                found += answers.read()
        assert found == count
