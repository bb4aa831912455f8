"""Which databases take part."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import ProfileError
from shared.filters import SYSTEM_DATABASES, DatabaseFilter, TablePatterns, check_filters
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
    assert DatabaseFilter(Filters(include_dbs=("b", "c", "a"))).unmet(["b", "d"], []) == {"include_dbs": "a, c"}
    assert DatabaseFilter(Filters(exclude_dbs=("b",))).unmet([], []) == {}
    databases = DatabaseFilter(
        Filters(include_dbs=("d",), include_tables=("d.T", "d.t*"), exclude_tables=("*.secret",))
    )
    tables = [("d", "t1")]
    assert databases.unmet(["d"], tables) == {"include_tables": "d.T"}
    assert databases.unmet(["d"], tables, exclusions=True) == {"include_tables": "d.T", "exclude_tables": "*.secret"}
    assert databases.unmet(["d"], [*tables, ("d", "T"), ("e", "secret")], exclusions=True) == {}


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        (Filters(include_dbs=("d",), include_tables=("e.t",)), "filters.include_tables has e.t, which is no table's"),
        (Filters(include_dbs=("d",), include_tables=("d.t", "D.t")), "filters.include_tables has D.t"),
        (Filters(include_dbs=("d",), exclude_tables=("e*.t",)), "filters.exclude_tables has e*.t"),
        (Filters(exclude_dbs=("d",), include_tables=("d.t",)), "filters.include_tables has d.t"),
        (Filters(exclude_dbs=(), include_tables=("mysql.user",)), "filters.include_tables has mysql.user"),
        (Filters(include_dbs=("d", "e"), exclude_tables=("*.*",)), "leaves out every table"),
        (Filters(include_dbs=("d", "e"), exclude_tables=("d.*", "e.**")), "leaves out every table"),
        (Filters(include_dbs=("d",), include_tables=("d.a*",), exclude_tables=("d.*",)), "leaves out every table"),
        (Filters(exclude_dbs=("d",), include_tables=("e.t",), exclude_tables=("*.t",)), "leaves out every table"),
    ],
)
def test_a_filter_that_lets_no_table_in_is_refused(filters: Filters, words: str) -> None:
    with pytest.raises(ProfileError, match=re.escape(words)):
        check_filters(filters)


@pytest.mark.parametrize(
    "filters",
    [
        Filters(include_dbs=("d", "e"), exclude_tables=("d.*", "e.t*")),
        Filters(exclude_dbs=("d",), include_tables=("*.t",), exclude_tables=("d*.t",)),
        Filters(include_dbs=("a.b",), include_tables=("a*b.t",)),
        Filters(include_dbs=("d",), include_tables=("d.a*",), exclude_tables=("d.ab*", "*.*b")),
    ],
)
def test_a_filter_that_may_let_a_table_in_is_taken(filters: Filters) -> None:
    check_filters(filters)


NAMES = st.text(alphabet="ab", min_size=1, max_size=3)
PATTERNS = st.builds("{}.{}".format, *[st.text(alphabet="ab*", min_size=1, max_size=3)] * 2)


@given(st.sets(NAMES, min_size=1, max_size=2), st.none() | st.lists(PATTERNS, min_size=1, max_size=2),
       st.lists(PATTERNS, max_size=2), NAMES, NAMES)  # fmt: skip
def test_what_is_refused_lets_no_table_in(
    databases: set[str], include: list[str] | None, exclude: list[str], database: str, table: str
) -> None:
    filters = Filters(tuple(databases), None, None if include is None else tuple(include), tuple(exclude))
    try:
        check_filters(filters)
    except ProfileError as error:
        idle = re.search(r"(\S+) has (\S+), which is no table's", str(error))
        if idle is None:
            assert not DatabaseFilter(filters).takes(database, table)
        else:
            assert not (database in databases and TablePatterns([idle[2]]).match(database, table))


def test_a_table_takes_part_when_its_database_and_a_pattern_say_so() -> None:
    databases = DatabaseFilter(
        Filters(include_dbs=("shop", "a.b"), include_tables=("shop.order*", "*.pet"), exclude_tables=("*.order_tmp*",))
    )
    assert not databases.whole_databases
    taken = [("shop", "orders"), ("shop", "order"), ("shop", "pet"), ("a.b", "pet")]
    left = [("shop", "order_tmp1"), ("shop", "Orders"), ("shop", "x.pet"), ("other", "pet"), ("mysql", "pet")]
    assert all(databases.takes(*table) for table in taken)
    assert not any(databases.takes(*table) for table in left)
    assert databases.split_tables([taken[0], left[0]]) == (["shop.orders"], ["shop.order_tmp1"])


@given(st.text(alphabet=".*ab\n$[", min_size=1), st.text(alphabet=".*ab\n$[", min_size=1))
def test_a_pattern_without_stars_is_a_name(database: str, table: str) -> None:
    pattern = f"{database.replace('.', '*')}.{table}"
    assert TablePatterns([pattern]).match(database, table)
    if "*" not in pattern:
        assert not TablePatterns([pattern]).match(database, table + "x")
        assert not TablePatterns([pattern]).match(database + "x", table)


@given(st.text(alphabet="*ab", max_size=6), st.text(alphabet="ab", max_size=8))
def test_a_star_stands_for_anything(pattern: str, name: str) -> None:
    expected = re.fullmatch(pattern.replace("*", "[ab]*"), name) is not None
    assert TablePatterns([f"d.{pattern}"]).match("d", name) == expected
    assert TablePatterns([f"{pattern}.t"]).match(name, "t") == expected


def test_no_name_takes_long() -> None:
    began = time.monotonic()
    assert not TablePatterns([f"d.*{'a*' * 20}c"]).match("d", "a" * 63 + "b")
    assert time.monotonic() - began < 10
