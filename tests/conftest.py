"""What every test may ask for is in the fix_*.py files."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from docker.local import mysql_servers

# How long an example takes says more of what else the machine does than of the test.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

pytest_plugins = [
    "fix_copy", "fix_crash", "fix_damaged_pair", "fix_differing_pair", "fix_embedded", "fix_history", "fix_left_out",
    "fix_mysql", "fix_parity", "fix_replication",
]  # fmt: skip

pytest.register_assert_rewrite(*pytest_plugins, "kit.helpers", "kit.routed_history", "kit.topic_audit")

#: cheap tests first, so that a simple mistake is seen before a long run; then the longest, so that at its end no process
#: waits long for another. Before all of them xdist gives out its groups
ORDER = (
    "unit", "acceptance", "trial", "fuzz", "test_types.py", "test_workers.py", "test_workers_gaps.py", "integration",
)  # fmt: skip
#: processes of `make test`: most tests wait for servers and programs, half of the time for what is not this machine
PROCESSES = 4
#: which tests one process runs, by how their names begin: those of Spark, which takes all cores, wait for each other, and
#: the trial has three servers of its own. (A mark would do, but for pytest 9.2, which xdist 3.8 cannot tell of it.)
GROUPS = {
    "tests/acceptance/test_copy_program.py::test_on_spark": "spark",
    "tests/acceptance/test_demo.py": "spark",
    "tests/acceptance/test_parity_faults.py": "spark",
    "tests/acceptance/test_parity_harmless.py": "spark",
    "tests/acceptance/test_parity_program.py": "spark",
    "tests/acceptance/test_parity_resume.py": "spark",
    "tests/trial/": "trial",
}
#: where servers are named that all processes would share
NAMED = ("CDC_TEST_LEADER", "CDC_TEST_FOLLOWER", "CDC_TEST_FLUVIO")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((i for i, name in enumerate(ORDER) if name in item.path.parts), len(ORDER)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """How many processes `-n auto` means; 0 for this one alone."""
    return 0 if any(name in os.environ for name in NAMED) else PROCESSES


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give out GROUPS first, the largest before the others, and then each test by itself."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):  # type: ignore[misc]  # xdist tells no types
        def _split_scope(self, nodeid: str) -> str:
            return next((group for beginning, group in GROUPS.items() if nodeid.startswith(beginning)), nodeid)

    return Groups(config, log) if config.getoption("dist") == "loadgroup" else None


def pytest_configure() -> None:
    """Give each process ports of its own: two may look for a free one at the same moment."""
    ports = mysql_servers.PORTS
    worker, count = (os.environ.get(f"PYTEST_XDIST_WORKER{name}") for name in ("", "_COUNT"))
    if worker and count:
        mysql_servers.PORTS = ports[int(worker.removeprefix("gw")) :: int(count)]
