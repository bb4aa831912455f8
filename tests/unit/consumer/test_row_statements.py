"""Row images to statements: what is joined, what is kept apart, and in which order."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.follower.row_statements import DELETE_ROWS, INSERT_ROWS, RowStatement, RowWriter
from cdc_consumer.follower.tables import FollowerColumn, FollowerTable
from shared.errors import EventError
from shared.events import Rows

COLUMNS = ("id", "v")


def table(
    key: tuple[str, ...] = ("id",), itself: bool = False, v: str = "int", generated: tuple[str, ...] = ()
) -> FollowerTable:
    columns = {
        name: FollowerColumn(name, kind, name in generated, False, False) for name, kind in (("id", "int"), ("v", v))
    }
    return FollowerTable("d", "t", columns, key, itself)


def integer(value: int | None) -> Any:
    return "Null" if value is None else {"SignedInteger": value}


def rows(kind: str, *images: Any, checks: bool = True) -> Rows:
    return Rows(kind, "d", "t", COLUMNS, list(images), (), (), checks)


def row(number: int, v: int | None = None) -> list[Any]:
    return [integer(number), integer(v)]


def write(*events: Rows, on: FollowerTable | None = None, limit: int = 1 << 20) -> list[RowStatement]:
    writer = RowWriter(limit)
    into = on or table()
    found = [statement for one in events for statement in writer.write(one, into, 7, 9)]
    return [*found, *writer.finish()]


def sql(*events: Rows, **options: Any) -> list[str]:
    return [statement.sql for statement in write(*events, **options)]


def test_consecutive_inserts_are_one() -> None:
    (statement,) = write(rows("Add", row(1), row(2, 5)), rows("Add", row(3)))
    assert statement.sql == "INSERT INTO `d`.`t` (`id`, `v`) VALUES (1,NULL),(2,5),(3,NULL)"
    assert statement.rows == 3


def test_deletes_by_key_are_one_and_by_image_are_not() -> None:
    assert sql(rows("Delete", row(1), row(2))) == ["DELETE FROM `d`.`t` WHERE `id` IN (1,2)"]
    assert sql(rows("Delete", row(1, 5)), on=table(("v", "id"))) == ["DELETE FROM `d`.`t` WHERE (`v`, `id`) IN ((5,1))"]
    assert sql(rows("Delete", row(1, 5), row(1)), on=table(())) == [
        "DELETE FROM `d`.`t` WHERE `id` = 1 AND `v` = 5 LIMIT 1",
        "DELETE FROM `d`.`t` WHERE `id` = 1 AND `v` IS NULL LIMIT 1",
    ]
    assert sql(rows("Delete", row(1), row(2)), on=table(itself=True)) == [
        "DELETE FROM `d`.`t` WHERE `id` = 1",
        "DELETE FROM `d`.`t` WHERE `id` = 2",
    ]


def test_updates() -> None:
    assert sql(rows("Update", (row(1, 2), row(3, 4)))) == ["UPDATE `d`.`t` SET `id` = 3, `v` = 4 WHERE `id` = 1"]
    assert sql(rows("Update", (row(1, 2), row(1, 2))), on=table((), generated=("v",))) == [
        "UPDATE `d`.`t` SET `id` = 1 WHERE `id` = 1 LIMIT 1"
    ]


def test_a_key_of_the_follower_alone_is_no_key() -> None:
    own = table(("own",))
    assert sql(rows("Delete", row(1, 2)), on=own) == ["DELETE FROM `d`.`t` WHERE `id` = 1 AND `v` = 2 LIMIT 1"]


def test_what_differs_is_not_joined() -> None:
    statements = write(
        rows("Add", row(1)),
        rows("Add", row(2), checks=False),
        rows("Delete", row(1), checks=False),
        rows("Add", row(1)),
    )
    assert [(one.sql.split()[0], one.mode.foreign_key_checks) for one in statements] == [
        ("INSERT", True), ("INSERT", False), ("DELETE", False), ("INSERT", True),
    ]  # fmt: skip


def test_the_error_value_of_an_enum_stands_alone() -> None:
    images = [[integer(number), {"Enum": index}] for number, index in ((1, 1), (2, 0), (3, 2))]
    statements = write(rows("Add", *images), on=table(v="enum('a','b')"))
    assert [(one.sql.partition("VALUES ")[2], one.warnings) for one in statements] == [
        ("(1,1)", 0),
        ("(2,0)", 1),
        ("(3,2)", 0),
    ]
    (update,) = write(rows("Update", (images[0], images[1])), on=table(v="enum('a','b')"))
    assert update.warnings == 1


def test_the_warnings_of_literals_beside_an_error_value() -> None:
    wide = {"EncodedString": {"charset": "ucs2", "base64": "AGE="}}
    on, zero, one = table(v="enum('a')"), [wide, {"Enum": 0}], [wide, {"Enum": 1}]
    (insert,), (update,), (plain,) = (
        write(rows("Add", zero), on=on), write(rows("Update", (one, zero)), on=on), write(rows("Add", one), on=on)
    )  # fmt: skip
    assert (insert.warnings, update.warnings, plain.warnings) == (2, 3, 0)


def test_limits() -> None:
    inserts = write(*[rows("Add", *[row(n) for n in range(700)]) for _ in range(3)])
    assert [one.rows for one in inserts] == [INSERT_ROWS, INSERT_ROWS, 100]
    deletes = write(rows("Delete", *[row(n) for n in range(700)]))
    assert [one.rows for one in deletes] == [DELETE_ROWS, 200]
    assert [one.source.first for one in deletes] == [0, DELETE_ROWS]
    assert max(len(one) for one in sql(rows("Add", *[row(n) for n in range(700)]), limit=500)) < 600
    assert len(sql(rows("Add", row(1), row(2)), limit=0)) == 2


def test_errors_say_where() -> None:
    (statement,) = write(rows("Delete", row(1)))
    assert str(statement.source) == "Delete of d.t (id=1), sequence 7 (topic offset 9)"
    with pytest.raises(EventError, match=r"topic offset 9 \(sequence 7\) holds a row of d\.t that cannot be written"):
        write(rows("Add", [integer(1)]))
    with pytest.raises(EventError):
        write(rows("Update", row(1)))


@given(st.data())
def test_any_history_ends_as_on_the_leader(data: st.DataObject) -> None:
    """Replayed on SQLite, where a table's dialect is the same for these statements."""
    state: dict[int, int] = {}
    events: list[Rows] = []
    for _ in range(data.draw(st.integers(1, 12))):
        kind = data.draw(st.sampled_from(["Add", "Update", "Delete"]))
        images: list[Any] = []
        for _ in range(data.draw(st.integers(1, 5))):
            value = data.draw(st.integers(0, 9))
            free = [number for number in range(8) if number not in state]
            if kind == "Add" and free:
                number = data.draw(st.sampled_from(free))
                state[number] = value
                images.append(row(number, value))
            elif kind != "Add" and state:
                number = data.draw(st.sampled_from(sorted(state)))
                before = row(number, state.pop(number))
                if kind == "Update":
                    moved = data.draw(st.sampled_from([n for n in range(8) if n not in state]))
                    state[moved] = value
                    images.append((before, row(moved, value)))
                else:
                    images.append(before)
        if images:
            events.append(rows(kind, *images))
    follower = sqlite3.connect(":memory:")
    follower.execute("ATTACH ':memory:' AS d")
    follower.execute("CREATE TABLE d.t (id INTEGER PRIMARY KEY, v INTEGER)")
    for statement in write(*events, limit=data.draw(st.sampled_from([0, 10, 1000]))):
        assert follower.execute(statement.sql).rowcount == statement.rows
    assert dict(follower.execute("SELECT id, v FROM d.t")) == state
    follower.close()
