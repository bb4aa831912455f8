"""What `make demo ARGS=--keep` does while it stays up, and that no Ctrl-C is lost."""

from __future__ import annotations

import signal
import sys
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from docker.local.demo import Demo
from docker.local.processes import Child, interrupts, uninterrupted


def test_a_program_that_ends_is_told_once_and_takes_nothing_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rounds = iter(range(3))

    def events(self: Demo, timeout: float) -> Iterator[str]:
        if next(rounds, None) is None:
            raise KeyboardInterrupt
        return iter(())

    monkeypatch.setattr(Demo, "events", events)
    with ExitStack() as stack:
        demo = Demo(tmp_path, stack)
        command = [sys.executable, "-c", "import sys; sys.exit('cdc-consumer: stopped here')"]
        demo.programs["cdc-consumer"] = Child(command, tmp_path / "log")
        demo.programs["cdc-consumer"].wait(20)
        with pytest.raises(KeyboardInterrupt):
            demo.watch()
    assert capsys.readouterr().out.count("cdc-consumer ended with status 1") == 1


def test_an_interrupt_that_python_drops_ends_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As while it imports: what is raised inside a weak reference's callback goes no further."""
    told: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: told.append(found.exc_type))
    monkeypatch.setattr(interrupts, "seen", False)
    with ExitStack() as stack:
        demo = Demo(tmp_path, stack)
        with uninterrupted():  # which brings the handlers of pytest back
            interrupts.listen()
            target = {signal.SIGINT}
            callback = weakref.ref(target, lambda _: signal.raise_signal(signal.SIGINT))
            del target
        assert callback() is None and not told
        with pytest.raises(KeyboardInterrupt):
            demo.until(lambda: False, "never")
