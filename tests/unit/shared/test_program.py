"""The exit status of every way a program can end."""

from __future__ import annotations

import logging
import os
import signal

import pytest

from shared import program
from shared.errors import CdcError, LeaderError, ProfileError


def raising(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "status", "audit"),
    [
        (LeaderError("too old"), 1, 4),
        (ProfileError("bad"), 2, 2),
        (KeyboardInterrupt(), 130, 130),
        (TypeError("x"), 3, 4),
    ],
)
def test_what_is_raised_becomes_a_status(
    error: BaseException, status: int, audit: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.run("cdc-x", lambda: raising(error)) == status
    told = capsys.readouterr().err
    assert told == (f"cdc-x: {error}\n" if isinstance(error, CdcError) else told)
    assert ("Traceback" in told) == isinstance(error, TypeError)
    assert program.run("cdc-x", lambda: raising(error), failed=4, bug=4) == audit


def test_what_is_returned_is_the_status() -> None:
    assert program.run("cdc-x", lambda: None) == 0
    assert program.run("cdc-x", lambda: 3) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_is_asked_to_stop_and_then_ended(number: int) -> None:
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]

    def action(stop: program.StopRequest) -> None:
        assert not stop()
        os.kill(os.getpid(), number)
        assert stop()
        os.kill(os.getpid(), number)
        pytest.fail("the second signal did not end it")

    try:
        assert program.run_replication("cdc-x", action, verbose=False) == 0
    finally:
        for each, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(each, handler)


def test_no_message_steers_a_terminal_or_makes_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "left out\ncdc-consumer: all is well\x1b[2J\udc80é"

    def action() -> None:
        logging.getLogger("shared").warning("%s", text)
        raise CdcError(text)

    monkeypatch.setattr(logging.root, "handlers", [])
    assert program.run("p", action) == 1
    logged, said = capsys.readouterr().err.splitlines()
    assert logged.endswith(r"left out\ncdc-consumer: all is well\x1b[2J\udc80é")
    assert said == r"p: left out cdc-consumer: all is well\x1b[2J\udc80é"
