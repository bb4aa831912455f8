"""Which databases take part."""

from __future__ import annotations

import pytest

from shared.filters import SYSTEM_DATABASES, DatabaseFilter
from shared.profile import Filters


@pytest.mark.parametrize("filters", [Filters(exclude_dbs=("b",)), Filters(include_dbs=("a", "fluvio_cdc", "mysql"))])
def test_what_belongs_to_mysql_or_to_this_system_never_takes_part(filters: Filters) -> None:
    databases = DatabaseFilter(filters)
    assert databases.split(["a", "b", "fluvio_cdc", *SYSTEM_DATABASES]) == (
        ["a"],
        ["b", "fluvio_cdc", *SYSTEM_DATABASES],
    )


def test_an_exclusion_lets_in_what_nobody_named() -> None:
    assert "new" in DatabaseFilter(Filters(exclude_dbs=("b",)))
    assert "new" not in DatabaseFilter(Filters(include_dbs=("b",)))


def test_what_was_named_and_is_not_there() -> None:
    assert DatabaseFilter(Filters(include_dbs=("b", "c", "a"))).missing_from(["b", "d"]) == ["a", "c"]
    assert DatabaseFilter(Filters(exclude_dbs=("b",))).missing_from([]) == []
