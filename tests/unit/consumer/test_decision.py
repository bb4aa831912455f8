"""What an operator's file of statements holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_consumer.decision import read_decision
from shared.errors import ProfileError


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("INSERT INTO d.t VALUES (1); DELETE FROM d.t;\n", ["INSERT INTO d.t VALUES (1)", "DELETE FROM d.t"]),
        ("INSERT INTO d.t VALUES (1) -- end", ["INSERT INTO d.t VALUES (1) -- end\n"]),
        ("INSERT INTO d.t VALUES (1) # one\n; -- two\n;/* three */", ["INSERT INTO d.t VALUES (1) # one\n"]),
        ("DELETE FROM d.t /*!80000 LIMIT 1 */; REPLACE d.t VALUES (';')",
         ["DELETE FROM d.t /*!80000 LIMIT 1 */\n", "REPLACE d.t VALUES (';')"]),
        ("DROP TABLE d.t -- end", ["DROP TABLE d.t -- end"]),
    ],
)  # fmt: skip
def test_statements_are_told_apart(tmp_path: Path, text: str, statements: list[str]) -> None:
    file = tmp_path / "instead.sql"
    file.write_text(text)
    assert [one.decode() for one in read_decision(1, "why", str(file)).instead] == statements


@pytest.mark.parametrize("text", ["", " ;\n", "-- nothing", "/* nothing */ ; # at all"])
def test_a_file_without_a_statement_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "instead.sql"
    file.write_text(text)
    with pytest.raises(ProfileError, match="holds no statement"):
        read_decision(1, "why", str(file))
