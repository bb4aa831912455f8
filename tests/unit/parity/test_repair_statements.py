"""Changes as SQL: guarded, no wider than the difference, and the same backwards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_consumer.parity.canonical import row_hash
from cdc_consumer.parity.model import Column, Difference, Evidence, Shape, TableName
from cdc_consumer.parity.repair.statements import Change, Guarded, Image, change_of, statements
from cdc_consumer.parity.repair.target import Target

TABLE = TableName("shop", "pet`s")
COLUMNS = (
    Column("id", "int", "int", None, False, False),
    Column("name", "varchar(9)", "varchar", "utf8mb4", True, False),
    Column("size", "enum('s','l')", "enum", "utf8mb4", True, False),
    Column("twice", "int", "int", None, True, True),
)
SHAPE = Shape(TABLE, COLUMNS, ("id",))
TARGET = Target(SHAPE, row_hash(SHAPE), ("id", "name", "size"), moving=("seen",))
HEAP = replace(TARGET, shape=replace(SHAPE, key=()))
LEADERS, FOLLOWERS = "a" * 64, "b" * 64
EVIDENCE = Evidence("no event", "b.1:4", "b.1:4", "b.1:4", "b.1:4", 2)


def image(digest: str, name: str, size: str = "_utf8mb4 x'73'", copies: int = 1) -> Image:
    return Image({"id": "1", "name": name, "size": size, "twice": "2"}, digest, copies)


LEADER, FOLLOWER = image(LEADERS, "_utf8mb4 x'61'"), image(FOLLOWERS, "NULL")


def only(change: Change, target: Target = TARGET) -> Guarded:
    (statement,) = statements(target, [change])
    return statement


def test_an_update_sets_what_differs_and_keeps_what_would_move() -> None:
    statement = only(Change(TABLE, FOLLOWER, LEADER))
    guard = f"WHERE `id` = 1 AND {TARGET.hash} = '{FOLLOWERS}'"
    assert statement.sql == f"UPDATE `shop`.`pet``s` SET `name` = _utf8mb4 x'61', `seen` = `seen` {guard}"
    undo = only(Change(TABLE, FOLLOWER, LEADER).reversed)
    assert undo.sql.startswith("UPDATE `shop`.`pet``s` SET `name` = NULL, ") and undo.sql.endswith(f"'{LEADERS}'")


def test_an_insert_and_a_delete_undo_each_other() -> None:
    missing = Change(TABLE, None, LEADER)
    assert only(missing).sql == (
        "INSERT INTO `shop`.`pet``s` (`id`, `name`, `size`) SELECT 1, _utf8mb4 x'61', _utf8mb4 x'73' FROM DUAL"
        " WHERE NOT EXISTS (SELECT 1 FROM `shop`.`pet``s` WHERE `id` = 1)"
    )
    assert only(missing.reversed).sql == f"DELETE FROM `shop`.`pet``s` WHERE `id` = 1 AND {TARGET.hash} = '{LEADERS}'"
    assert missing.reversed.reversed == missing


@pytest.mark.parametrize(
    ("one", "other", "inserted"),
    [("1", "1.0", True), ('{"a":[1,-0.0]}', '{"a":[1.0,0]}', True), ("1", "2", False), ("1", '"1"', False), ("1", "1", True)],
)  # fmt: skip
def test_a_document_that_is_equal_by_value_is_inserted_anew(one: str, other: str, inserted: bool) -> None:
    """An UPDATE would compare by value, and write nothing."""
    document = Column("doc", "json", "json", None, True, False)
    shape = replace(SHAPE, columns=(*COLUMNS[:2], document))
    target = replace(TARGET, shape=shape, written=("id", "name", "doc"))

    def row(digest: str, text: str, name: str = "NULL") -> Image:
        literal = f"CAST(CONVERT(x'{text.encode().hex()}' USING utf8mb4) AS JSON)"
        return Image({"id": "1", "name": name, "doc": literal}, digest, 1)

    verbs = [statement.sql.split()[0] for statement in statements(target, [Change(TABLE, row(FOLLOWERS, one), row(LEADERS, other))])]  # fmt: skip
    assert verbs == (["SELECT", "DELETE", "INSERT"] if inserted else ["UPDATE"])
    beside = Change(TABLE, row(FOLLOWERS, one), row(LEADERS, other, "_utf8mb4 x'61'"))
    assert [statement.sql.split()[0] for statement in statements(target, [beside])] == ["UPDATE"] or one == other
    more = replace(target, outside=("mine",))
    (kept,) = statements(more, [Change(TABLE, row(FOLLOWERS, one), row(LEADERS, other))])
    assert kept.sql.startswith("UPDATE")


def test_the_error_value_of_an_enum_needs_another_mode() -> None:
    change = Change(TABLE, FOLLOWER, image(LEADERS, "NULL", "0"))
    assert only(change).relaxed and not only(change.reversed).relaxed
    assert only(change._replace(before=None)).relaxed


def test_rows_that_belong_together_are_deleted_before_any_is_inserted() -> None:
    other = Change(TABLE, image("c" * 64, "NULL"), image("d" * 64, "NULL"))
    guard, *rest = statements(TARGET, [Change(TABLE, FOLLOWER, LEADER), other])
    assert guard.rows is None and "COUNT(*) = 2 AND" in guard.sql and "INTO @whole" in guard.sql
    assert [statement.sql.split()[0] for statement in rest] == ["DELETE", "DELETE", "INSERT", "INSERT"]
    assert all("WHERE @whole AND " in statement.sql and statement.rows == 1 for statement in rest)


@pytest.mark.parametrize(
    "before, after, verb, rows",
    [(0, 3, "INSERT", 3), (2, 3, "INSERT", 1), (3, 0, "DELETE", 3), (3, 1, "DELETE", 2)],
)
def test_copies_of_a_row(before: int, after: int, verb: str, rows: int) -> None:
    def side(copies: int) -> Image | None:
        return image(LEADERS, "NULL", copies=copies) if copies else None

    guard, statement = statements(HEAP, [Change(TABLE, side(before), side(after))])
    assert f"COUNT(*) = {int(before > 0)}" in guard.sql
    assert (f"('{LEADERS}', {before})" in guard.sql) == (before > 0)
    assert statement.sql.startswith(verb) and statement.rows == rows


def difference(**facts: object) -> Difference:
    row = dict(LEADER.row)
    whole: dict[str, object] = {
        "table": TABLE, "kind": "changed", "key": {"id": "1"}, "leader": row, "follower": row,
        "leader_hash": LEADERS, "follower_hash": FOLLOWERS, "evidence": EVIDENCE,
    }  # fmt: skip
    return Difference(**{**whole, **facts})


def test_a_difference_becomes_a_change() -> None:
    assert change_of(difference()) == Change(TABLE, Image(LEADER.row, FOLLOWERS, 1), LEADER, "b.1:4")
    missing = change_of(difference(kind="missing", follower=None, follower_hash=None))
    assert missing is not None and missing.before is None
    more = change_of(difference(kind="copies", copies=(3, 0), follower=None, follower_hash=None))
    assert more is not None and more.after is not None and (more.before, more.after.copies) == (None, 3)
    assert change_of(difference(follower_hash=None)) is None, "nothing can guard a row without a hash"


@pytest.mark.parametrize("wrong", ["1; DROP TABLE t", "'a'", "x'0g'", "_latin1 'a'", "NULL ", "1\n", ""])
def test_only_a_literal_becomes_sql(wrong: str) -> None:
    with pytest.raises(ValueError):
        change_of(difference(leader={**LEADER.row, "name": wrong}))


def test_only_a_hash_becomes_sql() -> None:
    with pytest.raises(ValueError):
        only(Change(TABLE, image("' OR 1=1 -- ", "NULL"), None))
