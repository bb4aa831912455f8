"""How much the crash tests kill and the live audits audit, and the seed of what they do."""

from __future__ import annotations

import random

import pytest

#: in `make test`
KILLS = 30


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("crash")
    group.addoption(
        "--kills",
        type=int,
        default=KILLS,
        help="how many SIGKILLs the random crash tests share (%(default)s); above 300 add -o faulthandler_timeout=0",
    )
    group.addoption(
        "--audits", type=int, default=1, help="how many of a busy leader, undamaged and damaged (%(default)s)"
    )
    group.addoption("--every-byte", action="store_true", help="alter every byte of a topic, not a sample of them")
    group.addoption("--minute", action="store_true", help="wait where MySQL looks once a minute, and do not kill it")
    group.addoption("--seed", type=int, help="of the random tests; each failure prints it")


@pytest.fixture
def kills(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("kills"))


@pytest.fixture
def every_byte(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("every_byte"))


@pytest.fixture
def audits(pytestconfig: pytest.Config) -> int:
    return int(pytestconfig.getoption("audits"))


@pytest.fixture
def minute(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("minute"))


@pytest.fixture
def seed(pytestconfig: pytest.Config) -> int:
    given = pytestconfig.getoption("seed")
    seed = random.randrange(1 << 32) if given is None else int(given)
    # shown with a failure
    print(f"--seed {seed}")
    return seed
