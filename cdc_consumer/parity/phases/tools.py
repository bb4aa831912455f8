"""Holds what every part of a run works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cdc_consumer.parity.options import Options
from cdc_consumer.parity.profile import ParityProfile
from cdc_consumer.parity.progress import Progress
from cdc_consumer.parity.rows.plan import Sizes
from cdc_consumer.parity.servers.pair import Pair
from cdc_consumer.parity.witness.history import History


@dataclass(frozen=True, slots=True)
class Tools:
    """Holds what a run was asked to do, and what it does that with."""

    profile: ParityProfile
    #: of the profile's file, for the report
    name: str
    started: datetime
    options: Options
    sizes: Sizes
    #: cores of this machine that Spark uses
    cores: int
    #: where the run writes what it finds
    folder: Path
    pair: Pair
    #: None without [topic] in the profile
    history: History | None
    progress: Progress
    #: tells whether the user asked to stop
    stopped: Callable[[], bool]
