"""Row images against tables that are not simple."""

from __future__ import annotations

from typing import Any

import pytest
from fix_replay import COLUMNS, Stage, row
from kit.events import integer, string

from shared.errors import DivergedError


def test_a_table_without_a_key(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create("(id INT, name VARCHAR(20))")
    twice = row(1, "a")
    stage.log.add(stage.table, COLUMNS, twice, twice, row(1, "A"), row(1, "a "), row(None, None), row(2, "á"))
    stage.log.delete(stage.table, COLUMNS, twice)
    stage.log.update(stage.table, COLUMNS, (row(1, "a "), row(1, "b")), (row(None, None), row(7, None)))
    stage.replay()
    assert stage.rows(columns="id, name, hex(name)") == [
        (1, "a", "61"), (1, "A", "41"), (1, "b", "62"), (2, "á", "C3A1"), (7, None, None),
    ]  # fmt: skip
    stage.log.delete(stage.table, COLUMNS, row(2, "a"))
    with pytest.raises(DivergedError, match=r"Delete of \S+ \(id=2, name='a'\), sequence 5"):
        stage.replay()


def test_composite_and_text_keys(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create("(a INT, name VARCHAR(20), b INT, PRIMARY KEY (name, a))")
    columns = ("a", "name", "b")
    rows = [[integer(n), string(f"k'{n % 3}"), integer(n)] for n in range(1500)]
    stage.log.add(stage.table, columns, *rows)
    stage.log.delete(stage.table, columns, *rows[:1400])
    stage.log.update(stage.table, columns, *[(one, [one[0], one[1], integer(-1)]) for one in rows[1400:]])
    stage.replay()
    assert stage.rows(columns="MIN(b), COUNT(*)") == [(-1, 100)]


def test_generated_and_invisible_columns(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create(
        "(a INT, v INT AS (a + 1) VIRTUAL, s INT AS (a * 2) STORED, i INT INVISIBLE DEFAULT 5,"
        " ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (a))"
    )
    stage.create("(a INT, v INT AS (a + 1) VIRTUAL, s INT AS (a * 2) STORED PRIMARY KEY, i INT, ts TIMESTAMP)", "g")
    columns = ("a", "v", "s", "i", "ts")

    def image(a: int, i: int) -> list[Any]:
        moment = {"Timestamp": {"unix_time": 1_600_000_000, "subsecond": 0}}
        return [integer(a), integer(a + 1), integer(a * 2), integer(i), moment]

    for table in ("t", "g"):
        stage.log.add(f"{stage.database}.{table}", columns, image(1, 7), image(2, 8))
        stage.log.update(f"{stage.database}.{table}", columns, (image(1, 7), image(3, 9)))
        stage.log.delete(f"{stage.database}.{table}", columns, image(2, 8))
    stage.replay()
    for table in ("t", "g"):
        assert stage.rows(table, "a, v, s, i, unix_timestamp(ts)") == [(3, 4, 6, 9, 1_600_000_000)]


def test_the_error_value_of_an_enum(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create("(id INT PRIMARY KEY, e ENUM('a','','b'), name VARCHAR(3), wide CHAR(3) CHARACTER SET ucs2)")
    columns = ("id", "e", "name", "wide")
    # of whose character set MySQL warns
    wide = {"EncodedString": {"charset": "ucs2", "base64": "AGE="}}

    def image(number: int, index: int, name: str = "x") -> list[Any]:
        return [integer(number), {"Enum": index}, string(name), wide]

    with stage.log.transaction():
        stage.log.rows("Add", stage.table, columns, [image(1, 1), image(2, 0), image(3, 2), image(4, 0)])
        stage.log.rows("Update", stage.table, columns, [(image(1, 1), image(1, 0)), (image(2, 0), image(2, 3))])
        stage.log.rows("Delete", stage.table, columns, [image(4, 0)])
    stage.replay()
    assert stage.rows(columns="id, e + 0, name") == [(1, 0, "x"), (2, 3, "x"), (3, 2, "x")]
    stage.log.add(stage.table, columns, image(5, 0, "long"))
    with pytest.raises(DivergedError, match="would be altered"):
        stage.replay()
    assert len(stage.rows()) == 3


def test_foreign_keys_follow_the_leader(gtid_stage: Stage) -> None:
    """A cascade that the leader logged comes child first, unchecked; one it did not log happens here again."""
    stage = gtid_stage
    stage.create("(id INT PRIMARY KEY, name VARCHAR(20))")
    stage.create("(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id) ON DELETE CASCADE)", "c")
    child, columns = f"{stage.database}.c", ("id", "p")
    with stage.log.transaction():
        stage.log.rows("Add", child, columns, [[integer(n), integer(n)] for n in (1, 2)], foreign_key_checks=False)
        stage.log.rows("Add", stage.table, COLUMNS, [row(1, "a"), row(2, "b"), row(3, "c")])
        stage.log.rows("Delete", child, columns, [[integer(1), integer(1)]], foreign_key_checks=False)
        stage.log.rows("Delete", stage.table, COLUMNS, [row(1, "a")], foreign_key_checks=False)
        stage.log.rows("Delete", stage.table, COLUMNS, [row(2, "b")])
    stage.replay()
    assert stage.rows() == [(3, "c")]
    assert stage.rows("c") == []
    stage.log.add(child, columns, [integer(9), integer(9)])
    with pytest.raises(DivergedError, match="foreign key constraint fails"):
        stage.replay()


def test_a_table_that_refers_to_itself_is_deleted_in_order(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create("(id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES t (id))")
    columns = ("id", "up")
    images = [[integer(1), integer(None)], [integer(2), integer(1)], [integer(3), integer(2)]]
    stage.log.add(stage.table, columns, *images)
    stage.log.delete(stage.table, columns, *reversed(images))
    stage.replay()
    assert stage.rows() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("DROP TABLE {t}", "table {t} does not exist on the follower"),
        ("ALTER TABLE {t} DROP COLUMN name", "column {t}.name does not exist on the follower"),
        ("ALTER TABLE {t} ADD COLUMN extra INT NOT NULL", "column {t}.extra exists on the follower only"),
        ("ALTER TABLE {t} ENGINE=MyISAM", "is stored by MyISAM"),
        ("RENAME TABLE {t} TO {t}0; CREATE VIEW {t} AS SELECT * FROM {t}0", "of the follower is a VIEW"),
        ("CREATE TRIGGER {t}r BEFORE INSERT ON {t} FOR EACH ROW SET NEW.id = 1", "DROP TRIGGER"),
        ("ALTER TABLE {t} MODIFY name VARCHAR(10)", "is varchar(10) on the follower, which would alter"),
        ("ALTER TABLE {t} MODIFY id FLOAT", "is float on the follower, which would alter values of int"),
    ],
)
def test_a_table_that_cannot_take_the_rows_is_refused(gtid_stage: Stage, change: str, message: str) -> None:
    stage = gtid_stage
    stage.create()
    stage.replay()
    stage.server.execute("SET sql_log_bin = 0", *change.format(t=stage.table).split("; "))
    stage.log.add(stage.table, COLUMNS, row(1, "a"), types=["int", "varchar(20)"])
    with pytest.raises(DivergedError) as caught:
        stage.replay()
    assert message.format(t=stage.table) in str(caught.value)
    assert "sequence 2 (topic offset 2)" in str(caught.value)
    assert stage.position() == (1, 1)


def test_a_table_that_can_take_more_is_fine(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create()
    stage.replay()
    stage.server.execute(
        "SET sql_log_bin = 0", f"ALTER TABLE {stage.table} MODIFY name TEXT, ADD extra INT DEFAULT 3, MODIFY id BIGINT",
        f"ALTER TABLE {stage.table} ADD changed TIMESTAMP(6) NULL ON UPDATE CURRENT_TIMESTAMP(6)",
    )  # fmt: skip
    stage.log.add(stage.table, COLUMNS, row(1, "a"), types=["int", "varchar(20)"])
    stage.log.update(stage.table, COLUMNS, (row(1, "a"), row(1, "b")))
    stage.replay()
    # what is the follower's own is not changed by the leader's rows
    assert stage.rows() == [(1, "b", 3, None)]


def test_what_strict_mode_refuses_stops(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create("(id TINYINT PRIMARY KEY, name VARCHAR(20))")
    stage.log.add(stage.table, COLUMNS, row(1, "a"), row(300, "b"))
    with pytest.raises(DivergedError, match="Out of range value"):
        stage.replay()
    assert stage.rows() == []


def test_auto_increment_zero_stays_zero(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create("(id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20))")
    stage.log.add(stage.table, COLUMNS, row(0, "zero"), row(5, "five"))
    stage.replay()
    assert stage.rows() == [(0, "zero"), (5, "five")]


def test_a_value_that_is_none_stops(gtid_stage: Stage) -> None:
    stage = gtid_stage
    stage.create()
    stage.log.add(stage.table, COLUMNS, [{"SignedInteger": "1); DROP TABLE t"}, string("a")])
    with pytest.raises(Exception, match=r"holds a row of .* that cannot be written"):
        stage.replay()
