"""Up to where a leader shows its binlog, as the GTIDs in use tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from cdc_consumer.parity.servers import pair
from cdc_consumer.parity.servers.pair import HANGS, PLAIN, LeaderConnection, Visible
from shared.events import Position
from shared.profile import Database

ONE, OTHER = "52d27b66-e5ca-11f1-bbcc-02fc00000001", "a82c94e5-e5ce-11f1-9be3-02fc00000001"
#: as MySQL 9.7 writes it: a thread's number and the next UUID touch
OWNED = f"{ONE}:77#11{ONE}:tagged:10#13:9#12{OTHER}:mytag:1#15"
EDGE, START = Position("b.000003", 900), Position("b.000003", 4)


class Told(LeaderConnection):
    """A leader that says what it is told to; the last answer again and again."""

    def __init__(self, *answers: str, mode: str = "ON") -> None:
        super().__init__(Database("root"))
        self._answers: Iterator[str] = iter(answers)
        self._last = ""
        self._mode = mode
        self.asked = 0

    def position(self) -> Position:
        return EDGE

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        self.asked += 1
        self._last = next(self._answers, self._last)
        return [(self._mode, self._last)]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair, "POLL", 0.001)
    monkeypatch.setattr(pair, "COMMIT_SECONDS", 0.05)


@pytest.mark.parametrize(
    "answers",
    [
        [""],
        [OWNED, ""],
        [f"{ONE}:5#19:4#15", f"{ONE}:5#19,\n{OTHER}:4#15", f"{OTHER}:4#15"],
        # others are in use at every look, but never one for long
        [f"{ONE}:{number}#7" for number in range(1, 1000)],
        [f"{ONE}:tagged:{number}#7{OTHER}:5#7" for number in (1, 2)] + [f"{ONE}:5#7"],
    ],
)
def test_commits_that_were_under_way_are_waited_for(answers: Sequence[str]) -> None:
    leader = Told(*answers)
    assert leader.visible() == Visible(EDGE, "")
    assert leader.asked <= 3


@pytest.mark.parametrize(
    "answers", [[OWNED], [OWNED, f"{ONE}:tagged:9#12"], [OWNED, f"{OTHER}:mytag:1#15"], ["in another form"]]
)
def test_a_commit_that_hangs_leaves_the_start_of_the_file(answers: Sequence[str]) -> None:
    assert Told(*answers).visible() == Visible(START, HANGS)


@pytest.mark.parametrize("mode", ["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE"])
def test_without_gtids_nothing_tells(mode: str) -> None:
    assert Told("", mode=mode).visible() == Visible(START, PLAIN)
