"""What excuses a follower: the leader's piece or the replica's, of a table also line by line."""

from __future__ import annotations

from trial.contents import Contents, Item
from trial.verdict import AS_NATIVE, DIFFERS, EQUAL, STOPPED, judge

TABLE, ROWS = Item("table", "test.t"), Item("rows", "test.t")
LEADER: Contents = {TABLE: "a\nb", ROWS: ["1"]}


def test_the_leader_is_the_measure() -> None:
    assert judge(LEADER, LEADER, {TABLE: "x\nb", ROWS: []}, (), "").kind == EQUAL


def test_the_replica_excuses() -> None:
    assert judge(LEADER, {**LEADER, ROWS: ["2"]}, {**LEADER, ROWS: ["2"]}, (), "").kind == AS_NATIVE
    assert judge(LEADER, {**LEADER, ROWS: ["2"]}, {**LEADER, ROWS: ["3"]}, (), "").kind == DIFFERS
    assert judge(LEADER, {TABLE: "a\nb"}, LEADER, (), "").items == (ROWS,)


def test_a_table_is_compared_by_lines() -> None:
    native = {**LEADER, TABLE: "x\ny"}
    assert judge(LEADER, {**LEADER, TABLE: "a\ny"}, native, (), "").kind == AS_NATIVE
    assert judge(LEADER, {**LEADER, TABLE: "a\nz"}, native, (), "").kind == DIFFERS
    assert judge(LEADER, {**LEADER, TABLE: "a\nb\ny"}, native, (), "").kind == DIFFERS


def test_a_replica_that_stopped_excuses_nothing() -> None:
    other = {**LEADER, ROWS: ["2"]}
    assert judge(LEADER, other, other, (), "an error").kind == DIFFERS


def test_a_stop_is_no_difference() -> None:
    verdict = judge(LEADER, {}, LEADER, ("cdc-consumer: no",), "")
    assert (verdict.kind, verdict.is_silent, verdict.native) == (STOPPED, False, "")
