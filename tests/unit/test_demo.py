"""What `make demo ARGS=--keep` does while it stays up."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from docker.local.demo import Demo
from docker.local.processes import Child


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
