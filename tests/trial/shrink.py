"""Makes a script that shows a fault as short as it can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trial.script import Step

#: says whether a script still shows the fault
Shows = Callable[[Sequence[Step]], bool]


def first_faulty(steps: Sequence[Step], shows: Shows) -> int:
    """Index of a step with which the fault appears: the steps before it do not show it, with it they do.

    All steps must show it. Halving looks at few scripts; where a fault comes and goes, one place where it comes is found.
    """
    good, bad = 0, len(steps)
    while bad - good > 1:
        middle = (good + bad) // 2
        if shows(steps[:middle]):
            bad = middle
        else:
            good = middle
    return bad - 1


def shrink(steps: Sequence[Step], shows: Shows) -> list[Step]:
    """A part of a script that shows the fault, while no part of it with one step fewer does."""
    kept = list(steps[: first_faulty(steps, shows) + 1])
    size = max(1, len(kept) // 2)
    while True:
        smaller = _without(kept, size, shows)
        if len(smaller) == len(kept) and size == 1:
            return kept
        kept, size = smaller, max(1, size // 2)


def _without(steps: list[Step], size: int, shows: Shows) -> list[Step]:
    """Leave out each run of `size` steps without which the fault still shows, the last ones first."""
    end = len(steps)
    while end > 0:
        start = max(0, end - size)
        fewer = steps[:start] + steps[end:]
        if fewer and shows(fewer):
            steps = fewer
        end = start
    return steps
