"""Three servers for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trial.servers import Settings, start_servers
from trial.trial import Trial


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """With GTIDs; the longer trials are for `make trial`."""
    # mysqld's socket has a short name only in a short folder
    folder: Path = tmp_path_factory.mktemp("trial")
    with start_servers(folder, Settings()) as servers:
        yield Trial(servers, folder / "programs")
