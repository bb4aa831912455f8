"""Reading MySQL's test language, writing it, and shortening what is written."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from trial.invent.inventor import invent
from trial.script import FIRST, Step, read_script, write_script
from trial.shrink import first_faulty, shrink

TEST_FILE = b"""
# a comment; with a delimiter
--source include/have_log_bin.inc
--let $table = t1
let $engine= InnoDB;
let $id= `SELECT CONNECTION_ID()`;
CREATE TABLE t (a INT) # inside
ENGINE=InnoDB;
--error ER_DUP_ENTRY
INSERT INTO t VALUES ('it''s; \\'one\\''), ("two;");
eval CREATE TABLE $table (a INT) ENGINE=$engine;
--eval KILL $id
delimiter |;
CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END|
delimiter ;|
while ($n)
{
  INSERT INTO t VALUES (1);
  if ($n == 2) { INSERT INTO t VALUES (2); }
  dec $n;
}
connect (con1,localhost,root,,mysql);
BEGIN;
connection default;
perl;
  print "SELECT 1;";
EOF
--connection slave
SELECT 'on the replica';
--source include/rpl/connection_source.inc
send SELECT 3;
disconnect con1;
/* a comment; it's one */ SELECT 4;
exit;
SELECT 'never';
"""


def test_a_test_file() -> None:
    script = read_script(TEST_FILE)
    assert script.steps == [
        Step(FIRST, b"CREATE TABLE t (a INT) # inside\nENGINE=InnoDB"),
        Step(FIRST, b"""INSERT INTO t VALUES ('it''s; \\'one\\''), ("two;")"""),
        Step(FIRST, b"CREATE TABLE t1 (a INT) ENGINE=InnoDB"),
        Step(FIRST, b"CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END"),
        Step("con1", b"USE `mysql`"),
        Step("con1", b"BEGIN"),
        Step(FIRST, b"SELECT 3"),
        Step("con1", None),
        Step(FIRST, b"/* a comment; it's one */ SELECT 4"),
    ]
    # KILL of a connection nobody knows, two blocks with a statement each, and the replica's
    assert (script.taken, script.skipped) == (8, 6)


def test_plain_sql() -> None:
    text = b"-- a comment\nSELECT 1;\nDELIMITER //\nSELECT 2; SELECT 3//\nDELIMITER ;\nSELECT 4"
    assert [step.sql for step in read_script(text).steps] == [b"SELECT 1", b"SELECT 2; SELECT 3", b"SELECT 4"]


@given(st.integers(0, 1 << 32))
def test_what_is_invented_is_read_as_it_was_written(seed: int) -> None:
    steps = invent(random.Random(seed), 20)
    assert steps == invent(random.Random(seed), 20)
    assert read_script(write_script(steps, ["a heading"])).steps == steps


@given(st.sets(st.integers(0, 40), min_size=1, max_size=5), st.integers(41, 60))
def test_only_what_a_fault_needs_is_kept(needed: set[int], length: int) -> None:
    steps = [Step(FIRST, str(number).encode()) for number in range(length)]

    def shows(some: object) -> bool:
        return needed <= {int(step.sql or b"") for step in some}

    assert first_faulty(steps, shows) == max(needed)
    assert [int(step.sql or b"") for step in shrink(steps, shows)] == sorted(needed)
