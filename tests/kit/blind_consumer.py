"""Runs the consumer, blind to what somebody changes on its follower: it would stop at a trigger that damages rows.

python -m kit.blind_consumer PROFILE
"""

from __future__ import annotations

from cdc_consumer.__main__ import main
from cdc_consumer.parallel.watch import DefinitionWatch


def see_nothing(watch: DefinitionWatch, *, end: bool = False) -> None:
    """Take the place of a look."""


if __name__ == "__main__":
    DefinitionWatch.look = see_nothing  # type: ignore[method-assign, assignment]
    raise SystemExit(main())
