"""Session variables: what an event may set, and that only differences are sent."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_consumer.sql.session import ROWS, RowMode, Session, of_query, row_settings


def test_only_differences_are_sent() -> None:
    session = Session({"innodb_strict_mode": "0"})
    charset, first = session.change(ROWS)
    assert charset == "SET character_set_client = 255, collation_connection = 255"
    assert first.startswith("SET sql_mode = 'STRICT_ALL_TABLES")
    assert session.change(ROWS) == []
    assert session.change(row_settings(RowMode(False))) == ["SET foreign_key_checks = 0"]
    assert session.change({"innodb_strict_mode": "0"}) == []


def test_literals_are_read_in_utf8mb4() -> None:
    session = Session({})
    session.change(ROWS)
    utf32 = {"time_zone": "'+01:00'", "collation_connection": "60"}
    assert session.change(utf32) == ["SET time_zone = '+01:00'", "SET collation_connection = 60"]
    assert session.change(ROWS) == ["SET collation_connection = 255", "SET time_zone = '+00:00'"]


def test_use_changes_the_collation_of_the_database() -> None:
    session = Session({})
    session.change({"collation_database": "8"})
    session.used_database()
    assert session.change({"collation_database": "8"}) == ["SET collation_database = 8"]


def test_values_of_a_query() -> None:
    settings = of_query(
        {"sql_mode": 4, "time_zone": "Europe/K'yiv", "timestamp": "1700000000.5", "unique_checks": False,
         "lower_case_table_names": 1}
    )  # fmt: skip
    assert settings["sql_mode"] == "4"
    assert settings["time_zone"] == "'Europe/K''yiv'"
    assert settings["timestamp"] == "1700000000.5"
    assert settings["unique_checks"] == "0"
    assert settings["foreign_key_checks"] == "1"
    assert "lower_case_table_names" not in settings
    assert of_query({"timestamp": 1700000000.25})["timestamp"] == "1700000000.250000"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("wild", 1),
        ("sql_mode", "0"),
        ("sql_mode", None),
        ("timestamp", "now()"),
        ("timestamp", None),
        ("time_zone", 1),
        ("sql_log_bin", 0),
        ("sql_mode = 0, foreign_key_checks", 1),
    ],
)
def test_what_may_not_be_set(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"session variable|no timestamp"):
        of_query({name: value})
