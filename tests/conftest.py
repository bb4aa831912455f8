"""What every test may ask for is in the fix_*.py files."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more of what else the machine does than of the test.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

pytest_plugins = ["fix_crash", "fix_mysql", "fix_parity", "fix_replication"]

pytest.register_assert_rewrite("kit.helpers", "fix_replication", "kit.topic_audit")

#: cheap tests first, so that a simple mistake is seen before a long run
ORDER = ("unit", "integration", "acceptance")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((i for i, name in enumerate(ORDER) if name in item.path.parts), len(ORDER)))
