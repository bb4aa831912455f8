"""Schemas as servers of any version tell of them: what is a difference, and what is the same said in other words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_consumer.parity.model import SchemaDifference, TableName
from cdc_consumer.parity.schema.compare import compare_schemas, schema_mends
from cdc_consumer.parity.schema.ddl import read_create_table, tokens
from cdc_consumer.parity.schema.records import (
    ColumnRecord,
    ConstraintRecord,
    Context,
    DatabaseRecord,
    KeyRecord,
    ObjectRecord,
    Schema,
    TableRecord,
)
from shared.errors import CdcError
from shared.mysql import quote_name

NAME = TableName("d", "t")


def schema(
    *, table: str | None = None, objects: tuple[ObjectRecord, ...] = (), runs_events: bool = False, **column: Any
) -> Schema:
    """One database; of the table the text of SHOW CREATE and the facts of its only column."""
    tables = {} if table is None else {NAME: table_of(table, **column)}
    database = DatabaseRecord("d", "utf8mb4", "utf8mb4_0900_ai_ci", False)
    return Schema({"d": database}, tables, {(each.kind, each.name): each for each in objects}, runs_events)


def table_of(sql: str, table_collation: str = "utf8mb4_0900_ai_ci", **facts: Any) -> TableRecord:
    create = read_create_table(sql)
    own = {
        "type": "int",
        "data_type": "int",
        "charset": None,
        "collation": None,
        "nullable": True,
        "generated": "",
        "auto_increment": False,
    }
    others = {"invisible": False, "srs_id": None, "comment": ""}
    columns = tuple(
        ColumnRecord(name=name, definition=line, **{**own, **others, **facts}) for name, line in create.columns.items()
    )
    keys = tuple(KeyRecord(name, "UNIQUE" in line, ("a",), True, line) for name, line in create.keys.items())
    constraints = tuple(ConstraintRecord(*each) for each in create.constraints)
    return TableRecord(
        NAME, "InnoDB", table_collation, "", 0, columns, keys, constraints, create.options, create.partitioning, sql
    )


def compare(leader: Schema, follower: Schema) -> list[SchemaDifference]:
    found = compare_schemas(leader, follower)
    assert bool(schema_mends(leader, follower)) == any(each.fix for each in found)
    return found


OLD = """CREATE TABLE `t` (
  `a` int(11) DEFAULT NULL,
  KEY `a` (`a`) USING BTREE,
  CONSTRAINT `t_chk_2` CHECK ((`a` > _utf8mb3'1'))
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8
/*!50100 PARTITION BY KEY (a)
PARTITIONS 4 */"""
NEW = """CREATE TABLE `t` (
  `a` int DEFAULT NULL,
  KEY `a` (`a`),
  CONSTRAINT `t_chk_1` CHECK ((`a`  >  _utf8mb4'1'))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb3
/*!50100 PARTITION BY KEY (a) PARTITIONS 4 */"""


def test_versions_say_the_same_in_other_words() -> None:
    old = schema(table=OLD, type="int(11)", table_collation="utf8_general_ci")
    assert compare(old, schema(table=NEW, table_collation="utf8mb3_general_ci")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("int(11) unsigned", "int unsigned"),
        ("year(4)", "year"),
        ("geometrycollection", "geomcollection"),
        ("int(5) zerofill", "int(5) zerofill"),
    ],
)
def test_types_of_all_versions(old: str, new: str) -> None:
    assert compare(schema(table=NEW, type=old), schema(table=NEW, type=new)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [("enum('int(5)')", "enum('int(6)')"), ("int(5) zerofill", "int(6) zerofill"), ("decimal(9,2)", "decimal(9,3)")],
)
def test_types_that_differ(one: str, other: str) -> None:
    (found,) = compare(schema(table=NEW, type=one), schema(table=NEW, type=other))
    assert (found.grade, found.object, found.name) == ("breaking", "column", "a")
    assert found.text == f"column d.t.a is {other} on the follower, not {one}"


def test_a_character_set_is_spelled_out_where_the_table_would_decide() -> None:
    leader = "CREATE TABLE `t` (\n  `b,(` enum('x)','y') NOT NULL DEFAULT 'y' COMMENT 'CHARACTER SET'\n) ENGINE=InnoDB"
    facts = {"type": "enum('x)','y')", "data_type": "enum", "charset": "latin1", "collation": "latin1_bin"}
    (missing, extra) = compare(
        schema(table=leader, **facts), schema(table="CREATE TABLE `t` (\n  `z` int\n) ENGINE=InnoDB")
    )
    assert missing.fix == (
        "ALTER TABLE `d`.`t` ADD COLUMN `b,(` enum('x)','y') CHARACTER SET latin1 COLLATE latin1_bin"
        " NOT NULL DEFAULT 'y' COMMENT 'CHARACTER SET' FIRST;"
    )
    assert extra.fix == "ALTER TABLE `d`.`t` DROP COLUMN `z`;"


def test_a_new_table_has_no_counter() -> None:
    (found,) = compare(schema(table=OLD), schema())
    assert found.fix.startswith("CREATE TABLE `d`.`t` (\n  `a` int(11)")
    assert "AUTO_INCREMENT" not in found.fix
    comment = "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB COMMENT='no AUTO_INCREMENT=5 '"
    (found,) = compare(schema(table=comment), schema())
    assert found.fix == comment.replace("`t`", "`d`.`t`") + ";"


CONTEXT = Context("", "utf8mb4_0900_ai_ci", "utf8mb4_0900_ai_ci", "SYSTEM")
EVENT = ObjectRecord(
    "EVENT", TableName("d", "e"),
    "CREATE DEFINER=`a`@`%` EVENT `e` ON SCHEDULE EVERY 1 DAY ON COMPLETION NOT PRESERVE ENABLE DO DELETE FROM t",
    CONTEXT, status="ENABLED",
)  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "ours", "runs", "grade"),
    [
        ("ENABLED", "ENABLED", False, None),
        ("ENABLED", "ENABLED", True, "behaviour"),
        ("DISABLED", "ENABLED", True, "behaviour"),
        ("DISABLED", "ENABLED", False, "behaviour"),
        ("ENABLED", "DISABLED", False, "behaviour"),
        ("ENABLED", "DISABLED", True, "expected"),
        ("ENABLED", "SLAVESIDE_DISABLED", False, "expected"),
        ("ENABLED", "REPLICA_SIDE_DISABLED", True, "expected"),
        ("DISABLED", "REPLICA_SIDE_DISABLED", True, None),
        ("DISABLED", "DISABLED", True, None),
    ],
)
def test_an_event_must_not_run_twice(theirs: str, ours: str, runs: bool, grade: str | None) -> None:
    words = {
        "ENABLED": "ENABLE",
        "DISABLED": "DISABLE",
        "SLAVESIDE_DISABLED": "DISABLE ON SLAVE",
        "REPLICA_SIDE_DISABLED": "DISABLE ON REPLICA",
    }
    leader, follower = (
        replace(EVENT, status=status, definition=EVENT.definition.replace("ENABLE", words[status]))
        for status in (theirs, ours)
    )
    found = compare(schema(objects=(leader,)), schema(objects=(follower,), runs_events=runs))
    assert [each.grade for each in found] == ([grade] if grade else [])


def test_an_event_is_created_asleep_where_it_would_run() -> None:
    (found,) = compare(schema(objects=(EVENT,)), schema())
    assert " ENABLE DO" in found.fix
    (found,) = compare(schema(objects=(EVENT,)), schema(runs_events=True))
    assert "EVENT `d`.`e` ON SCHEDULE EVERY 1 DAY ON COMPLETION NOT PRESERVE DISABLE DO DELETE FROM t" in found.fix


def test_views_are_created_after_those_they_read() -> None:
    names = ["a", "b", "c"]
    views = [
        ObjectRecord("VIEW", TableName("d", name), f"CREATE VIEW `d`.`{name}` AS select 1 from `d`.`{needed}`", CONTEXT)
        for name, needed in zip(names, ["b", "c", "t"], strict=True)
    ]
    created = [
        sql[:22]
        for mend in schema_mends(schema(objects=tuple(views)), schema())
        for sql in mend.sql
        if sql.startswith("CREATE")
    ]
    assert created == [f"CREATE VIEW `d`.`{name}` AS" for name in reversed(names)]


def test_a_line_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(CdcError, match="PERIOD FOR"):
        read_create_table("CREATE TABLE `t` (\n  `a` int,\n  PERIOD FOR SYSTEM_TIME (`a`)\n) ENGINE=InnoDB")


NAMES = st.text("ab `,()'\"\n/*!é", min_size=1)
STRINGS = st.text("ab',()`\\\n/*!;é").map(lambda text: "'" + text.replace("\\", "\\\\").replace("'", "''") + "'")


@st.composite
def created(draw: st.DrawFn) -> tuple[dict[str, str], str]:
    """Columns and the CREATE TABLE that has them."""
    names = draw(st.lists(NAMES, min_size=1, unique=True))
    lines = {
        name: f"{quote_name(name)} char(9) DEFAULT {draw(STRINGS)} /*!80023 INVISIBLE */ COMMENT {draw(STRINGS)}"
        for name in names
    }
    body = ",\n  ".join([*lines.values(), f"PRIMARY KEY ({quote_name(names[0])})"])
    return lines, f"CREATE TABLE {quote_name(draw(NAMES))} (\n  {body}\n) ENGINE=InnoDB COMMENT={draw(STRINGS)}"


@given(created())
def test_any_name_and_any_string_is_read(created: tuple[dict[str, str], str]) -> None:
    lines, sql = created
    table = read_create_table(sql)
    assert table.columns == lines
    assert list(table.keys) == ["PRIMARY"]
    assert (table.constraints, table.partitioning) == ((), "")
    assert sql.endswith(f"\n) {table.options}")
    assert list(ends(sql)) == sorted(ends(sql))


def ends(sql: str) -> Iterator[int]:
    return (token.end for token in tokens(sql))
